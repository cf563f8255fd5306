"""A sample of random scripts, each played twice: before a system is blamed, it must be steady.

It is the widest of the techniques and the shallowest: it exercises every rule that receipts can
show, counts how often, and keeps one violation of each rule that it meets.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from time import perf_counter
from typing import Final

import attrs

from .findings import NO_ANSWER, Coverage, Finding, Profile, Progress, Result, Status
from .fuzz.differences import difference, refuse_unlike
from .fuzz.guided import MAX_STEPS, RUNS, STEP_BYTES, Decoded
from .fuzz.shorten import judge_of, shortest, without_suspects
from .fuzz.technique import playable
from .judging import not_counted
from .rulebook.attribution import REASON_RULES
from .subjects.subject import Driver, Raw, Script
from .subjects.watched import hangs, no_answer

TECHNIQUE: Final = "sample"
BATCH: Final = 5
"""Scripts for one run that are played at once."""
BATCHES: Final = {Profile.DEV: 9, Profile.CI: 90, Profile.NIGHTLY: 1_800}
"""Batches of each profile: each run of `RUNS` has its turn, again and again."""
SECONDS: Final = {Profile.DEV: 2.0, Profile.CI: 8.0, Profile.NIGHTLY: 60.0}
"""A slow system is given fewer batches: none is begun after this, but each run has had its own."""
PLAYS: Final = {Profile.DEV: 500, Profile.CI: 3_000, Profile.NIGHTLY: 20_000}
"""Scripts that are played to make one violation shorter."""

GUARANTEE: Final = (
    "A sample of random scripts was answered twice alike, and as kernel.md says. That is evidence, "
    "no proof: it shows that every rule that receipts can show was met."
)


@attrs.define
class _Sample:
    """What was played so far."""

    scripts: int = 0
    steps: int = 0
    reasons: Counter[str] = attrs.field(factory=Counter[str])
    findings: dict[str, Finding] = attrs.field(factory=dict[str, Finding])

    def play(self, driver: Driver, batch: list[Decoded]) -> None:
        """Play scripts twice, hold them against the oracle. Raises `NotDeterministic`."""
        scripts = [one.script for one in batch]
        answers = driver.play(batch[0].run, [*scripts, *scripts])
        for one, got, again in zip(
            batch, answers[: len(batch)], answers[len(batch) :], strict=True
        ):
            refuse_unlike(one.run, one.script, got, again)
            self._hold(one, again if again and no_answer(again[-1]) else got)

    def _hold(self, one: Decoded, got: list[Raw]) -> None:
        self.scripts += 1
        self.steps += len(one.script)
        self.reasons.update([it["reason"] for it in one.expected if not it["accepted"]])
        found = difference(one.run, one.script, one.expected, got, technique=TECHNIQUE)
        if found is not None:
            self.findings.setdefault(found.rule, found)


def check(driver: Driver, *, profile: Profile, progress: Progress, seed: int = 0) -> Result:
    """Play the sample of a profile, and make one violation of each broken rule short.

    Raises `NotDeterministic` when a script is answered in two ways, and what the driver raises.
    """
    began = perf_counter()
    sample = _Sample()
    draws = random.Random(seed)  # noqa: S311 - draws cases, not secrets
    for number in range(BATCHES[profile]):
        first = bytes([number % len(RUNS)])
        drawn = [first + draws.randbytes(MAX_STEPS * STEP_BYTES) for _ in range(BATCH)]
        sample.play(driver, [playable(driver, data) for data in drawn])
        progress(f"{sample.scripts} scripts, {sample.steps} steps")
        if any(map(hangs, sample.findings.values())):
            break
        enough = number + 1 >= len(RUNS) or NO_ANSWER in sample.findings
        if enough and perf_counter() - began > SECONDS[profile]:
            break
    found = [_short(one, driver, PLAYS[profile]) for one in sample.findings.values()]
    return Result(
        technique=TECHNIQUE,
        status=Status.VIOLATED if found else Status.HOLDS,
        guarantee=GUARANTEE,
        figures={
            "scripts": sample.scripts,
            "steps": sample.steps,
            "reasons": f"{len(sample.reasons)} of {len(REASON_RULES)}",
        },
        findings=tuple(found),
        coverage=Coverage(reasons={reason: sample.reasons[reason] for reason in REASON_RULES}),
        seconds=perf_counter() - began,
    )


def _short(finding: Finding, driver: Driver, plays: int) -> Finding:
    """Make it shorter as a violation of the very same rule: each rule keeps its own.

    But one that fails without what is suspected breaks whatever rule it breaks then. Where the
    system hangs, it stays as it is: each trial would take the whole time limit.
    """
    if hangs(finding):
        return finding
    judge = judge_of(driver, finding)

    def same_rule(scripts: Iterable[Script]) -> list[Finding | None]:
        found = judge([*scripts])
        return [one if one is not None and one.rule == finding.rule else None for one in found]

    found = shortest(finding, same_rule, plays=plays)
    with not_counted():
        plainer = next(filter(None, judge([*without_suspects(found.script)])), None)
    if plainer is None or plainer.rule == found.rule:
        return found
    return _short(plainer, driver, plays)
