"""K-22: which turn, continuation or grant a delivery may touch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from turnlock import Reason, Scope

from ..outcome import Outcome, gated, happens, refused
from ..script import Script


def closed_and_taken(play: Script) -> None:
    play.opens("T1", "a")
    play.rejects("a")
    play.acknowledges()


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
