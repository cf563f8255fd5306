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

from .durations import step_for, tick
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
