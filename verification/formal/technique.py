"""TLC explores the hand-written specification, we explore the kernel, over one scope: to the digit.

Two texts that share nothing but the rules: where they differ, one of them says something else than
kernel.md does. Compared are the states, and the transitions of each action by itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from ..errors import HarnessFailed
from ..exports.checkers import ToolMissing, run_tlc
from ..findings import Status
from .explore import Walk, explore
from .scope import MODULE, Scope, text_of

_OF_ACTION: Final = re.compile(r"^<(\w+) line [^>]*>: \d+:(\d+)$", re.MULTILINE)


@attrs.frozen(kw_only=True)
class Comparison:
    """What TLC counted of the specification over one scope, against what we did of the kernel.

    `counted` is None where TLC is not here (`missing` says how to get it) or found the
    specification itself to be wrong (`broken` says where).
    """

    scope: Scope
    ours: Walk
    counted: Walk | None = None
    missing: str = ""
    broken: str = ""

    @property
    def differences(self) -> tuple[str, ...]:
        """Return what speaks against either, a sentence each; empty if nothing does."""
        if self.broken:
            return (self.broken,)
        its, ours = self.counted, self.ours
        if its is None or its == ours:
            return ()
        told: list[str] = []
        if its.states != ours.states:
            told.append(f"TLC meets {its.states:,} states of the specification, we {ours.states:,}")
        for action in sorted({*its.actions, *ours.actions}):
            specified, done = its.actions.get(action, 0), ours.actions.get(action, 0)
            if specified != done:
                told.append(f"{action}: {specified:,} by the specification, {done:,} by the kernel")
        return tuple(told)

    @property
    def status(self) -> Status:
        """Say how it ended."""
        if self.differences:
            return Status.VIOLATED
        return Status.NOT_DONE if self.missing else Status.HOLDS


def compare(scope: Scope, workdir: Path) -> Comparison:
    """Explore both. TLC writes below `workdir` alone. Raises `HarnessFailed` when it fails."""
    ours = explore(scope)
    try:
        run = run_tlc(files_of(scope), workdir.resolve(), MODULE, "-coverage", "60")
    except ToolMissing as error:
        return Comparison(scope=scope, ours=ours, missing=str(error))
    if run.broken:
        return Comparison(scope=scope, ours=ours, broken=run.fault)
    count = run.count
    counted = Walk(states=count.states, actions=counted_actions(run.said))
    if counted.transitions != count.transitions:
        raise HarnessFailed(
            f"TLC counts {count.transitions} transitions, and {counted.transitions} by action"
        )
    return Comparison(scope=scope, ours=ours, counted=counted)


def files_of(scope: Scope, specification: str | None = None) -> dict[str, str]:
    """Return what TLC reads: the specification, or another text of it, and the scope."""
    text = text_of(f"{MODULE}.tla") if specification is None else specification
    return {f"{MODULE}.tla": text, f"{MODULE}.cfg": scope.text}


def counted_actions(said: str) -> Mapping[str, int]:
    """Read the transitions of each action from the last statistics that TLC printed."""
    last = said[said.rindex("The coverage statistics") :]
    actions: Counter[str] = Counter()
    for action, generated in _OF_ACTION.findall(last):
        if action != "Init" and generated != "0":
            actions[action] += int(generated)
    return actions
