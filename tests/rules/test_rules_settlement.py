"""K-50 to K-53: one door out of a turn, one continuation, and what an interrupt does."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from turnlock import CallResult, Continue, Interrupt, Reason, Scope, Status
from turnlock.models.facts import (
    ToolDenied,
    ToolExecutionFailed,
    TurnInterrupting,
)

from ..outcome import Outcome, gated, happens, refused
from ..script import Script

Line = Callable[[Script, str], object]


def ends_by(*lines: str) -> Line:
    """A way to end an invocation, in verbs of the script."""

    def end(play: Script, name: str) -> Outcome:
        outcome = happens()
        for line in lines:
            outcome = getattr(play, line)(name)
        return outcome

    return end


ENDS: dict[str, Line] = {
    "succeeded": ends_by("approves", "claims", "reports"),
    "failed": ends_by("approves", "claims", "fails"),
    "denied": ends_by("denies"),
    "rejected": ends_by("rejects"),
    "rejected once approved": ends_by("approves", "rejects"),
    "settled in doubt": ends_by("approves", "claims", "loses", "reports"),
    "resolved": lambda play, name: (
        ends_by("approves", "claims", "loses")(play, name),
        play.resolves(name, 1),
    )[-1],
    "resolved as an error": lambda play, name: (
        ends_by("approves", "claims", "loses")(play, name),
        play.resolves_error(name, "x"),
    )[-1],
}


# ------------------------------------------------------------------------------------------ K-50


@pytest.mark.parametrize("order", list(itertools.permutations("abc")), ids="".join)
def test_k_50_settled_when_every_expected_invocation_is_terminal(order: tuple[str, ...]) -> None:
    """In whatever order they end, the last one settles, and no other."""
    play = Script()
    play.opens("T1", "a", "b", "c")
    for name in "abc":
        play.claims(name)

    settled = [("TURN_SETTLED T1" in play.reports(name).facts) for name in order]

    assert settled == [False, False, True]


def test_k_50_results_are_not_counted() -> None:
    """Three calls, many reports of two of them, of strangers, of the past: not settled."""
    play = Script()
    play.opens("T1", "a", "b", "c")
    for name in "ab":
        play.claims(name)
        for _ in range(3):
            play.reports(name)
            play.fails(name)
            play.reports("x")
            play.reports("c", turn="T0")

    assert "TURN_SETTLED T1" not in play.names
    assert play.owed == ["execute c 1"]


def test_k_50_an_unsealed_turn_does_not_settle() -> None:
    """All are terminal, more may come; the seal settles at once."""
    play = Script()
    play.opens("T1", "a", sealed=False)
    assert play.rejects("a") == happens("TOOL_EXECUTION_FAILED a")
    play.adds("b")
    assert play.rejects("b") == happens("TOOL_EXECUTION_FAILED b")

    assert play.seals() == happens("TURN_SEALED T1", "TURN_SETTLED T1").asking("continue T1")


def test_k_50_a_turn_sealed_while_something_runs_waits_for_it() -> None:
    """Sealed is one half, terminal the other."""
    play = Script()
    play.opens("T1", "a", sealed=False)
    play.claims("a")

    assert play.seals() == happens("TURN_SEALED T1")
    assert play.reports("a") == happens("TOOL_EXECUTION_SUCCEEDED a", "TURN_SETTLED T1").asking(
        "continue T1"
    )


# ------------------------------------------------------------------------------------------ K-51


@pytest.mark.parametrize("end", ENDS)
def test_k_51_every_end_settles_through_the_same_door(end: str) -> None:
    """The last one ends in any way: the fact of its end, then TURN_SETTLED, then one continue."""
    play = Script()
    play.opens("T1", gated("a"), gated("b"))
    ENDS[end](play, "b")
    assert play.owed == []

    outcome = ENDS[end](play, "a")

    assert isinstance(outcome, Outcome)
    assert outcome.facts[0].endswith(" a")
    assert (outcome.facts[1:], outcome.asks) == (("TURN_SETTLED T1",), ("continue T1",))
    assert [name for name, _, _ in play.results()] == ["a", "b"]


def test_k_51_deadlines_settle_through_it_too() -> None:
    """An approval that expires, a denial like any other."""
    play = Script()
    play.opens("T1", gated("a", timeout=1.0))

    assert play.at(9.0).ticks() == happens("TOOL_DENIED a", "TURN_SETTLED T1").asking("continue T1")
    assert play.results() == [("a", "denied", "approval expired")]


# ------------------------------------------------------------------------------------------ K-52


def test_k_52_the_continuation_has_all_results_in_expected_order() -> None:
    """Each with id, tool, status and its one payload, and the id that the provider sent."""
    play = Script()
    play.opens("T1", gated("d", "rm"), "s", "f")
    play.claims("f")
    play.fails("f", "boom")
    play.claims("s")
    play.reports("s", {"n": 1})
    play.denies("d", "no")

    assert play.last(Continue).turn_id == "T1"
    assert play.last(Continue).results == (
        CallResult(invocation_id="d", tool_name="rm", status=Status.DENIED, reason="no"),
        CallResult(invocation_id="s", tool_name="ls", status=Status.SUCCEEDED, result={"n": 1}),
        CallResult(invocation_id="f", tool_name="ls", status=Status.FAILED, error="boom"),
    )


def test_k_52_expected_order_is_the_order_in_which_calls_were_asked_for() -> None:
    """Those that streamed in later come later."""
    play = Script()
    play.opens("T1", "z", sealed=False)
    play.adds("a")
    play.adds("m")
    play.seals()
    for name in "maz":
        play.rejects(name)

    assert [name for name, _, _ in play.results()] == ["z", "a", "m"]


def test_k_52_it_is_owed_until_acknowledged() -> None:
    """Over other turns, over time, over a recovery; afterwards never again."""
    play = Script()
    play.opens("T1", "a")
    play.rejects("a")
    play.opens("T2", "a")
    play.rejects("a")

    assert play.at(1e6).ticks() == happens()
    assert play.owed == ["continue T1", "continue T2"]
    assert play.recovered().owed == ["continue T1", "continue T2"]

    assert play.acknowledges("T2") == happens("CONTINUATION_TAKEN T2")
    assert play.owed == ["continue T1"]
    assert play.acknowledges("T1") == happens("CONTINUATION_TAKEN T1")
    assert play.owed == play.recovered().owed == []


def test_k_52_it_is_asked_for_once() -> None:
    """By the receive that settles, and by no other."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")
    assert play.reports("a").asks == ("continue T1",)

    assert play.reports("a") == refused(Reason.LATE)
    assert play.seals() == refused(Reason.LATE)
    assert play.interrupts() == refused(Reason.LATE)
    assert play.opens("T2", "b").asks == ("execute b 1",)


def test_k_52_no_turn_open_never_a_continuation() -> None:
    """Whatever arrives before, between and after turns."""
    play = Script()
    for end in (False, True):
        if end:
            play.opens("T1", "a")
            play.rejects("a")
            play.acknowledges()
        for turn in (None, "T1", "T9"):
            play.reports("a", turn=turn)
            play.rejects("a", turn=turn)
            play.loses("a", turn=turn)
        play.approves("a", turn="T1")
        play.denies("a", turn="T1")
        play.seals(turn="T1")
        play.ticks()
        assert play.owed == []


def test_k_52_a_turn_sealed_without_calls_settles_without_one() -> None:
    """There is nothing to tell the model, and nothing to acknowledge."""
    play = Script()
    play.opens("T1", sealed=False)

    assert play.seals() == happens("TURN_SEALED T1", "TURN_SETTLED T1")

    assert play.owed == []
    assert play.acknowledges() == refused(Reason.NO_CONTINUATION)
    assert play.opens("T1", "a") == refused(Reason.TURN_REUSED)


# ------------------------------------------------------------------------------------------ K-53


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
