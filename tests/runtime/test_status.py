"""The agent's status: always what a dumb look at the kernel says, from wherever it begins."""

from __future__ import annotations

import pytest

from turnlock import Fact, FactType, InvalidValue, Run, Scope
from turnlock.engine.state import State
from turnlock.lifecycle.invocation import Invocation
from turnlock.lifecycle.phases import Phase
from turnlock.models.facts import TurnInterrupted
from turnlock.models.record import changed
from turnlock.runtime.status import projection
from turnlock.runtime.status.projection import (
    Standing,
    StatusProjection,
    StatusUpdate,
    status_of,
)
from turnlock.runtime.status.table import StatusRow, step
from turnlock.runtime.status.view import Member
from turnlock.runtime.status.words import Status
from turnlock.turn.phases import TurnPhase

from ..outcome import gated
from ..script import Script
from .played import played

SEEDS = range(200)


def dumb(state: State, latest: Fact | None) -> Standing:
    """The definition in so many words: look at every call, then ask one question after another."""
    turn = state.turn
    order = [] if turn is None else turn.order
    doubted = [it for it in order if it.phase in {Phase.IN_DOUBT, Phase.RETRY_AUTHORISED}]
    asked = [it for it in order if it.phase is Phase.REQUESTED and it.digest is not None]
    running = [it for it in order if it.phase is Phase.STARTED]
    ready = [
        it
        for it in order
        if it.phase is Phase.APPROVED or (it.phase is Phase.REQUESTED and it.digest is None)
    ]
    here = "" if turn is None else turn.turn_id
    stopping = turn is not None and turn.phase is TurnPhase.INTERRUPTING
    stopped = latest.turn_id if isinstance(latest, TurnInterrupted) else None
    owed = next(iter(state.continuations), here)
    in_this_order: list[tuple[object, Status, str, list[Invocation]]] = [
        (stopping, Status.INTERRUPTED, here, running + doubted),
        (stopped, Status.INTERRUPTED, stopped or "", []),
        (doubted, Status.IN_DOUBT, here, doubted),
        (asked, Status.AWAITING_APPROVAL, here, asked),
        (running + ready, Status.EXECUTING, here, running + ready),
        (order or state.continuations, Status.PROCESSING_RESULTS, owed, []),
    ]
    found = (standing(status, turn_id, calls) for so, status, turn_id, calls in in_this_order if so)
    return next(found, Standing())


def standing(status: Status, turn_id: str, calls: list[Invocation]) -> Standing:
    """A standing about the first of these calls."""
    if not calls:
        return Standing(status=status, turn_id=turn_id)
    return Standing(
        status=status,
        turn_id=turn_id,
        invocation_id=calls[0].invocation_id,
        tool_name=calls[0].tool_name,
    )


def fed(projected: StatusProjection, facts: list[Fact]) -> list[StatusUpdate]:
    """The updates that these facts bring."""
    updates = (projected.take(fact) for fact in facts)
    return [update for update in updates if update is not None]


def test_the_status_is_the_dumb_definition_after_every_commit() -> None:
    """Whatever is delivered in whatever order; and all statuses are seen."""
    seen: set[Status] = set()
    for seed in SEEDS:
        projected: StatusProjection | None = None
        latest: Fact | None = None
        for kernel, facts in played(seed):
            projected = projected or StatusProjection(kernel.run.run_id)
            fed(projected, [*facts])
            latest = facts[-1] if facts else latest
            assert projected.standing == dumb(kernel.state, latest), f"seed {seed}"
            seen.add(projected.standing.status)
    assert seen == set(Status)


def test_a_wrong_row_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dumb definition would not agree with just any table: here a doubt goes unnoticed."""

    def blind(status: Status, fact: FactType, pressing: str) -> StatusRow:
        row = step(status, fact, pressing)
        return changed(row, target=status) if fact is FactType.EXECUTION_IN_DOUBT else row

    monkeypatch.setattr(projection, "step", blind)
    with pytest.raises(AssertionError, match="seed"):
        test_the_status_is_the_dumb_definition_after_every_commit()


def test_an_update_is_told_with_each_change_and_only_then() -> None:
    """Updates are a chain from idle to the latest standing, each at the end of its commit."""
    for seed in SEEDS[:100]:
        now = Standing()
        journal = [fact for _, facts in played(seed) for fact in facts]
        projected = StatusProjection(journal[0].run_id)
        for fact in journal:
            update = projected.take(fact)
            if update is None:
                assert projected.standing == now
                continue
            assert (update.sequence, update.at) == (fact.commit, fact.at)
            assert update.old == now != update.new == projected.standing
            now = update.new
        assert now == status_of(journal, run_id=journal[0].run_id)


def test_beginning_from_a_state_is_folding_all_facts_up_to_it() -> None:
    """The same standing, and the same updates from there on: nothing needs the whole journal."""
    for seed in SEEDS[:40]:
        journal = [fact for _, facts in played(seed) for fact in facts]
        told = fed(StatusProjection(journal[0].run_id), journal)
        kept: list[Fact] = []
        for kernel, facts in played(seed):
            kept += facts
            latest = kept[-1] if kept else None
            begun = StatusProjection.of(kernel.state, latest=latest)
            assert begun.standing == status_of(kept, run_id=kernel.run.run_id)
            rest = fed(begun, journal[len(kept) :])
            assert rest == [update for update in told if update.sequence > kernel.sequence]


def test_many_facts_at_once_are_told_like_one_after_the_other() -> None:
    """The pace of facts cannot be seen in the updates: a lease renewed fifty times changes none."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a", lease=5)
    before = [*play.journal]
    for _ in range(50):
        play.renews("a", lease=5)
    play.reports("a", 1)
    projected = StatusProjection("r")

    fed(projected, before)
    updates = fed(projected, play.journal[len(before) :])

    assert [update.new.status for update in updates] == [Status.PROCESSING_RESULTS]


def test_a_turn_is_told_from_its_opening_to_its_end() -> None:
    """The story that a console shows, with the payload of each update."""
    play = Script()
    play.opens("T1", gated("a"), gated("b"), "c")
    play.approves("b")
    play.claims("b")
    play.approves("a")
    play.loses("b")
    play.claims("c")
    play.resolves_error("b", error="gone")
    play.reports("c", 3)
    play.claims("a")
    play.reports("a", 1)
    play.acknowledges("T1")

    updates = fed(StatusProjection("r"), play.journal)

    assert [(it.new.status.value, it.new.invocation_id) for it in updates] == [
        ("awaiting_approval", "a"),
        ("executing", "b"),
        ("in_doubt", "b"),
        ("executing", "c"),
        ("executing", "a"),
        ("processing_results", None),
        ("idle", None),
    ]
    first, last = updates[0], updates[-1]
    assert first.payload == {
        "run_id": "r",
        "sequence": 3,
        "at": 0.0,
        "old_status": "idle",
        "new_status": "awaiting_approval",
        "turn_id": "T1",
        "invocation_id": "a",
        "tool_name": "ls",
    }
    assert last.payload == {
        "run_id": "r",
        "sequence": play.kernel.sequence,
        "at": play.journal[-1].at,
        "old_status": "processing_results",
        "new_status": "idle",
    }


def test_a_call_covered_by_a_grant_is_never_told_as_awaiting() -> None:
    """Within its commit it is gated for a moment; nobody is asked, so nobody is told."""
    play = Script()
    play.opens("T1", gated("a"))
    play.approves("a", Scope.SESSION)
    play.rejects("a", "no such tool")
    before = len(play.journal)
    play.opens("T2", gated("b"))
    projected = StatusProjection("r")

    fed(projected, play.journal[:before])
    updates = fed(projected, play.journal[before:])

    assert [update.new.status for update in updates] == [Status.EXECUTING]


def test_interrupted_is_told_from_the_first_word_until_something_else_happens() -> None:
    """While it stops it names what still runs; a turn opened afterwards ends it."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("b")
    play.interrupts()
    stopping = status_of(play.journal, run_id="r")
    play.reports("b", 1)
    stopped = status_of(play.journal, run_id="r")
    play.opens("T2", "c")

    assert stopping == Standing(
        status=Status.INTERRUPTED, turn_id="T1", invocation_id="b", tool_name="ls"
    )
    assert stopped == Standing(status=Status.INTERRUPTED, turn_id="T1")
    assert status_of(play.journal, run_id="r").status is Status.EXECUTING


def test_a_fact_that_is_not_the_next_one_is_refused() -> None:
    """A gap, a repeat and another run's fact would make a status that never was."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")
    opened, started = play.journal

    with pytest.raises(InvalidValue, match="give fact 1 of run 'r'"):
        StatusProjection("r").take(started)
    with pytest.raises(InvalidValue, match="of run 'other'"):
        StatusProjection("other").take(opened)
    projected = StatusProjection("r")
    projected.take(opened)
    with pytest.raises(InvalidValue, match="fact 1 of run 'r' is not the next one"):
        projected.take(opened)


def test_a_state_is_begun_from_with_its_own_latest_fact_only() -> None:
    """Whether the last turn was interrupted stands in that fact alone."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")

    for wrong in (None, play.journal[0]):
        with pytest.raises(InvalidValue, match="the state is that of fact 2"):
            StatusProjection.of(play.kernel.state, latest=wrong)
    assert StatusProjection.of(State(Run(run_id="r")), latest=None).standing == Standing()


def test_a_large_turn_is_folded_without_looking_at_all_calls_each_time() -> None:
    """Counted, not timed: how often a fact makes the projection look where a call stands."""
    calls = [f"i{number}" for number in range(2_000)]
    play = Script()
    play.opens("T1", *calls)
    for invocation_id in calls:
        play.claims(invocation_id)
        play.reports(invocation_id, 1)
    projected = StatusProjection("r")
    fed(projected, play.journal[:1])
    looked = 0

    place = Member.__dict__["place"]

    def counting(member: Member) -> object:
        nonlocal looked
        looked += 1
        return place.fget(member)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Member, "place", property(counting))
        fed(projected, play.journal[1:])
    assert projected.standing.status is Status.PROCESSING_RESULTS
    assert looked <= 10 * len(play.journal)
    assert play.journal[-1].type is FactType.TURN_SETTLED
