"""Plays guided scripts on a system until one is answered otherwise than the oracle answers it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Final

import attrs

from ..findings import Finding
from ..subjects.collector import collector_paused
from ..subjects.subject import Capability, Driver, Script
from .differences import difference
from .guided import MAX_STEPS, RUNS, STEP_BYTES, Decoded, follow

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
