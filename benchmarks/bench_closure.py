"""Closure of our kernel: transitions a second, in one process and in two.

A transition is one delivery at one state: fired at the kernel, answered by the oracle, compared
whole. Two processes are measured in wall time, because each of them has its own CPU time.
"""

from __future__ import annotations

import time
from typing import Final

from timing import QUICK, Line, Samples

from turnlock.verification.alphabet.scope import Scope
from turnlock.verification.alphabet.scopes import CI, DEV
from turnlock.verification.closure.technique import explorations

BOUND: Final = 10.0
"""Seconds that the ci scopes may take."""


def _explored(scopes: tuple[Scope, ...], jobs: int) -> tuple[int, float, float]:
    """Return transitions, CPU seconds of the explorations, and wall seconds."""
    began = time.perf_counter()
    done = list(explorations(scopes, jobs=jobs))
    wall = time.perf_counter() - began
    return sum(it.transitions for it in done), sum(it.seconds for it in done), wall


def measure(rounds: int) -> list[Line]:
    """Explore the scopes of dev in a quick run, of ci otherwise."""
    quick = rounds <= QUICK
    scopes = DEV if quick else CI
    alone: list[float] = []
    together: list[float] = []
    wall: list[float] = []
    for _ in range(rounds):
        transitions, seconds, _ = _explored(scopes, 1)
        alone.append(seconds / transitions)
        transitions, _, took = _explored(scopes, 2)
        together.append(took / transitions)
        wall.append(took)
    count = f"{transitions:,} transitions, {len(scopes)} scopes"
    line = Samples(tuple(wall)).line(
        "the scopes to their fixpoints, two processes",
        "s",
        scale=1,
        bound=None if quick else BOUND,
        note=count,
    )
    return [
        line,
        Samples(tuple(alone)).rate("transitions, one process", "1/s", note="CPU time"),
        Samples(tuple(together)).rate("transitions, two processes", "1/s", note="wall time"),
    ]
