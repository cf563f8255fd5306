"""Tasks that give way at named points only, run one step at a time as a schedule says.

A task is a generator. It yields None where another may go on in its place, and a condition where it
cannot go on before that holds.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias

from turnlock.verification.errors import HarnessFailed

from .schedules import Schedule

Point: TypeAlias = Callable[[], bool] | None
Task: TypeAlias = Generator[Point, None, None]


def run_tasks(tasks: Sequence[Task], schedule: Schedule) -> None:
    """Run all tasks to their ends.

    To go on with the same task costs nothing, nor does leaving one that waits or has ended; leaving
    one that could go on is a preemption. Raises `HarnessFailed` when all wait for each other.
    """
    points: dict[int, Point] = dict.fromkeys(range(len(tasks)))
    current = -1
    while points:
        ready = [number for number, point in points.items() if point is None or point()]
        if not ready:
            raise HarnessFailed(f"tasks {sorted(points)} wait for each other")
        if current in ready:
            ready.sort(key=lambda number: number != current)
            costs = [0] + [1] * (len(ready) - 1)
        else:
            costs = [0] * len(ready)
        current = ready[schedule.choose(costs)]
        try:
            points[current] = next(tasks[current])
        except StopIteration:
            del points[current]
