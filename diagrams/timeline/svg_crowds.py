"""Many invocations in one row: how many were at work at a time, and below how many waited.

The two have scales of their own, because a few may work on what thousands wait for.
"""

from __future__ import annotations

from typing import Final

from ..drawing.canvas import Canvas
from ..drawing.lettering import fitted, width_of
from .axis import Axis
from .looks import DRAWN
from .profile import AT_WORK, IN_WAITING, profile
from .rows import CrowdRow
from .spans import Kind, MarkKind
from .svg_rows import LABEL, LABEL_WIDTH, SMALL
from .words import amount, ended, many, signed

CROWD_HEIGHT: Final = 62.0
_COLUMNS: Final = 120
_HALF: Final = 24.0
_TINY: Final = 10.0


def draw_crowd(canvas: Canvas, axis: Axis, row: CrowdRow, *, y: float, end: float) -> None:
    """Draw a crowd whose row begins at `y`: at work above the line, in waiting below it."""
    counts = profile(row.lanes, axis, end=end, columns=_COLUMNS)
    ground = y + 6 + _HALF
    first = row.lanes[0]
    with canvas.group(f"crowd-{first.epoch}-{first.position}", title=_told(row)):
        name = fitted(row.name, LABEL_WIDTH - width_of(row.count, 13), 13)
        canvas.text(LABEL, y + 24, name + row.count)
        below = fitted(signed(row.lanes), LABEL_WIDTH, SMALL)
        canvas.text(LABEL, y + 40, below, size=SMALL, fill=canvas.paper.soft)
        right = axis.left + axis.width
        for kinds, height, words in (
            (AT_WORK, -_HALF, "at work"),
            (IN_WAITING, _HALF, "waiting"),
        ):
            most = _stacked(canvas, axis, {kind: counts[kind] for kind in kinds}, ground, height)
            if most:
                said = fitted(f"max {amount(most)} {words}", canvas.width - right - 8, _TINY)
                place = ground + height / 2 + 4
                canvas.text(right + 6, place, said, size=_TINY, fill=canvas.paper.soft)
        canvas.line(axis.left, ground, right, ground, stroke=canvas.paper.soft)


def _told(row: CrowdRow) -> str:
    refused = sum(mark.kind is MarkKind.REFUSED for lane in row.lanes for mark in lane.marks)
    told = f"{row.label}: {ended(row.lanes)}"
    return f"{told}; {many(refused, 'refusal')}" if refused else told


def _stacked(
    canvas: Canvas, axis: Axis, counts: dict[Kind, list[float]], ground: float, height: float
) -> float:
    """Draw profiles one upon the other, and return the most that all have together."""
    most: float = max(map(sum, zip(*counts.values(), strict=True)))
    base = [0.0] * _COLUMNS
    for kind, numbers in counts.items():
        if not any(numbers):
            continue
        upper = [low + number for low, number in zip(base, numbers, strict=True)]
        drawn = DRAWN[kind]
        look = drawn.look
        fill = look.fill(canvas.theme) if drawn.hollow else look.stroke(canvas.theme)
        scale = height / most
        d = _steps(axis, upper, ground, scale) + _steps(axis, base, ground, scale, back=True)
        with canvas.group(title=kind):
            canvas.path(f"M{axis.left:.1f} {ground:.1f}{d}z", fill=fill)
        base = upper
    return most


def _steps(
    axis: Axis, numbers: list[float], ground: float, scale: float, *, back: bool = False
) -> str:
    """Return a path along the top of a profile; what does not move takes no room."""
    wide = axis.width / _COLUMNS
    heights = [f"V{ground + number * scale:.1f}" for number in numbers]
    places = range(_COLUMNS)
    made: list[str] = []
    now = ""
    for place in reversed(places) if back else places:
        if heights[place] != now:
            x = axis.left + wide * (place + 1 if back else place)
            now = heights[place]
            made += (f"H{x:.1f}", now)
    last = axis.left if back else axis.left + axis.width
    return "".join((*made, f"H{last:.1f}"))
