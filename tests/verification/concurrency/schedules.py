"""Every schedule up to a bound: the choices that a scheduler makes, enumerated.

A schedule is the list of answers to "who goes next?". Each run is started from the beginning and
told the first answers; from there on it goes the way that costs nothing, and every other way is
another schedule, as long as what it costs is within the bound. What costs is a preemption: to leave
somebody who could go on (Musuvathi and Qadeer: most mistakes need one or two).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


class Schedule:
    """One schedule under way."""

    def __init__(self, told: Sequence[int] = ()) -> None:
        """Begin a run; `told` are the answers to its first questions."""
        self.taken: list[int] = []
        """The answers given so far."""
        self._told = tuple(told)
        self._costs: list[Sequence[int]] = []

    def choose(self, costs: Sequence[int]) -> int:
        """Choose one of so many ways, each with what it costs; the first costs nothing."""
        place = len(self.taken)
        way = self._told[place] if place < len(self._told) else 0
        self.taken.append(way)
        self._costs.append(costs)
        return way

    def others(self, bound: int) -> Iterator[tuple[int, ...]]:
        """Yield the schedules that leave this one where it was told nothing, within the bound."""
        spent = 0
        for place, (way, costs) in enumerate(zip(self.taken, self._costs, strict=True)):
            if place >= len(self._told):
                for other in range(1, len(costs)):
                    if spent + costs[other] <= bound:
                        yield (*self.taken[:place], other)
            spent += costs[way]


def explored(run: Callable[[Schedule], T], *, bound: int) -> Iterator[T]:
    """Run every schedule of at most `bound` preemptions, once each, and yield what came of it.

    `run` must do the same again when it is told the same.
    """
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        schedule = Schedule(waiting.pop())
        yield run(schedule)
        waiting += schedule.others(bound)
