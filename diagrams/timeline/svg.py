"""A timeline as SVG: title, legend, axis, and below them the rows."""

from __future__ import annotations

import zlib
from itertools import chain
from typing import Final

from ..drawing.canvas import Canvas
from ..drawing.lettering import fitted, width_of
from ..palette import Theme
from .axis import Axis, axis_of, duration
from .rows import LaneRow, Row, TurnRow
from .spans import Kind, MarkKind, Timeline
from .svg_rows import (
    CROWD_HEIGHT,
    DRAWN,
    TURN_HEIGHT,
    across,
    bar,
    deadline,
    draw_crowd,
    draw_lane,
    draw_turn,
    lane_height,
    refusal,
)
from .words import begins, description, summary, title

WIDTH: Final = 960.0
LEFT: Final = 224.0
"""Where the axis begins: what stands before it are labels."""
RIGHT: Final = 106.0
"""Room behind the axis, for how what ended last ended."""
_MARGIN: Final = 16.0
_CUT: Final = 26.0
_TICKS: Final = 8
_FINE: Final = 20
"""Ticks where they are named, and where they are not."""


def svg_of(timeline: Timeline, rows: tuple[Row, ...], theme: Theme) -> str:
    """Return the element; its ids begin with a name that is this timeline's own."""
    key = "/".join((timeline.run.run_id, *(turn.turn_id for turn in timeline.turns)))
    canvas = Canvas(
        name=f"timeline-{zlib.crc32(key.encode(errors='replace')):08x}",
        title=title(timeline),
        description=description(timeline),
        width=WIDTH,
        theme=theme,
    )
    axis = axis_of(timeline, left=LEFT, width=WIDTH - LEFT - RIGHT, cut=_CUT)
    y = _head(canvas, timeline)
    y = _legend(canvas, _drawn_marks(axis, rows), y + 8)
    top = y + 34
    heights = [_height(axis, row) for row in rows]
    bottom = top + sum(heights)
    _grid(canvas, axis, top, bottom)
    for row, height in zip(rows, heights, strict=True):
        if isinstance(row, TurnRow):
            draw_turn(canvas, axis, row.turn, y=top, timeline=timeline)
        elif isinstance(row, LaneRow):
            draw_lane(canvas, axis, row.lane, y=top, timeline=timeline)
        else:
            draw_crowd(canvas, axis, row, y=top, end=timeline.end)
        top += height
    return canvas.done(bottom + _MARGIN)


def _height(axis: Axis, row: Row) -> float:
    if isinstance(row, LaneRow):
        return lane_height(axis, row.lane, WIDTH)
    return TURN_HEIGHT if isinstance(row, TurnRow) else CROWD_HEIGHT


def _head(canvas: Canvas, timeline: Timeline) -> float:
    """Write the title and what came of it; return where they end."""
    room = WIDTH - 2 * _MARGIN
    words = fitted(title(timeline), room, 18)
    canvas.text(_MARGIN, 30, words, size=18, font_weight="600")
    soft = canvas.paper.soft
    canvas.text(_MARGIN, 50, fitted(summary(timeline), room, 13), fill=soft)
    canvas.text(_MARGIN, 67, fitted(begins(timeline), room, 12), size=12, fill=soft)
    return 72


def _drawn_marks(axis: Axis, rows: tuple[Row, ...]) -> set[MarkKind]:
    """Return the kinds of marks that the rows show."""
    turns = (row.turn.marks for row in rows if isinstance(row, TurnRow))
    lanes = (row.lane.marks for row in rows if isinstance(row, LaneRow))
    marks = chain.from_iterable(chain(turns, lanes))
    return {mark.kind for mark in marks if axis.holds(mark.at)}


def _legend(canvas: Canvas, there: set[MarkKind], y: float) -> float:
    """Say what each pattern and mark is; return where the legend ends."""
    x = _MARGIN
    with canvas.group("legend", title="legend"):
        for key in (*Kind, *(kind for kind in MarkKind if kind in there)):
            wide = 44 + width_of(key, 12)
            if x + wide > WIDTH - _MARGIN:
                x, y = _MARGIN, y + 22
            if isinstance(key, Kind):
                bar(canvas, DRAWN[key], (x, y + 2, 24, 12))
            else:
                _mark_key(canvas, key, x, y)
            canvas.text(x + 30, y + 12, key, size=12, fill=canvas.paper.soft)
            x += wide
    return y + 20


def _mark_key(canvas: Canvas, kind: MarkKind, x: float, y: float) -> None:
    if kind is MarkKind.REFUSED:
        refusal(canvas, x + 12, y + 8)
    elif kind in {MarkKind.DEADLINE, MarkKind.MET}:
        deadline(canvas, x + 12, y + 5, met=kind is MarkKind.MET)
    else:
        if kind is MarkKind.RENEWED:
            bar(canvas, DRAWN[Kind.EXECUTING], (x, y + 2, 24, 12))
        across(canvas, kind, x + 12, (y + 2, y + 14))


def _grid(canvas: Canvas, axis: Axis, top: float, bottom: float) -> None:
    """Draw the axis above the rows, its lines behind them, and where time is cut."""
    soft = canvas.paper.soft
    step, ticks = axis.ticks(_TICKS if len(axis.stretches) == 1 else _FINE)
    free = 0.0
    with canvas.group("axis", title="time"):
        for x, words in ticks:
            canvas.line(x, top - 6, x, bottom)
            half = width_of(words, 11) / 2
            if words and x - half >= free and x + half <= WIDTH:
                canvas.text(x, top - 10, words, size=11, fill=soft, text_anchor="middle")
                free = x + half + 6
        for left, right, seconds in axis.cuts():
            _cut(canvas, (left, right), seconds, top, bottom)
    if len(axis.stretches) > 1:
        words = f"a step is {duration(step)}; idle time is cut"
        canvas.text(_MARGIN, top - 10, fitted(words, LEFT - 24, 11), size=11, fill=soft)


def _cut(
    canvas: Canvas, sides: tuple[float, float], seconds: float, top: float, bottom: float
) -> None:
    left, right = sides
    words = duration(seconds)
    with canvas.group(title=f"nothing for {words}"):
        canvas.rect(
            left, top - 6, right - left, bottom - top + 6, fill=canvas.paper.grid, opacity="0.35"
        )
        middle = (left + right) / 2
        for at in (middle - 2, middle + 2):
            d = f"M{at - 2:.1f} {top - 2:.1f}l4 -8"
            canvas.path(d, stroke=canvas.paper.soft)
        if width_of(words, 10) <= right - left + 40:  # both stretches begin unnamed
            canvas.text(
                middle, top - 14, words, size=10, fill=canvas.paper.soft, text_anchor="middle"
            )
