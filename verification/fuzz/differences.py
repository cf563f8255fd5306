"""Holds a system's receipts against the oracle's, and makes a finding of the first that differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ..errors import NotDeterministic
from ..findings import NO_ANSWER, UNSTEADY, Finding
from ..judging import active
from ..oracle.oracle import Oracle
from ..oracle.reading import canonical
from ..oracle.wording import well_formed
from ..rulebook import accused, first_difference
from ..subjects.child import LAST_WORDS
from ..subjects.sharing import shared
from ..subjects.subject import Raw, Script
from ..subjects.watched import no_answer

LONGEST_SHARED: Final = 200
"""Steps of a script of which the oracle is kept at each (K-6)."""

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def alike(expected: Raw, got: Raw) -> bool:
    """Whether two receipts are the same: whole, as JSON.

    What is not the same to the byte is asked of the rulebook, which knows that 1 and 1.0 are one
    number to a kernel in another language, but that true is none.
    """
    return _same(expected, got) or first_difference(expected, got) is None


def _same(one: object, other: object) -> bool:
    """Whether two values are equal and of the same types: to Python alone, 1 is true."""
    return one == other and _encode(one) == _encode(other)


def expected_receipts(run: Raw, script: Script) -> list[Raw]:
    """Return what the oracle answers to a script: to be read only."""
    oracle = Oracle(run)
    return [_expected(oracle, delivery) for delivery in script]


def _expected(oracle: Oracle, delivery: Raw) -> Raw:
    """Ask the oracle without its copies: nobody changes what goes in, nor what comes out."""
    if delivery["type"] == "recover":
        return oracle.receive(delivery)
    return oracle.answer(well_formed(delivery), float(delivery["now"]))


class Expected:
    """What the oracle answers to scripts for one run; what two share from their start, once.

    Shared are the very same deliveries, which nobody may change meanwhile.
    """

    def __init__(self, run: Raw) -> None:
        """Have been asked nothing."""
        self._run = run
        self._script: list[Raw] = []
        self._receipts: list[Raw] = []
        self._oracles = [Oracle(run)]
        """Where the latest script stood before each of its steps, and after the last."""

    def receipts(self, script: Script) -> list[Raw]:
        """Return the receipts of a script, which goes on from the one before where they part."""
        if len(script) > LONGEST_SHARED:
            return expected_receipts(self._run, script)
        at = shared(self._script, script)
        del self._script[at:], self._receipts[at:], self._oracles[at + 1 :]
        for delivery in script[at:]:
            oracle = self._oracles[-1].clone()
            self._receipts.append(_expected(oracle, delivery))
            self._script.append(delivery)
            self._oracles.append(oracle)
        return self._receipts.copy()


def difference(
    run: Raw,
    script: Script,
    expected: Sequence[Raw],
    got: Sequence[Raw],
    *,
    technique: str,
) -> Finding | None:
    """Return the first step that was answered otherwise, with the script that ends there.

    The answers of a system that crashed may be fewer than the steps (`watched`). What was judged of
    the script is counted (`judging`).
    """
    found = _difference(run, script, expected, got, technique)
    tally = active()
    if tally is not None and got:
        tally.script(script, expected, found)
    return found


def _difference(
    run: Raw, script: Script, expected: Sequence[Raw], got: Sequence[Raw], technique: str
) -> Finding | None:
    if _same(expected, got):
        return None
    for step, received in enumerate(got):
        last = min(step, len(script) - 1)  # it may crash behind the last step
        played = tuple(script[: last + 1])
        failure = no_answer(received)
        if failure:
            return unanswered(technique, run, played, expected[last], failure)
        if not alike(expected[step], received):
            return accused(technique, run, played, expected[step], received)
    return None


def unanswered(
    technique: str, run: Raw, script: tuple[Raw, ...], expected: Raw, failure: str
) -> Finding:
    """Return the finding of a crash at the last step: it breaks no rule."""
    how, _, more = failure.partition("\n")
    if how.endswith(LAST_WORDS):  # the last line says what it was, with Python as with Node
        how = f"{how.removesuffix(LAST_WORDS)}: {more.splitlines()[-1].strip()}"
    return Finding(
        technique=technique,
        rule=NO_ANSWER,
        message=f"{script[-1]['type']} was not answered: it {how}",
        run=run,
        script=script,
        expected=expected,
        got=failure,
    )


def refuse_unlike(run: Raw, script: Script, once: Sequence[Raw], again: Sequence[Raw]) -> None:
    """Raise `NotDeterministic` when a script was answered in two ways, with both answers.

    Compared are the steps that were answered both times: what crashed, or came after a crash in
    its batch, is no answer.
    """
    for step, (first, second) in enumerate(zip(once, again, strict=False)):
        if no_answer(first) or no_answer(second):
            return
        if canonical(first) != canonical(second):
            raise unsteady(run, script[: step + 1], first, second)


def unsteady(run: Raw, script: Script, first: Raw, second: Raw) -> NotDeterministic:
    """Return the error that tells of the last step of a script, which was answered in two ways."""
    step, kind = len(script), script[-1]["type"]
    message = f"the same script was answered in two ways, first at step {step}, {kind}"
    shown = Finding(
        technique="",
        rule=UNSTEADY,
        message=message,
        run=run,
        script=tuple(script),
        expected=first,
        got=second,
    )
    return NotDeterministic(message, shown=shown)
