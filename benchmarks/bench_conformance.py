"""The conformance suites of the gate: generated, and played on our kernel in this process.

What is counted a second are the steps that are judged, as `turnlock verify` counts them. Our kernel
plays what tests of a batch share once, and goes on from a copy: beside it stands how many were
played, and the same suites with every test played from a fresh run.

Over a pipe the same suites cost what `stdio` shows for a step, and the comparison of the answers.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from timing import QUICK, Line, measured, timed

from turnlock.verification.alphabet.slices import DEV, SLICES
from turnlock.verification.conformance.playing import BATCH, failures
from turnlock.verification.conformance.suite import Suite, distinct_steps, suite
from turnlock.verification.subjects.kernel import kernel_driver

GENERATE_WITHIN: Final = 4.0
"""Seconds for all suites with k = 0."""


def _generate() -> list[Suite]:
    """Generate the suites, and the answers of every test."""
    made = [suite(part, k=0) for part in SLICES]
    for one in made:
        for _ in one.batches(512):
            pass
    return made


def _play(suites: list[Suite], *, shares: bool) -> None:
    driver = kernel_driver()
    driver.shares = shares
    for part in suites:
        for found in failures(driver, part, part.batches(BATCH)):
            if found:
                raise AssertionError("our own kernel fails its suites")


def measure(rounds: int) -> list[Line]:
    """Generate all suites, and play them; those of the dev profile in a quick run."""
    made = _generate()
    steps = sum(one.steps for one in made)
    tests = sum(len(one.words) for one in made)
    played = [one for one in made if one.part in DEV] if rounds <= QUICK else made
    counted = sum(one.steps for one in played)
    distinct = sum(distinct_steps(one.words) for one in played)
    samples = measured(
        rounds,
        {
            "generate": timed(1, _generate),
            "play": timed(counted, partial(_play, played, shares=True)),
            "alone": timed(counted, partial(_play, played, shares=False)),
        },
    )
    return [
        samples["generate"].line(
            "generate all suites",
            unit="s",
            scale=1,
            bound=GENERATE_WITHIN,
            note=f"{len(made)} slices, {tests:,} tests, {steps:,} steps",
        ),
        samples["play"].line(
            "a step in process", note=f"{counted:,} steps judged, about {distinct:,} played"
        ),
        samples["play"].rate("steps a second in process", "/s", note="asked for: 130,000"),
        samples["alone"].rate("the same, each test from a fresh run", "/s"),
    ]
