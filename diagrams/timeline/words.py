"""What is said of a timeline in words: titles, counts, tooltips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from ...lifecycle.phases import Phase
from ...models.workers import opaque
from ...turn.phases import TurnPhase
from ..drawing.tables import Table
from ..palette import LOOKS
from .axis import duration
from .rows import CrowdRow, LaneRow, Row, TurnRow
from .spans import Kind, Lane, Mark, MarkKind, Span, Timeline, TurnLine

_ENDS: Final = (Phase.SUCCEEDED, Phase.FAILED, Phase.DENIED, None)
_FEW: Final = 5
_DATES: Final = 1e8
"""Times before, in 1973, are those of tests and scripts, which count from 0."""


def title(timeline: Timeline) -> str:
    """Return what a timeline is called: its turn, or the number of its turns, and its run."""
    turns = timeline.turns
    what = f"Turn {turns[0].turn_id}" if len(turns) == 1 else f"{len(turns):,} turns"
    return f"{what} of run {timeline.run.run_id}"


def summary(timeline: Timeline) -> str:
    """Return what came of it, in one sentence."""
    lanes = list(timeline.lanes)
    refused = timeline.refused()
    parts = [f"{many(len(lanes), 'call')}: {ended(lanes)}" if lanes else "no calls"]
    closed = Counter(turn.closed for turn in timeline.turns)
    if len(timeline.turns) == 1:
        parts.append(how_closed(timeline.turns[0]))
    else:
        parts.append(", ".join(_how_many(closed)))
    if refused:  # none may mean that none was recorded: a journal holds facts alone
        parts.append(f"{refused:,} deliver{'y' if refused == 1 else 'ies'} refused")
    return " · ".join(part for part in parts if part)


def _how_many(closed: Counter[TurnPhase | None]) -> Iterable[str]:
    for phase, number in closed.items():
        yield f"{many(number, 'turn')} {'not closed' if phase is None else str(phase).lower()}"


def description(timeline: Timeline) -> str:
    """Return what the picture shows, for those who cannot see it."""
    times: dict[Kind, float] = {}
    for lane in timeline.lanes:
        for span in lane.spans:
            times[span.kind] = times.get(span.kind, 0.0) + span.lasts(timeline.end)
    spent = ", ".join(f"{duration(times[kind])} {kind}" for kind in Kind if kind in times)
    return f"{summary(timeline)}; {begins(timeline)}. All calls together: {spent or 'no time'}."


def begins(timeline: Timeline) -> str:
    """Return when it began, as a date where it is one, and how long it took."""
    since = min((turn.since for turn in timeline.turns), default=timeline.end)
    until = max((turn.until(timeline.end) for turn in timeline.turns), default=timeline.end)
    said = f"time {since:.6g}"
    if since >= _DATES:
        with suppress(ValueError, OverflowError, OSError):
            date = datetime.fromtimestamp(since, UTC).replace(tzinfo=None)
            said = f"{date.isoformat(sep=' ', timespec='milliseconds')} UTC"
    return f"from {said}, {duration(until - since)}"


def how_closed(turn: TurnLine) -> str:
    """Return how a turn stands."""
    if turn.closed is None:
        return f"still {turn.spans[-1].phase.lower()}"
    said = str(turn.closed).lower()
    if turn.settled_at is None:
        return said
    if turn.taken_at is None:
        return f"{said}, continuation owed"
    return f"{said}, continued after {duration(turn.taken_at - turn.settled_at)}"


def ended(lanes: Iterable[Lane]) -> str:
    """Return how many calls ended how."""
    outcomes = Counter(lane.outcome for lane in lanes)
    return ", ".join(
        f"{outcomes[phase]:,} {'not ended' if phase is None else str(phase).lower()}"
        for phase in _ENDS
        if outcomes[phase]
    )


def signed(lanes: Iterable[Lane]) -> str:
    """Return the same, with signs for words."""
    outcomes = Counter(lane.outcome for lane in lanes)
    signs = {None: "not ended"} | {phase: LOOKS[phase].sign for phase in _ENDS if phase is not None}
    return "  ".join(f"{outcomes[phase]:,} {signs[phase]}" for phase in _ENDS if outcomes[phase])


def amount(number: float) -> str:
    """Return how many there were on the average: with two digits where they say something."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"  # noqa: PLR2004 - two digits


def many(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def of_span(span: Span, *, begin: float, end: float) -> str:
    """Return a tooltip: the phase, from when to when, and by whom."""
    since = f"from +{duration(span.since - begin)}"
    until = "on" if span.until is None else f"to +{duration(span.until - begin)}"
    told = f"{span.kind} ({span.phase}) {since} {until}, {duration(span.lasts(end))}"
    if span.attempt:
        told += f"; attempt {span.attempt}"
    return f"{told} by {opaque(span.worker)}" if span.worker else told


def of_marks(marks: list[Mark], *, begin: float) -> str:
    """Return a tooltip for marks that stand at one place: the first few."""
    told = [f"{mark.kind} {mark.text} at +{duration(mark.at - begin)}" for mark in marks[:_FEW]]
    left = len(marks) - _FEW
    return "; ".join((*told, f"and {left:,} more")) if left > 0 else "; ".join(told)


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
