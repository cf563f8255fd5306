"""Seed 000, use cases 13 to 21: what must not corrupt a turn, and what consumers may rely on."""

from __future__ import annotations

from collections.abc import Callable

from turnlock import CallResult, Continue, Fact, FactType, Limits, Log, Reason, Refused, Status
from turnlock.models.diagnostics import ToolLog, diagnose
from turnlock.models.facts import LIFECYCLE_FAMILY

from ..outcome import Outcome, gated, happens, refused
from ..script import Script


def test_use_case_13_tool_log_never_changes_state() -> None:
    """Logs are accepted in every phase, are no facts, and the run goes on as if there were none."""
    quiet, loud = Script(), Script()
    loud.step = quiet.step = 0.0
    lines: list[Callable[[Script], Outcome]] = [
        lambda play: play.opens("T1", gated("j"), "k"),
        lambda play: play.approves("j"),
        lambda play: play.claims("j"),
        lambda play: play.loses("j"),
        lambda play: play.reports("j"),
        lambda play: play.claims("k"),
        lambda play: play.fails("k"),
    ]
    for line in lines:
        line(quiet)
        line(loud)
        for text in ("TOOL_EXECUTION_FAILED", "done", ""):
            assert loud.logs("j", text, turn="T1") == happens()
            assert loud.logs("j", text, turn=None) == happens()
            assert loud.logs("nobody", text, turn="T9") == happens()

    assert loud.journal == quiet.journal
    assert loud.kernel.pending_effects == quiet.kernel.pending_effects


def test_use_case_13_tool_log_is_diagnostics() -> None:
    """What a host shows of a log is a diagnostic: without a sequence number, and no fact."""
    play = Script()
    play.opens("T1", "j")
    log = Log(turn_id="T1", invocation_id="j", text="50 %")
    play.receives(log)

    shown = diagnose(log, play.verdict, run_id="r", at=2.0)

    assert shown == ToolLog(run_id="r", at=2.0, turn_id="T1", invocation_id="j", text="50 %")
    assert not isinstance(shown, Fact)
    assert "TOOL_LOG" not in [*FactType]


def test_use_case_14_unknown_invocation_cannot_corrupt_the_turn() -> None:
    """A result for an id that the turn never held is refused and settles nothing."""
    play = Script()
    play.opens("T1", "k", "l")
    play.claims("k")
    before = play.kernel.pending_effects

    assert play.reports("x") == refused(Reason.UNKNOWN_INVOCATION)
    assert play.reports("x", turn=None) == refused(Reason.UNKNOWN_INVOCATION)
    assert play.fails("x") == refused(Reason.UNKNOWN_INVOCATION)

    assert play.kernel.pending_effects == before
    assert play.names == ["TURN_OPENED T1", "TOOL_EXECUTION_STARTED k"]


def test_use_case_15_a_settled_turn_leaves_no_trace_but_memory_and_continuation() -> None:
    """After settling no turn is active, its ids are late, and the next turn starts from nothing."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")
    play.claims("b")
    play.reports("a")
    play.reports("b")

    assert play.owed == ["continue T1"]
    assert play.claims("a") == refused(Reason.LATE)
    assert play.reports("new", turn=None) == refused(Reason.NO_ACTIVE_TURN)

    assert play.opens("T2", "a", gated("b")) == happens(
        "TURN_OPENED T2", "TOOL_APPROVAL_REQUESTED b"
    ).asking("execute a 1")
    assert play.claims("a") == happens("TOOL_EXECUTION_STARTED a")


def test_use_case_16_a_denial_never_bypasses_the_barrier() -> None:
    """A denial continues nothing by itself: the turn's settling does, when it is complete."""
    play = Script()
    play.opens("T1", gated("a"), gated("b"))

    assert play.denies("a", "no") == happens("TOOL_DENIED a")
    assert play.owed == []

    assert play.denies("b", "no") == happens("TOOL_DENIED b", "TURN_SETTLED T1").asking(
        "continue T1"
    )
    assert play.last(Continue).results == (
        CallResult(invocation_id="a", tool_name="ls", status=Status.DENIED, reason="no"),
        CallResult(invocation_id="b", tool_name="ls", status=Status.DENIED, reason="no"),
    )


def test_use_case_17_a_stale_or_unknown_approval_does_nothing() -> None:
    """Whatever an approval is about, if it is not pending in this turn nothing is executed."""
    play = Script()
    play.opens("T1", gated("y"))
    play.denies("y")
    play.opens("T2", gated("y"), gated("z"), "free")
    play.denies("z", "no")

    assert play.approves("y", turn="T1") == refused(Reason.LATE)
    assert play.approves("y", turn="T9") == refused(Reason.TURN_MISMATCH)
    assert play.approves("stale") == refused(Reason.UNKNOWN_INVOCATION)
    assert play.approves("z") == refused(Reason.ALREADY_DECIDED)
    assert play.approves("free") == refused(Reason.NOT_AWAITING_APPROVAL)

    assert play.owed == ["execute free 1", "continue T1"]
    assert "TOOL_APPROVED" not in [str(fact.type) for fact in play.journal]


def test_use_case_18_a_result_of_another_turn_cannot_settle_the_active_one() -> None:
    """The same id in two turns: a result that names the old turn leaves the new one alone."""
    play = Script()
    play.opens("T1", "m")
    play.claims("m")
    play.reports("m", "old")
    play.opens("T2", "m")
    play.claims("m")

    assert play.reports("m", "again", turn="T1") == refused(Reason.LATE)
    assert play.reports("m", "again", turn="T0") == refused(Reason.TURN_MISMATCH)

    assert "TURN_SETTLED T2" not in play.names
    assert play.reports("m", "new") == happens(
        "TOOL_EXECUTION_SUCCEEDED m", "TURN_SETTLED T2"
    ).asking("continue T2")
    assert play.results("T2") == [("m", "succeeded", "new")]


def test_use_case_19_a_denied_call_is_terminal_and_never_started() -> None:
    """No claim, report, loss or rejection gets past a denial."""
    play = Script()
    play.opens("T1", gated("n"), "other")
    play.denies("n", "no")

    assert play.claims("n") == refused(Reason.ALREADY_SETTLED)
    assert play.reports("n") == refused(Reason.ALREADY_SETTLED)
    assert play.fails("n") == refused(Reason.ALREADY_SETTLED)
    assert play.loses("n") == refused(Reason.ALREADY_SETTLED)
    assert play.rejects("n") == refused(Reason.ALREADY_SETTLED)

    assert play.names_of("n") == ["TOOL_APPROVAL_REQUESTED", "TOOL_DENIED"]
    assert play.owed == ["execute other 1"]


def test_use_case_20_the_memory_is_bounded_and_still_suppresses() -> None:
    """Of many turns only the latest are remembered; a forgotten result is refused all the same."""
    play = Script(limits=Limits(remembered=4, remember_for=100.0))
    for number in range(1, 6):
        turn = f"T{number}"
        play.opens(turn, "h")
        play.claims("h")
        play.reports("h")
        play.acknowledges()

    assert play.reports("h", turn="T5") == refused(Reason.LATE)
    assert play.reports("h", turn="T4") == refused(Reason.LATE)
    assert play.reports("h", turn="T3") == refused(Reason.NO_ACTIVE_TURN)

    assert play.at(500.0).reports("h", turn="T5") == refused(Reason.NO_ACTIVE_TURN)
    assert play.owed == []


SHOWN = {
    FactType.TOOL_APPROVAL_REQUESTED: "awaiting approval",
    FactType.TOOL_APPROVED: "approved",
    FactType.TOOL_DENIED: "denied",
    FactType.TOOL_EXECUTION_STARTED: "running",
    FactType.TOOL_EXECUTION_SUCCEEDED: "succeeded",
    FactType.TOOL_EXECUTION_FAILED: "failed",
}


def test_use_case_21_a_consumer_needs_the_six_names_alone() -> None:
    """Mapping facts by their type shows each invocation's state, at every point of the stream."""
    play = Script()
    screen: dict[str, str] = {}
    seen = 0

    def shows() -> dict[str, str]:
        nonlocal seen
        for fact in play.journal[seen:]:
            if isinstance(fact, LIFECYCLE_FAMILY):
                screen[fact.invocation_id] = SHOWN[fact.type]
        seen = len(play.journal)
        return screen

    play.opens("T1", gated("a"), gated("b"), "c", "d")
    assert shows() == {"a": "awaiting approval", "b": "awaiting approval"}

    play.approves("a")
    play.denies("b")
    play.claims("c")
    assert shows() == {"a": "approved", "b": "denied", "c": "running"}

    play.claims("a")
    play.fails("c")
    play.rejects("d")
    assert shows() == {"a": "running", "b": "denied", "c": "failed", "d": "failed"}

    play.logs("a", "TOOL_EXECUTION_FAILED")
    play.fails("b")
    assert shows() == {"a": "running", "b": "denied", "c": "failed", "d": "failed"}

    play.reports("a")
    assert shows() == {"a": "succeeded", "b": "denied", "c": "failed", "d": "failed"}
    assert not isinstance(play.verdict, Refused)
