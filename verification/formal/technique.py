"""TLC explores the hand-written specification, we explore the kernel, over one scope: to the digit.

Two texts that share nothing but the rules: where they differ, one of them says something else than
kernel.md does. Compared are the states, and the transitions of each action by itself.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

import attrs

from ..errors import HarnessFailed
from ..exports.checkers import ToolMissing, run_tlc
from ..findings import Status
from .explore import Seen, Step, Walk, explore
from .scope import MODULE, Scope, text_of

_TOLD: Final = re.compile(r'^"<<.*>>"$', re.MULTILINE)
_AS_JSON: Final = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        (r"\{", '{"of": ['),
        (r"\}", "]}"),
        (r"<<", "["),
        (r">>", "]"),
        (r"\bTRUE\b", "true"),
        (r"\bFALSE\b", "false"),
        (r"\bNone\b", "null"),
    )
)
"""What of the text of a value is written otherwise in JSON; no word of ours holds any of it."""
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
        for who, one, other in (("the specification", its, ours), ("the kernel", ours, its)):
            alone = [step for step, times in one.steps.items() if other.steps.get(step, 0) < times]
            if alone:
                before, facts, after = min(alone, key=str)
                told.append(
                    f"{len(alone):,} steps of {who} are not, or not as often, those of the other, "
                    f"such as {before} → {facts} → {after}"
                )
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
    counted = Walk(
        states=count.states, actions=counted_actions(run.said), steps=told_steps(run.said)
    )
    told = counted.steps.values()
    if not count.transitions == counted.transitions == sum(told):
        raise HarnessFailed(
            f"TLC counts {count.transitions} transitions, {counted.transitions} by action, and "
            f"tells {sum(told)}"
        )
    return Comparison(scope=scope, ours=ours, counted=counted)


def files_of(scope: Scope, specification: str | None = None) -> dict[str, str]:
    """Return what TLC reads: the specification, or another text of it, and the scope."""
    text = text_of(f"{MODULE}.tla") if specification is None else specification
    return {f"{MODULE}.tla": text, f"{MODULE}.cfg": f"{scope.text}ACTION_CONSTRAINT Told\n"}


def counted_actions(said: str) -> Mapping[str, int]:
    """Read the transitions of each action from the last statistics that TLC printed."""
    last = said[said.rindex("The coverage statistics") :]
    actions: Counter[str] = Counter()
    for action, generated in _OF_ACTION.findall(last):
        if action != "Init" and generated != "0":
            actions[action] += int(generated)
    return actions


def told_steps(said: str) -> Mapping[Step, int]:
    """Read the steps that ``Told`` printed: values of TLA+ that are nearly JSON."""
    steps: Counter[Step] = Counter()
    known: dict[str, Seen] = {}
    for line in _TOLD.findall(said):
        text = known.get(line)
        if text is None:
            value = json.loads(line)
            for pattern, written in _AS_JSON:
                value = pattern.sub(written, value)
            text = known[line] = _read(json.loads(value))
        steps[cast("Step", text)] += 1
    return steps


def _read(value: object) -> Seen:
    """Make tuples of lists; a set is an object with one list in it."""
    if isinstance(value, dict):
        return frozenset(map(_read, cast("dict[str, list[object]]", value)["of"]))
    if isinstance(value, list):
        return tuple(map(_read, cast("list[object]", value)))
    return value
