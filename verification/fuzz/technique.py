"""The guided scripts and the rules as techniques of `turnlock verify`."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Final

import attrs

from ...models.facts import FACTS
from ...models.reasons import Reason
from ..errors import SubjectFailed
from ..findings import Coverage, Finding, Profile, Progress, Result, Status
from ..regressions import played_again
from ..subjects.in_process import InProcess, collector_paused
from ..subjects.kernel import kernel_subjects
from ..subjects.subject import Capability, Driver, Script, Subject
from .differences import difference
from .guided import MAX_STEPS, RUNS, STEP_BYTES, Decoded, follow
from .shorten import confirm, shortened

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

    Raises `NotDeterministic` when a script that failed is answered in another way the second time.
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
    make_subject: Callable[[], Subject] | None = None,
    *,
    profile: Profile,
    progress: Progress,
    seed: int = 0,
) -> Result:
    """Run `TurnlockMachine` on the subjects that `make_subject` builds, or on our own kernel.

    Raises as `check` does. Without Hypothesis it is not done, and says so.
    """
    try:
        from .machine import Played, run_rules  # noqa: PLC0415 - for those who have Hypothesis
    except ImportError:
        return Result(
            technique="rules",
            status=Status.NOT_DONE,
            guarantee="",
            why="Hypothesis is missing: pip install hypothesis",
        )
    began = perf_counter()
    make_subject = make_subject or kernel_subjects()
    driver = InProcess(make_subject, name="rules")
    try:
        played = run_rules(make_subject, examples=RULE_EXAMPLES[profile], seed=seed)
    except SubjectFailed as failure:
        if failure.run is None or failure.script is None:
            raise
        played = Played(finding=played_again(driver, failure.run, failure.script))
        if played.finding is None:
            raise
    seconds = perf_counter() - began
    findings: tuple[Finding, ...] = ()
    if played.finding is not None:
        confirm(driver, played.finding)
        progress("making the failure shorter")
        findings = (shortened(played.finding, driver),)
    return Result(
        technique="rules",
        status=Status.VIOLATED if findings else Status.HOLDS,
        guarantee=RULES_GUARANTEE,
        figures={
            "examples": played.examples,
            "steps": played.steps,
            "steps_per_second": round(played.steps / seconds),
        },
        findings=findings,
        coverage=Coverage(reasons={reason: played.reasons[reason] for reason in Reason}),
        seconds=perf_counter() - began,
    )


# ------------------------------------------------------------------------------
# Plays guided scripts on a system until one is answered otherwise than the oracle answers it.


TECHNIQUE: Final = "guided"

LARGEST_BATCH: Final = 64
"""Scripts that are played at once: over a pipe, batching is worth ten times. The first batches are
smaller, because most failures come early."""


@attrs.define
class Search:
    """What a search has played so far, and what it found."""

    scripts: int = 0
    steps: int = 0
    finding: Finding | None = None
    reasons: Counter[str] = attrs.field(factory=Counter[str])
    """How often the oracle refused with each reason."""
    facts: Counter[str] = attrs.field(factory=Counter[str])
    """How often each type of fact happened."""


def guided_search(
    driver: Driver, *, seed: int, examples: int, steps: int = MAX_STEPS
) -> Iterator[Search]:
    """Play up to `examples` scripts of up to `steps` steps, and stop at the first finding.

    The same seed plays the same scripts. Yields the same `Search` after each batch, so that a
    caller can tell how far it is, or stop. Raises `SubjectFailed` as the driver does.
    """
    search = Search()
    for batch in _batches(seed, examples, steps):
        with collector_paused():
            _play(driver, [playable(driver, data) for data in batch], search)
        yield search
        if search.finding is not None:
            return


def _batches(seed: int, examples: int, steps: int) -> Iterator[list[bytes]]:
    """Yield the bytes of scripts: a batch is for one run, since a request to a system names one."""
    draws = random.Random(seed)  # noqa: S311 - draws cases, not secrets
    size, run, left = 1, 0, examples
    while left > 0:
        count = min(size, left)
        yield [bytes([run]) + draws.randbytes(steps * STEP_BYTES) for _ in range(count)]
        left -= count
        run = (run + 1) % len(RUNS)
        if run == 0:
            size = min(2 * size, LARGEST_BATCH)


def playable(driver: Driver, data: bytes) -> Decoded:
    """Decode a script; without the steps that the system does not declare to have."""
    decoded = follow(data)
    if Capability.RECOVER in driver.capabilities:
        return decoded
    kept = [step["type"] != "recover" for step in decoded.script]
    pairs = zip(decoded.script, decoded.expected, kept, strict=True)
    left = [(step, receipt) for step, receipt, keep in pairs if keep]
    return attrs.evolve(
        decoded, script=[step for step, _ in left], expected=[receipt for _, receipt in left]
    )


def _play(driver: Driver, decoded: list[Decoded], search: Search) -> None:
    scripts: list[Script] = [one.script for one in decoded]
    run = decoded[0].run
    for one, got in zip(decoded, driver.play(run, scripts), strict=True):
        search.scripts += 1
        search.steps += len(one.script)
        search.reasons.update([r["reason"] for r in one.expected if not r["accepted"]])
        search.facts.update([fact["type"] for r in one.expected for fact in r["facts"]])
        if search.finding is None:
            search.finding = difference(run, one.script, one.expected, got, technique=TECHNIQUE)
