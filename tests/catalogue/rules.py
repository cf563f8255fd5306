"""`TurnlockMachine` as the self-test uses it: with some seeds, each until something is found.

A run of 1,000 examples says both numbers, since it says which example it was: what was found
within 200 of them is counted for 200. Those that Hypothesis cut off after they began count, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from turnlock.verification.errors import SubjectFailed
from turnlock.verification.findings import Finding
from turnlock.verification.fuzz.machine import run_rules
from turnlock.verification.fuzz.shorten import shortened
from turnlock.verification.subjects.in_process import InProcess
from turnlock.verification.subjects.kernel import KernelSubject, kernel_subjects
from turnlock.verification.subjects.subject import Raw

from .matrix import Found

SEEDS: Final = (0, 1, 2)
EXAMPLES: Final = 1_000
"""Examples of one run, each of 40 rules."""
GLANCED: Final = 100
"""Examples with the first seed, at a bug of the edges, which the rules need not find."""
PLAYS: Final = 500
"""Scripts that are played, at most, to make one failure shorter."""


@attrs.define
class _Run:
    """What the rules came to with one seed."""

    examples: int = 0
    steps: int = 0
    finding: Finding | None = None
    script: Sequence[Mapping[str, Any]] = ()
    """The script that showed a bug, by a wrong answer or by a crash; empty where none did."""


def ruled(examples: int = EXAMPLES, seeds: Sequence[int] = SEEDS) -> Found | None:
    """Play the rules with each seed, and make the first finding as short as can be."""
    runs = [_played(examples, seed) for seed in seeds]
    first = next((run for run in runs if run.script), None)
    if first is None:
        return None
    length, rule = len(first.script), ""
    if first.finding is not None:
        driver = InProcess(kernel_subjects(), name="rules")
        shortest = shortened(first.finding, driver, plays=PLAYS)
        length, rule = len(shortest.script), shortest.rule
    return Found(
        steps=first.steps,
        length=length,
        rule=rule,
        examples=tuple(run.examples if run.script else None for run in runs),
    )


def _played(examples: int, seed: int) -> _Run:
    tried = _Run()

    class Counted(KernelSubject):
        def reset(self, run: Raw) -> None:
            tried.examples += 1
            super().reset(run)

        def receive(self, delivery: Raw) -> Raw:
            tried.steps += 1
            return super().receive(delivery)

    try:
        tried.finding = run_rules(kernel_subjects(Counted), examples=examples, seed=seed).finding
    except SubjectFailed as failure:
        tried.script = failure.script or ()
    if tried.finding is not None:
        tried.script = tried.finding.script
    return tried
