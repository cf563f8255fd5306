"""The techniques of the kit, as the self-test uses them: prepared once, then asked for each bug."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Final

from turnlock.verification.alphabet.slices import DEV
from turnlock.verification.closure.explore import Explorer
from turnlock.verification.closure.kernel_player import KernelPlayer
from turnlock.verification.closure.technique import SCOPES, explore
from turnlock.verification.conformance import technique as conformance
from turnlock.verification.edges import technique as edges
from turnlock.verification.edges.edge import Edge
from turnlock.verification.errors import SubjectFailed
from turnlock.verification.findings import NO_ANSWER, Finding, Profile, Progress
from turnlock.verification.fuzz import technique as guided
from turnlock.verification.fuzz.differences import difference, expected_receipts
from turnlock.verification.fuzz.shorten import judge_by, shortest
from turnlock.verification.recovery import technique as recovery
from turnlock.verification.subjects.kernel import kernel_driver
from turnlock.verification.subjects.subject import Driver, Raw, Script

from .matrix import Found
from .rules import GLANCED, SEEDS, ruled
from .selftest import Technique

SEED: Final = 0
BOUNDS: Final = (20, 400, None)
"""States of each scope that closure explores before it begins with any larger part of another."""
GLANCE: Final = (40,)
"""The same for a bug of the edges, which it is not to find."""
FEW: Final = guided.EXAMPLES[Profile.DEV]
FEWER: Final = recovery.SCRIPTS[Profile.DEV]
"""Guided scripts, and scripts that crash, for such a bug."""
PLAYS: Final = 500
"""Scripts that are played, at most, to make one failure shorter."""


def techniques_of(profile: Profile, progress: Progress) -> tuple[Technique, ...]:
    """Return the techniques as they are in a profile, with what all bugs can share made once."""
    progress("generating the conformance suites")
    suites = list(conformance.suites(profile))
    conforms = partial(conformance.first_failure, suites=suites)
    quick = [part for part in suites if part.part in DEV]
    guide = partial(guided.first_failure, seed=SEED, examples=guided.EXAMPLES[profile])
    crash = partial(recovery.first_failure, seed=SEED, scripts=recovery.SCRIPTS[profile])
    return (
        Technique(
            name="closure",
            find=partial(explored, profile),
            glance=partial(explored, profile, bounds=GLANCE),
        ),
        Technique(
            name="conformance",
            find=partial(played, conforms),
            glance=partial(played, partial(conformance.first_failure, suites=quick)),
        ),
        Technique(
            name="guided",
            find=partial(played, guide),
            glance=partial(played, partial(guided.first_failure, seed=SEED, examples=FEW)),
        ),
        Technique(name="edges", find=partial(fixed, edges.edges_of(profile))),
        Technique(name="rules", find=ruled, glance=partial(ruled, GLANCED, seeds=SEEDS[:1])),
        Technique(
            name="recovery",
            find=partial(played, crash),
            glance=partial(played, partial(recovery.first_failure, seed=SEED, scripts=FEWER)),
        ),
    )


def explored(profile: Profile, bounds: Sequence[int | None] = BOUNDS) -> Found | None:
    """Explore until the first finding: of all scopes a little, then more, then all."""
    transitions = 0
    for bound, scope in product(bounds, SCOPES[profile]):
        if bound is None:
            whole = explore(scope)
            findings, fired = whole.findings, whole.transitions
        else:
            explorer = Explorer(scope, KernelPlayer(scope.run), bound=bound)
            explorer.run()
            findings, fired = tuple(explorer.findings), explorer.transitions
        transitions += fired
        if findings:
            shortest_ = min(findings, key=lambda it: len(it.script))
            return Found(steps=transitions, length=len(shortest_.script), rule=rule_of(shortest_))
    return None


def rule_of(finding: Finding) -> str:
    """Return the rule that a finding names; a kernel of ours that raises breaks K-8."""
    return "K-8" if finding.rule == NO_ANSWER else finding.rule


def fixed(scripts: Sequence[Edge]) -> Found | None:
    """Play the edges until one shows something, told as the technique tells it."""
    driver = CountingDriver()
    told = edges.Played(driver)
    for edge in scripts:
        told.play(edge)
        steps = driver.steps
        for finding in told.told():
            return Found(steps=steps, length=len(finding.script), rule=rule_of(finding))
    return None


def played(first_failure: Callable[[Driver], Finding | None]) -> Found | None:
    """Play scripts until one shows something, and make that one as short as can be."""
    driver = CountingDriver()
    try:
        finding = first_failure(driver)
    except SubjectFailed:
        finding = driver.crash
    if finding is None:
        return None
    steps = driver.steps
    finding = shortest(finding, judge_by(partial(_failed, driver, finding)), plays=PLAYS)
    return Found(steps=steps, length=len(finding.script), rule=rule_of(finding))


def _failed(driver: CountingDriver, found: Finding, script: Script) -> Finding | None:
    """Return what is wrong with the answers to a script, if anything is: a crash is, too."""
    try:
        (got,) = driver.play(found.run, [script])
    except SubjectFailed:
        return driver.crash
    expected = expected_receipts(found.run, script)
    return difference(found.run, script, expected, got, technique=found.technique)


class CountingDriver:
    """Our own kernel, which counts what it is sent, and remembers how it crashed."""

    def __init__(self) -> None:
        """Make a driver that has built nothing yet: a bug may be in the building."""
        self._driver = kernel_driver()
        self.name = self._driver.name
        self.capabilities = self._driver.capabilities
        self.steps = 0
        self.crash: Finding | None = None

    def play(self, run: Raw, scripts: Sequence[Script]) -> list[list[Raw]]:
        """Play scripts one by one. Raises `SubjectFailed` when the kernel raises."""
        return [self._played(run, script) for script in scripts]

    def close(self) -> None:
        """There is nothing to let go of."""

    def _played(self, run: Raw, script: Script) -> list[Raw]:
        self.steps += len(script)
        try:
            return self._driver.play(run, [script])[0]
        except SubjectFailed as error:
            self.crash = Finding(
                technique="crash",
                rule="K-8",
                message=str(error),
                run=run,
                script=tuple(script),
                expected="a receipt",
                got=None,
            )
            raise
