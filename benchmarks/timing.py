"""How the benchmarks measure: one process, A and B in turn, CPU time, many short rounds.

CPU time and not wall time, because a machine has other things to do; the least of many rounds,
because noise only adds. The collector stays enabled, and has collected before each round begins.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping
from time import process_time
from typing import Final, TypeAlias, TypeVar

import attrs

T = TypeVar("T")
Work: TypeAlias = Callable[[], float]
"""One round of something: returns seconds of CPU time for each of its operations."""

QUICK: Final = 3
"""Rounds of a run that only shows that everything runs; sizes shrink, too."""
WARM_UP: Final = 1
"""Rounds that are run first and thrown away."""


@attrs.frozen(kw_only=True)
class Line:
    """One figure: the best over the rounds, or the only one, and beside it the median."""

    name: str
    value: float | None
    """None where it was not measured: the note says why."""
    unit: str
    median: float | None = None
    bound: float | None = None
    """What `value` should not exceed."""
    by_median: bool = False
    """The bound is of the median instead."""
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the bound is met; None where there is none."""
        if self.bound is None or self.value is None:
            return None
        judged = self.median if self.by_median and self.median is not None else self.value
        return judged <= self.bound


@attrs.frozen
class Samples:
    """Seconds for one operation, one figure for each round."""

    seconds: tuple[float, ...]

    @property
    def least(self) -> float:
        """The round that was disturbed least."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The round in the middle."""
        return statistics.median(self.seconds)

    def less(self, floor: Samples) -> Samples:
        """Return what is left when the least of a floor, such as an empty loop, is taken off."""
        return Samples(tuple(value - floor.least for value in self.seconds))

    def times(self, operations: float) -> Samples:
        """Return the seconds of so many operations together."""
        return Samples(tuple(value * operations for value in self.seconds))

    def line(
        self,
        name: str,
        unit: str = "µs",
        *,
        scale: float = 1e6,
        bound: float | None = None,
        note: str = "",
    ) -> Line:
        """Show the time itself, by default in microseconds."""
        return Line(
            name=name,
            value=self.least * scale,
            median=self.median * scale,
            unit=unit,
            bound=bound,
            note=note,
        )

    def rate(self, name: str, unit: str, *, note: str = "") -> Line:
        """Show how many there are a second: the most, and the median."""
        return Line(name=name, value=1 / self.least, median=1 / self.median, unit=unit, note=note)

    def over(self, peer: Samples, name: str, *, bound: float | None = None, note: str = "") -> Line:
        """Show this as a multiple of a peer: least over least, and the median over the rounds."""
        pairs = zip(self.seconds, peer.seconds, strict=True)
        return Line(
            name=name,
            value=self.least / peer.least,
            median=statistics.median(mine / other for mine, other in pairs),
            unit="ratio",
            bound=bound,
            note=note,
        )


def timed(operations: int, run: Callable[[], object]) -> Work:
    """Make a work of a function that performs so many operations when it is called."""
    return timed_on(operations, lambda: None, lambda _: run())


def timed_on(operations: int, prepare: Callable[[], T], run: Callable[[T], object]) -> Work:
    """Make a work whose preparation is not timed."""

    def work() -> float:
        prepared = prepare()
        gc.collect()
        start = process_time()
        run(prepared)
        return (process_time() - start) / operations

    return work


def measured(rounds: int, works: Mapping[str, Work]) -> dict[str, Samples]:
    """Run the works in turn, every other round backwards, and return their samples by name."""
    order = list(works)
    samples: dict[str, list[float]] = {name: [] for name in order}
    for number in range(WARM_UP + rounds):
        for name in order if number % 2 else reversed(order):
            seconds = works[name]()
            if number >= WARM_UP:
                samples[name].append(seconds)
    return {name: Samples(tuple(seconds)) for name, seconds in samples.items()}
