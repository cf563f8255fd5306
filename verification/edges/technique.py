"""Edges as a technique of `turnlock verify`: black box, the same scripts each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Final, cast

import attrs

from ..alphabet.slice import RECOVER
from ..findings import NO_ANSWER, Coverage, Finding, Profile, Progress, Result, Status
from ..fuzz.differences import difference
from ..fuzz.shorten import confirm, shortened
from ..judging import not_counted
from ..oracle.oracle import Oracle
from ..rulebook.attribution import REASON_RULES
from ..rulebook.difference import first_difference
from ..rulebook.payloads import WIRE
from ..subjects.subject import Capability, Driver, Raw, Script
from ..subjects.watched import hangs, watched
from .edge import Edge
from .edges import EDGES
from .plainer import plainer

TECHNIQUE: Final = "edges"
PLAYS: Final = 1_000
"""Scripts that are played, at most, to make one finding shorter."""
MAX_SHORTENED: Final = 10
"""Findings that are made shorter: a system with more is asked for the first of them first."""
MAX_STEPS: Final = 120
"""Steps of a script that is also played with a crash after each, and whose failure is shortened."""
_FIELDS: Final = frozenset({"effect_id", "idempotency_key", "result", "error"})
"""Fields with a rule of their own: what ids are made of (K-7), and outcomes, told as they came."""
_OUTCOMES: Final = frozenset({"TOOL_EXECUTION_SUCCEEDED", "TOOL_EXECUTION_FAILED"})
"""Facts of which one in the other's place has a rule of its own (K-30, K-36)."""

GUARANTEE: Final = (
    "Each of these scripts was answered as kernel.md says, and, where the system recovers, with a "
    "crash after every step too. They are examples, chosen for what the alphabets do not reach: "
    "absent and odd values, ids that look alike, real clocks, sizes. Other values may differ."
)


def edges_of(profile: Profile) -> tuple[Edge, ...]:
    """Return the scripts of a profile: all, but for `dev` those that take a second each."""
    return tuple(edge for edge in EDGES if profile is not Profile.DEV or not edge.large)


def check(
    driver: Driver,
    *,
    profile: Profile,
    progress: Progress,
    seed: int = 0,
    edges: Sequence[Edge] | None = None,
) -> Result:
    """Play the edges, each on its own, and tell every one that is answered otherwise.

    Nothing is drawn: `seed` changes nothing. A system that fails in one script is asked the others
    all the same, unless it hangs. Raises `NotDeterministic` when a script is answered in two ways.
    """
    del seed
    began = perf_counter()
    played = Played(driver)
    for edge in edges_of(profile) if edges is None else edges:
        progress(f"{edge.name}: {played.scripts} scripts, {played.steps} steps")
        played.play(edge)
        if played.found and hangs(played.found[-1][1]):
            break
    findings = tuple(played.told(progress))
    return Result(
        technique=TECHNIQUE,
        status=Status.VIOLATED if findings else Status.HOLDS,
        guarantee=GUARANTEE,
        figures={"edges": played.edges, "scripts": played.scripts, "steps": played.steps},
        findings=findings,
        coverage=Coverage(reasons={reason: played.reasons[reason] for reason in REASON_RULES}),
        seconds=perf_counter() - began,
    )


def first_failure(driver: Driver, *, profile: Profile) -> Finding | None:
    """Return what the first of the edges finds that finds anything, as it was found."""
    played = Played(driver)
    for edge in edges_of(profile):
        played.play(edge)
        if played.found:
            return played.found[0][1]
    return None


def _silent(_: str) -> None:
    """Tell nobody."""


@attrs.define
class Played:
    """What was played so far, and what was found."""

    driver: Driver
    edges: int = 0
    scripts: int = 0
    steps: int = 0
    found: list[tuple[Edge, Finding]] = attrs.field(factory=list[tuple[Edge, Finding]])
    reasons: Counter[str] = attrs.field(factory=Counter[str])
    """How often the oracle refused with each reason."""

    def play(self, edge: Edge) -> None:
        """Play one script as it is, then with its crashes; what fails as it is fails once."""
        recovers = Capability.RECOVER in self.driver.capabilities
        self.edges += 1
        for script, expected in _forms(edge, recovers=recovers):
            self.scripts += 1
            self.steps += len(script)
            self.reasons.update([it["reason"] for it in expected if not it["accepted"]])
            finding = self._finding(edge, script, expected)
            if finding is not None:
                self.found.append((edge, finding))
                return

    def _finding(self, edge: Edge, script: Script, expected: list[Raw]) -> Finding | None:
        (got,) = watched(self.driver).play(edge.run, [script])
        return difference(edge.run, script, expected, got, technique=TECHNIQUE)

    def told(self, progress: Progress = _silent) -> Iterable[Finding]:
        """Yield the findings, shorter where that is soon done, each with its script's name."""
        for number, (edge, found) in enumerate(self.found):
            confirm(self.driver, found)
            finding = found
            if number < MAX_SHORTENED and len(found.script) <= MAX_STEPS:
                progress(f"{edge.name}: making the failure shorter")
                finding = shortened(found, self.driver, plays=PLAYS)
            rules = dict.fromkeys((self._rule(edge, finding), finding.rule, *finding.also))
            rule, *also = rules
            message = f"{finding.message} (edge: {edge.name})"
            yield attrs.evolve(finding, rule=rule, also=tuple(also), message=message)

    def _rule(self, edge: Edge, finding: Finding) -> str:
        """Name the script's own rule where it is the edge that makes the difference.

        The control is the same story in plain words: what goes wrong there, too, is left with the
        rule that it breaks.
        """
        if finding.rule in {*edge.rules, NO_ANSWER, WIRE} or _says_itself(finding):
            return finding.rule
        run, script = plainer(finding.run, finding.script)
        if script == list(finding.script):
            return finding.rule
        (got,) = watched(self.driver).play(run, [script])
        _, expected = _answered(run, script)
        with not_counted():
            plain = difference(run, script, expected, got, technique=TECHNIQUE)
        return finding.rule if plain is not None else edge.rules[0]


def _says_itself(finding: Finding) -> bool:
    """Whether what differs first has its rule wherever it stands: such a field, or an outcome."""
    found = first_difference(finding.expected, finding.got)
    if found is None or found.field:
        return found is not None and found.field in _FIELDS
    expected, got = found.expected, found.got
    if not isinstance(expected, dict) or not isinstance(got, dict):
        return False
    return {cast("Raw", expected).get("type"), cast("Raw", got).get("type")} <= _OUTCOMES


def _forms(edge: Edge, *, recovers: bool) -> Iterable[tuple[list[Raw], list[Raw]]]:
    """Yield an edge as it is and with a crash after every step, and the right receipts of each."""
    script = [step for step in edge.steps if recovers or step != RECOVER]
    owed, expected = _answered(edge.run, script, keep=recovers and len(script) <= MAX_STEPS)
    yield script, expected
    if owed:
        crashing: list[Raw] = []
        receipts: list[Raw] = []
        for step, receipt, left in zip(script, expected, owed, strict=True):
            crashing += [step, RECOVER]
            receipts += [receipt, {"accepted": True, "facts": [], "effects": left}]
        yield crashing, receipts


def _answered(
    run: Raw, script: Iterable[Raw], *, keep: bool = False
) -> tuple[list[list[Raw]], list[Raw]]:
    """Return what the oracle owes after each step, where that is kept, and what it answers."""
    oracle = Oracle(run)
    owed: list[list[Raw]] = []
    receipts: list[Raw] = []
    for step in script:
        receipts.append(oracle.receive(step))
        if keep:
            owed.append(oracle.pending())
    return owed, receipts
