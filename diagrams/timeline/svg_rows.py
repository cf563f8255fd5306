"""The rows of a timeline on the sheet: a turn's band, an invocation's lane."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from ..drawing.canvas import Canvas
from ..drawing.lettering import fitted, folded, width_of
from ..palette import look_of
from .axis import Axis
from .bars import SIGN, across, bar, deadline, onwards, refusal, sign
from .durations import duration
from .looks import DRAWN
from .spans import Lane, Mark, MarkKind, Span, Timeline, TurnLine, TurnSpan
from .words import how_closed, of_marks, of_span

TURN_HEIGHT: Final = 40.0
LANE_HEIGHT: Final = 34.0
LABEL: Final = 16.0
LABEL_WIDTH: Final = 198.0
SMALL: Final = 11.0
_BAND: Final = 18.0
_BAR: Final = 14.0
_OWED: Final = 30.0
"""Length of the line for a continuation that nobody took."""
_NEAR: Final = 24.0
"""Refusals nearer to each other than this, in pixels, are drawn as one, with their number …"""
_TINY: Final = 9
"""Pixels of the letters at a refusal."""
_DETAIL: Final = 14.0
"""From one line of an error below a bar to the next."""
_DENSE: Final = 12.0
"""… and other marks of one kind as one, lest they look like a pattern."""


def draw_turn(canvas: Canvas, axis: Axis, turn: TurnLine, *, y: float, timeline: Timeline) -> None:
    """Draw a turn whose row begins at `y`: its phases, and until when its continuation is owed."""
    end = timeline.end
    top = y + 11
    middle = top + _BAND / 2
    how = how_closed(turn)
    canvas.line(LABEL, y + 1, canvas.width - LABEL, y + 1)
    with canvas.group(f"turn-{turn.epoch}", title=f"turn {turn.turn_id}, {how}"):
        canvas.text(
            LABEL, y + 19, fitted(f"turn {turn.turn_id}", LABEL_WIDTH, 13), font_weight="600"
        )
        below = fitted(how, LABEL_WIDTH, SMALL)
        canvas.text(LABEL, y + 33, below, size=SMALL, fill=canvas.paper.soft)
        for span in turn.spans:
            _phase(canvas, axis, span, top, end)
        if turn.closed is not None:
            stroke = look_of(turn.closed).stroke(canvas.theme)
            x = axis.place(end if turn.closed_at is None else turn.closed_at)
            canvas.rect(x, top - 3, 4, _BAND + 6, fill=stroke, title=turn.closed)
            if turn.settled_at is not None:
                taken = x + _OWED if turn.taken_at is None else axis.place(turn.taken_at)
                line = {"stroke": stroke, "stroke_width": "2", "stroke_dasharray": "4 3"}
                with canvas.group(title=how):
                    canvas.line(x + 4, middle, taken, middle, **line)
        _marks(canvas, axis, turn.marks, (top, top + _BAND), turn.turn_id)


def _phase(canvas: Canvas, axis: Axis, span: TurnSpan, top: float, end: float) -> None:
    look = look_of(span.phase)
    until = end if span.until is None else span.until
    left, right = axis.place(span.since), axis.place(until)
    fill, stroke = look.fill(canvas.theme), look.stroke(canvas.theme)
    told = f"{span.phase}, {duration(until - span.since)}"
    wide = max(right - left, 1)
    canvas.rect(left, top, wide, _BAND, title=told, fill=fill, stroke=stroke)
    said = span.phase.lower()
    if width_of(said, SMALL) + 10 <= wide:
        canvas.text(left + 5, top + _BAND / 2 + 4, said, size=SMALL, pointer_events="none")
    if span.until is None:
        onwards(canvas, look, right + 3, top, _BAND)


def lane_height(axis: Axis, lane: Lane, width: float) -> float:
    """Return how high a lane is on a sheet of this width: an error may need lines of its own."""
    return LANE_HEIGHT + _DETAIL * len(_below(axis, lane, width))


def _below(axis: Axis, lane: Lane, width: float) -> tuple[str, ...]:
    """Return the lines of what is said below the bar because behind it there is no room."""
    x = axis.place(lane.since if lane.until is None else lane.until) + 2 * SIGN + 8
    if x + width_of(lane.detail, SMALL) + 6 <= width:
        return ()
    return folded(lane.detail, width - axis.left - 6, SMALL)


def draw_lane(canvas: Canvas, axis: Axis, lane: Lane, *, y: float, timeline: Timeline) -> None:
    """Draw an invocation whose row begins at `y`: its spans, how it ended, and its marks."""
    end = timeline.end
    top = y + 10
    middle = top + _BAR / 2
    name = f"{lane.tool_name} {lane.invocation_id}"
    with canvas.group(f"lane-{lane.epoch}-{lane.position}", title=name):
        canvas.text(LABEL, y + 15, fitted(lane.tool_name, LABEL_WIDTH, 13))
        id_ = fitted(lane.invocation_id, LABEL_WIDTH, 10, mono=True)
        canvas.text(LABEL, y + 27, id_, size=10, mono=True, fill=canvas.paper.soft)
        for span in lane.spans:
            if span.until != span.since:  # a grant's approval takes no time
                _span(canvas, axis, span, top, timeline)
        right = axis.place(end if lane.until is None else lane.until)
        if lane.outcome is None:
            _said(canvas, right + 16, middle + 4, "not ended")
        else:
            sign(canvas, look_of(lane.outcome), right, middle)
            below = _below(axis, lane, canvas.width)
            if not below:
                _said(canvas, right + 2 * SIGN + 8, middle + 4, lane.detail)
            for number, line in enumerate(below):
                _said(canvas, axis.left, y + LANE_HEIGHT + 6 + number * _DETAIL, line)
        _marks(canvas, axis, lane.marks, (top, top + _BAR), lane.turn_id)


def _span(canvas: Canvas, axis: Axis, span: Span, top: float, timeline: Timeline) -> None:
    drawn, end = DRAWN[span.kind], timeline.end
    left = axis.place(span.since)
    right = axis.place(end if span.until is None else span.until)
    told = of_span(span, begin=axis.begin, end=end)
    bar(canvas, drawn, (left, top, right - left, _BAR), title=told)
    worker = timeline.workers.get(span.worker or "", "")
    if worker and width_of(worker, SMALL) + 10 <= right - left:
        ground = canvas.paper.ground
        canvas.text(left + 5, top + 11, worker, size=SMALL, fill=ground, pointer_events="none")
    if span.until is None:
        onwards(canvas, drawn.look, right + 3, top, _BAR)


def _said(canvas: Canvas, x: float, y: float, words: str) -> None:
    """Write behind a bar as much as fits on the sheet, over the lines of the grid."""
    said = fitted(words, canvas.width - x - 6, SMALL)
    if said:
        canvas.text(
            x,
            y,
            said,
            size=SMALL,
            fill=canvas.paper.soft,
            stroke=canvas.paper.ground,
            stroke_width="3",
            paint_order="stroke",
        )


def _marks(
    canvas: Canvas, axis: Axis, marks: Iterable[Mark], sides: tuple[float, float], turn_id: str
) -> None:
    """Draw deadlines above the bar, refusals below it, everything else across.

    A refusal that named another turn than that of the row says which.
    """
    top, low = sides
    inside = sorted((mark for mark in marks if axis.holds(mark.at)), key=lambda mark: mark.at)
    for kind in MarkKind:
        refused = kind is MarkKind.REFUSED
        of_kind = [mark for mark in inside if mark.kind is kind]
        groups = _grouped(axis, of_kind, _NEAR if refused else _DENSE)
        ends = [*(x for x, _ in groups[1:]), canvas.width]
        for (x, together), end in zip(groups, ends, strict=False):
            with canvas.group(title=of_marks(together, begin=axis.begin)):
                if refused:
                    others = {mark.turn_id for mark in together} - {turn_id, None}
                    _refusals(canvas, x, low + 5, len(together), others, room=end - x - 10)
                elif kind in {MarkKind.DEADLINE, MarkKind.MET}:
                    deadline(canvas, x, top - 7, met=kind is MarkKind.MET)
                else:
                    across(canvas, kind, x, sides)


def _refusals(  # noqa: PLR0913 - where it stands, and what is said
    canvas: Canvas, x: float, y: float, number: int, others: Collection[str | None], *, room: float
) -> None:
    refusal(canvas, x, y)
    count = f"{number:,}" if number > 1 else ""
    named = "other turns" if len(others) > 1 else "".join(f"turn {turn_id}" for turn_id in others)
    said = f"{count} {named}".strip()
    if width_of(said, _TINY) > room:
        said = count
    if said:
        canvas.text(x + 5, y + 3, said, size=_TINY, fill=canvas.paper.soft)


def _grouped(axis: Axis, marks: Iterable[Mark], near: float) -> list[tuple[float, list[Mark]]]:
    """Put together what stands so near that it could not be told apart."""
    groups: list[tuple[float, list[Mark]]] = []
    for mark in marks:
        x = axis.place(mark.at)
        if groups and x < groups[-1][0] + near:
            groups[-1][1].append(mark)
        else:
            groups.append((x, [mark]))
    return groups
