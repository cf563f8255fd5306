"""K-33 to K-35: the claim, the lease, and the honest doubt."""

from __future__ import annotations

import math

import pytest

from turnlock import Execute, Match, Reason, Scope
from turnlock.models.facts import (
    ExecutionRetried,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
)

from ..outcome import gated, happens, refused
from ..script import Script

# ------------------------------------------------------------------------------------------- K-33


def test_k_33_two_executors_execute_once() -> None:
    """Both hold the execute effect; one claim is accepted, the other is not, whoever asks."""
    play = Script()
    play.opens("T1", gated("a"))
    play.approves("a")

    assert play.claims("a", worker="w1") == happens("TOOL_EXECUTION_STARTED a")
    assert play.claims("a", worker="w2") == refused(Reason.ALREADY_STARTED)
    assert play.claims("a") == refused(Reason.ALREADY_STARTED)

    assert play.owed == []


def test_k_33_the_holder_that_asks_again_is_a_duplicate() -> None:
    """Its first claim was accepted, the answer got lost; an unnamed one cannot tell."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a", worker="w1")
    assert play.claims("a", worker="w1") == refused(Reason.DUPLICATE)

    play.claims("b")
    assert play.claims("b") == refused(Reason.ALREADY_STARTED)
    assert play.claims("b", worker="w1") == refused(Reason.ALREADY_STARTED)


def test_k_33_claim_is_the_only_way_to_started() -> None:
    """No report, loss, renewal or resolution starts what was approved."""
    play = Script()
    play.opens("T1", gated("a"))
    play.approves("a")

    assert play.reports("a") == refused(Reason.NOT_STARTED)
    assert play.fails("a") == refused(Reason.NOT_STARTED)
    assert play.loses("a") == refused(Reason.NOT_STARTED)
    assert play.renews("a", 1.0) == refused(Reason.NOT_STARTED)
    assert play.retries("a") == refused(Reason.NOT_IN_DOUBT)
    assert play.resolves("a", 1) == refused(Reason.NOT_IN_DOUBT)

    assert play.names_of("a") == ["TOOL_APPROVAL_REQUESTED", "TOOL_APPROVED"]


def test_k_33_attempts_count_from_one_and_change_with_the_claim() -> None:
    """Until the retry is claimed the old attempt is the current one: its report still counts."""
    play = Script()
    play.opens("T1", "a", "b")
    for invocation in ("a", "b"):
        play.claims(invocation)
        assert play.last(ToolExecutionStarted).attempt == 1
        play.loses(invocation)
        play.retries(invocation)

    assert play.reports("a", attempt=2) == refused(Reason.STALE_ATTEMPT)
    assert play.reports("a", attempt=1) == happens("TOOL_EXECUTION_SUCCEEDED a")

    play.claims("b", 2)
    assert play.reports("b", attempt=1) == refused(Reason.STALE_ATTEMPT)
    assert play.reports("b", attempt=2).facts[0] == "TOOL_EXECUTION_SUCCEEDED b"


# ------------------------------------------------------------------------------------------- K-34


def test_k_34_a_lease_is_over_strictly_past_its_end() -> None:
    """At now + lease it still holds; one float later that is a lose."""
    play = Script()
    play.at(100.0).opens("T1", "a")
    play.at(100.0).claims("a", lease=5.0)
    assert play.last(ToolExecutionStarted).lease_until == 105.0

    assert play.at(105.0).ticks() == happens()
    assert play.at(math.nextafter(105.0, math.inf)).ticks() == happens("EXECUTION_IN_DOUBT a")


def test_k_34_a_renewal_runs_from_its_own_time() -> None:
    """Longer or shorter than what was left; without a lease before, too."""
    play = Script()
    play.at(0.0).opens("T1", "a", "b")
    play.at(0.0).claims("a", lease=5.0)
    play.at(0.0).claims("b")

    assert play.at(5.0).renews("a", 5.0) == happens("LEASE_RENEWED a")
    assert play.at(10.0).ticks() == happens()
    assert play.at(10.0).renews("a", 1.0) == happens("LEASE_RENEWED a")
    assert play.at(11.0).renews("b", 4.0) == happens("LEASE_RENEWED b")
    assert play.at(11.5).ticks() == happens("EXECUTION_IN_DOUBT a")
    assert play.at(15.0).ticks() == happens()
    assert play.at(15.5).ticks() == happens("EXECUTION_IN_DOUBT b")


def test_k_34_a_renewal_after_the_end_is_too_late() -> None:
    """The lease is lost first, and the renewal meets a call in doubt."""
    play = Script()
    play.opens("T1", "a")
    play.at(0.0).claims("a", lease=5.0)

    assert play.at(5.5).renews("a", 5.0) == refused(Reason.LEASE_LOST, "EXECUTION_IN_DOUBT a")


def test_k_34_a_lease_of_no_time_holds_for_its_instant() -> None:
    """Zero seconds: over at the next float."""
    play = Script()
    play.at(1.0).opens("T1", "a")
    play.at(1.0).claims("a", lease=0.0)

    assert play.at(1.0).renews("a", 0.0) == happens("LEASE_RENEWED a")
    assert play.at(math.nextafter(1.0, 2.0)).ticks() == happens("EXECUTION_IN_DOUBT a")


def test_k_34_the_lease_of_a_retry_is_its_own() -> None:
    """The first one ended with the doubt; the second claim brings another, or none."""
    play = Script()
    play.at(0.0).opens("T1", "a", "b")
    for invocation in ("a", "b"):
        play.at(1.0).claims(invocation, lease=10.0)
        play.at(2.0).loses(invocation)
        play.at(3.0).retries(invocation)
    play.at(4.0).claims("a", 2, lease=20.0)
    play.at(4.0).claims("b", 2)
    assert play.last(ExecutionRetried).lease_until is None

    assert play.at(24.0).ticks() == happens()
    assert play.at(24.5).ticks() == happens("EXECUTION_IN_DOUBT a")
    assert play.at(1e12).ticks() == happens()


@pytest.mark.parametrize(
    "over",
    [
        ("TOOL_DENIED a", 10.0),
        ("GRANT_EXPIRED grant/r/1", 20.0),
        ("EXECUTION_IN_DOUBT b", 30.0),
    ],
)
def test_k_34_every_deadline_is_over_strictly_past_it(over: tuple[str, float]) -> None:
    """Approval, grant, lease: at the deadline nothing, at the next float all of it."""
    play = Script()
    play.step = 0.0
    play.opens("T1", gated("a", timeout=10.0), "b", gated("g", n=1))
    play.approves("g", Scope.SESSION, Match.EXACT, expires_in=20.0)
    play.claims("b", lease=30.0)
    name, deadline = over

    assert name not in play.at(deadline).ticks().facts
    assert name in play.at(math.nextafter(deadline, math.inf)).ticks().facts


def test_k_34_the_grace_is_over_strictly_past_it() -> None:
    """At now + grace a report is still heard, one float later it is late."""
    for then, settled in ((20.0, True), (math.nextafter(20.0, 21.0), False)):
        play = Script()
        play.opens("T1", "a")
        play.claims("a")
        play.at(15.0).interrupts(grace=5.0)
        outcome = play.at(then).reports("a")
        assert (outcome.reason is None) is settled
        assert outcome.facts[0] == (
            "TOOL_EXECUTION_SUCCEEDED a" if settled else "TOOL_EXECUTION_FAILED a"
        )


# ------------------------------------------------------------------------------------------- K-35


def test_k_35_a_late_true_report_settles_a_doubt() -> None:
    """It was started, nobody knew, and then somebody does: with the attempt or without."""
    play = Script()
    play.opens("T1", "a", "b")
    for invocation in ("a", "b"):
        play.claims(invocation)
        assert play.loses(invocation) == happens(f"EXECUTION_IN_DOUBT {invocation}")

    assert play.reports("a", attempt=1) == happens("TOOL_EXECUTION_SUCCEEDED a")
    assert play.last(ToolExecutionSucceeded).result == "ok"
    assert play.fails("b").facts[0] == "TOOL_EXECUTION_FAILED b"
    assert play.last(ToolExecutionFailed).cause == "reported"


def test_k_35_nothing_is_silently_executed_again() -> None:
    """In doubt asks for nothing, however long, until somebody authorises a retry."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a", lease=1.0)

    assert play.at(100.0).ticks() == happens("EXECUTION_IN_DOUBT a")
    assert play.at(1e9).ticks() == happens()
    assert play.owed == []
    assert play.claims("a") == refused(Reason.NOT_AUTHORISED)
    assert play.claims("a", 2) == refused(Reason.STALE_ATTEMPT)
    assert play.recovered().owed == []

    assert play.retries("a") == happens("RETRY_AUTHORISED a").asking("execute a 2")
    assert play.retries("a") == refused(Reason.DUPLICATE)
    assert play.owed == ["execute a 2"]


def test_k_35_a_retry_has_the_same_idempotency_key_and_arguments() -> None:
    """So that a tool which is safe to repeat can tell."""
    play = Script()
    play.opens("T1", gated("a", n=1))
    play.approves("a", arguments={"n": 2})
    first = play.last(Execute)
    play.claims("a")
    play.loses("a")
    play.retries("a")
    second = play.last(Execute)

    assert second.idempotency_key == first.idempotency_key
    assert second.arguments == first.arguments == {"n": 2}
    assert second.tool_name == first.tool_name


def test_k_35_a_probe_or_a_person_resolves_it() -> None:
    """As a result or as an error; the cause of the failure says that it was resolved."""
    play = Script()
    play.opens("T1", "a", "b")
    for invocation in ("a", "b"):
        play.claims(invocation)
        play.loses(invocation)

    assert play.resolves("a", {"paid": True}) == happens("TOOL_EXECUTION_SUCCEEDED a")
    assert play.last(ToolExecutionSucceeded).result == {"paid": True}
    assert play.resolves_error("b", "it never arrived").facts[0] == "TOOL_EXECUTION_FAILED b"
    assert play.last(ToolExecutionFailed).cause == "resolved"


def test_k_35_a_retry_that_was_authorised_can_still_be_resolved() -> None:
    """The truth came out before anybody claimed it: nothing is owed any more."""
    play = Script()
    play.opens("T1", "a", "b")
    play.claims("a")
    play.loses("a")
    play.retries("a")

    assert play.resolves("a", "it happened") == happens("TOOL_EXECUTION_SUCCEEDED a")

    assert play.owed == ["execute b 1"]
    assert play.claims("a", 2) == refused(Reason.STALE_ATTEMPT)
