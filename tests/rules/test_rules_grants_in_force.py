"""K-41 and K-42: what a grant covers, in which order, and what ends it."""

from __future__ import annotations

import pytest

from turnlock import Decide, InvalidValue, Match, Reason, Scope
from turnlock.models.facts import GrantRevoked, ToolApproved

from ..outcome import call, gated, happens, refused
from ..script import Script

# ------------------------------------------------------------------------------------------- K-41


def test_k_41_a_covered_call_is_approved_at_once_and_names_the_grant() -> None:
    """Without TOOL_APPROVAL_REQUESTED, ready to be executed, approved once by that grant."""
    play = Script()
    play.opens("T1", gated("a"))
    play.approves("a", Scope.SESSION)
    play.interrupts()

    assert play.opens("T2", gated("b"), gated("c", n=9), "free") == happens(
        "TURN_OPENED T2", "TOOL_APPROVED b", "TOOL_APPROVAL_REQUESTED c"
    ).asking("execute b 1", "execute free 1")

    approved = play.last(ToolApproved)
    assert (approved.grant_id, approved.scope, approved.match) == ("grant/r/1", Scope.ONCE, None)


def test_k_41_the_oldest_grant_in_force_is_named() -> None:
    """Of two that cover it; once the older is gone, the other."""
    play = Script()
    play.opens("T1", gated("a", n=1), gated("b", n=2))
    play.approves("a", Scope.SESSION, Match.EXACT)
    play.approves("b", Scope.SESSION, Match.TOOL)
    play.interrupts()

    play.opens("T2", gated("c", n=1), sealed=False)
    assert play.last(ToolApproved).grant_id == "grant/r/1"

    play.revokes("grant/r/1")
    play.adds(gated("d", n=1))
    assert play.last(ToolApproved).grant_id == "grant/r/2"


def test_k_41_of_two_grants_for_the_same_arguments_the_oldest_is_named() -> None:
    """The second came about by an edit: its arguments are those of the first."""
    play = Script()
    play.opens("T1", gated("a", n=1), gated("b", n=2))
    play.approves("a", Scope.SESSION)
    play.approves("b", Scope.SESSION, arguments={"n": 1})
    play.interrupts()

    play.opens("T2", gated("c", n=1), sealed=False)
    assert play.last(ToolApproved).grant_id == "grant/r/1"
    play.revokes("grant/r/1")
    play.adds(gated("d", n=1))
    assert play.last(ToolApproved).grant_id == "grant/r/2"


def test_k_41_issuing_approves_the_pending_in_expected_order() -> None:
    """Those that it covers and that still wait: not the denied, not the free, not the settled."""
    play = Script()
    play.opens("T1", gated("z"), gated("d"), gated("m"), "free", gated("a"), gated("r"))
    play.denies("d")
    play.rejects("r")

    assert play.approves("m", Scope.TURN) == happens(
        "TOOL_APPROVED m", "GRANT_ISSUED grant/r/1", "TOOL_APPROVED z", "TOOL_APPROVED a"
    ).asking("execute z 1", "execute m 1", "execute a 1")


def test_k_41_an_approval_by_grant_counts_as_once() -> None:
    """The same decision again is a duplicate, a wider one is another."""
    play = Script()
    play.opens("T1", gated("a"), gated("b"))
    play.approves("a", Scope.SESSION)

    assert play.approves("b") == refused(Reason.DUPLICATE)
    assert play.approves("b", Scope.SESSION) == refused(Reason.ALREADY_DECIDED)
    assert play.denies("b") == refused(Reason.ALREADY_DECIDED)


def test_k_41_an_approved_call_has_no_approval_deadline_left() -> None:
    """Decided by a person, by a grant issued, or by one in force: the timeout means nothing."""
    play = Script()
    play.opens("T1", gated("a", timeout=5.0), gated("b", timeout=5.0), sealed=False)
    play.approves("a", Scope.TURN)
    play.adds(gated("c", timeout=5.0))

    assert play.wake is None
    assert play.at(1e6).ticks() == happens()


# ------------------------------------------------------------------------------------------- K-42


@pytest.mark.parametrize("scope", [Scope.TURN, Scope.SESSION])
def test_k_42_a_deny_is_always_once(scope: Scope) -> None:
    """A scope on it is refused at construction; once is none."""
    with pytest.raises(InvalidValue):
        Decide(turn_id="T1", invocation_id="a", approved=False, scope=scope)

    assert not Decide(turn_id="T1", invocation_id="a", approved=False, scope=Scope.ONCE).approved


def test_k_42_a_turns_grant_ends_with_the_turn_without_a_fact() -> None:
    """Settled or interrupted; the closing says it."""
    for end in ("settled", "interrupted"):
        play = Script()
        play.opens("T1", gated("a"))
        play.approves("a", Scope.TURN, expires_in=50.0)
        if end == "settled":
            assert play.rejects("a").facts == ("TOOL_EXECUTION_FAILED a", "TURN_SETTLED T1")
        else:
            play.interrupts()

        assert play.revokes("grant/r/1") == refused(Reason.UNKNOWN_GRANT)
        assert play.wake is None
        assert play.at(1e6).ticks() == happens()


def test_k_42_a_turns_grant_lasts_while_the_turn_is_interrupting() -> None:
    """It ends with the closing, not with the interrupt: until then it can be revoked."""
    play = Script()
    play.opens("T1", gated("a"), "b")
    play.claims("b")
    play.approves("a", Scope.TURN)
    play.interrupts()

    assert play.revokes("grant/r/1") == happens("GRANT_REVOKED grant/r/1")


def test_k_42_a_session_grant_outlives_turns_denials_and_interrupts() -> None:
    """Nothing ends it but its expiry and revoke."""
    play = Script()
    play.opens("T1", gated("a"))
    play.approves("a", Scope.SESSION)
    play.interrupts()
    play.opens("T2", gated("b", "rm"), gated("c"))
    play.denies("b")
    play.claims("c")
    play.fails("c")
    play.acknowledges()

    assert play.at(1e9).opens("T3", gated("d")).facts[1] == "TOOL_APPROVED d"


def test_k_42_expiry_is_a_fact() -> None:
    """GRANT_EXPIRED, once, even between turns."""
    play = Script()
    play.opens("T1", gated("a"))
    play.at(1.0).approves("a", Scope.SESSION, expires_in=10.0)
    play.interrupts()

    assert play.at(20.0).ticks() == happens("GRANT_EXPIRED grant/r/1")
    assert play.revokes("grant/r/1") == refused(Reason.UNKNOWN_GRANT)


def test_k_42_revoking_takes_back_no_approval() -> None:
    """What was approved may start; what comes later is asked for. Interrupt takes back."""
    play = Script()
    play.opens("T1", gated("a"), gated("b"), gated("c", n=3), sealed=False)
    play.approves("a", Scope.TURN)

    assert play.revokes("grant/r/1") == happens("GRANT_REVOKED grant/r/1")
    assert play.last(GrantRevoked).turn_id == "T1"
    assert play.owed == ["execute a 1", "execute b 1"]
    assert play.claims("b") == happens("TOOL_EXECUTION_STARTED b")
    assert play.adds(gated("d")) == happens("CALL_ADDED d", "TOOL_APPROVAL_REQUESTED d")

    assert "TOOL_DENIED a" in play.interrupts().facts
    assert play.claims("a") == refused(Reason.ALREADY_SETTLED)


def test_k_42_revoking_outside_of_a_turn() -> None:
    """The fact has no turn then."""
    play = Script()
    play.opens("T1", gated("a"), call("b"))
    play.approves("a", Scope.SESSION)
    play.interrupts()

    assert play.revokes("grant/r/1") == happens("GRANT_REVOKED grant/r/1")
    assert play.last(GrantRevoked).turn_id is None
