"""The numbers beside the picture: how long each call waited, was ready, ran, was in doubt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ..drawing.tables import Table
from .durations import duration
from .rows import CrowdRow, LaneRow, Row, TurnRow
from .spans import Kind, Lane, MarkKind, Timeline
from .words import ended, how_closed

_NOTE: Final = "Where a row stands for many calls, its times are the sums of theirs."


def tables_of(timeline: Timeline, rows: tuple[Row, ...]) -> Iterator[Table]:
    """Yield a table of the turns, and one of the calls, row by row as in the picture."""
    end = timeline.end
    turns = [row.turn for row in rows if isinstance(row, TurnRow)]
    left = len(timeline.turns) - len(turns)
    yield Table(
        title="Turns",
        head=("turn", "how it stands", "calls", "lasted", "outcomes"),
        rows=tuple(
            (
                turn.turn_id,
                how_closed(turn),
                f"{len(turn.lanes):,}",
                duration(turn.until(end) - turn.since),
                ended(turn.lanes),
            )
            for turn in turns
        ),
        note=f"{left:,} more turns are not listed." if left else "",
    )
    calls = tuple(_call(row, end) for row in rows if not isinstance(row, TurnRow))
    if calls:
        yield Table(
            title="Calls",
            head=("call", "tool", "turn", "outcome", *Kind, "attempts", "refused"),
            rows=calls,
            note=_NOTE if any(isinstance(row, CrowdRow) for row in rows) else "",
        )


def _call(row: LaneRow | CrowdRow, end: float) -> tuple[str, ...]:
    if isinstance(row, CrowdRow):
        return (row.label, "", "", ended(row.lanes), *_numbers(row.lanes, end))
    lane = row.lane
    outcome = "not ended" if lane.outcome is None else lane.outcome.lower()
    told = f"{outcome}: {lane.detail}" if lane.detail else outcome
    return (lane.invocation_id, lane.tool_name, lane.turn_id, told, *_numbers((lane,), end))


def _numbers(lanes: Iterable[Lane], end: float) -> Iterator[str]:
    all_ = list(lanes)
    for kind in Kind:
        seconds = sum(lane.seconds(kind, end) for lane in all_)
        yield duration(seconds) if seconds else ""
    yield f"{sum(max(span.attempt for span in lane.spans) for lane in all_):,}"
    yield f"{sum(mark.kind is MarkKind.REFUSED for lane in all_ for mark in lane.marks):,}"
