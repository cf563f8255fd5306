"""The guided scripts and the rules as techniques of `turnlock verify`."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Final

from ...models.facts import FACTS
from ...models.reasons import Reason
from ..errors import NotDeterministic
from ..findings import Coverage, Finding, Profile, Progress, Result, Status
from ..subjects.in_process import InProcess
from ..subjects.kernel import KernelSubject
from ..subjects.subject import Driver, Subject
from .differences import difference, expected_receipts
from .search import TECHNIQUE, Search, guided_search
from .shorten import shortened

EXAMPLES: Final = {Profile.DEV: 250, Profile.CI: 1_500, Profile.NIGHTLY: 60_000}
"""Scripts of each profile, of up to 64 steps each."""
SECONDS: Final = {Profile.DEV: 5.0, Profile.CI: 20.0, Profile.NIGHTLY: 300.0}
"""A system that is slow is given fewer scripts: none are begun after this."""
RULE_EXAMPLES: Final = {Profile.DEV: 30, Profile.CI: 80, Profile.NIGHTLY: 5_000}
"""Runs of the rule-based machine, of up to 50 rules each."""

GUARANTEE: Final = (
    "No script of those that were played (random ones, guided into deep states) was answered "
    "otherwise than kernel.md says. That is evidence, no proof: what was not played may differ."
)

RULES_GUARANTEE: Final = (
    "No run of the rules (an honest host, and every hostile kind of delivery) was answered "
    "otherwise than kernel.md says. That is evidence, no proof: what was not played may differ."
)


def check(driver: Driver, *, profile: Profile, progress: Progress, seed: int = 0) -> Result:
    """Play guided scripts, and make the first failure as short as can be.

    Raises `SubjectFailed` when the system does not answer, and `NotDeterministic` when a script
    that failed is answered in another way the second time.
    """
    began = perf_counter()
    search = Search()
    for search in guided_search(driver, seed=seed, examples=EXAMPLES[profile]):
        progress(f"{search.scripts} scripts, {search.steps} steps")
        if perf_counter() - began > SECONDS[profile]:
            break
    seconds = perf_counter() - began
    findings: tuple[Finding, ...] = ()
    if search.finding is not None:
        confirm(driver, search.finding)
        progress("making the failure shorter")
        findings = (shortened(search.finding, driver),)
    return Result(
        technique=TECHNIQUE,
        status=Status.VIOLATED if findings else Status.HOLDS,
        guarantee=GUARANTEE,
        figures={
            "scripts": search.scripts,
            "steps": search.steps,
            "steps_per_second": round(search.steps / seconds),
            "reasons": f"{len(search.reasons)} of {len(Reason)}",
            "facts": f"{len(search.facts)} of {len(FACTS)}",
        },
        findings=findings,
        coverage=Coverage(reasons={reason: search.reasons[reason] for reason in Reason}),
        seconds=perf_counter() - began,
    )


def first_failure(
    driver: Driver, *, seed: int, examples: int, shorten: bool = False
) -> Finding | None:
    """Return the first failure among so many guided scripts, as it was found or made shorter."""
    finding = None
    for search in guided_search(driver, seed=seed, examples=examples):
        finding = search.finding
    return shortened(finding, driver) if shorten and finding is not None else finding


def check_rules(
    make_subject: Callable[[], Subject] = KernelSubject,
    *,
    profile: Profile,
    progress: Progress,
    seed: int = 0,
) -> Result:
    """Run `TurnlockMachine` on the subjects that `make_subject` builds.

    Raises as `check` does. Without Hypothesis it is not done, and says so.
    """
    try:
        from .rules import run_rules  # noqa: PLC0415 - Hypothesis is for those who have it
    except ImportError:
        return Result(
            technique="rules",
            status=Status.NOT_DONE,
            guarantee="",
            why="Hypothesis is missing: pip install hypothesis",
        )
    began = perf_counter()
    played = run_rules(make_subject, examples=RULE_EXAMPLES[profile], seed=seed)
    findings: tuple[Finding, ...] = ()
    if played.finding is not None:
        driver = InProcess(make_subject, name="rules")
        confirm(driver, played.finding)
        progress("making the failure shorter")
        findings = (shortened(played.finding, driver),)
    return Result(
        technique="rules",
        status=Status.VIOLATED if findings else Status.HOLDS,
        guarantee=RULES_GUARANTEE,
        figures={"examples": played.examples, "steps": played.steps},
        findings=findings,
        coverage=Coverage(reasons={reason: played.reasons[reason] for reason in Reason}),
        seconds=perf_counter() - began,
    )


def confirm(driver: Driver, finding: Finding) -> None:
    """Play a failing script again: a system that errs only sometimes is not deterministic."""
    (got,) = driver.play(finding.run, [finding.script])
    expected = expected_receipts(finding.run, finding.script)
    again = difference(finding.run, finding.script, expected, got, technique=finding.technique)
    if again is None or len(again.script) != len(finding.script):
        raise NotDeterministic(
            f"one script of {len(finding.script)} steps was answered in two ways"
        )
