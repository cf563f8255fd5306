"""The one read model: always what the kernel's own state says, however its facts come in."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock import (
    Claim,
    CorruptJournal,
    Decide,
    Fact,
    FactType,
    Interrupt,
    InvalidValue,
    Kernel,
    Lose,
    Match,
    Reject,
    Renew,
    Report,
    Resolution,
    Resolve,
    Run,
    Scope,
)
from turnlock.engine.snapshot import SavedInvocation, SavedTurn
from turnlock.lifecycle.phases import Phase
from turnlock.models.inputs import Input
from turnlock.models.record import changed
from turnlock.models.values import arguments_digest
from turnlock.turn.phases import TurnPhase
from turnlock.views import call_list, run_fold
from turnlock.views.call_view import CallView, Waits
from turnlock.views.run_fold import RECENT_TURNS
from turnlock.views.run_view import RunView
from turnlock.views.turn_view import TurnView

from ..depth import DEEP
from ..outcome import call, gated
from ..script import Script
from .played import played, viewed

RUN = Run(run_id="r")
SEEDS = range(200 if DEEP else 50)
FEW = SEEDS[: 60 if DEEP else 15]


def same_call(view: CallView, saved: SavedInvocation) -> bool:
    """Whether a call's view says what the kernel's record says, field by field."""
    waiting = view.waits is Waits.APPROVAL
    decision, outcome = view.decision, view.outcome
    recorded = saved.decision
    return (
        view.invocation_id == saved.invocation_id
        and view.tool_name == saved.tool_name
        and view.provider_call_id == saved.provider_call_id
        and view.phase is saved.phase
        and view.attempt == saved.attempt
        and view.worker == saved.worker
        and view.deadline == saved.deadline
        and (view.arguments == saved.arguments or saved.arguments is None)
        and (view.arguments_digest if waiting else None) == saved.digest
        and view.result == saved.outcome
        and (outcome is not None) is view.ended
        and (
            decision is None
            if recorded is None
            else decision is not None
            and (decision.approved, decision.scope, decision.match, decision.arguments)
            == (recorded.approved, recorded.scope, recorded.match, recorded.edited)
        )
    )


def same_turn(view: TurnView | None, saved: SavedTurn | None) -> bool:
    if view is None or saved is None:
        return view is None and saved is None
    return (
        (view.turn_id, view.phase, view.grace_until)
        == (saved.turn_id, saved.phase, saved.grace_until)
        and len(view.calls) == len(saved.members)
        and all(map(same_call, view.calls, saved.members))
    )


def is_what_the_kernel_says(view: RunView, kernel: Kernel) -> bool:
    """Hold a view against a snapshot, and what it says is owed against the kernel's effects."""
    snapshot = kernel.snapshot()
    return (
        (view.run, view.sequence, view.epoch, view.at)
        == (snapshot.run, snapshot.sequence, snapshot.epoch, snapshot.at)
        and same_turn(view.turn, snapshot.turn)
        and view.grants == snapshot.grants
        and view.grants_issued == snapshot.grants_issued
        and view.continuations == tuple(owed.effect for owed in snapshot.continuations)
        and view.owed == kernel.pending_effects
        and view.busy == (snapshot.turn is not None or bool(snapshot.continuations))
    )


def test_a_view_is_what_the_kernel_says_after_every_delivery() -> None:
    """Fed incrementally: phases, attempts, decisions, outcomes, grants, and the effects owed."""
    phases: set[Phase] = set()
    for seed in SEEDS:
        view: RunView | None = None
        for kernel, facts in played(seed):
            view = (view or RunView.of(kernel.run)).after(facts)
            assert is_what_the_kernel_says(view, kernel), f"seed {seed} at fact {view.sequence}"
            phases.update(it.phase for it in (view.turn.calls if view.turn else ()))
    assert phases == set(Phase)


def test_a_view_from_a_live_kernel_says_the_same() -> None:
    """And goes on from there as if it had seen all facts, but for what no kernel remembers."""
    for seed in FEW:
        steps = [*viewed(seed)]
        journal = [fact for _, facts in steps for fact in facts]
        whole = RunView.of(steps[0][0].run, journal)
        kept: list[Fact] = []
        for kernel, facts in played(seed):
            kept += facts
            view = RunView.of_kernel(kernel, latest=kept[-1] if kept else None)
            assert is_what_the_kernel_says(view, kernel), f"seed {seed}"
            late = view.after(journal[len(kept) :])
            assert (late.standing, late.owed, late.grants) == (
                whole.standing,
                whole.owed,
                whole.grants,
            )


@given(seed=st.sampled_from(SEEDS), cuts=st.lists(st.integers(0, 60), max_size=4))
def test_however_a_journal_is_split_the_view_is_the_same(seed: int, cuts: list[int]) -> None:
    """From scratch, fact by fact, in any pieces, cut in the middle of a commit, too."""
    steps = [*viewed(seed)]
    journal = [fact for _, facts in steps for fact in facts]
    run = steps[0][0].run
    whole = RunView.of(run, journal)

    pieces = RunView.of(run)
    for begin, end in _spans(sorted({0, *cuts, len(journal)}), len(journal)):
        pieces = pieces.after(journal[begin:end])
    one_by_one = RunView.of(run)
    for fact in journal:
        one_by_one = one_by_one.after((fact,))

    assert whole == pieces == one_by_one


def _spans(cuts: list[int], length: int) -> Iterable[tuple[int, int]]:
    inside = [cut for cut in cuts if cut <= length]
    return pairwise(inside)


def test_a_wrong_fold_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: a view that keeps the grants of a closed turn is not what is so."""
    monkeypatch.setattr(run_fold, "Scope", type("Blind", (), {"TURN": None}))
    with pytest.raises(AssertionError, match="seed"):
        test_a_view_is_what_the_kernel_says_after_every_delivery()


DELIVERED = (
    *(Input.APPROVE, Input.DENY, Input.CLAIM, Input.RENEW, Input.REJECT, Input.REPORT_RESULT),
    *(Input.REPORT_ERROR, Input.LOSE, Input.RESOLVE_RETRY, Input.RESOLVE_RESULT),
    *(Input.RESOLVE_ERROR, Input.INTERRUPT),
)


def delivery_of(what: Input, it: CallView) -> Any:
    """The delivery that an input stands for, addressed as it must be."""
    to: dict[str, Any] = {"turn_id": it.turn_id, "invocation_id": it.invocation_id}
    attempt = it.attempt or 1
    resolve: dict[str, Any] = {**to, "attempt": attempt}
    made: dict[Input, Any] = {
        Input.APPROVE: lambda: Decide(**to, approved=True, arguments_digest=it.arguments_digest),
        Input.DENY: lambda: Decide(**to, approved=False),
        Input.CLAIM: lambda: Claim(**to, attempt=it.owed or attempt),
        Input.RENEW: lambda: Renew(**to, attempt=attempt, lease=5),
        Input.REJECT: lambda: Reject(**to, error="no"),
        Input.REPORT_RESULT: lambda: Report(**to, attempt=attempt, result=1),
        Input.REPORT_ERROR: lambda: Report(**to, attempt=attempt, error="no"),
        Input.LOSE: lambda: Lose(**to, attempt=attempt),
        Input.RESOLVE_RETRY: lambda: Resolve(**resolve, resolution=Resolution.RETRY),
        Input.RESOLVE_RESULT: lambda: Resolve(**resolve, resolution=Resolution.RESULT, result=1),
        Input.RESOLVE_ERROR: lambda: Resolve(**resolve, resolution=Resolution.ERROR, error="no"),
        Input.INTERRUPT: lambda: Interrupt(turn_id=it.turn_id),
    }
    return made[what]()


def test_what_is_allowed_is_what_the_kernel_accepts() -> None:
    """Every delivery about every call of every state on the way: accepted just if allowed.

    An interrupt is of the turn: it means nothing to a call that has ended.
    """
    seen: set[tuple[Phase, Input]] = set()
    for seed in FEW:
        kept: list[Fact] = []
        for kernel, facts in played(seed):
            kept += facts
            view = RunView.of(kernel.run, kept)
            now = view.at or 0.0
            for it in view.turn.calls if view.turn else ():
                for what in DELIVERED[: -1 if it.ended else None]:
                    twin = Kernel.recover(kernel.run, kept)
                    verdict = twin.receive(delivery_of(what, it), now)
                    assert (verdict.reason is None) == (what in it.allowed), (seed, it, what)
                    if verdict.reason is None:
                        seen.add((it.phase, what))
            if len(kept) > 12:
                break
    assert (Phase.REQUESTED, Input.APPROVE) in seen
    assert (Phase.RETRY_AUTHORISED, Input.CLAIM) in seen
    assert (Phase.STARTED, Input.INTERRUPT) in seen


def test_an_observed_call_may_be_claimed_and_not_retried() -> None:
    """Another runtime starts it (K-58): nothing is owed, and no retry is ours to authorise."""
    play = Script()
    play.opens("T1", changed(call("a"), observed=True))
    ready = seen(play)
    play.claims("a")
    play.loses("a")

    assert (ready.owed, Input.CLAIM in ready.allowed) == (0, True)
    assert Input.RESOLVE_RETRY not in seen(play).allowed
    assert Input.RESOLVE_RESULT in seen(play).allowed


def seen(play: Script, invocation_id: str = "a", turn_id: str = "T1") -> CallView:
    """One call as the facts of a script tell of it."""
    found = RunView.of(RUN, play.journal).find(turn_id, invocation_id)
    assert found is not None
    return found


def test_a_call_is_told_from_its_request_to_its_end() -> None:
    """Everything that a console shows of one call, at each step of its life."""
    play = Script()
    play.opens("T1", gated("a", timeout=60, path="x"))
    asked = seen(play)
    play.approves("a", arguments={"path": "y"}, by="Ann", reason="fine")
    approved = seen(play)
    play.claims("a", worker="w", lease=5)
    running = seen(play)
    play.at(20).ticks()
    doubted = seen(play)
    play.retries("a")
    retried = seen(play)
    play.claims("a", 2, worker="v")
    play.reports("a", {"ok": True})
    ended = seen(play)

    assert (asked.waits, asked.deadline, asked.requested_at, asked.asked_at) == (
        Waits.APPROVAL,
        60.0,
        0.0,
        0.0,
    )
    assert asked.arguments_digest == arguments_digest({"path": "x"})
    assert asked.allowed == (Input.APPROVE, Input.DENY, Input.REJECT, Input.INTERRUPT)
    decision = approved.decision
    assert decision is not None
    assert (decision.approved, decision.by, decision.reason, decision.at, decision.sequence) == (
        True,
        "Ann",
        "fine",
        1.0,
        3,
    )
    assert (approved.arguments, approved.waits, approved.owed) == ({"path": "y"}, Waits.CLAIM, 1)
    assert (running.worker, running.attempt, running.deadline, running.started_at) == (
        "w",
        1,
        7.0,
        2.0,
    )
    assert (doubted.waits, doubted.in_doubt, doubted.worker, doubted.since) == (
        Waits.RESOLUTION,
        True,
        None,
        20.0,
    )
    assert (retried.waits, retried.retry_authorised, retried.owed) == (Waits.RETRY, True, 2)
    assert (ended.ended, ended.attempt, ended.ended_at, ended.started_at) == (True, 2, 23.0, 2.0)
    assert ended.outcome is not None
    assert (ended.outcome.result, ended.allowed, ended.waits) == ({"ok": True}, (), Waits.NOTHING)


def test_a_grant_approves_in_nobodys_presence_and_a_deadline_denies_without_a_decision() -> None:
    """Who decided is told apart from what merely happened."""
    play = Script()
    play.opens("T1", gated("a"), gated("b", "rm", timeout=1))
    play.approves("a", Scope.SESSION, Match.TOOL, by="Ann")
    play.at(9).ticks()
    play.opens("T2", gated("c"))  # refused: the turn is busy
    granted = RunView.of(RUN, play.journal).grants
    play.claims("a")
    play.reports("a", 1)
    play.opens("T2", gated("c"))

    expired, covered = seen(play, "b"), seen(play, "c", "T2")
    assert (expired.decision, expired.outcome and expired.outcome.cause) == (None, "expiry")
    assert covered.decision is not None
    assert (covered.decision.grant_id, covered.decision.by) == (granted[0].grant_id, None)
    assert (covered.asked_at, covered.waits) == (None, Waits.CLAIM)


def test_an_interrupt_asks_to_cancel_and_withdraws_a_retry() -> None:
    """K-53, K-60: what runs is asked to stop, what was to run again waits for nobody any more."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")
    play.claims("b")
    play.loses("b")
    play.retries("b")
    play.interrupts(grace=10)

    view = RunView.of(RUN, play.journal)
    assert view.turn is not None
    assert (view.turn.phase, view.turn.grace_until) == (TurnPhase.INTERRUPTING, 15.0)
    assert seen(play, "a").cancel_asked
    assert (seen(play, "b").waits, seen(play, "b").owed) == (Waits.RESOLUTION, 0)
    assert Input.RESOLVE_RETRY not in seen(play, "b").allowed
    assert view.owed == play.kernel.pending_effects


def test_closed_turns_are_shown_for_a_while() -> None:
    """The last few, with their calls; a turn id that is used again means the latest."""
    play = Script()
    for number in range(RECENT_TURNS + 2):
        play.opens(f"T{number}", "a")
        play.claims("a")
        play.reports("a", number)
        play.acknowledges(f"T{number}")

    view = RunView.of(RUN, play.journal)

    assert [turn.turn_id for turn in view.recent] == [f"T{n}" for n in range(2, RECENT_TURNS + 2)]
    assert view.find("T0", "a") is None
    found = view.find("T9", "a")
    assert found is not None
    assert found.result is not None
    assert found.result.result == 9
    assert view.find("T9", "z") is None
    assert (view.turn, view.continuations, view.busy) == (None, (), False)


def test_a_fact_that_is_not_the_next_one_is_refused() -> None:
    """A gap, a repeat and another run's fact would make a view of what never was."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")
    opened, started = play.journal

    with pytest.raises(InvalidValue, match="give fact 1 of run 'r'"):
        RunView.of(RUN, [started])
    with pytest.raises(InvalidValue, match="of run 'other'"):
        RunView.of(Run(run_id="other"), [opened])
    with pytest.raises(InvalidValue, match="fact 1 of run 'r' is not the next one"):
        RunView.of(RUN, [opened, opened])


def test_a_fact_that_cannot_have_happened_is_named() -> None:
    """A journal that no run can have written is refused with the fact, as recovery does."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")
    play.reports("a", 1)
    play.acknowledges("T1")
    opened, started, succeeded, settled, taken = play.journal

    def numbered(*facts: Fact) -> list[Fact]:
        return [
            changed(fact, sequence=number, commit=number) for number, fact in enumerate(facts, 1)
        ]

    wrong = {
        "TOOL_EXECUTION_SUCCEEDED: 'a' is REQUESTED": (opened, succeeded),
        "the turn has no invocation 'b'": (opened, changed(started, invocation_id="b")),
        "turn 'T1' is not the active one": (started,),
        "turn 'T1' is open": (opened, opened),
        "no continuation of turn 'T1' is owed": (opened, taken),
        "TURN_SETTLED: turn 'T1' is OPEN": (changed(opened, sealed=False), settled),
    }
    for told, facts in wrong.items():
        with pytest.raises(CorruptJournal, match=told):
            RunView.of(RUN, numbered(*facts))


def test_a_kernel_is_begun_from_with_its_own_latest_fact_only() -> None:
    """Whether the last turn was interrupted stands in that fact alone."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")

    for wrong in (None, play.journal[0]):
        with pytest.raises(InvalidValue, match="the kernel is at fact 2"):
            RunView.of_kernel(play.kernel, latest=wrong)
    assert RunView.of_kernel(Kernel(RUN), latest=None) == RunView.of(RUN)


def test_a_turn_can_be_folded_by_itself() -> None:
    """For whoever follows turns and not runs: the same calls, from its opening to its end."""
    play = Script()
    play.opens("T1", "a", sealed=False)
    play.adds(gated("b"))
    play.seals()
    play.claims("a")
    play.reports("a", 1)
    play.denies("b", "no")
    opened, *rest = play.journal
    assert opened.type is FactType.TURN_OPENED
    turn = TurnView.opened(opened)  # type: ignore[arg-type]
    for fact in rest:
        turn = turn.after(fact)  # type: ignore[arg-type]

    assert (turn,) == RunView.of(RUN, play.journal).recent
    assert (turn.closed, turn.closed_at) == (True, play.journal[-1].at)
    assert [result.status for result in turn.results] == ["succeeded", "denied"]


def test_a_large_turn_is_folded_without_copying_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: the nodes that facts make anew, in a turn of 2,000 calls."""
    calls = [f"i{number}" for number in range(2_000)]
    play = Script()
    play.opens("T1", *calls)
    for invocation_id in calls:
        play.claims(invocation_id)
        play.reports(invocation_id, 1)
    view = RunView.of(RUN, play.journal[:1])
    made = 0
    node = call_list._node

    def counting(parts: Any) -> Any:
        nonlocal made
        made += 1
        return node(parts)

    monkeypatch.setattr(call_list, "_node", counting)
    for fact in play.journal[1:]:
        view = view.after((fact,))
    assert made <= 4 * len(play.journal)
    assert view.status == "processing_results"
