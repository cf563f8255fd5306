"""A timeline as a Mermaid gantt chart: a section for each turn, a task for each span.

Mermaid has no way to quote a name, so names keep letters, digits and little else. A name never
begins a line, where it could be one of Mermaid's own words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...lifecycle.phases import Phase
from ...models.safe_text import harmless
from .rows import CrowdRow, LaneRow, Row, TurnRow
from .spans import Kind, Lane, Timeline, TurnLine
from .words import how_closed, title

SPANS: Final = 8
"""Spans of one call that become tasks; a call with more is one task: a chart may have 50,000
characters where GitHub draws it."""
_NAME: Final = 44
_SAFE: Final = frozenset(" _-./,")
_WORDS: Final = {
    Kind.WAITING: "waits",
    Kind.READY: "ready",
    Kind.EXECUTING: "runs",
    Kind.IN_DOUBT: "in doubt",
}
_TAGS: Final = {Kind.READY: "done, ", Kind.EXECUTING: "active, ", Kind.IN_DOUBT: "crit, "}
_ENDED: Final = {Phase.FAILED: "crit, "}
_FORMATS: Final = ((10.0, "%M:%S.%L"), (86_400.0, "%H:%M:%S"))
_LATER: Final = "%d %b %H:%M"
_LATEST: Final = 8.64e12
"""The last second that JavaScript has a date for."""


def mermaid_of(timeline: Timeline, rows: tuple[Row, ...]) -> str:
    """Return the chart. Times are those of the run, which Mermaid shows in the reader's zone."""
    since = min((turn.since for turn in timeline.turns), default=0.0)
    shift = 0.0 if since >= 0 and timeline.end <= _LATEST else since
    chart = _Chart(shift, timeline.end)
    lasts = timeline.end - since
    format_ = next((said for below, said in _FORMATS if lasts < below), _LATER)
    head = ("gantt", f"    title {safe(title(timeline), 100)}", "    dateFormat x")
    lines = [*head, f"    axisFormat {format_}"]
    crowd = False
    for row in rows:
        if isinstance(row, CrowdRow) and not crowd and len(timeline.turns) > 1:
            crowd = True
            lines.append("    section all calls")
        lines += chart.tasks(row)
    return "\n".join(lines) + "\n"


def safe(text: str, limit: int = _NAME) -> str:
    """Return text that is a name to Mermaid, and nothing else."""
    kept = (letter if letter.isalnum() or letter in _SAFE else "_" for letter in text[:limit])
    return harmless("".join(kept)).strip() or "_"


class _Chart:
    def __init__(self, shift: float, end: float) -> None:
        self._shift = shift
        self._end = end

    def tasks(self, row: Row) -> Iterator[str]:
        if isinstance(row, TurnRow):
            yield from self._turn(row.turn)
        elif isinstance(row, CrowdRow):
            since = min(lane.since for lane in row.lanes)
            until = max(since + lane.lasts(self._end) for lane in row.lanes)
            yield self._task(f"sum of {safe(row.label)}", "", since, until)
        else:
            yield from self._lane(row)

    def _turn(self, turn: TurnLine) -> Iterator[str]:
        yield f"    section turn {safe(turn.turn_id)}"
        for span in turn.spans:
            yield self._task(f"turn {span.phase.lower()}", "", span.since, span.until)
        if turn.closed is not None:
            at = turn.until(self._end) if turn.closed_at is None else turn.closed_at
            yield self._task(f"turn {safe(how_closed(turn))}", "milestone, ", at, at)

    def _lane(self, row: LaneRow) -> Iterator[str]:
        lane = row.lane
        name = safe(f"{lane.tool_name[:_NAME]} {lane.invocation_id}")
        if len(lane.spans) > SPANS:
            yield self._task(f"all of {name}", "", lane.since, lane.until)
        else:
            yield from self._spans(lane, name)
        if lane.outcome is not None:
            tags = _ENDED.get(lane.outcome, "") + "milestone, "
            until = lane.until or 0.0
            yield self._task(f"{lane.outcome.lower()} {name}", tags, until, until)

    def _spans(self, lane: Lane, name: str) -> Iterator[str]:
        for span in lane.spans:
            if span.since != span.until:
                words, tags = _WORDS[span.kind], _TAGS.get(span.kind, "")
                yield self._task(f"{words} {name}", tags, span.since, span.until)

    def _task(self, name: str, tags: str, since: float, until: float | None) -> str:
        begin = self._milliseconds(since)
        end = self._milliseconds(self._end if until is None else until)
        return f"    {name} :{tags}{begin}, {end if since == until else max(end, begin + 1)}"

    def _milliseconds(self, at: float) -> int:
        return round((at - self._shift) * 1000)
