"""Which rows a timeline has: a row for each call as long as they can be read, else an account.

A turn of ten thousand calls shows those that need looking at, and of the others how many there
were at a time, tool by tool. A long run shows its turns instead of their calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, islice, zip_longest
from typing import Final, TypeAlias, TypeVar

import attrs

from ...lifecycle.phases import Phase
from ...turn.phases import TurnPhase
from .axis import Axis
from .spans import Kind, Lane, Timeline, TurnLine

ROWS: Final = 48
"""Rows of a timeline in which each turn and each call has its own: about what a page holds."""
CHOSEN: Final = 24
"""Calls of a turn, or turns of a run, that are shown one by one when not all can be."""
TOOLS: Final = 12
"""Tools whose calls are summed up each by themselves; the rest together."""
SPANS: Final = 100
"""Spans and marks of one call; with more of them it is summed up, too."""


@attrs.frozen(kw_only=True)
class TurnRow:
    """One turn: the band of its phases."""

    turn: TurnLine


@attrs.frozen(kw_only=True)
class LaneRow:
    """One invocation."""

    lane: Lane


@attrs.frozen(kw_only=True)
class CrowdRow:
    """Many invocations, summed up: how many did what at a time.

    `name` is their tool, `count` how many they are, with a comma before it; where room is short the
    name gives way.
    """

    name: str
    count: str
    lanes: tuple[Lane, ...]

    @property
    def label(self) -> str:
        """All of it."""
        return self.name + self.count


Row: TypeAlias = TurnRow | LaneRow | CrowdRow
T = TypeVar("T")


def rows_of(timeline: Timeline) -> tuple[Row, ...]:
    """Return the rows, at most `ROWS`, from top to bottom."""
    turns = timeline.turns
    if sum(1 + len(turn.lanes) for turn in turns) <= ROWS:
        return tuple(chain.from_iterable(_whole(turn) for turn in turns))
    if len(turns) == 1:
        return tuple(_crowded(turns[0], timeline.end))
    chosen = _chosen(turns, _kinds_of_turn(turns, timeline.end))
    rows: list[Row] = [TurnRow(turn=turn) for turn in turns if id(turn) in chosen]
    return (*rows, *_crowds(list(timeline.lanes), others=False))


def _whole(turn: TurnLine) -> list[Row]:
    return [TurnRow(turn=turn), *map(_lane_row, turn.lanes)]


def _lane_row(lane: Lane) -> Row:
    if len(lane.spans) <= SPANS:
        return LaneRow(lane=lane)
    return CrowdRow(name=f"{lane.tool_name} {lane.invocation_id}", count="", lanes=(lane,))


def _crowded(turn: TurnLine, end: float) -> list[Row]:
    chosen = _chosen(turn.lanes, _kinds_of_lane(turn.lanes, end))
    shown = [lane for lane in turn.lanes if id(lane) in chosen]
    rest = [lane for lane in turn.lanes if id(lane) not in chosen]
    return [TurnRow(turn=turn), *map(_lane_row, shown), *_crowds(rest, others=True)]


def _crowds(lanes: Sequence[Lane], *, others: bool) -> list[Row]:
    """Sum calls up by tool, the most called first."""
    by_tool: dict[str, list[Lane]] = {}
    for lane in lanes:
        by_tool.setdefault(lane.tool_name, []).append(lane)
    tools = sorted(by_tool.items(), key=lambda item: -len(item[1]))
    rows: list[Row] = [
        CrowdRow(name=name, count=_calls(len(its), others=others), lanes=tuple(its))
        for name, its in tools[:TOOLS]
    ]
    rest = tuple(chain.from_iterable(its for _, its in tools[TOOLS:]))
    if rest:
        left = f"{len(tools) - TOOLS:,} other tools"
        rows.append(CrowdRow(name=left, count=_calls(len(rest), others=others), lanes=rest))
    return rows


def _calls(number: int, *, others: bool) -> str:
    return f", {number:,} {'more ' if others else ''}call{'' if number == 1 else 's'}"


def _chosen(all_: Sequence[T], kinds: Iterable[list[T]]) -> set[int]:
    """Return the identities of those to show: of each kind in turn the next, each once."""
    drawn = chain.from_iterable(zip_longest(*kinds))
    distinct = dict.fromkeys(id(it) for it in drawn if it is not None)
    return set(islice(distinct, min(CHOSEN, len(all_))))


def _kinds_of_lane(lanes: Sequence[Lane], end: float) -> list[list[Lane]]:
    """Return those that are open, were in doubt, failed, were denied; and all: longest first."""
    longest = sorted(lanes, key=lambda lane: -lane.lasts(end))
    return [
        [lane for lane in longest if lane.outcome is None],
        [lane for lane in longest if lane.doubted],
        [lane for lane in longest if lane.outcome is Phase.FAILED],
        [lane for lane in longest if lane.outcome is Phase.DENIED],
        longest,
    ]


def _kinds_of_turn(turns: Sequence[TurnLine], end: float) -> list[list[TurnLine]]:
    """Return those that are open, were interrupted, hold doubt, hold failures; and all."""
    longest = sorted(turns, key=lambda turn: turn.since - turn.until(end))
    return [
        [turn for turn in longest if turn.closed is None],
        [turn for turn in longest if turn.closed is TurnPhase.INTERRUPTED],
        [turn for turn in longest if any(lane.doubted for lane in turn.lanes)],
        [turn for turn in longest if turn.outcomes()[Phase.FAILED]],
        longest,
    ]


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
