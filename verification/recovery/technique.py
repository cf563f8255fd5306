"""Recovery as techniques of `turnlock verify`: crashes of any system, torn journals of ours."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Final

import attrs

from ..findings import NO_ANSWER, Finding, Profile, Progress, Result, Status
from ..fuzz.differences import difference
from ..fuzz.guided import RUNS, STEP_BYTES, decode
from ..fuzz.shorten import shortened
from ..judging import not_counted
from ..oracle.oracle import Oracle
from ..subjects.subject import Capability, Driver, Raw, Script
from ..subjects.watched import watched
from . import torn
from .torn import torn_journals

__all__ = ["check", "check_journal", "first_failure"]

SCRIPTS: Final = {Profile.DEV: 24, Profile.CI: 300, Profile.NIGHTLY: 20_000}
"""Scripts that crash, each of `STEPS` deliveries."""
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
            technique=TECHNIQUE,
            status=Status.SKIPPED,
            guarantee=CRASHES_GUARANTEE,
            why='the system under test does not declare RECOVER: give it {"type": "recover"}',
        )
    began = perf_counter()
    search = Search()
    for search in crash_search(driver, seed=seed, scripts=SCRIPTS[profile]):
        progress(f"{search.crashes} crashes, {search.steps} steps")
        if perf_counter() - began > SECONDS[profile]:
            break
    findings: tuple[Finding, ...] = ()
    if search.finding is not None:
        progress("making the failure shorter")
        findings = (blamed_on_recovery(driver, shortened(search.finding, driver)),)
    return _result(
        TECHNIQUE,
        CRASHES_GUARANTEE,
        findings,
        began,
        {"scripts": search.scripts, "crashes": search.crashes, "steps": search.steps},
    )


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


# ------------------------------------------------------------------------------
# Black box: a system that crashes and recovers answers as if it had not (K-2, K-3).
#
# A guided script is played without a crash, with a crash after every step, and, of some scripts,
# with one crash after each step in turn. Every receipt is held against the oracle's, which do not
# depend on the crashes; what `recover` itself answers must be all that is owed there.


TECHNIQUE: Final = "recovery"

STEPS: Final = 24
"""Deliveries of one script."""
SINGLY: Final = 8
"""One script in so many is also played with one crash only, after each of its steps in turn."""

_RECOVER: Final[Raw] = {"type": "recover"}


@attrs.define
class Search:
    """What was played so far, and what was found."""

    scripts: int = 0
    crashes: int = 0
    steps: int = 0
    finding: Finding | None = None


@attrs.frozen
class _Story:
    """A script without crashes: what the oracle answers to each step, and what it owes after it."""

    run: Raw
    script: list[Raw]
    expected: list[Raw]
    owed: list[list[Raw]]

    def crashing_after(self, places: Sequence[int]) -> tuple[Script, list[Raw]]:
        """Return the script with a crash after each of these steps, and the right receipts."""
        script: list[Raw] = []
        expected: list[Raw] = []
        for place, delivery in enumerate(self.script):
            script.append(delivery)
            expected.append(self.expected[place])
            if place in places:
                script.append(_RECOVER)
                expected.append({"accepted": True, "facts": [], "effects": self.owed[place]})
        return script, expected


def crash_search(driver: Driver, *, seed: int, scripts: int) -> Iterator[Search]:
    """Play so many scripts with their crashes, and stop at the first finding.

    The same seed plays the same scripts. Yields the same `Search` after each script. Raises
    `SubjectFailed` as the driver does.
    """
    search = Search()
    draws = random.Random(seed)  # noqa: S311 - draws cases, not secrets
    for number in range(scripts):
        data = bytes([number % len(RUNS)]) + draws.randbytes(STEPS * STEP_BYTES)
        _play(driver, _story(data), search, singly=number % SINGLY == 0)
        yield search
        if search.finding is not None:
            return


def first_failure(driver: Driver, *, seed: int, scripts: int) -> Finding | None:
    """Return the first failure among so many scripts with their crashes."""
    finding = None
    for search in crash_search(driver, seed=seed, scripts=scripts):
        finding = search.finding
    return finding


def blamed_on_recovery(driver: Driver, finding: Finding) -> Finding:
    """Name the rule of recovery that a finding breaks, if the script without its crashes passes.

    What goes wrong without a crash, too, is left with the rule that it breaks.
    """
    if finding.rule == NO_ANSWER:
        return finding
    plain = [step for step in finding.script if step["type"] != _RECOVER["type"]]
    if len(plain) == len(finding.script) or finding.script[-1]["type"] == _RECOVER["type"]:
        return finding
    (got,) = watched(driver).play(finding.run, [plain])
    receive = Oracle(finding.run).receive
    expected = [receive(step) for step in plain]
    with not_counted():
        without = difference(finding.run, plain, expected, got, technique=TECHNIQUE)
    if without is not None:
        return finding
    message = f"after a recovery, and not without it: {finding.message} ({finding.rule})"
    return attrs.evolve(finding, rule="K-2", message=message)


def _story(data: bytes) -> _Story:
    run, decoded = decode(data)
    script = [step for step in decoded if step["type"] != _RECOVER["type"]]
    oracle = Oracle(run)
    expected: list[Raw] = []
    owed: list[list[Raw]] = []
    for step in script:
        expected.append(oracle.receive(step))
        owed.append(oracle.pending())
    return _Story(run, script, expected, owed)


def _play(driver: Driver, story: _Story, search: Search, *, singly: bool) -> None:
    every = range(len(story.script))
    crashes: list[Sequence[int]] = [(), every]
    if singly:
        crashes += [(place,) for place in every]
    played = [story.crashing_after(places) for places in crashes]
    answers = driver.play(story.run, [script for script, _ in played])
    search.scripts += len(played)
    search.crashes += sum(map(len, crashes))
    search.steps += sum(len(script) for script, _ in played)
    for (script, expected), got in zip(played, answers, strict=True):
        search.finding = difference(story.run, script, expected, got, technique=TECHNIQUE)
        if search.finding is not None:
            return
