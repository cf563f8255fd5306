"""Many runs in one registry: what a delivery costs when each goes to another run than the last.

Round-robin, every run one delivery further in its turn than the run before it, so that the mixture
of deliveries is that of one run alone. With many runs every delivery finds its run outside of the
processor's caches: what the ratio shows beyond 1 is the memory's cost, not the registry's, and a
host that serves one run for a while does not pay it.
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Final, TypeAlias

from timing import QUICK, Line, Work, measured, timed_on
from turns import turn_of_three

from turnlock import Delivery, Run, Runs

SIZES: Final = (1, 100, 10_000, 100_000)
QUICK_SIZES: Final = SIZES[:2]
LEAST_TURNS: Final = 1_000
Step: TypeAlias = tuple[str, Delivery, float]
FORGOTTEN: Final = 1_000.0
"""Seconds between two turns: long enough that the id of the last one is new again (K-54)."""


def _work(size: int) -> Work:
    runs = Runs()
    names = [f"run-{number:06}" for number in range(size)]
    turn = turn_of_three()
    length = len(turn)

    def step(number: int, place: int) -> Step:
        """Return what a run receives as its so-manieth delivery."""
        delivery, after = turn[place % length]
        return names[number], delivery, place // length * FORGOTTEN + after

    for number, name in enumerate(names):
        runs.open(Run(run_id=name))
        for place in range(number % length):
            runs.receive(*step(number, place))
    passes = length * max(1, LEAST_TURNS // size)
    starts = count(step=passes)

    def plan() -> list[Step]:
        start = next(starts)
        return [
            step(number, start + further + number % length)
            for further in range(passes)
            for number in range(size)
        ]

    return timed_on(size * passes, plan, partial(_play, runs))


def _play(runs: Runs, steps: list[Step]) -> None:
    receive = runs.receive
    for name, delivery, now in steps:
        receive(name, delivery, now)


def measure(rounds: int) -> list[Line]:
    """Measure each number of runs, all of them held at the same time."""
    sizes = SIZES if rounds > QUICK else QUICK_SIZES
    works = {str(size): _work(size) for size in sizes}
    samples = measured(rounds, works)
    return [
        *(samples[str(size)].line("1 run" if size == 1 else f"{size:,} runs") for size in sizes),
        *(samples[str(size)].over(samples["1"], f"{size:,} runs / 1 run") for size in sizes[1:]),
    ]
