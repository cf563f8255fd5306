"""K-40: how far an approval reaches."""

from __future__ import annotations

import math

import pytest

from turnlock import Decide, Match, Reason, Run, Scope
from turnlock.models.facts import GrantIssued, ToolApprovalRequested, ToolApproved

from ..outcome import gated, happens, refused
from ..script import Script

SAME, OTHER_ARGUMENTS, OTHER_TOOL = "same", "other arguments", "other tool"
CALLS = {
    SAME: gated("x", "ls", n=1),
    OTHER_ARGUMENTS: gated("x", "ls", n=2),
    OTHER_TOOL: gated("x", "rm", n=1),
}
COVERED = {
    (Scope.ONCE, Match.EXACT): set[str](),
    (Scope.ONCE, Match.TOOL): set[str](),
    (Scope.TURN, Match.EXACT): {SAME},
    (Scope.TURN, Match.TOOL): {SAME, OTHER_ARGUMENTS},
    (Scope.SESSION, Match.EXACT): {SAME},
    (Scope.SESSION, Match.TOOL): {SAME, OTHER_ARGUMENTS},
}
EVERY = [
    (scope, match, how, how in covered)
    for (scope, match), covered in COVERED.items()
    for how in CALLS
]
every_scope_and_match = pytest.mark.parametrize(("scope", "match", "how", "covered"), EVERY)


# ------------------------------------------------------------------------------------------- K-40


@every_scope_and_match
def test_k_40_what_is_pending_in_the_turn(
    scope: Scope, match: Match, how: str, covered: bool
) -> None:
    """A pending call of the turn is approved with the first if the grant covers it."""
    play = Script()
    play.opens("T1", gated("a", "ls", n=1), CALLS[how])

    facts = play.approves("a", scope, match).facts

    assert ("TOOL_APPROVED x" in facts) is covered
    assert ("GRANT_ISSUED grant/r/1" in facts) is (scope is not Scope.ONCE)


@every_scope_and_match
def test_k_40_what_is_added_to_the_turn_later(
    scope: Scope, match: Match, how: str, covered: bool
) -> None:
    """A call that streams in is approved at once if a grant covers it."""
    play = Script()
    play.opens("T1", gated("a", "ls", n=1), sealed=False)
    play.approves("a", scope, match)

    gate = "TOOL_APPROVED x" if covered else "TOOL_APPROVAL_REQUESTED x"
    assert play.adds(CALLS[how]).facts == ("CALL_ADDED x", gate)


@every_scope_and_match
def test_k_40_what_comes_in_the_next_turn(
    scope: Scope, match: Match, how: str, covered: bool
) -> None:
    """A grant for the turn ended with it; one for the session goes on."""
    play = Script()
    play.opens("T1", gated("a", "ls", n=1))
    play.approves("a", scope, match)
    play.claims("a")
    play.reports("a")

    granted = covered and scope is Scope.SESSION
    gate = "TOOL_APPROVED x" if granted else "TOOL_APPROVAL_REQUESTED x"
    assert play.opens("T2", CALLS[how]).facts == ("TURN_OPENED T2", gate)


@every_scope_and_match
def test_k_40_what_comes_once_it_has_expired(
    scope: Scope, match: Match, how: str, covered: bool
) -> None:
    """At its last instant a grant covers, one float later it does not; once has no expiry."""
    for then, alive in ((10.0, True), (math.nextafter(10.0, math.inf), False)):
        play = Script()
        play.at(0.0).opens("T1", gated("a", "ls", n=1), sealed=False)
        play.at(0.0).approves("a", scope, match, expires_in=10.0)
        facts = play.at(then).adds(CALLS[how]).facts
        gate = "TOOL_APPROVED x" if covered and alive else "TOOL_APPROVAL_REQUESTED x"
        expired = ("GRANT_EXPIRED grant/r/1",) if not alive and scope is not Scope.ONCE else ()
        assert facts == (*expired, "CALL_ADDED x", gate)


@every_scope_and_match
def test_k_40_what_comes_once_it_was_revoked(
    scope: Scope, match: Match, how: str, covered: bool
) -> None:
    """A revoked grant covers nothing more."""
    play = Script()
    play.opens("T1", gated("a", "ls", n=1), sealed=False)
    play.approves("a", scope, match)
    play.revokes("grant/r/1")

    assert play.adds(CALLS[how]).facts == ("CALL_ADDED x", "TOOL_APPROVAL_REQUESTED x")


def test_k_40_match_is_exact_unless_said() -> None:
    """The default reaches no further than what was shown."""
    play = Script()
    play.opens("T1", gated("a", n=1))
    play.approves("a", Scope.SESSION)

    assert play.last(GrantIssued).match is Match.EXACT
    assert Decide(turn_id="T1", invocation_id="a", approved=True).scope is Scope.ONCE


def test_k_40_the_arguments_are_those_that_will_run() -> None:
    """Edited: the grant is for the edited arguments, and not for those that were shown."""
    play = Script()
    play.opens("T1", gated("a", n=1), gated("shown", n=1), gated("edited", n=2))

    assert play.approves("a", Scope.SESSION, arguments={"n": 2}) == happens(
        "TOOL_APPROVED a", "GRANT_ISSUED grant/r/1", "TOOL_APPROVED edited"
    ).asking("execute a 1", "execute edited 1")


def test_k_40_arguments_are_exact_to_the_kind_of_number() -> None:
    """1, 1.0 and true have three digests; the order of keys makes none."""
    play = Script()
    play.opens("T1", gated("a", n=1, m=2), gated("f", n=1.0, m=2), gated("t", n=True, m=2))
    play.approves("a", Scope.SESSION)

    assert "TOOL_APPROVED f" not in play.names
    assert "TOOL_APPROVED t" not in play.names
    play.interrupts()
    assert play.opens("T2", gated("b", m=2, n=1)).facts[1] == "TOOL_APPROVED b"


def test_k_40_grant_ids_count() -> None:
    """Over the whole run, ended ones included."""
    play = Script(Run(run_id="my run"))
    ids: list[str] = []
    for number in (1, 2, 3):
        play.opens(f"T{number}", gated("a", n=number))
        play.approves("a", Scope.TURN)
        ids.append(play.last(GrantIssued).grant_id)
        play.interrupts()

    assert ids == ["grant/my run/1", "grant/my run/2", "grant/my run/3"]


def test_k_40_what_a_grant_says() -> None:
    """Tool, match, digest, scope and expiry; the approval says scope and match, and its reason."""
    play = Script()
    play.opens("T1", gated("a", n=1))
    shown = play.last(ToolApprovalRequested).arguments_digest
    play.at(5.0).approves(
        "a", Scope.SESSION, Match.TOOL, expires_in=10.0, reason="trusted", by="ann"
    )

    grant, approval = play.last(GrantIssued), play.last(ToolApproved)
    assert (grant.tool_name, grant.match, grant.scope) == ("ls", Match.TOOL, Scope.SESSION)
    assert (grant.arguments_digest, grant.expires_at, grant.turn_id) == (shown, 15.0, "T1")
    assert (approval.scope, approval.match) == (Scope.SESSION, Match.TOOL)
    assert (approval.reason, approval.decided_by, approval.grant_id) == ("trusted", "ann", None)


def test_k_40_with_scope_once_match_and_expiry_are_ignored() -> None:
    """No grant, no deadline, no match in the fact; and the same decision again is a duplicate."""
    play = Script()
    play.opens("T1", gated("a"))

    assert play.approves("a", Scope.ONCE, Match.TOOL, expires_in=1.0) == happens(
        "TOOL_APPROVED a"
    ).asking("execute a 1")
    assert play.last(ToolApproved).match is None
    assert play.wake is None
    assert play.approves("a", Scope.ONCE, Match.EXACT, expires_in=9.0) == refused(Reason.DUPLICATE)
