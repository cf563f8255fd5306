"""Seed 004: its four use cases, and its error handling and edge cases."""

from __future__ import annotations

from turnlock import Execute, Reason, Run
from turnlock.models.facts import (
    ToolApprovalRequested,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
)

from ..outcome import call, gated, happens, refused
from ..script import Script


def test_uc_001_manual_approval_is_requested() -> None:
    """A pending call is shown with tool, arguments and agent; nothing runs before the answer."""
    play = Script(Run(run_id="r", agent_id="agent-1", agent_name="Ada"))

    assert play.opens("T1", gated("a", "rm", path="x")) == happens(
        "TURN_OPENED T1", "TOOL_APPROVAL_REQUESTED a"
    )

    asked = play.last(ToolApprovalRequested)
    assert (asked.invocation_id, asked.tool_name, asked.turn_id) == ("a", "rm", "T1")
    assert (asked.agent_id, asked.agent_name) == ("agent-1", "Ada")
    assert asked.arguments == {"path": "x"}
    assert play.claims("a") == refused(Reason.NOT_APPROVED)


def test_uc_002_an_approved_call_proceeds_to_execution() -> None:
    """Approved, asked to execute, started: and a call without approval goes the same way."""
    play = Script()
    play.opens("T1", gated("a", "ls", n=1), call("b", "ls", n=2))

    assert play.approves("a") == happens("TOOL_APPROVED a").asking("execute a 1")
    effect = play.last(Execute)
    assert (effect.tool_name, effect.arguments) == ("ls", {"n": 1})

    assert play.claims("a", worker="w1") == happens("TOOL_EXECUTION_STARTED a")
    started = play.last(ToolExecutionStarted)
    assert (started.tool_name, started.arguments, started.attempt) == ("ls", {"n": 1}, 1)

    assert play.claims("b") == happens("TOOL_EXECUTION_STARTED b")


def test_uc_003_a_denied_call_continues_through_the_result_path() -> None:
    """Denied is a lifecycle fact, then a line of the one continuation; no execution fact."""
    play = Script()
    play.opens("T1", gated("a"), "b")
    play.claims("b")
    play.reports("b")

    assert play.denies("a", "not on my machine", by="ann") == happens(
        "TOOL_DENIED a", "TURN_SETTLED T1"
    ).asking("continue T1")

    denied = play.last(ToolDenied)
    assert (denied.reason, denied.cause, denied.decided_by) == (
        "not on my machine",
        "decision",
        "ann",
    )
    assert play.results() == [("a", "denied", "not on my machine"), ("b", "succeeded", "ok")]


def test_uc_004_results_are_terminal_facts_and_reach_the_model_together() -> None:
    """A success and a failure are told as they come; the model gets both at once."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")
    play.claims("b")

    assert play.reports("a", {"files": []}) == happens("TOOL_EXECUTION_SUCCEEDED a")
    assert play.last(ToolExecutionSucceeded).result == {"files": []}

    assert play.fails("b", "disk full") == happens(
        "TOOL_EXECUTION_FAILED b", "TURN_SETTLED T1"
    ).asking("continue T1")
    assert play.last(ToolExecutionFailed).error == "disk full"

    assert play.results() == [("a", "succeeded", {"files": []}), ("b", "failed", "disk full")]


def test_error_case_stale_approval() -> None:
    """An approval of what is not pending is ignored: no fact, no effect, whatever was before."""
    play = Script()
    play.opens("T1", gated("a", timeout=1.0), "b")
    play.at(10.0).ticks()

    assert play.approves("a") == refused(Reason.ALREADY_DECIDED)
    assert play.approves("gone") == refused(Reason.UNKNOWN_INVOCATION)
    assert play.approves("a", turn="T0") == refused(Reason.TURN_MISMATCH)

    assert play.names == ["TURN_OPENED T1", "TOOL_APPROVAL_REQUESTED a", "TOOL_DENIED a"]
    assert play.owed == ["execute b 1"]


def test_error_case_missing_tool() -> None:
    """A tool that does not exist is rejected before any start: failed, with its text, counted."""
    play = Script()
    play.opens("T1", call("a", "no-such-tool"))

    assert play.rejects("a", "no such tool: no-such-tool") == happens(
        "TOOL_EXECUTION_FAILED a", "TURN_SETTLED T1"
    ).asking("continue T1")

    failed = play.last(ToolExecutionFailed)
    assert (failed.error, failed.cause) == ("no such tool: no-such-tool", "rejected")
    assert play.names_of("a") == ["TOOL_EXECUTION_FAILED"]


def test_error_case_preprocessor_failure() -> None:
    """A preprocessor fails after the approval, before the start: failed, and nothing is owed."""
    play = Script()
    play.opens("T1", gated("a"), "b")
    play.approves("a")

    assert play.rejects("a", "preprocessor: bad path", turn=None) == happens(
        "TOOL_EXECUTION_FAILED a"
    )

    assert play.last(ToolExecutionFailed).cause == "rejected"
    assert play.owed == ["execute b 1"]
    assert play.claims("a") == refused(Reason.ALREADY_SETTLED)


def test_error_case_duplicate_result() -> None:
    """The same result again is a duplicate, another one conflicts; the first stays."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")
    play.reports("a", "first")

    assert play.reports("a", "first") == refused(Reason.DUPLICATE)
    assert play.reports("a", "second") == refused(Reason.CONFLICTING_DUPLICATE)
    assert play.fails("a", "boom") == refused(Reason.CONFLICTING_DUPLICATE)

    play.rejects("b", "x")
    assert play.results() == [("a", "succeeded", "first"), ("b", "failed", "x")]


def test_error_case_out_of_turn_result() -> None:
    """A result of a turn that is over, never was, or comes with no turn open continues nothing."""
    play = Script()

    assert play.reports("a", turn="T1") == refused(Reason.NO_ACTIVE_TURN)
    assert play.reports("a", turn=None) == refused(Reason.NO_ACTIVE_TURN)

    play.opens("T1", "a")
    play.rejects("a")
    play.acknowledges()
    assert play.reports("a", turn="T1") == refused(Reason.LATE)

    play.opens("T2", "b")
    assert play.reports("a", turn="T1") == refused(Reason.LATE)
    assert play.reports("b", turn="T3") == refused(Reason.TURN_MISMATCH)
    assert play.owed == ["execute b 1"]


def test_error_case_denial_without_execution_facts() -> None:
    """A denied call is told as denied and as nothing else, even if somebody ran it all the same."""
    play = Script()
    play.opens("T1", gated("a"), gated("b"))
    play.denies("a", "no")

    assert play.claims("a") == refused(Reason.ALREADY_SETTLED)
    assert play.reports("a", "done anyway") == refused(Reason.ALREADY_SETTLED)
    assert play.fails("a", "interrupted") == refused(Reason.ALREADY_SETTLED)

    assert play.names_of("a") == ["TOOL_APPROVAL_REQUESTED", "TOOL_DENIED"]
    play.denies("b", "no")
    assert play.results() == [("a", "denied", "no"), ("b", "denied", "no")]
