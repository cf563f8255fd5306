"""The agent's status: always what a dumb look at the kernel says, from wherever it begins."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from turnlock import Fact, FactType, Run, Scope
from turnlock.engine.kernel import state_of
from turnlock.engine.state import State
from turnlock.lifecycle.invocation import Invocation
from turnlock.lifecycle.phases import Phase
from turnlock.models.facts import TurnInterrupted
from turnlock.models.record import changed
from turnlock.turn.phases import TurnPhase
from turnlock.views import run_fold
from turnlock.views.run_view import RunView
from turnlock.views.standing import Standing, StatusUpdate
from turnlock.views.status import Status, StatusRow, step

from ..depth import DEEP
from ..outcome import gated
from ..script import Script
from .played import played, viewed

RUN = Run(run_id="r")
SEEDS = range(200 if DEEP else 60)


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


def fed(view: RunView, facts: Iterable[Fact]) -> list[StatusUpdate]:
    """The updates that these facts bring, one after the other."""
    updates: list[StatusUpdate | None] = []
    for fact in facts:
        before, view = view, view.after((fact,))
        updates.append(view.update_since(before))
    return [update for update in updates if update is not None]


def standing_after(facts: Iterable[Fact]) -> Standing:
    return RunView.of(RUN, facts).standing


def test_the_status_is_the_dumb_definition_after_every_commit() -> None:
    """Whatever is delivered in whatever order; and all statuses are seen."""
    seen: set[Status] = set()
    for seed in SEEDS:
        view: RunView | None = None
        latest: Fact | None = None
        for kernel, facts in played(seed):
            view = (view or RunView.of(kernel.run)).after(facts)
            latest = facts[-1] if facts else latest
            assert view.standing == dumb(state_of(kernel), latest), f"seed {seed}"
            seen.add(view.status)
    assert seen == set(Status)


def test_a_wrong_row_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dumb definition would not agree with just any table: here a doubt goes unnoticed."""

    def blind(status: Status, fact: FactType, pressing: str) -> StatusRow:
        row = step(status, fact, pressing)
        return changed(row, target=status) if fact is FactType.EXECUTION_IN_DOUBT else row

    monkeypatch.setattr(run_fold, "step", blind)
    with pytest.raises(AssertionError, match="seed"):
        test_the_status_is_the_dumb_definition_after_every_commit()


def test_an_update_is_told_with_each_change_and_only_then() -> None:
    """Updates are a chain from idle to the latest standing, each at the end of its commit."""
    for seed in SEEDS[: 100 if DEEP else 30]:
        now = Standing()
        for view, facts in viewed(seed):
            for fact in facts:
                before, view = view, view.after((fact,))  # noqa: PLW2901 - the next one
                update = view.update_since(before)
                if update is None:
                    assert view.standing == now
                    continue
                assert (update.sequence, update.at) == (fact.commit, fact.at)
                assert update.old == now != update.new == view.standing
                now = update.new


def test_beginning_from_a_kernel_is_folding_all_facts_up_to_it() -> None:
    """The same standing, and the same updates from there on: nothing needs the whole journal."""
    for seed in SEEDS[: 40 if DEEP else 10]:
        journal = [fact for _, facts in played(seed) for fact in facts]
        told: list[StatusUpdate] | None = None
        kept: list[Fact] = []
        folded: RunView | None = None
        for kernel, facts in played(seed):
            told = fed(RunView.of(kernel.run), journal) if told is None else told
            kept += facts
            begun = RunView.of_kernel(kernel, latest=kept[-1] if kept else None)
            folded = (folded or RunView.of(kernel.run)).after(facts)
            assert begun.standing == folded.standing
            rest = fed(begun, journal[len(kept) :])
            assert rest == [update for update in told if update.sequence > kernel.sequence]


def test_many_facts_at_once_are_told_like_one_after_the_other() -> None:
    """The pace of facts cannot be seen in the updates: a lease renewed fifty times changes none."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a", lease=5)
    before = RunView.of(RUN, play.journal)
    for _ in range(50):
        play.renews("a", lease=5)
    play.reports("a", 1)

    updates = fed(before, play.journal[before.sequence :])

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

    updates = fed(RunView.of(RUN), play.journal)

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
    before = RunView.of(RUN, play.journal)
    play.opens("T2", gated("b"))

    updates = fed(before, play.journal[before.sequence :])

    assert [update.new.status for update in updates] == [Status.EXECUTING]


def test_interrupted_is_told_from_the_first_word_until_something_else_happens() -> None:
    """While it stops it names what still runs; a turn opened afterwards ends it."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("b")
    play.interrupts()
    stopping = standing_after(play.journal)
    play.reports("b", 1)
    stopped = standing_after(play.journal)
    play.opens("T2", "c")

    assert stopping == Standing(
        status=Status.INTERRUPTED, turn_id="T1", invocation_id="b", tool_name="ls"
    )
    assert stopped == Standing(status=Status.INTERRUPTED, turn_id="T1")
    assert standing_after(play.journal).status is Status.EXECUTING
