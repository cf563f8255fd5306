"""K-20 to K-22: ids mean something only within their turn, and which turn a delivery may touch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from turnlock import Limits, ProviderCall, Reason, Scope, identify_calls
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


# ------------------------------------------------------------------------------------------ K-20

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
    assert used.isdisjoint(it.invocation_id for it in identify_calls(map(provider, sent), used=used))


# ------------------------------------------------------------------------------------------ K-21


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


# ------------------------------------------------------------------------------------------ K-22

ON_A_TURN: dict[str, Callable[[Script, str], Outcome]] = {
    "add_call": lambda play, turn: play.adds("x", turn=turn),
    "seal_turn": lambda play, turn: play.seals(turn=turn),
    "interrupt": lambda play, turn: play.interrupts(turn=turn),
}


@pytest.mark.parametrize("kind", ON_A_TURN)
def test_k_22_which_turn_is_meant(kind: str) -> None:
    """Remembered as closed: late. None active: no_active_turn. Otherwise: turn_mismatch."""
    play = Script()
    assert ON_A_TURN[kind](play, "T1") == refused(Reason.NO_ACTIVE_TURN)

    closed_and_taken(play)
    assert ON_A_TURN[kind](play, "T1") == refused(Reason.LATE)
    assert ON_A_TURN[kind](play, "T9") == refused(Reason.NO_ACTIVE_TURN)

    play.opens("T2", "a", sealed=False)
    assert ON_A_TURN[kind](play, "T1") == refused(Reason.LATE)
    assert ON_A_TURN[kind](play, "T9") == refused(Reason.TURN_MISMATCH)
    assert ON_A_TURN[kind](play, "T2").reason is None


def test_k_22_add_call_to_a_sealed_turn() -> None:
    """Even one that it has already: the turn is sealed, whatever the id."""
    play = Script()
    play.opens("T1", "a")

    assert play.adds("b") == refused(Reason.TURN_SEALED)
    assert play.adds("a") == refused(Reason.TURN_SEALED)


def test_k_22_add_call_with_an_id_of_the_turn() -> None:
    """However that one stands by now."""
    play = Script()
    play.opens("T1", "a", sealed=False)

    assert play.adds("a") == refused(Reason.DUPLICATE_INVOCATION)
    play.rejects("a")
    assert play.adds("a") == refused(Reason.DUPLICATE_INVOCATION)
    assert play.adds("b") == happens("CALL_ADDED b").asking("execute b 1")


def test_k_22_a_turn_sealed_twice() -> None:
    """While it runs that is a duplicate, afterwards it is late."""
    play = Script()
    play.opens("T1", "a", sealed=False)
    assert play.seals() == happens("TURN_SEALED T1")

    assert play.seals() == refused(Reason.DUPLICATE)
    play.rejects("a")
    assert play.seals() == refused(Reason.LATE)


def test_k_22_neither_while_interrupting() -> None:
    """A turn that is being stopped takes no calls, and needs no seal."""
    play = Script()
    play.opens("T1", "a", sealed=False)
    play.claims("a")
    play.interrupts()

    assert play.adds("b") == refused(Reason.INTERRUPTING)
    assert play.adds("a") == refused(Reason.INTERRUPTING)
    assert play.seals() == refused(Reason.INTERRUPTING)


def test_k_22_acknowledge_takes_what_was_owed_before() -> None:
    """Owed: accepted once. Never owed, or taken: no_continuation."""
    play = Script()
    assert play.acknowledges("T1") == refused(Reason.NO_CONTINUATION)
    play.opens("T1", "a")
    assert play.acknowledges() == refused(Reason.NO_CONTINUATION)
    play.rejects("a")

    assert play.acknowledges("T9") == refused(Reason.NO_CONTINUATION)
    assert play.acknowledges() == happens("CONTINUATION_TAKEN T1")
    assert play.acknowledges() == refused(Reason.NO_CONTINUATION)


def test_k_22_nobody_can_have_taken_what_this_receive_brings_forth() -> None:
    """The deadline settles the turn, the same receive's acknowledge is too early, the next not."""
    play = Script()
    play.opens("T1", gated("a", timeout=1.0))

    assert play.at(5.0).acknowledges() == refused(
        Reason.NO_CONTINUATION, "TOOL_DENIED a", "TURN_SETTLED T1"
    ).asking("continue T1")

    assert play.owed == ["continue T1"]
    assert play.at(5.0).acknowledges() == happens("CONTINUATION_TAKEN T1")


def test_k_22_an_older_continuation_can_be_taken_while_another_comes_forth() -> None:
    """The rule is about the turn that is acknowledged."""
    play = Script()
    play.opens("T1", "a")
    play.rejects("a")
    play.opens("T2", gated("a", timeout=1.0))

    assert play.at(50.0).acknowledges("T1") == happens(
        "TOOL_DENIED a", "TURN_SETTLED T2", "CONTINUATION_TAKEN T1"
    ).asking("continue T2")


def test_k_22_revoke_wants_a_grant_in_force() -> None:
    """Never issued, revoked, expired, or ended with its turn: unknown."""
    play = Script()
    assert play.revokes("grant/r/1") == refused(Reason.UNKNOWN_GRANT)
    play.opens("T1", gated("a"), gated("b", n=1), gated("c", n=2))

    play.approves("a", Scope.SESSION)
    assert play.revokes("grant/r/1") == happens("GRANT_REVOKED grant/r/1")
    assert play.revokes("grant/r/1") == refused(Reason.UNKNOWN_GRANT)

    play.approves("b", Scope.SESSION, expires_in=1.0)
    assert play.at(50.0).revokes("grant/r/2") == refused(
        Reason.UNKNOWN_GRANT, "GRANT_EXPIRED grant/r/2"
    )

    play.approves("c", Scope.TURN)
    play.interrupts()
    assert play.revokes("grant/r/3") == refused(Reason.UNKNOWN_GRANT)
