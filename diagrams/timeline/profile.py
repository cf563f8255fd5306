"""How many calls did what at a time: many lives, summed up into columns."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from .axis import Axis
from .spans import Kind, Lane

AT_WORK: Final = (Kind.EXECUTING, Kind.IN_DOUBT)
"""Started, and not yet ended."""
IN_WAITING: Final = (Kind.READY, Kind.WAITING)
"""Not yet started."""


def profile(
    lanes: Iterable[Lane], axis: Axis, *, end: float, columns: int
) -> dict[Kind, list[float]]:
    """Return for each kind the mean number of calls in each column of the axis."""
    sums = {kind: [0.0] * (columns + 1) for kind in Kind}
    steps = {kind: [0.0] * (columns + 2) for kind in Kind}
    scale = columns / axis.width
    for lane in lanes:
        for span in lane.spans:
            since = (axis.place(span.since) - axis.left) * scale
            until = (axis.place(end if span.until is None else span.until) - axis.left) * scale
            first, last = int(since), int(until)
            of = sums[span.kind]
            if first == last:
                of[first] += until - since
                continue
            of[first] += first + 1 - since
            of[last] += until - last
            steps[span.kind][first + 1] += 1
            steps[span.kind][last] -= 1
    return {
        kind: [
            whole + part
            for whole, part in zip(accumulate(steps[kind][:columns]), sums[kind], strict=False)
        ]
        for kind in Kind
    }
