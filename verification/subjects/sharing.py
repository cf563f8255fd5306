"""Plays scripts that begin alike together: what they share is played once, and copied from there.

A suite walks the same ways again and again: more than half of its steps repeat what the script
before has played. So scripts are played in their order, and each goes on from where it parts from
an earlier one: a copy of the subject was left there for it.

That is honest only of a subject whose copies are known to be copies: our own kernel, which
tests/verification/subjects/test_sharing.py holds to it. Nobody else's is asked for one here, not
even where it declares CLONE: a copy that forgets what makes its kernel err would hide it, and what
scripts say must not hang on that. A command can be copied by nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self, runtime_checkable

import attrs

from .subject import Raw, Script, Subject


@runtime_checkable
class Cloneable(Subject, Protocol):
    """A subject that can copy itself, whether or not it declares so."""

    def clone(self) -> Self:
        """Return a copy that shares nothing that changes."""
        ...


@attrs.define
class Together:
    """Scripts that are played together; after a crash it says what was answered before it."""

    scripts: Sequence[Script]
    answers: list[list[Raw]] = attrs.field(factory=list[list[Raw]])
    """Of the scripts that were played, in their order."""
    receipts: list[Raw] = attrs.field(factory=list[Raw])
    """Of the script that is played now."""

    def play(
        self, begin: Callable[[], Cloneable], answer: Callable[[Cloneable, Raw], Raw]
    ) -> list[list[Raw]]:
        """Play all, on subjects that `begin` makes and copies of them; `answer` asks one."""
        left: list[tuple[Cloneable, list[Raw]]] = []
        for script, (begins, others) in zip(self.scripts, partings(self.scripts), strict=True):
            subject, receipts = left.pop() if begins else (begin(), [])
            self.receipts = receipts
            for delivery in script[begins:]:
                while others and others[-1] == len(receipts):
                    others.pop()
                    left.append((subject.clone(), receipts.copy()))
                receipts.append(answer(subject, delivery))
            left += [(subject.clone(), receipts.copy()) for _ in others]
            self.answers.append(receipts)
        return self.answers


Parting = tuple[int, list[int]]
"""After how many steps a script parts from an earlier one, and others then from it: the last of
them first."""


def partings(scripts: Sequence[Script]) -> list[Parting]:
    """Return where each script parts from the latest one that takes the step before the parting."""
    found: list[Parting] = []
    open_: list[Parting] = []
    before: Script = ()
    for script in scripts:
        at = shared(before, script)
        while open_ and open_[-1][0] >= at:
            open_.pop()
        if at:
            open_[-1][1].append(at)
        found.append((at, []))
        open_.append(found[-1])
        before = script
    return found


def shared(one: Script, other: Script) -> int:
    """Return with how many deliveries both begin: with the same objects, not with equal ones.

    To `==` a result of 1 is one of true, and texts cost more than they would save.
    """
    steps = 0
    for mine, its in zip(one, other, strict=False):
        if mine is not its:
            break
        steps += 1
    return steps
