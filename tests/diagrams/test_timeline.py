"""The model of a timeline: what the facts say, phase by phase, and which rows it is shown in."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import attrs
import pytest
from hypothesis import given

from turnlock.diagrams.errors import LISTED, NoSuchForm, NothingToDraw
from turnlock.diagrams.recordings.recorder import played
from turnlock.diagrams.recordings.recording import Moment, Recording
from turnlock.diagrams.timeline.folding import timeline_of
from turnlock.diagrams.timeline.picture import timeline_picture
from turnlock.diagrams.timeline.rows import CHOSEN, ROWS, TOOLS, CrowdRow, LaneRow, TurnRow, rows_of
from turnlock.diagrams.timeline.spans import Kind, Lane, MarkKind
from turnlock.engine.evolve import fold
from turnlock.engine.state import State
from turnlock.lifecycle.phases import TERMINAL, Phase
from turnlock.models.codec import read
from turnlock.models.errors import CorruptJournal
from turnlock.models.run import Run
from turnlock.turn.phases import TurnPhase
from turnlock.verification.fuzz.machine import scripts

from .timeline_scenes import (
    INTERRUPT,
    STORY,
    about,
    asked,
    crowd,
    many_turns,
    opens,
    recorded,
)

Raw = dict[str, Any]
Lives = dict[tuple[int, str], list[tuple[Phase, float]]]


def engine_lives(recording: Recording) -> Lives:
    """Every phase that the engine's own state went through, with its time, by epoch and id."""
    state = State(recording.run)
    lives: Lives = {}
    for fact in recording.facts:
        turn = state.turn
        fold(state, (fact,))
        for member in (turn or state.turn).order if turn or state.turn else ():  # type: ignore[union-attr]
            life = lives.setdefault((state.epoch, member.invocation_id), [])
            if not life or life[-1][0] is not member.phase:
                life.append((member.phase, fact.at))
    return lives


def spans_as_life(lane: Lane) -> list[tuple[Phase, float]]:
    """The phases of a lane with the times at which they began, its outcome last."""
    life = [(span.phase, span.since) for span in lane.spans]
    if lane.outcome is not None:
        assert lane.until is not None
        life.append((lane.outcome, lane.until))
    return life


@given(scripts())
def test_spans_partition_each_life_as_the_engine_folds_it(case: tuple[Raw, list[Raw]]) -> None:
    """Contiguous and in order, the phases those of the fold, open only where nothing ended it."""
    recording = played(read(Run, case[0]), case[1])

    timeline = timeline_of(recording)

    lanes = {(lane.epoch, lane.invocation_id): lane for lane in timeline.lanes}
    assert {key: spans_as_life(lane) for key, lane in lanes.items()} == engine_lives(recording)
    for lane in lanes.values():
        assert all(one.until == next_.since for one, next_ in pairwise(lane.spans))
        assert (lane.outcome is None) == (lane.until is None)
        assert not {span.phase for span in lane.spans} & TERMINAL
        parts = sum(lane.seconds(kind, timeline.end) for kind in Kind)
        assert parts == pytest.approx(lane.lasts(timeline.end))
    for turn in timeline.turns:
        assert all(one.until == next_.since for one, next_ in pairwise(turn.spans))
        assert (turn.closed is None) == (turn.closed_at is None)
    refused = sum(moment.reason is not None for moment in recording.moments)
    assert timeline.refused() == refused, "no refusal is lost, none told twice"


def told(lane: Lane) -> list[tuple[Kind, float, float | None]]:
    """The spans of a lane, in short."""
    return [(span.kind, span.since, span.until) for span in lane.spans]


def test_a_story_with_everything() -> None:
    """Waiting is not ready, doubt is not executing, and a retry is a span of its own."""
    (turn,) = timeline_of(recorded(STORY)).turns

    read_, rm, search, mail = turn.lanes
    assert told(read_) == [(Kind.READY, 0, 0.5), (Kind.EXECUTING, 0.5, 6)]
    assert told(rm) == [(Kind.WAITING, 0, 7), (Kind.READY, 7, 9), (Kind.EXECUTING, 9, 12)]
    assert told(search) == [
        (Kind.READY, 1, 2.2),
        (Kind.EXECUTING, 2.2, 7),
        (Kind.IN_DOUBT, 7, 8),
        (Kind.IN_DOUBT, 8, 8.6),
        (Kind.EXECUTING, 8.6, 11),
    ]
    assert told(mail) == [(Kind.WAITING, 1.5, 9.6)]
    assert [lane.outcome for lane in turn.lanes] == [
        Phase.SUCCEEDED,
        Phase.FAILED,
        Phase.SUCCEEDED,
        Phase.DENIED,
    ]
    assert [lane.detail for lane in turn.lanes] == ["", "protected", "", "approval expired"]
    assert [(span.attempt, span.worker) for span in search.spans] == [
        (0, None),
        (1, "w2"),
        (1, None),
        (1, None),
        (2, "w3"),
    ]
    assert [(mark.kind, mark.at) for mark in read_.marks] == [
        (MarkKind.RENEWED, 3),
        (MarkKind.MET, 6),
        (MarkKind.REFUSED, 6.1),
    ]
    assert [(mark.kind, mark.at) for mark in search.marks] == [
        (MarkKind.DEADLINE, 6.2),
        (MarkKind.RETRY, 8),
        (MarkKind.MET, 38.6),
        (MarkKind.REFUSED, 12.5),
    ]
    assert [(mark.kind, mark.at) for mark in mail.marks] == [(MarkKind.DEADLINE, 9.5)]
    assert rm.marks[0].text == "claim of turn T1: not_approved"
    assert [(span.phase, span.since, span.until) for span in turn.spans] == [
        (TurnPhase.OPEN, 0, 2),
        (TurnPhase.SEALED, 2, 12),
    ]
    assert (turn.closed, turn.settled_at, turn.taken_at) == (TurnPhase.SETTLED, 12, 13)


def test_an_interrupt_and_a_turn_that_goes_on() -> None:
    """Grace is a deadline of the turn; what is open lasts up to the last known time."""
    timeline = timeline_of(recorded(INTERRUPT))

    stopped, active = timeline.turns
    assert (stopped.closed, stopped.settled_at) == (TurnPhase.INTERRUPTED, None)
    assert [(span.phase, span.until) for span in stopped.spans] == [
        (TurnPhase.SEALED, 3),
        (TurnPhase.INTERRUPTING, 5.2),
    ]
    assert [(mark.kind, mark.at, mark.text) for mark in stopped.marks] == [
        (MarkKind.INTERRUPT, 3, "stop"),
        (MarkKind.DEADLINE, 5, "of the grace"),
    ]
    assert (active.closed, active.until(timeline.end)) == (None, 8)
    doubted, waiting = active.lanes
    assert told(doubted)[-1] == (Kind.IN_DOUBT, 7, None)
    assert (doubted.doubted, waiting.lasts(timeline.end)) == (True, 2)


def test_a_refusal_belongs_to_what_it_names_else_to_the_active_turn() -> None:
    """Only what comes before the first turn is a stray; each mark says which turn was named."""
    script = (
        {"type": "revoke", "now": 0, "grant_id": "g"},
        opens(1, "T1", asked("a", "ls")),
        {"type": "revoke", "now": 2, "grant_id": "g"},
        about("report", 3, "a", turn_id="T9", result=1),
        about("report", 4, "a", run_id="other", result=1),
        {"type": "report", "now": 5, "invocation_id": "a", "result": 1},
        {"type": "report", "now": 6, "invocation_id": "z", "result": 1},
    )

    timeline = timeline_of(recorded(script))

    (turn,) = timeline.turns
    assert [mark.at for mark in timeline.strays] == [0]
    assert [(mark.at, mark.text) for mark in turn.marks] == [
        (2, "revoke of no turn: unknown_grant"),
        (3, "report of turn T9: turn_mismatch"),
        (4, "report of turn T1: run_mismatch"),
        (6, "report of no turn: unknown_invocation"),
    ]
    assert [mark.at for mark in turn.lanes[0].marks] == [5]


@pytest.mark.parametrize("dropped", [0, 3, 7])
def test_facts_that_cannot_follow_are_said_to(dropped: int) -> None:
    """A picture of what cannot have happened would be a lie."""
    recording = recorded(STORY)
    facts = list(recording.facts)
    del facts[dropped]
    torn = Recording(run=recording.run, moments=(Moment(at=0.0, facts=tuple(facts)),))

    with pytest.raises(CorruptJournal, match="turnlock check"):
        timeline_of(torn)


def test_each_call_has_a_row_while_they_can_be_read() -> None:
    """Turns in order, each before its calls."""
    rows = rows_of(timeline_of(recorded(INTERRUPT)))

    assert [type(row) for row in rows] == [TurnRow, *[LaneRow] * 3, TurnRow, *[LaneRow] * 2]


def test_a_large_turn_shows_what_needs_looking_at_and_sums_up_the_rest() -> None:
    """Each call stands in one row; open, doubted, failed and denied ones are among those shown."""
    timeline = timeline_of(recorded(crowd(3_000)))

    rows = rows_of(timeline)

    shown = [row.lane for row in rows if isinstance(row, LaneRow)]
    summed = [lane for row in rows if isinstance(row, CrowdRow) for lane in row.lanes]
    assert len(rows) <= ROWS
    assert len(shown) == CHOSEN
    assert Counter(map(id, [*shown, *summed])) == Counter(map(id, timeline.lanes))
    assert {Phase.FAILED, Phase.DENIED, None} <= {lane.outcome for lane in shown}
    assert any(lane.doubted for lane in shown)
    assert [lane.position for lane in shown] == sorted(lane.position for lane in shown)


def test_a_long_run_shows_its_turns_and_sums_up_all_calls() -> None:
    """Interrupted turns and the longest are among those shown; every call is summed up."""
    timeline = timeline_of(recorded(many_turns(1_000)))

    rows = rows_of(timeline)

    turns = [row.turn for row in rows if isinstance(row, TurnRow)]
    crowds = [row for row in rows if isinstance(row, CrowdRow)]
    assert (len(turns), len(rows)) == (CHOSEN, CHOSEN + 2)
    assert [crowd_.label for crowd_ in crowds] == ["read, 1,000 calls", "grep, 1,000 calls"]
    assert any(turn.closed is TurnPhase.INTERRUPTED for turn in turns)


def test_tools_beyond_the_bound_are_summed_up_together() -> None:
    """A turn of a hundred tools does not have a hundred crowds."""
    calls = [asked(f"c{place}", f"tool{place % 100}") for place in range(1_000)]

    rows = rows_of(timeline_of(recorded((opens(0, "T1", *calls),))))

    crowds = [row for row in rows if isinstance(row, CrowdRow)]
    assert len(crowds) == TOOLS + 1
    assert crowds[-1].name == f"{100 - TOOLS} other tools"
    assert sum(len(row.lanes) for row in crowds) == 1_000 - CHOSEN


def test_a_call_with_hundreds_of_attempts_is_summed_up() -> None:
    """One row can be a crowd of spans, too."""
    script = [opens(0, "T1", asked("a", "flaky"))]
    for attempt in range(1, 200):
        script += [
            about("claim", attempt, "a", attempt=attempt),
            about("lose", attempt + 0.2, "a"),
            about("resolve", attempt + 0.4, "a", attempt=attempt, **{"as": "retry"}),
        ]

    _, row = rows_of(timeline_of(recorded(tuple(script))))

    assert isinstance(row, CrowdRow)
    assert (row.label, len(row.lanes)) == ("flaky a", 1)


def test_a_turn_is_asked_for_by_its_id() -> None:
    """Only its rows are there, and the end is that of the recording."""
    picture = timeline_picture(recorded(INTERRUPT), turn_id="T2")

    assert [turn.turn_id for turn in picture.timeline.turns] == ["T2"]
    assert picture.title == "Turn T2 of run r"


def test_what_is_not_there_is_answered_with_what_is() -> None:
    """The first of them, and how many more."""
    recording = recorded(many_turns(LISTED + 5))

    with pytest.raises(NothingToDraw) as error:
        timeline_picture(recording, turn_id="T99")

    assert str(error.value).startswith("no turn 'T99' was recorded; choose one of: T0, T1")
    assert str(error.value).endswith("T19 … and 5 more")
    with pytest.raises(NothingToDraw, match="opened no turn"):
        timeline_picture(recorded(()))
    with pytest.raises(NothingToDraw, match="has no turn at all"):
        timeline_picture(recorded(()), turn_id="T1")


def test_graphviz_draws_no_timeline() -> None:
    """The message says which forms there are."""
    picture = timeline_picture(recorded(STORY))

    with pytest.raises(NoSuchForm, match="html, md, mmd, png, svg, txt"):
        picture.dot()


def test_a_timeline_can_be_cut_down_to_turns() -> None:
    """What is counted is what is shown."""
    timeline = timeline_of(recorded(INTERRUPT))

    one = attrs.evolve(timeline, turns=timeline.turns[1:])

    assert (timeline.refused(), one.refused()) == (1, 0)
