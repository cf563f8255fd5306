"""Recovery as techniques of `turnlock verify`: crashes of any system, torn journals of ours."""

from __future__ import annotations

from time import perf_counter
from typing import Final

from ..errors import SubjectFailed
from ..findings import Finding, Profile, Progress, Result, Status
from ..fuzz.shorten import shortened
from ..subjects.subject import Capability, Driver
from . import crashes, torn
from .crashes import blamed_on_recovery, crash_search, first_failure
from .torn import torn_journals

__all__ = ["check", "check_journal", "first_failure"]

SCRIPTS: Final = {Profile.DEV: 24, Profile.CI: 300, Profile.NIGHTLY: 20_000}
"""Scripts that crash, each of `crashes.STEPS` deliveries."""
JOURNALS: Final = {Profile.DEV: 3, Profile.CI: 30, Profile.NIGHTLY: 3_000}
"""Journals that are torn at every byte."""
SECONDS: Final = {Profile.DEV: 1.0, Profile.CI: 5.0, Profile.NIGHTLY: 120.0}
"""A system that is slow is given fewer: none are begun after this."""

CRASHES_GUARANTEE: Final = (
    "In the scripts that were played, a system that crashed after every step, or after any single "
    "one, owed on recovery what it had owed and answered everything after it as if it had not "
    "crashed. A crash comes between two deliveries, with the journal of all before it: what a "
    "crash inside a receive leaves behind cannot be seen from outside."
)
JOURNAL_GUARANTEE: Final = (
    "Of the journals that were torn, cut after any byte of any fact: what could still be read gave "
    "the state after the last whole commit, with what it owed, and nothing between two commits. "
    "Every snapshot, written and read back, with the facts after it gave the state that all facts "
    "give; a snapshot cut after any byte was refused. Bytes that a disk changed, rather than lost "
    "at the end, are not checked here."
)


def check(driver: Driver, *, profile: Profile, progress: Progress, seed: int = 0) -> Result:
    """Crash after every step and recover, and make the first failure as short as can be.

    Skipped for a system that does not declare RECOVER. Raises `SubjectFailed` as the driver does.
    """
    if Capability.RECOVER not in driver.capabilities:
        return Result(
            technique=crashes.TECHNIQUE,
            status=Status.SKIPPED,
            guarantee=CRASHES_GUARANTEE,
            why='the system under test does not declare RECOVER: give it {"type": "recover"}',
        )
    began = perf_counter()
    search = crashes.Search()
    for search in crash_search(driver, seed=seed, scripts=SCRIPTS[profile]):
        progress(f"{search.crashes} crashes, {search.steps} steps")
        if perf_counter() - began > SECONDS[profile]:
            break
    findings: tuple[Finding, ...] = ()
    if search.finding is not None:
        progress("making the failure shorter")
        findings = (_shortest(driver, search.finding),)
    return _result(
        crashes.TECHNIQUE,
        CRASHES_GUARANTEE,
        findings,
        began,
        {"scripts": search.scripts, "crashes": search.crashes, "steps": search.steps},
    )


def _shortest(driver: Driver, finding: Finding) -> Finding:
    try:
        return blamed_on_recovery(driver, shortened(finding, driver))
    except SubjectFailed:  # a shorter script makes it crash: the finding stands as it is
        return finding


def check_journal(*, profile: Profile, progress: Progress, seed: int = 0) -> Result:
    """Tear journals and snapshots of our own kernel at every byte."""
    began = perf_counter()
    tally = torn.Tally()
    for tally in torn_journals(seed=seed, journals=JOURNALS[profile]):
        progress(f"{tally.journals} journals, {tally.cuts} cuts")
        if perf_counter() - began > SECONDS[profile]:
            break
    findings = () if tally.finding is None else (tally.finding,)
    return _result(
        torn.TECHNIQUE,
        JOURNAL_GUARANTEE,
        findings,
        began,
        {
            "journals": tally.journals,
            "facts": tally.facts,
            "cuts": tally.cuts,
            "recoveries": tally.recoveries,
        },
    )


def _result(
    technique: str,
    guarantee: str,
    findings: tuple[Finding, ...],
    began: float,
    figures: dict[str, int],
) -> Result:
    return Result(
        technique=technique,
        status=Status.VIOLATED if findings else Status.HOLDS,
        guarantee=guarantee,
        figures=figures,
        findings=findings,
        seconds=perf_counter() - began,
    )
