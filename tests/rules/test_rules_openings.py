"""K-20 and K-21: ids mean something only within their turn, and which turn may be opened."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from turnlock import Limits, ProviderCall, Reason, identify_calls
from turnlock.models.facts import TurnOpened

from ..outcome import Outcome, gated, happens, refused
from ..script import Script


def after_two_turns() -> Script:
    """T1 held `a` and is closed; T2 holds `a` and `b`, both started."""
    play = Script()
    play.opens("T1", "a")
    play.rejects("a")
    play.opens("T2", "a", "b")
    play.claims("a")
    play.claims("b")
    return play


# ------------------------------------------------------------------------------------------- K-20

WITHOUT_TURN: dict[str, Callable[[Script, str], Outcome]] = {
    "report": lambda play, name: play.reports(name, turn=None),
    "reject": lambda play, name: play.rejects(name, turn=None),
    "lose": lambda play, name: play.loses(name, turn=None),
}


@pytest.mark.parametrize("kind", WITHOUT_TURN)
def test_k_20_an_id_of_two_turns_is_ambiguous_without_one(kind: str) -> None:
    """The safe answer; the sender repeats with the turn, and it is another matter."""
    play = after_two_turns()

    assert WITHOUT_TURN[kind](play, "a") == refused(Reason.AMBIGUOUS_INVOCATION)
    assert WITHOUT_TURN[kind](play, "b").reason is not Reason.AMBIGUOUS_INVOCATION

    assert play.reports("a", turn="T2").facts[0] == "TOOL_EXECUTION_SUCCEEDED a"


def test_k_20_an_id_is_ambiguous_only_while_the_earlier_turn_is_remembered() -> None:
    """Afterwards the active turn is the only one that can be meant."""
    play = Script(limits=Limits(remember_for=10.0))
    play.at(0.0).opens("T1", "a")
    play.at(0.0).rejects("a")
    play.opens("T2", "a")
    play.claims("a")

    assert play.at(10.0).reports("a", turn=None) == refused(Reason.AMBIGUOUS_INVOCATION)
    assert play.at(10.5).reports("a", turn=None) == happens(
        "TOOL_EXECUTION_SUCCEEDED a", "TURN_SETTLED T2"
    ).asking("continue T2")


def test_k_20_a_reused_id_is_a_new_invocation() -> None:
    """What became of it in T1 says nothing about it in T2."""
    play = Script()
    play.opens("T1", gated("a"))
    play.denies("a")

    assert play.opens("T2", gated("a"), "b") == happens(
        "TURN_OPENED T2", "TOOL_APPROVAL_REQUESTED a"
    ).asking("execute b 1")
    assert play.approves("a") == happens("TOOL_APPROVED a").asking("execute a 1")


def provider(call_id: str | None) -> ProviderCall:
    return ProviderCall(call_id=call_id, tool_name="ls", arguments={}, requires_approval=False)


def test_k_20_ids_are_made_unique_and_the_providers_are_kept() -> None:
    """None, empty, repeated, and clashing with one that was made: all unique, all correlated."""
    sent = [None, "x", "x", "", "x~2", "x", None]
    calls = identify_calls(map(provider, sent))

    assert len({it.invocation_id for it in calls}) == len(sent)
    assert [it.provider_call_id for it in calls] == sent
    assert [calls[1].invocation_id, calls[4].invocation_id] == ["x", "x~2"]
    assert Script().opens("T1", *calls).reason is None


def test_k_20_ids_are_made_alike_when_a_response_comes_twice() -> None:
    """The same response gives the same ids; ids of earlier turns can be avoided."""
    sent = [None, "x", "x"]

    assert identify_calls(map(provider, sent)) == identify_calls(map(provider, sent))
    used = {it.invocation_id for it in identify_calls(map(provider, sent))}
    assert used.isdisjoint(
        it.invocation_id for it in identify_calls(map(provider, sent), used=used)
    )


# ------------------------------------------------------------------------------------------- K-21


def test_k_21_the_active_turn_opened_again() -> None:
    """Delivered twice: turn_open, before anything else is looked at."""
    play = Script()
    play.opens("T1", "a")

    assert play.opens("T1", "a") == refused(Reason.TURN_OPEN)
    assert play.opens("T1", epoch=99) == refused(Reason.TURN_OPEN)


def test_k_21_another_turn_is_active() -> None:
    """Busy comes before reused, and before everything that is wrong with the new turn."""
    play = after_two_turns()

    assert play.opens("T3", "x") == refused(Reason.TURN_BUSY)
    assert play.opens("T1", "x") == refused(Reason.TURN_BUSY)
    assert play.opens("T3", "x", "x", epoch=99) == refused(Reason.TURN_BUSY)


def closed_and_taken(play: Script) -> None:
    play.opens("T1", "a")
    play.rejects("a")
    play.acknowledges()


def test_k_21_a_turn_remembered_as_closed() -> None:
    """Settled or interrupted, taken or not."""
    play = Script()
    closed_and_taken(play)
    assert play.opens("T1", "b") == refused(Reason.TURN_REUSED)

    play.opens("T2", "b")
    play.interrupts()
    assert play.opens("T2", "b") == refused(Reason.TURN_REUSED)


def test_k_21_a_turn_whose_continuation_is_owed() -> None:
    """Forgotten long ago, but nobody has taken its continuation: not to be opened again."""
    play = Script(limits=Limits(remembered=0))
    play.opens("T1", "a")
    play.rejects("a")

    assert play.at(1e6).opens("T1", "a") == refused(Reason.TURN_REUSED)

    play.acknowledges("T1")
    assert play.opens("T1", "a") == happens("TURN_OPENED T1").asking("execute a 1")


def test_k_21_reused_comes_before_the_epoch() -> None:
    """And before what is wrong with its calls."""
    play = Script()
    closed_and_taken(play)

    assert play.opens("T1", "b", "b", epoch=1) == refused(Reason.TURN_REUSED)
    assert play.opens("T1") == refused(Reason.TURN_REUSED)


def test_k_21_epochs_count_opened_turns_from_one() -> None:
    """The next one or none; a refused opening counts nothing."""
    play = Script()

    for epoch in (0, 2, -1):
        assert play.opens("T1", "a", epoch=epoch) == refused(Reason.STALE_EPOCH)
    assert play.opens("T1", "a", epoch=1).reason is None
    play.rejects("a")
    assert play.opens("T2", "a", epoch=1) == refused(Reason.STALE_EPOCH)
    assert play.opens("T2", "a").reason is None
    assert play.last(TurnOpened).epoch == 2
    play.interrupts()
    assert play.opens("T3", "a", epoch=2) == refused(Reason.STALE_EPOCH)
    assert play.opens("T3", "a", epoch=3).reason is None


def test_k_21_the_rest_of_the_order() -> None:
    """Epoch, then duplicate ids, then empty, then limits: whatever else is wrong comes later."""
    play = Script(limits=Limits(calls=1, continuations=1))

    assert play.opens("T1", "a", "a", epoch=5) == refused(Reason.STALE_EPOCH)
    assert play.opens("T1", epoch=5) == refused(Reason.STALE_EPOCH)
    assert play.opens("T1", "a", "b", epoch=5) == refused(Reason.STALE_EPOCH)
    assert play.opens("T1", "a", "a") == refused(Reason.DUPLICATE_INVOCATION)
    assert play.opens("T1", "a", "b") == refused(Reason.LIMIT_REACHED)
    assert play.opens("T1") == refused(Reason.EMPTY_TURN)

    play.opens("T1", "a")
    play.rejects("a")
    assert play.opens("T2") == refused(Reason.EMPTY_TURN)
    assert play.opens("T2", "a", "a") == refused(Reason.DUPLICATE_INVOCATION)
    assert play.opens("T2", "a") == refused(Reason.LIMIT_REACHED)


def test_k_21_duplicate_ids_are_refused_wherever_they_stand() -> None:
    """First and last of many, and in an unsealed turn too."""
    play = Script()

    assert play.opens("T1", "a", "b", "c", "a") == refused(Reason.DUPLICATE_INVOCATION)
    assert play.opens("T1", "a", gated("a"), sealed=False) == refused(Reason.DUPLICATE_INVOCATION)


def test_k_21_an_unsealed_turn_may_be_empty() -> None:
    """Its calls are still to come."""
    play = Script()

    assert play.opens("T1", sealed=False) == happens("TURN_OPENED T1")
