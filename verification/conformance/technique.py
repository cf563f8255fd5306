"""The conformance suite as a technique: black box, over every slice that a profile holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Final

import attrs

from ..alphabet.slices import DEV, SLICES
from ..findings import NO_ANSWER, Finding, Profile, Progress, Result, Status
from ..fuzz.shorten import confirm, shortened
from ..subjects.subject import Capability, Driver
from .playing import (
    BATCH,
    TECHNIQUE,
    check_determinism,
    failures,
    first_failure,
    shortest,
)
from .reach import Reach
from .suite import Suite, distinct_steps, suite

__all__ = ["TECHNIQUE", "Suite", "check", "first_failure", "suite", "suites"]

MAX_STEPS: Final = 4_000_000
"""What a suite of k = 1 may take: it is generated for the slices where it takes no more."""
MAX_FINDINGS: Final = 10
"""How many are told: one a slice, no two alike."""
MAX_FAILURES: Final = 50
"""Tests of one slice that may fail before the rest of it is left out."""
PLAYS: Final = 2_000
"""Scripts that are played, at most, to make one finding shorter."""
LEFT_UNSAID: Final = (
    "It says nothing about interactions outside of these alphabets: each slice is a claim of its "
    "own. Times, sequence numbers and epochs are compared exactly in every test, and left out of "
    "what a state is."
)


def suites(profile: Profile, *, recovers: bool = True) -> Iterator[Suite]:
    """Generate the suites of a profile; without `recover` for systems that do not declare it.

    At night k is 1 where the suite takes at most `MAX_STEPS` steps, else 0.
    """
    for part in DEV if profile is Profile.DEV else SLICES:
        kept = part if recovers else part.without("recover")
        basic = suite(kept, k=0)
        if profile is Profile.NIGHTLY and basic.steps_of_next_k <= MAX_STEPS:
            yield suite(kept, k=1)
        else:
            yield basic


def check(driver: Driver, *, profile: Profile, progress: Progress, seed: int = 0) -> Result:
    """Play the suites of a profile, and tell the shortest failure of each slice.

    Nothing is drawn: `seed` changes nothing. Raises `NotDeterministic` when a sample of the tests
    is answered in two ways.
    """
    del seed
    played = _Played(driver, progress)
    recovers = Capability.RECOVER in driver.capabilities
    for part in suites(profile, recovers=recovers):
        played.play(part)
        played.reach.add(part)
        part.walks.clear()
        if any(finding.rule == NO_ANSWER for finding in played.findings):
            break
    done = played.suites
    return Result(
        technique=TECHNIQUE,
        status=Status.VIOLATED if played.findings else Status.HOLDS,
        guarantee=guarantee(done, recovers=recovers),
        figures=figures(played, profile),
        findings=tuple(played.findings),
        coverage=played.reach.coverage,
        seconds=played.seconds,
    )


@attrs.define
class _Played:
    """What was played of a profile."""

    driver: Driver
    progress: Progress
    suites: list[Suite] = attrs.field(factory=list[Suite])
    findings: list[Finding] = attrs.field(factory=list[Finding])
    reach: Reach = attrs.field(factory=Reach)
    tests: int = 0
    steps: int = 0
    """As many as were judged; a step that several tests share is one for each of them."""
    distinct_steps: int = 0
    """Where each beginning that a test shares with the one before it counts once."""
    seconds: float = 0.0
    """How long the system was at work, and its answers were compared."""

    def play(self, part: Suite) -> None:
        """Play one suite, unless enough was found."""
        self.suites.append(part)
        began = perf_counter()
        tests = self.tests
        found = self._failures(part)
        self.seconds += perf_counter() - began
        self.distinct_steps += distinct_steps(part.words[: self.tests - tests])
        if found and len(self.findings) < MAX_FINDINGS:
            finding = self._confirmed(shortest(found))
            if not any(_same(finding, other) for other in self.findings):
                self.findings.append(finding)

    def _failures(self, part: Suite) -> list[Finding]:
        check_determinism(self.driver, part)
        found: list[Finding] = []
        for number, differing in enumerate(failures(self.driver, part, part.batches(BATCH))):
            words = part.words[number * BATCH : (number + 1) * BATCH]
            self.tests += len(words)
            self.steps += sum(map(len, words))
            self.progress(f"{part.part.name}: {self.tests:,} tests, {self.steps:,} steps in all")
            found += differing
            if len(found) >= MAX_FAILURES:
                break
        return found

    def _confirmed(self, finding: Finding) -> Finding:
        """Play it again, alone, then make it shorter."""
        confirm(self.driver, finding)
        return shortened(finding, self.driver, plays=PLAYS)


def figures(played: _Played, profile: Profile) -> dict[str, int | float | str]:
    """Return what was played, in numbers."""
    done = played.suites
    found: dict[str, int | float | str] = {
        "slices": len(done),
        "states": sum(part.machine.states for part in done),
        "symbols": sum(part.machine.inputs for part in done),
        "tests": played.tests,
        "steps": played.steps,
        "distinct_steps": played.distinct_steps,
        "steps_per_second": round(played.steps / played.seconds),
        "k": max(part.k for part in done),
    }
    if profile is Profile.NIGHTLY:
        found["slices with k = 0 only"] = (
            ", ".join(part.part.name for part in done if not part.k) or "none"
        )
    return found


def guarantee(done: Sequence[Suite], *, recovers: bool) -> str:
    """Say what passing means, slice by slice, and what not."""
    lines = [part.guarantee for part in done]
    if not recovers:
        lines.append("The system does not declare recovery: nothing is said about it.")
    return "\n".join([*lines, LEFT_UNSAID])


def _same(one: Finding, other: Finding) -> bool:
    return (one.rule, one.message) == (other.rule, other.message)
