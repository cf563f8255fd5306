"""Many runs in one registry: what a delivery costs when each goes to another run.

Round-robin: all runs receive the first delivery of their turn, then all the second, and so on, so
with many runs every delivery finds its run outside of the processor's caches. That is the memory's
cost, not the registry's; a host that serves one run for a while does not pay it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Final

from timing import QUICK, Line, Work, measured, timed
from turns import turn_of_three

from turnlock import Run, Runs

SIZES: Final = (1, 100, 10_000, 100_000)
QUICK_SIZES: Final = SIZES[:2]
LEAST_TURNS: Final = 1_000
FORGOTTEN: Final = 1_000.0
"""Seconds between two turns: long enough that the id of the last one is new again (K-54)."""


def _work(size: int) -> Work:
    runs = Runs()
    names = [f"run-{number:06}" for number in range(size)]
    for name in names:
        runs.open(Run(run_id=name))
    passes = max(1, LEAST_TURNS // size)
    deliveries = turn_of_three()
    clock = count()

    def play() -> None:
        receive: Callable[..., object] = runs.receive
        for number in (next(clock) for _ in range(passes)):
            begin = number * FORGOTTEN
            for delivery, after in deliveries:
                now = begin + after
                for name in names:
                    receive(name, delivery, now)

    return timed(size * passes * len(deliveries), partial(play))


def measure(rounds: int) -> list[Line]:
    """Measure each number of runs, all of them held at the same time."""
    sizes = SIZES if rounds > QUICK else QUICK_SIZES
    works = {str(size): _work(size) for size in sizes}
    samples = measured(rounds, works)
    return [
        *(samples[str(size)].line(f"{size:,} runs") for size in sizes),
        *(
            samples[str(size)].over(samples["1"], f"{size:,} runs / 1", note="cache misses")
            for size in sizes[1:]
        ),
    ]
