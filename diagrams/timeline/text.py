"""A timeline for a terminal: a column for each stretch of time, a letter for each kind of span."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Final

from ...lifecycle.phases import Phase
from ...models.safe_text import harmless
from ...turn.phases import TurnPhase
from ..drawing.tables import WIDTH
from ..palette import LOOKS, look_of
from .axis import Axis, axis_of, duration
from .rows import AT_WORK, IN_WAITING, CrowdRow, LaneRow, Row, TurnRow, profile
from .spans import Kind, Lane, MarkKind, Timeline, TurnLine
from .svg_rows import DRAWN
from .words import amount, begins, how_closed, signed, summary, title

_LABEL: Final = 26
_AXIS: Final = 48
_CUT: Final = 2
_TICKS: Final = 5
_NOTE: Final = WIDTH - _LABEL - _AXIS - 3
_TURN: Final = {TurnPhase.OPEN: "─", TurnPhase.SEALED: "━", TurnPhase.INTERRUPTING: "!"}
_OWED: Final = "┄"
_ONWARDS: Final = "→"
_HEIGHTS: Final = " ▁▂▃▄▅▆▇█"


def text_of(timeline: Timeline, rows: tuple[Row, ...]) -> str:
    """Return the lines, at most `WIDTH` columns wide."""
    axis = axis_of(timeline, left=0, width=_AXIS, cut=_CUT)
    lines = [title(timeline), summary(timeline), begins(timeline), *_legend(), "", _ruler(axis)]
    for row in rows:
        if isinstance(row, TurnRow):
            lines += _turn(axis, row.turn, timeline.end)
        elif isinstance(row, LaneRow):
            lines.append(_lane(axis, row.lane, timeline.end))
        else:
            lines += _crowd(axis, row, timeline.end)
    return "\n".join(harmless(line, limit=WIDTH).rstrip() for line in lines) + "\n"


def _legend() -> Iterator[str]:
    yield "  ".join(f"{DRAWN[kind].letter} {kind}" for kind in Kind) + f"  {_ONWARDS} not ended"
    yield "ended: " + "  ".join(
        f"{LOOKS[end].sign} {end.lower()}" for end in (Phase.SUCCEEDED, Phase.FAILED, Phase.DENIED)
    )
    letters = {**_TURN, **{phase: LOOKS[phase].sign for phase in TurnPhase if phase not in _TURN}}
    phases = "  ".join(f"{letter} {phase.lower()}" for phase, letter in letters.items())
    yield f"turn: {phases}  {_OWED} continuation owed"


def _ruler(axis: Axis) -> str:
    """Return the names of ticks, or where time is cut, from the left as far as there is room."""
    cells = [" "] * (_AXIS + _NOTE)
    marks = [(left, f"//{duration(seconds)}") for left, _, seconds in axis.cuts()]
    step, ticks = axis.ticks(_TICKS)
    free = 0
    for place, words in sorted(marks) or ticks:
        at = round(place)
        if words and at >= free:
            cells[at : at + len(words)] = words
            free = at + len(words) + 1
    said = "idle time is cut (//)" if marks else f"a step is {duration(step)}"
    return said.ljust(_LABEL + 1) + "".join(cells)


def _turn(axis: Axis, turn: TurnLine, end: float) -> Iterator[str]:
    cells = _Cells(axis, end)
    if turn.settled_at is not None and turn.taken_at is not None:
        cells.fill(turn.settled_at, turn.taken_at, _OWED)
    for span in turn.spans:
        cells.fill(span.since, span.until, _TURN[span.phase])
    if turn.closed is not None:
        cells.put(turn.closed_at, look_of(turn.closed).sign)
    refused = sum(mark.kind is MarkKind.REFUSED for mark in turn.marks)
    yield _line(f"turn {turn.turn_id}", cells, "", refused)
    yield f"  {how_closed(turn)}"


def _lane(axis: Axis, lane: Lane, end: float) -> str:
    cells = _Cells(axis, end)
    for span in lane.spans:
        cells.fill(span.since, span.until, DRAWN[span.kind].letter)
    if lane.outcome is not None:
        cells.put(lane.until, LOOKS[lane.outcome].sign)
    half = (_LABEL - 3) // 2
    tool = harmless(lane.tool_name, limit=half)
    label = f"  {tool} {harmless(lane.invocation_id, limit=_LABEL - 3 - len(tool))}"
    refused = sum(mark.kind is MarkKind.REFUSED for mark in lane.marks)
    return _line(label, cells, duration(lane.lasts(end)), refused)


def _line(label: str, cells: _Cells, note: str, refused: int) -> str:
    if refused:
        note += f"{', ' if note else ''}{refused:,} refused"
    said = harmless(note, limit=_NOTE)
    return f"{harmless(label, limit=_LABEL).ljust(_LABEL)} {cells} {said}"


def _crowd(axis: Axis, row: CrowdRow, end: float) -> Iterator[str]:
    counts = profile(row.lanes, axis, end=end, columns=_AXIS)
    name = harmless(row.name, limit=_LABEL - len(row.count))
    labels = (name + row.count, f"  {signed(row.lanes)}")
    parts = ((AT_WORK, "at work"), (IN_WAITING, "waiting"))
    for label, (kinds, words) in zip(labels, parts, strict=True):
        sums = [sum(column) for column in zip(*(counts[kind] for kind in kinds), strict=True)]
        most = max(sums)
        steps = (len(_HEIGHTS) - 1) / most if most else 0.0
        heights = "".join(_HEIGHTS[ceil(round(number * steps, 6))] for number in sums)
        said = harmless(label, limit=_LABEL).ljust(_LABEL)
        yield f"{said} {heights}" + (f"  max {amount(most)} {words}" if most else "")


class _Cells:
    """One line of columns."""

    def __init__(self, axis: Axis, end: float) -> None:
        self._axis = axis
        self._end = end
        self._cells = [" "] * (_AXIS + 1)

    def fill(self, since: float, until: float | None, letter: str) -> None:
        """Fill the columns of a time, one at least unless it takes no time."""
        if since == until:
            return
        first = min(int(self._axis.place(since)), _AXIS - 1)
        last = round(self._axis.place(self._end if until is None else until))
        last = max(last, first + 1)
        self._cells[first:last] = letter * (last - first)
        if until is None:
            self._cells[last] = _ONWARDS

    def put(self, at: float | None, letter: str) -> None:
        """Put a sign behind what ended then."""
        self._cells[round(self._axis.place(self._end if at is None else at))] = letter

    def __str__(self) -> str:
        return "".join(self._cells)
