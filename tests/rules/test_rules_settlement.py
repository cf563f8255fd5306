"""K-50 to K-52: one door out of a turn, and one continuation."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from turnlock import CallResult, Continue, Reason, Status

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


# ------------------------------------------------------------------------------------------- K-50


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


# ------------------------------------------------------------------------------------------- K-51


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


# ------------------------------------------------------------------------------------------- K-52


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
