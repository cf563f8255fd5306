"""K-53: what an interrupt does, and what it leaves alone."""

from __future__ import annotations

import pytest

from turnlock import Interrupt, Reason, Scope
from turnlock.models.facts import (
    ToolDenied,
    ToolExecutionFailed,
    TurnInterrupting,
)

from ..outcome import gated, happens, refused
from ..script import Script

# ------------------------------------------------------------------------------------------- K-53


def test_k_53_what_has_not_started_is_denied_in_expected_order() -> None:
    """Pending, approved and free alike; the settled stay as they are."""
    play = Script()
    play.opens("T1", "free", gated("asked"), gated("approved", n=1), "done", "runs")
    play.approves("approved")
    play.rejects("done")
    play.claims("runs")

    assert play.interrupts(reason="user") == happens(
        "TURN_INTERRUPTING T1", "TOOL_DENIED free", "TOOL_DENIED asked", "TOOL_DENIED approved"
    ).asking("cancel runs 1")

    denials = [fact for fact in play.verdict.facts if isinstance(fact, ToolDenied)]
    assert {(it.reason, it.cause) for it in denials} == {("interrupted", "interrupt")}
    assert play.last(TurnInterrupting).reason == "user"


def test_k_53_grace_is_ten_seconds_unless_said() -> None:
    """And is counted from the interrupt."""
    assert Interrupt(turn_id="T1").grace == 10.0
    play = Script()
    play.opens("T1", "a")
    play.claims("a")
    play.at(7.0).interrupts(grace=3.0)

    assert play.last(TurnInterrupting).grace_until == 10.0


def test_k_53_what_runs_or_is_in_doubt_may_still_report() -> None:
    """Facts are facts: successes and failures, then INTERRUPTED, and no continuation."""
    play = Script()
    play.opens("T1", "a", "b", "c", "d")
    for name in "abcd":
        play.claims(name)
    play.loses("c")
    play.loses("d")
    assert play.interrupts().asks == ("cancel a 1", "cancel b 1")

    assert play.reports("a") == happens("TOOL_EXECUTION_SUCCEEDED a")
    assert play.owed == ["cancel b 1"]
    assert play.fails("b") == happens("TOOL_EXECUTION_FAILED b")
    assert play.reports("c") == happens("TOOL_EXECUTION_SUCCEEDED c")
    assert play.resolves("d", 1) == happens("TOOL_EXECUTION_SUCCEEDED d", "TURN_INTERRUPTED T1")

    assert play.owed == []
    assert play.acknowledges() == refused(Reason.NO_CONTINUATION)


def test_k_53_what_has_not_reported_when_the_grace_is_over_has_failed() -> None:
    """Running or in doubt: outcome unknown; then the turn is closed, and reports are late."""
    play = Script()
    play.opens("T1", "b", "a")
    play.claims("a")
    play.claims("b")
    play.loses("b")
    play.interrupts(grace=5.0)

    assert play.at(50.0).reports("a") == refused(
        Reason.LATE, "TOOL_EXECUTION_FAILED b", "TOOL_EXECUTION_FAILED a", "TURN_INTERRUPTED T1"
    )

    failures = [fact for fact in play.verdict.facts if isinstance(fact, ToolExecutionFailed)]
    assert {(it.error, it.cause) for it in failures} == {
        ("interrupted; outcome unknown", "interrupted")
    }
    assert play.owed == []


@pytest.mark.parametrize("sealed", [True, False])
def test_k_53_it_closes_at_once_when_nothing_runs_or_is_in_doubt(sealed: bool) -> None:
    """Sealed or streaming, with calls that have not started."""
    play = Script()
    play.opens("T1", "a", sealed=sealed)

    assert play.interrupts() == happens(
        "TURN_INTERRUPTING T1", "TOOL_DENIED a", "TURN_INTERRUPTED T1"
    )
    assert play.owed == []
    assert play.opens("T2", "b").reason is None


def test_k_53_an_empty_open_turn_closes_at_once() -> None:
    """There is nothing to wait for."""
    play = Script()
    play.opens("T1", sealed=False)

    assert play.interrupts() == happens("TURN_INTERRUPTING T1", "TURN_INTERRUPTED T1")


def test_k_53_a_second_interrupt_is_a_duplicate_and_changes_no_grace() -> None:
    """Neither longer nor shorter."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")
    play.at(10.0).interrupts(grace=5.0)

    assert play.at(11.0).interrupts(grace=0.0) == refused(Reason.DUPLICATE)
    assert play.at(12.0).interrupts(grace=500.0) == refused(Reason.DUPLICATE)
    assert play.at(15.0).ticks() == happens()
    assert play.at(15.5).ticks() == happens("TOOL_EXECUTION_FAILED a", "TURN_INTERRUPTED T1")


def test_k_53_no_turn_is_opened_meanwhile() -> None:
    """Busy until it is closed; and turn_open for itself."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")
    play.interrupts()

    assert play.opens("T2", "b") == refused(Reason.TURN_BUSY)
    assert play.opens("T1", "b") == refused(Reason.TURN_OPEN)

    play.reports("a")
    assert play.opens("T2", "b") == happens("TURN_OPENED T2").asking("execute b 1")


def test_k_53_an_interrupt_is_never_widened() -> None:
    """It names its turn; another one that is active by now is left alone."""
    play = Script()
    play.opens("T1", "a")
    play.rejects("a")
    play.opens("T2", "b")

    assert play.interrupts(turn="T1") == refused(Reason.LATE)
    assert play.interrupts(turn="T9") == refused(Reason.TURN_MISMATCH)

    assert play.owed == ["execute b 1", "continue T1"]
    assert play.claims("b") == happens("TOOL_EXECUTION_STARTED b")


def test_k_53_an_authorised_retry_is_withdrawn() -> None:
    """Its execute effect is owed no more, its claim is refused, and no other can be authorised."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")
    play.loses("a")
    play.retries("a")
    assert play.owed == ["execute a 2"]

    assert play.interrupts() == happens("TURN_INTERRUPTING T1")

    assert play.owed == []
    assert play.claims("a", 2) == refused(Reason.STALE_ATTEMPT)
    assert play.claims("a", 1) == refused(Reason.NOT_AUTHORISED)
    assert play.retries("a") == refused(Reason.INTERRUPTING)
    assert play.reports("a") == happens("TOOL_EXECUTION_SUCCEEDED a", "TURN_INTERRUPTED T1")


def test_k_53_a_cancel_is_owed_while_it_runs() -> None:
    """Asked by the interrupt, derived again on recovery, gone with the end or the doubt."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")
    play.claims("b", lease=100.0)
    play.interrupts(grace=50.0)
    assert play.owed == play.recovered().owed == ["cancel a 1", "cancel b 1"]

    assert play.loses("a") == happens("EXECUTION_IN_DOUBT a")
    assert play.owed == ["cancel b 1"]
    assert play.renews("b", 100.0) == happens("LEASE_RENEWED b")
    assert play.owed == ["cancel b 1"]


def test_k_53_facts_already_true_stay_true() -> None:
    """What succeeded or was denied before the interrupt, and other turns' continuations."""
    play = Script()
    play.opens("T1", "a")
    play.rejects("a")
    play.opens("T2", gated("d"), gated("g", n=1), "s")
    play.denies("d", "no")
    play.approves("g", Scope.SESSION)
    play.claims("s")
    play.reports("s")

    assert play.interrupts() == happens(
        "TURN_INTERRUPTING T2", "TOOL_DENIED g", "TURN_INTERRUPTED T2"
    )

    assert play.owed == ["continue T1"]
    assert play.opens("T3", gated("h", n=1)).facts[1] == "TOOL_APPROVED h"


def test_k_53_the_grace_is_not_lost_among_renewals() -> None:
    """Whoever renews while being stopped, however often, does not outlive the grace."""
    play = Script()
    play.step = 0.0
    play.opens("T1", gated("g"), "a", "b")
    play.approves("g", Scope.SESSION)
    play.claims("b", lease=5.0)
    play.claims("a", lease=100.0)
    play.interrupts(grace=10.0)
    for number in range(500):
        play.renews("a", 100.0 + number)

    assert play.at(11.0).ticks() == happens(
        "EXECUTION_IN_DOUBT b",
        "TOOL_EXECUTION_FAILED a",
        "TOOL_EXECUTION_FAILED b",
        "TURN_INTERRUPTED T1",
    )
    assert play.at(1e9).ticks() == happens()
