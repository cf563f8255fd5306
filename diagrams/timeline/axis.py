"""Where a time stands on the sheet: in proportion while something is going on, idle gaps cut short.

Turns of some seconds with hours of waiting for the user between them could not be read otherwise.
Each cut is shown, and says how long it is.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

import attrs

from .spans import Timeline

IDLE: Final = 0.15
"""A gap is cut if it is longer than this share of all the time in which something went on."""
_CUTS: Final = 0.4
_LEAST: Final = 0.3
"""Shares of the width for cuts, and for stretches too short to be seen, at the very most."""


@attrs.frozen
class Stretch:
    """Time without a cut, with its place on the sheet."""

    since: float
    until: float
    left: float
    width: float

    def place(self, at: float) -> float:
        """Return where a time of this stretch stands."""
        length = _half(self.since, self.until)
        return self.left + (self.width * (_half(self.since, at) / length) if length else 0.0)


class Axis:
    """Turns times into places from `left` on; lengths are in the units of `width`."""

    def __init__(
        self, busy: Iterable[tuple[float, float]], *, left: float, width: float, cut: float
    ) -> None:
        """Lay out stretches of time; `busy` is when something went on, `cut` the width of a cut."""
        self.left = left
        self.width = width
        parts = _merged(busy)
        total = sum(_half(*part) for part in parts)
        cuts = len(parts) - 1
        self.cut = min(cut, width * _CUTS / cuts) if cuts else 0.0
        least = min(cut, width * _LEAST / len(parts)) if cuts else 0.0
        room = width - self.cut * cuts - least * len(parts)
        self.stretches: list[Stretch] = []
        at = left
        for since, until in parts:
            share = _half(since, until) / total if total else 1 / len(parts)
            wide = least + room * share
            self.stretches.append(Stretch(since, until, at, wide))
            at += wide + self.cut
        self.begin = parts[0][0]
        self.end = parts[-1][1]
        self._starts = [stretch.since for stretch in self.stretches]
        self._busy = min(2 * total, sys.float_info.max)

    def holds(self, at: float) -> bool:
        """Whether a time lies between the first and the last."""
        return self.begin <= at <= self.end

    def place(self, at: float) -> float:
        """Return where a time stands; one in a gap in the cut, one outside at the nearer end."""
        number = bisect_right(self._starts, at) - 1
        stretch = self.stretches[max(number, 0)]
        if at <= stretch.since:
            return stretch.left
        if at <= stretch.until:
            return stretch.place(at)
        right = stretch.left + stretch.width
        if number + 1 == len(self.stretches):
            return right
        after = self.stretches[number + 1]
        return Stretch(stretch.until, after.since, right, after.left - right).place(at)

    def ticks(self, most: int) -> tuple[float, list[tuple[float, str]]]:
        """Return the step in seconds, and about so many ticks: place, and seconds from the start.

        Where there are cuts only the beginnings of stretches say a time; the rest are unnamed.
        """
        step = step_for(self._busy, most)
        named = len(self.stretches) == 1
        made: list[tuple[float, str]] = []
        for stretch in self.stretches:
            begins = stretch.since - self.begin
            if not named:
                made.append((stretch.left, ""))
            count = int(min(_half(stretch.since, stretch.until) / (step / 2), 2 * most))
            for number in range(0 if named else 1, count + 1):
                at = stretch.since + number * step
                made.append(
                    (stretch.place(at), tick(begins + number * step, step) if named else "")
                )
        return step, made

    def cuts(self) -> Iterator[tuple[float, float, float]]:
        """Yield where each cut begins and ends, and its seconds."""
        for before, after in pairwise(self.stretches):
            yield before.left + before.width, after.left, after.since - before.until


def axis_of(timeline: Timeline, *, left: float, width: float, cut: float) -> Axis:
    """Return the axis on which the turns of a timeline stand."""
    busy = [(turn.since, turn.until(timeline.end)) for turn in timeline.turns]
    return Axis(busy, left=left, width=width, cut=cut)


def _merged(busy: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Join what overlaps, then what only a short gap parts."""
    joined = _joined(sorted(busy) or [(0.0, 0.0)], 0.0)
    total = sum(_half(*part) for part in joined)
    return _joined(joined, IDLE * total)


def _joined(parts: list[tuple[float, float]], gap: float) -> list[tuple[float, float]]:
    made = [parts[0]]
    for since, until in parts[1:]:
        first, last = made[-1]
        if since <= last or _half(last, since) <= gap:
            made[-1] = (first, max(last, until))
        else:
            made.append((since, until))
    return made


def _half(since: float, until: float) -> float:
    """Return half of a length: the whole of one between the greatest floats is infinite."""
    return until / 2 - since / 2


_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
_DAY: Final = 86400.0
_STEPS: Final = (
    *(digit * 10.0**power for power in range(-6, 1) for digit in (1, 2, 5)),
    *(seconds for seconds in (10.0, 15.0, 30.0)),
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * _HOUR for hours in (1, 2, 6, 12)),
    *(days * _DAY for days in (1, 2, 5)),
)
"""Between which ticks stand well; beyond the last, ten days and their multiples by ten."""
_UNITS: Final = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (1.0, "s"), (1e-3, "ms"))
_MANY_DAYS: Final = 1_000 * _DAY


def duration(seconds: float) -> str:
    """Return a length of time as people say it: ``12 ms``, ``2.5 s``, ``3 min 20 s``."""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < 1:
        return "0 s" if not seconds else _small(seconds)
    if round(seconds, 1) < _MINUTE:
        return f"{seconds:.3g} s"
    if seconds >= _MANY_DAYS:
        return f"{seconds / _DAY:.3g} d"
    for (unit, name), (part, part_name) in pairwise(_UNITS):
        parts = round(seconds / part)
        per = round(unit / part)
        if parts >= per:
            whole, rest = divmod(parts, per)
            return f"{whole} {name} {rest} {part_name}" if rest else f"{whole} {name}"
    return f"{seconds:.3g} s"


def _small(seconds: float) -> str:
    if seconds >= 0.9995:  # noqa: PLR2004 - it would be 1000 ms
        return "1 s"
    if seconds >= 0.0009995:  # noqa: PLR2004 - likewise
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds * 1e6:.3g} µs"


def step_for(length: float, most: int) -> float:
    """Return the least step, in seconds, that divides a length into at most so many parts."""
    for step in _steps():
        if length / step <= most:
            return step
    return length


def _steps() -> Iterator[float]:
    yield from _STEPS
    for power in range(1, 300):
        yield _DAY * 10.0**power


def tick(seconds: float, step: float) -> str:
    """Return what stands at a tick: in the unit of the step, without digits that say nothing."""
    if not seconds:
        return "0"
    least = max(step, 1.0) if seconds >= 1 else step
    for unit, name in _UNITS:
        if least >= unit:
            return f"{seconds / unit:.7g} {name}"
    return f"{seconds * 1e3:.7g} ms"
