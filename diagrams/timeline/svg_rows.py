"""How each kind of span looks: its colour, a pattern besides, and a character in a terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

import attrs

from ...lifecycle.phases import Phase
from ..drawing.canvas import Canvas
from ..drawing.lettering import fitted, folded, width_of
from ..palette import LOOKS, Look, look_of
from .axis import Axis, duration
from .rows import AT_WORK, IN_WAITING, CrowdRow, profile
from .spans import Kind, Lane, Mark, MarkKind, Span, Timeline, TurnLine, TurnSpan
from .words import amount, ended, how_closed, many, of_marks, of_span, signed


@attrs.frozen
class Drawn:
    """`dashes` and `weight` are of a line through the bar, which makes dots or stripes."""

    look: Look
    letter: str
    solid: bool = False
    hollow: bool = False
    dashes: str = ""
    weight: float = 0.0


DRAWN: Final = {
    Kind.WAITING: Drawn(LOOKS[Phase.REQUESTED], "░", dashes="0 7", weight=3),
    Kind.READY: Drawn(LOOKS[Phase.APPROVED], "·", hollow=True),
    Kind.EXECUTING: Drawn(LOOKS[Phase.STARTED], "█", solid=True),
    Kind.IN_DOUBT: Drawn(LOOKS[Phase.IN_DOUBT], "▒", dashes="3 4", weight=12),
}


SIGN: Final = 7.0
"""Radius of the sign of an outcome."""
HIDDEN: Final = 0.6
"""A bar is at least so wide, so that no span is invisible."""


Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, width, height."""


def bar(canvas: Canvas, drawn: Drawn, box: Box, *, title: str = "") -> None:
    """Draw a bar of one kind: solid, hollow, dotted or striped."""
    x, y, width, height = box
    look, theme = drawn.look, canvas.theme
    stroke = look.stroke(theme)
    fill = stroke if drawn.solid else "none" if drawn.hollow else look.fill(theme)
    wide = max(width, HIDDEN)
    canvas.rect(x, y, wide, height, title=title, fill=fill, stroke=stroke, pointer_events="all")
    if drawn.dashes and width > drawn.weight:
        middle = y + height / 2
        canvas.line(
            x + 2,
            middle,
            x + width - 1,
            middle,
            stroke=stroke,
            stroke_width=str(drawn.weight),
            stroke_dasharray=drawn.dashes,
            stroke_linecap="round" if drawn.dashes.startswith("0") else "butt",
            pointer_events="none",
        )


def onwards(canvas: Canvas, look: Look, x: float, y: float, height: float) -> None:
    """Draw the tip of a bar that goes on beyond what is known."""
    d = f"M{x:.1f} {y:.1f}l{height / 2:.1f} {height / 2:.1f}l-{height / 2:.1f} {height / 2:.1f}"
    canvas.path(d, stroke=look.stroke(canvas.theme), stroke_width="1.5")


def sign(canvas: Canvas, look: Look, x: float, y: float) -> None:
    """Draw how something ended: its sign in a disc, left of which `x` is."""
    x += SIGN + 2
    stroke = look.stroke(canvas.theme)
    side = 2 * SIGN
    canvas.rect(
        x - SIGN, y - SIGN, side, side, rx=str(SIGN), fill=look.fill(canvas.theme), stroke=stroke
    )
    canvas.text(x, y + 4, look.sign, size=11, text_anchor="middle", font_weight="700")


def deadline(canvas: Canvas, x: float, y: float, *, met: bool) -> None:
    """Draw a tip that points down at its time; one that was met is hollow."""
    ink = canvas.paper.ink
    fill = canvas.paper.ground if met else ink
    canvas.path(f"M{x - 3.5:.1f} {y:.1f}h7l-3.5 5.5z", fill=fill, stroke=ink)


def refusal(canvas: Canvas, x: float, y: float) -> None:
    """Draw a refused delivery: a small cross."""
    d = f"M{x - 2.5:.1f} {y - 2.5:.1f}l5 5m0 -5l-5 5"
    canvas.path(d, stroke=canvas.paper.warning, stroke_width="1.4")


def across(canvas: Canvas, kind: MarkKind, x: float, sides: tuple[float, float]) -> None:
    """Draw what happened within a bar: a line across it, from its upper to its lower side."""
    top, low = sides
    fields = {"stroke": canvas.paper.ink, "stroke_width": "2", "stroke_dasharray": "2 2"}
    if kind is MarkKind.RENEWED:
        fields |= {"stroke": canvas.paper.ground, "stroke_dasharray": "none"}
    elif kind is MarkKind.INTERRUPT:
        fields |= {"stroke": canvas.paper.warning, "stroke_dasharray": "none"}
    reach = 0 if kind is MarkKind.RENEWED else 3
    canvas.line(x, top - reach, x, low + reach, **fields)


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


CROWD_HEIGHT: Final = 62.0
_COLUMNS: Final = 120
_HALF: Final = 24.0
_SMALLEST: Final = 10.0


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
                said = fitted(f"max {amount(most)} {words}", canvas.width - right - 8, _SMALLEST)
                place = ground + height / 2 + 4
                canvas.text(right + 6, place, said, size=_SMALLEST, fill=canvas.paper.soft)
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
