"""Seed 001, section 7: its fourteen guarantees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from turnlock import FactType, Inbox, Limits, OpenTurn, Reason, Report, SealTurn
from turnlock.models.facts import LIFECYCLE_FAMILY, ToolDenied, ToolExecutionFailed

from ..outcome import Outcome, call, gated, happens, refused
from ..script import Script

TERMINAL = {"TOOL_EXECUTION_SUCCEEDED", "TOOL_EXECUTION_FAILED", "TOOL_DENIED"}


def test_guarantee_01_completions_are_emitted_independently() -> None:
    """Each invocation's end is told when it happens, in whatever order they end."""
    play = Script()
    play.opens("T1", "a", "b", "c")
    for invocation in ("a", "b", "c"):
        play.claims(invocation)

    assert play.reports("c") == happens("TOOL_EXECUTION_SUCCEEDED c")
    assert play.fails("a") == happens("TOOL_EXECUTION_FAILED a")
    assert play.reports("b") == happens("TOOL_EXECUTION_SUCCEEDED b", "TURN_SETTLED T1").asking(
        "continue T1"
    )


def test_guarantee_02_denied_tools_are_terminal_and_count() -> None:
    """A denial is told at once, and the turn does not wait for the denied call."""
    play = Script()
    play.opens("T1", gated("a"), "b")

    assert play.denies("a", "no") == happens("TOOL_DENIED a")

    play.claims("b")
    assert play.reports("b") == happens("TOOL_EXECUTION_SUCCEEDED b", "TURN_SETTLED T1").asking(
        "continue T1"
    )


def test_guarantee_03_mixed_turns_produce_one_continuation() -> None:
    """Denied, succeeded, failed and rejected calls: one continuation with all four, in order."""
    play = Script()
    play.opens("T1", gated("denied"), gated("ok"), "failed", "rejected")
    play.rejects("rejected", "no such tool")
    play.claims("failed")
    play.fails("failed", "boom")
    play.approves("ok")
    play.denies("denied", "no")
    play.claims("ok")
    play.reports("ok", 7)

    assert play.names.count("TURN_SETTLED T1") == 1
    assert play.owed == ["continue T1"]
    assert play.results() == [
        ("denied", "denied", "no"),
        ("ok", "succeeded", 7),
        ("failed", "failed", "boom"),
        ("rejected", "failed", "no such tool"),
    ]


def test_guarantee_04_duplicates_do_not_complete_a_turn() -> None:
    """As many results as calls, but of one call only: the turn is not complete."""
    play = Script()
    play.opens("T1", "a", "b", "c")
    play.claims("a")
    play.reports("a")

    for _ in range(5):
        assert play.reports("a") == refused(Reason.DUPLICATE)

    assert play.owed == ["execute b 1", "execute c 1"]


def test_guarantee_05_late_duplicates_create_no_further_turn() -> None:
    """A result after the end asks for nothing, taken or not taken, with a turn or without."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")
    play.reports("a")

    assert play.reports("a") == refused(Reason.LATE)
    assert play.owed == ["continue T1"]

    play.acknowledges()
    assert play.reports("a") == refused(Reason.LATE)
    assert play.reports("a", turn=None) == refused(Reason.LATE)
    assert play.owed == []


def test_guarantee_06_results_are_not_starved_by_requests() -> None:
    """However many requests stand before it, a result is served first."""
    inbox = Inbox()
    for number in range(50):
        inbox.put(OpenTurn(turn_id=f"N{number}", calls=(call("x"),)))
        inbox.put(SealTurn(turn_id=f"N{number}"))
    result = Report(turn_id="T1", invocation_id="a", result="ok")
    inbox.put(result)

    assert inbox.take() == result
    assert inbox.take() == OpenTurn(turn_id="N0", calls=(call("x"),))


def test_guarantee_07_phases_advance_in_one_order() -> None:
    """Requested, approved, started: no step comes before the one it needs, none comes twice."""
    play = Script()
    play.opens("T1", gated("a"))

    assert play.claims("a") == refused(Reason.NOT_APPROVED)
    assert play.reports("a") == refused(Reason.NOT_STARTED)

    play.approves("a")
    assert play.reports("a") == refused(Reason.NOT_STARTED)

    play.claims("a")
    assert play.approves("a") == refused(Reason.DUPLICATE)
    assert play.claims("a") == refused(Reason.ALREADY_STARTED)

    play.reports("a")
    assert play.names_of("a") == [
        "TOOL_APPROVAL_REQUESTED",
        "TOOL_APPROVED",
        "TOOL_EXECUTION_STARTED",
        "TOOL_EXECUTION_SUCCEEDED",
    ]


ENDS: dict[str, list[Callable[[Script], Outcome]]] = {
    "succeeded": [lambda play: play.claims("a"), lambda play: play.reports("a")],
    "failed": [lambda play: play.claims("a"), lambda play: play.fails("a")],
    "rejected": [lambda play: play.rejects("a")],
    "denied": [lambda play: play.denies("a")],
}


@pytest.mark.parametrize("end", ENDS)
def test_guarantee_08_terminal_states_never_regress(end: str) -> None:
    """Nothing that comes after the end, logs least of all, brings forth another fact."""
    play = Script()
    play.opens("T1", gated("a") if end == "denied" else "a", "other")
    for line in ENDS[end]:
        line(play)
    before = play.names

    play.logs("a", "TOOL_EXECUTION_STARTED")
    play.approves("a")
    play.denies("a")
    play.claims("a")
    play.claims("a", 2)
    play.renews("a", 5.0)
    play.rejects("a")
    play.reports("a", "other")
    play.fails("a", "other")
    play.loses("a")
    play.retries("a")
    play.resolves("a", "other")

    assert play.names == before
    assert play.owed == ["execute other 1"]


def test_guarantee_09_no_legacy_lifecycle_exists() -> None:
    """The names of all facts are the closed list of the spec, and nothing reminds of older ones."""
    assert {str(name) for name in FactType} == {
        *("TOOL_APPROVAL_REQUESTED", "TOOL_APPROVED", "TOOL_DENIED"),
        *("TOOL_EXECUTION_STARTED", "TOOL_EXECUTION_SUCCEEDED", "TOOL_EXECUTION_FAILED"),
        *("TURN_OPENED", "CALL_ADDED", "TURN_SEALED", "TURN_SETTLED", "TURN_INTERRUPTING"),
        *("TURN_INTERRUPTED", "CONTINUATION_TAKEN"),
        *("EXECUTION_IN_DOUBT", "RETRY_AUTHORISED", "EXECUTION_RETRIED", "LEASE_RENEWED"),
        *("GRANT_ISSUED", "GRANT_REVOKED", "GRANT_EXPIRED"),
    }


def test_guarantee_10_foreign_results_do_not_touch_the_turn() -> None:
    """Unknown ids, wrong turns, earlier turns: the active turn is the same before and after."""
    play = Script()
    play.opens("T1", "a")
    play.claims("a")
    play.reports("a")
    play.opens("T2", "a", "b")
    play.claims("a")
    before = play.kernel.pending_effects, play.names

    assert play.reports("z") == refused(Reason.UNKNOWN_INVOCATION)
    assert play.reports("a", turn="T9") == refused(Reason.TURN_MISMATCH)
    assert play.reports("a", turn="T1") == refused(Reason.LATE)
    assert play.reports("a", turn=None) == refused(Reason.AMBIGUOUS_INVOCATION)

    assert (play.kernel.pending_effects, play.names) == before


def test_guarantee_11_stale_approvals_execute_nothing() -> None:
    """An approval of another turn, another id or a finished call asks for nothing."""
    play = Script()
    play.opens("T1", gated("a"))
    play.denies("a")
    play.acknowledges()

    assert play.approves("a", turn="T1") == refused(Reason.LATE)
    assert play.approves("a", turn="T9") == refused(Reason.NO_ACTIVE_TURN)

    play.opens("T2", gated("a"))
    assert play.approves("a", turn="T1") == refused(Reason.LATE)
    assert play.approves("b", turn="T2") == refused(Reason.UNKNOWN_INVOCATION)

    assert play.owed == []
    assert "TOOL_APPROVED a" not in play.names


def test_guarantee_12_denied_never_has_execution_facts() -> None:
    """Denied by a decision, by its deadline or by an interrupt: no execution fact, ever."""
    play = Script()
    play.opens("T1", gated("a"), gated("b", timeout=1.0), gated("c"))
    play.denies("a")
    play.at(10.0).ticks()
    play.interrupts()
    for invocation in ("a", "b", "c"):
        play.claims(invocation)
        play.reports(invocation)
        play.fails(invocation)

    causes = [
        (fact.invocation_id, fact.cause) for fact in play.journal if isinstance(fact, ToolDenied)
    ]
    assert causes == [("a", "decision"), ("b", "expiry"), ("c", "interrupt")]
    assert not [name for name in play.names if "EXECUTION" in name]


def test_guarantee_13_the_guard_is_bounded() -> None:
    """A long life remembers no more than its bound says: the state does not grow with its turns."""
    play = Script(limits=Limits(remembered=10))
    for number in range(200):
        play.opens(f"T{number}", "a")
        play.claims("a")
        play.reports("a")
        play.acknowledges()

    remembered = [
        number for number in range(200) if play.interrupts(turn=f"T{number}").reason is Reason.LATE
    ]

    assert remembered == [195, 196, 197, 198, 199]


def test_guarantee_14_consumers_can_render_the_family_alone() -> None:
    """Every invocation that ended has one terminal fact of the family, with a payload to show."""
    play = Script()
    play.opens("T1", gated("a"), "b", "c")
    play.denies("a", "no")
    play.claims("b")
    play.fails("b", "boom")
    play.claims("c")
    play.loses("c")
    play.resolves("c", None)

    ends = Counter(
        fact.invocation_id
        for fact in play.journal
        if isinstance(fact, LIFECYCLE_FAMILY) and fact.type in TERMINAL
    )
    assert ends == {"a": 1, "b": 1, "c": 1}
    assert play.last(ToolDenied).reason == "no"
    assert play.last(ToolExecutionFailed).error == "boom"
