"""Sections 4, 9 and 11: what facts and effects carry, in which order, and the list of reasons."""

from __future__ import annotations

import attrs
import pytest

from turnlock import Call, Continue, Execute, Kernel, Limits, Match, Reason, Reject, Run, Scope
from turnlock.models.calls import CallResult, Status
from turnlock.models.facts import (
    CallAdded,
    ExecutionInDoubt,
    ExecutionRetried,
    Fact,
    LeaseRenewed,
    LifecycleFact,
    RetryAuthorised,
    ToolApprovalRequested,
    ToolApproved,
    ToolDenied,
    ToolExecutionStarted,
    TurnOpened,
)
from turnlock.models.record import changed

from ..outcome import call, gated, happens, refused
from ..script import Script


def test_section_4_order_of_the_facts_of_an_opening() -> None:
    """TURN_OPENED, then per call in order its request, its approval by grant, or nothing."""
    play = Script()
    play.opens("T0", gated("g", n=1))
    play.approves("g", Scope.SESSION)
    play.interrupts()

    assert play.opens("T1", gated("c", n=2), "free", gated("b", n=1), gated("a", n=3)) == happens(
        "TURN_OPENED T1",
        "TOOL_APPROVAL_REQUESTED c",
        "TOOL_APPROVED b",
        "TOOL_APPROVAL_REQUESTED a",
    ).asking("execute free 1", "execute b 1")


@pytest.mark.parametrize("reason", [None, ""])
def test_section_4_a_deny_without_a_reason_says_denied(reason: str | None) -> None:
    """Absent or empty: the fact and the continuation say why all the same."""
    play = Script()
    play.opens("T1", gated("a"))

    play.denies("a", reason)

    assert play.results() == [("a", "denied", "denied")]


def test_section_4_an_opening_carries_the_turn() -> None:
    """Epoch, whether it is sealed, and the calls as they were asked for."""
    play = Script()
    asked = (gated("a", "rm", timeout=5.0, path="x"), call("b", n=1))
    play.opens("T1", *asked, sealed=False)

    opened = play.last(TurnOpened)
    assert (opened.turn_id, opened.epoch, opened.sealed, opened.calls) == ("T1", 1, False, asked)

    play.adds(call("c", "pay", n=2))
    assert play.last(CallAdded).call == call("c", "pay", n=2)


def test_section_4_requests_and_decisions_carry_what_state_needs() -> None:
    """Deadline and digest; scope, match and who; cause, reason and who."""
    play = Script()
    play.at(10.0).opens("T1", gated("a", timeout=5.0), gated("b", n=1))
    first, second = [it for it in play.journal if isinstance(it, ToolApprovalRequested)]
    assert (first.deadline, second.deadline) == (15.0, None)
    assert first.arguments_digest != second.arguments_digest

    play.approves("a", Scope.TURN, Match.TOOL, by="ann", reason="fine")
    mine, granted = [it for it in play.journal if isinstance(it, ToolApproved)]
    assert (mine.scope, mine.match, mine.grant_id) == (Scope.TURN, Match.TOOL, None)
    assert (mine.decided_by, mine.reason, mine.arguments) == ("ann", "fine", None)
    assert (granted.scope, granted.match, granted.grant_id) == (Scope.ONCE, None, "grant/r/1")

    play.opens("T2", gated("c"))
    play.interrupts()
    play.opens("T3", gated("c", "other"))
    play.denies("c", "no", by="bob")
    denied = play.last(ToolDenied)
    assert (denied.cause, denied.reason, denied.decided_by) == ("decision", "no", "bob")


def test_section_4_executions_carry_attempt_worker_and_lease() -> None:
    """Started and retried alike; doubt, authorisation and renewal name the attempt."""
    play = Script()
    play.opens("T1", "a")
    play.at(10.0).claims("a", worker="w1", lease=5.0)
    started = play.last(ToolExecutionStarted)
    assert (started.attempt, started.worker, started.lease_until) == (1, "w1", 15.0)

    play.at(12.0).renews("a", 8.0)
    assert (play.last(LeaseRenewed).attempt, play.last(LeaseRenewed).lease_until) == (1, 20.0)

    play.at(13.0).loses("a")
    play.retries("a")
    assert play.last(ExecutionInDoubt).attempt == play.last(RetryAuthorised).attempt == 1

    play.at(20.0).claims("a", 2, worker="w2", lease=1.0)
    retried = play.last(ExecutionRetried)
    assert (retried.attempt, retried.worker, retried.lease_until) == (2, "w2", 21.0)

    play.at(30.0).ticks()
    assert play.last(ExecutionInDoubt).attempt == 2


def test_section_4_every_fact_carries_run_sequence_time_and_turn() -> None:
    """And the lifecycle facts the agent, where the run has one."""
    play = Script(Run(run_id="run 7", agent_id="agent-1", agent_name="", limits=Limits()))
    play.at(5.0).opens("T1", gated("a"), "b")
    play.approves("a", Scope.SESSION)
    play.claims("b")
    play.rejects("a")
    play.fails("b")

    assert [fact.sequence for fact in play.journal] == list(range(1, len(play.journal) + 1))
    for fact in play.journal:
        assert_is_of(fact, run_id="run 7", turn_id="T1")
        if isinstance(fact, LifecycleFact):
            assert (fact.agent_id, fact.agent_name) == ("agent-1", "")
            assert fact.tool_name == "ls"
    assert [fact.at for fact in play.journal[:2]] == [5.0, 5.0]


def assert_is_of(fact: Fact, *, run_id: str, turn_id: str) -> None:
    assert fact.run_id == run_id
    assert getattr(fact, "turn_id", None) == turn_id


def test_section_4_facts_cannot_be_changed() -> None:
    """The journal is history."""
    play = Script()
    play.opens("T1", gated("a", n=1))
    asked = play.last(ToolApprovalRequested)

    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        asked.tool_name = "rm"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        asked.arguments["n"] = 2  # type: ignore[index]  # pyright: ignore[reportIndexIssue]


def test_section_9_an_execute_effect_is_all_that_an_executor_needs() -> None:
    """Whom, which attempt, what with, and the key that makes a repetition visible."""
    play = Script()
    play.opens("T1", call("a", "pay", n=1))

    assert play.last(Execute) == Execute(
        effect_id="execute/r/1/T1/a/1",
        turn_id="T1",
        invocation_id="a",
        attempt=1,
        tool_name="pay",
        arguments={"n": 1},
        idempotency_key="call/r/1/T1/a",
    )


def test_section_9_an_execute_effect_is_owed_while_it_is_ready_and_unclaimed() -> None:
    """From the moment nothing stands in its way, to its claim, its rejection or its interrupt."""
    play = Script()
    play.opens("T1", "a", gated("b"), "c", "d")
    assert play.owed == ["execute a 1", "execute c 1", "execute d 1"]

    play.approves("b")
    play.claims("a")
    play.rejects("c")
    assert play.owed == ["execute b 1", "execute d 1"]

    play.interrupts()
    assert play.owed == ["cancel a 1"]


def test_section_9_a_result_says_how_its_call_ended_under_the_id_that_the_provider_sent() -> None:
    """Correlation goes in with the call and out with its result; the kernel never reads it."""

    def sent(name: str, *, gated: bool = False) -> Call:
        return Call(
            invocation_id=name,
            tool_name="ls",
            arguments={},
            requires_approval=gated,
            provider_call_id=f"call_{name}",
        )

    play = Script()
    play.opens("T1", sent("a"), sent("b"), sent("c"), sent("d", gated=True))
    play.claims("a")
    play.reports("a", {"n": 1})
    play.claims("b")
    play.fails("b", "boom")
    play.rejects("c", "no such tool")
    play.denies("d", "not today")

    assert play.last(Continue).results == (
        CallResult(
            tool_name="ls",
            invocation_id="a",
            status=Status.SUCCEEDED,
            result={"n": 1},
            provider_call_id="call_a",
        ),
        CallResult(
            tool_name="ls",
            invocation_id="b",
            status=Status.FAILED,
            error="boom",
            provider_call_id="call_b",
        ),
        CallResult(
            tool_name="ls",
            invocation_id="c",
            status=Status.FAILED,
            error="no such tool",
            provider_call_id="call_c",
        ),
        CallResult(
            tool_name="ls",
            invocation_id="d",
            status=Status.DENIED,
            reason="not today",
            provider_call_id="call_d",
        ),
    )


def test_section_9_a_denial_that_carries_an_error_says_it() -> None:
    """Seed 001 allows a reason or an error; this kernel writes reasons, other journals may not."""
    play = Script()
    play.opens("T1", gated("a"), "b")
    play.denies("a", "not today")
    journal = [
        changed(fact, reason=None, error="gone") if isinstance(fact, ToolDenied) else fact
        for fact in play.journal
    ]
    kernel = Kernel.recover(play.run, journal)

    [effect] = kernel.receive(Reject(turn_id="T1", invocation_id="b", error="no"), 9.0).effects

    assert isinstance(effect, Continue)
    assert [result.reason for result in effect.results] == ["gone", None]


def test_section_11_the_closed_list_of_reasons() -> None:
    """These and no others, and their names are their values."""
    listed = """
        run_mismatch late no_active_turn turn_mismatch unknown_invocation ambiguous_invocation
        stale_attempt stale_epoch turn_open turn_busy turn_reused duplicate_invocation empty_turn
        turn_sealed interrupting duplicate conflicting_duplicate already_decided
        not_awaiting_approval not_approved not_started already_started already_settled
        not_authorised not_in_doubt lease_lost arguments_mismatch no_continuation unknown_grant
        not_owned limit_reached
    """

    assert [str(reason) for reason in Reason] == listed.split()
    assert refused(Reason("late")) == refused(Reason.LATE)
