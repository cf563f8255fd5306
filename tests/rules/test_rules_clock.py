"""K-10: the clock, too, is a fold of facts."""

from __future__ import annotations

from turnlock import Reason
from turnlock.models.facts import LeaseRenewed, ToolExecutionStarted

from ..outcome import happens, refused
from ..script import Script


def test_k_10_a_time_before_the_latest_fact_is_that_facts_time() -> None:
    """The clock of the host stepped back: facts do not, and deadlines count from the later time."""
    play = Script()
    play.at(100.0).opens("T1", "a", "b")

    assert play.at(50.0).claims("a", lease=5.0) == happens("TOOL_EXECUTION_STARTED a")
    assert play.last(ToolExecutionStarted).at == 100.0
    assert play.last(ToolExecutionStarted).lease_until == 105.0

    assert play.at(-1e9).renews("a", 7.0) == happens("LEASE_RENEWED a")
    assert play.last(LeaseRenewed).at == 100.0
    assert play.last(LeaseRenewed).lease_until == 107.0


def test_k_10_a_refusal_does_not_move_the_clock() -> None:
    """Only facts do: after a refusal at 200 s, a fact at 150 s is at 150 s."""
    play = Script()
    play.at(100.0).opens("T1", "a")

    assert play.at(200.0).reports("a") == refused(Reason.NOT_STARTED)
    assert play.at(200.0).ticks() == happens()
    assert play.at(200.0).logs("a") == happens()

    play.at(150.0).claims("a")
    assert play.last(ToolExecutionStarted).at == 150.0


def test_k_10_facts_of_deadlines_move_the_clock_though_the_delivery_is_refused() -> None:
    """What happened at 200 s has happened, whatever became of the delivery."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a", lease=5.0)

    assert play.at(200.0).claims("z") == refused(Reason.UNKNOWN_INVOCATION, "EXECUTION_IN_DOUBT a")

    play.at(150.0).claims("b")
    assert play.last(ToolExecutionStarted).at == 200.0


def test_k_10_the_first_fact_has_the_time_given() -> None:
    """Before any fact no time is too early."""
    play = Script()

    play.at(-5.0).opens("T1", "a")

    assert play.journal[0].at == -5.0


def test_k_10_memory_and_deadlines_see_the_corrected_time() -> None:
    """Going back makes nothing young again: a lease is over once, a memory ages by facts."""
    play = Script()
    play.at(0.0).opens("T1", "a")
    play.claims("a")
    play.at(10.0).reports("a")
    play.at(310.0).opens("T2", "b")
    assert play.at(0.0).reports("a", turn="T1") == refused(Reason.LATE)

    play.at(310.5).claims("b")
    assert play.at(0.0).reports("a", turn="T1") == refused(Reason.TURN_MISMATCH)


def test_k_10_recovery_knows_the_time() -> None:
    """The latest fact's time is in the journal, so a recovered kernel corrects alike."""
    play = Script()
    play.at(100.0).opens("T1", "a")
    twin = play.recovered()

    twin.at(50.0).claims("a")

    assert twin.journal[-1].at == 100.0
