"""Seed 000, use cases 1 to 12: how invocations and turns go when all goes as it should."""

from __future__ import annotations

from turnlock import Claim, Execute, FactType, Inbox, Match, OpenTurn, Reason, Report, Scope
from turnlock.models.facts import LIFECYCLE_FAMILY, ToolApprovalRequested, ToolDenied

from ..outcome import call, gated, happens, refused
from ..script import Script

THE_SIX = [
    "TOOL_APPROVAL_REQUESTED",
    "TOOL_APPROVED",
    "TOOL_DENIED",
    "TOOL_EXECUTION_STARTED",
    "TOOL_EXECUTION_SUCCEEDED",
    "TOOL_EXECUTION_FAILED",
]


def test_use_case_01_auto_execute_emits_started_then_succeeded() -> None:
    """A call that needs no approval is ready at once, and its two facts come as they happen."""
    play = Script()

    assert play.opens("T1", "a", "b") == happens("TURN_OPENED T1").asking(
        "execute a 1", "execute b 1"
    )

    assert play.claims("a") == happens("TOOL_EXECUTION_STARTED a")

    assert play.reports("a") == happens("TOOL_EXECUTION_SUCCEEDED a")

    assert play.owed == ["execute b 1"]


def test_use_case_02_auto_execute_emits_started_then_failed() -> None:
    """An execution that throws is a fact of its own, at once, and no success."""
    play = Script()
    play.opens("T1", "a", "b")

    assert play.claims("b") == happens("TOOL_EXECUTION_STARTED b")

    assert play.fails("b", "boom") == happens("TOOL_EXECUTION_FAILED b")

    assert play.names_of("b") == ["TOOL_EXECUTION_STARTED", "TOOL_EXECUTION_FAILED"]
    assert play.owed == ["execute a 1"]


def test_use_case_03_gated_call_emits_approval_requested() -> None:
    """A call that needs approval is shown with its arguments, and asks nobody to execute."""
    play = Script()

    assert play.opens("T1", gated("c", "rm", path="x")) == happens(
        "TURN_OPENED T1", "TOOL_APPROVAL_REQUESTED c"
    )

    asked = play.last(ToolApprovalRequested)
    assert (asked.tool_name, asked.arguments) == ("rm", {"path": "x"})
    assert play.owed == []


def test_use_case_04_approval_executes_by_the_one_way_there_is() -> None:
    """Approved and free calls are executed by the same effect, the same claim, the same facts."""
    play = Script()
    play.opens("T1", gated("c", "ls", n=1), call("f", "ls", n=1))

    assert play.approves("c") == happens("TOOL_APPROVED c").asking("execute c 1")

    approved, free = [it for it in play.kernel.pending_effects if isinstance(it, Execute)]
    assert approved.attempt == free.attempt == 1
    assert approved.tool_name == free.tool_name == "ls"
    assert approved.arguments == free.arguments == {"n": 1}

    assert play.claims("c") == happens("TOOL_EXECUTION_STARTED c")
    assert play.claims("f") == happens("TOOL_EXECUTION_STARTED f")


def test_use_case_05_denial_is_a_fact_and_a_result() -> None:
    """A denied call is terminal, says why, and counts towards its turn."""
    play = Script()
    play.opens("T1", gated("d"))

    assert play.denies("d", "too risky") == happens("TOOL_DENIED d", "TURN_SETTLED T1").asking(
        "continue T1"
    )

    assert play.last(ToolDenied).reason == "too risky"
    assert play.results() == [("d", "denied", "too risky")]


def test_use_case_06_continuation_waits_for_the_whole_batch_and_keeps_its_order() -> None:
    """The first result continues nothing; the last does, once, in the order of the calls."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")
    play.claims("b")

    assert play.reports("b", "second") == happens("TOOL_EXECUTION_SUCCEEDED b")

    assert play.reports("a", "first") == happens(
        "TOOL_EXECUTION_SUCCEEDED a", "TURN_SETTLED T1"
    ).asking("continue T1")

    assert play.results() == [("a", "succeeded", "first"), ("b", "succeeded", "second")]


def test_use_case_07_approved_and_denied_calls_complete_one_turn() -> None:
    """One continuation for both, whatever became of each."""
    play = Script()
    play.opens("T1", gated("e"), gated("f"))
    play.approves("e")
    play.claims("e")

    assert play.denies("f", "no") == happens("TOOL_DENIED f")

    assert play.reports("e", 1) == happens("TOOL_EXECUTION_SUCCEEDED e", "TURN_SETTLED T1").asking(
        "continue T1"
    )

    assert play.results() == [("e", "succeeded", 1), ("f", "denied", "no")]
    assert play.owed == ["continue T1"]


def test_use_case_08_duplicate_result_counts_nothing() -> None:
    """A result that comes twice is one result: the turn still waits for the other call."""
    play = Script()
    play.opens("T1", "g", "h")
    play.claims("g")
    play.reports("g", "ok")

    assert play.reports("g", "ok") == refused(Reason.DUPLICATE)
    assert play.reports("g", "ok") == refused(Reason.DUPLICATE)

    assert "TURN_SETTLED T1" not in play.names
    assert play.owed == ["execute h 1"]

    play.claims("h")
    assert play.reports("h") == happens("TOOL_EXECUTION_SUCCEEDED h", "TURN_SETTLED T1").asking(
        "continue T1"
    )


def test_use_case_09_late_duplicate_is_suppressed() -> None:
    """After the turn closed its results are late: no fact, no second continuation."""
    play = Script()
    play.opens("T1", "h")
    play.claims("h")
    play.reports("h")
    play.acknowledges()
    before = play.names

    assert play.reports("h") == refused(Reason.LATE)
    assert play.reports("h", turn=None) == refused(Reason.LATE)

    assert play.names == before
    assert play.owed == []


def test_use_case_10_results_are_served_before_requests() -> None:
    """The inbox hands out a result before the requests that were queued earlier."""
    inbox = Inbox()
    request = OpenTurn(turn_id="T2", calls=(call("x"),))
    claim = Claim(turn_id="T1", invocation_id="b", attempt=1)
    result = Report(turn_id="T1", invocation_id="a", result="ok")
    for delivery in (request, claim, result):
        inbox.put(delivery)

    assert [inbox.take(), inbox.take(), inbox.take()] == [result, claim, request]

    assert inbox.take() is None


def test_use_case_11_the_stream_speaks_the_explicit_lifecycle_family() -> None:
    """Exactly six names have lifecycle meaning, and each is one class with the seed's payload."""
    assert [str(kind.type) for kind in LIFECYCLE_FAMILY] == THE_SIX

    play = Script()
    play.opens("T1", gated("a"), gated("b"), "c")
    play.approves("a", Scope.TURN, Match.EXACT)
    play.claims("a", lease=5.0)
    play.renews("a", 5.0)
    play.loses("a")
    play.retries("a")
    play.claims("a", 2)
    play.reports("a")
    play.rejects("b")
    play.rejects("c")

    lifecycle = [fact for fact in play.journal if isinstance(fact, LIFECYCLE_FAMILY)]
    assert {str(fact.type) for fact in lifecycle} <= {*THE_SIX}
    for fact in lifecycle:
        assert fact.invocation_id
        assert fact.tool_name
        assert fact.turn_id == "T1"
    others = [fact for fact in play.journal if not isinstance(fact, LIFECYCLE_FAMILY)]
    assert {str(fact.type) for fact in others}.isdisjoint(THE_SIX)


def test_use_case_12_no_legacy_name_exists() -> None:
    """A start is TOOL_EXECUTION_STARTED and nothing else; no older name of a fact exists."""
    names = [str(name) for name in FactType]

    assert [name for name in names if name.startswith("TOOL_")] == THE_SIX
    for legacy in ("AUTO_EXECUTING", "TOOL_INVOCATION", "TOOL_LOG", "AGENT_"):
        assert not [name for name in names if legacy in name]

    play = Script()
    play.opens("T1", "a")
    assert play.claims("a") == happens("TOOL_EXECUTION_STARTED a")
