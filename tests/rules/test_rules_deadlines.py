"""K-11: what has come due happens first, oldest first, ties in their order."""

from __future__ import annotations

import pytest

from turnlock import Match, Reason, Scope, SealTurn, Tick
from turnlock.models.facts import GrantExpired

from ..outcome import Outcome, gated, happens, refused
from ..script import Script


def test_k_11_what_is_due_happens_before_the_delivery_is_judged() -> None:
    """An approval that comes after its deadline meets a denied call; that fact stands beside it."""
    play = Script()
    play.opens("T1", gated("a", timeout=5.0), "b")

    assert play.at(6.0).approves("a") == refused(Reason.ALREADY_DECIDED, "TOOL_DENIED a")

    assert play.journal[-1].at == 6.0


def test_k_11_facts_of_deadlines_stand_first_in_an_accepted_receipt() -> None:
    """Then come those of the delivery; effects are of both."""
    play = Script()
    play.opens("T1", gated("a", timeout=5.0), gated("b"))

    assert play.at(6.0).approves("b") == happens("TOOL_DENIED a", "TOOL_APPROVED b").asking(
        "execute b 1"
    )


def test_k_11_facts_of_deadlines_have_the_time_of_the_receive() -> None:
    """Not that of the deadline: it was then that anybody knew."""
    play = Script()
    play.opens("T1", "a", gated("b", "rm", timeout=2.0), gated("c"))
    play.approves("c", Scope.SESSION, expires_in=3.0)
    play.claims("a", lease=1.0)

    assert play.at(77.0).ticks() == happens(
        "TOOL_DENIED b", "EXECUTION_IN_DOUBT a", "GRANT_EXPIRED grant/r/1"
    )

    assert {fact.at for fact in play.verdict.facts} == {77.0}


@pytest.mark.parametrize("delivery", [Tick(run_id="another"), SealTurn(turn_id="T9")], ids=repr)
def test_k_11_even_a_foreign_delivery_brings_the_time(delivery: Tick | SealTurn) -> None:
    """What has come due is a fact whatever becomes of the delivery."""
    play = Script()
    play.opens("T1", gated("a", timeout=5.0), "b")

    outcome = play.at(6.0).receives(delivery)

    assert outcome.facts == ("TOOL_DENIED a",)
    assert outcome.reason in {Reason.RUN_MISMATCH, Reason.TURN_MISMATCH}


WAITING = {
    "approval": "TOOL_DENIED a",
    "lease": "EXECUTION_IN_DOUBT l",
    "grant": "GRANT_EXPIRED grant/r/1",
}


def three_deadlines(at: dict[str, float]) -> Script:
    """A turn in which an approval, a lease and a grant have these deadlines, and one call more."""
    play = Script()
    play.step = 0.0
    play.opens("T1", gated("g", "other"), "l", gated("a", timeout=at["approval"]), "open")
    play.approves("g", Scope.SESSION, expires_in=at["grant"])
    play.claims("l", lease=at["lease"])
    return play


@pytest.mark.parametrize(
    "order",
    [
        ("approval", "lease", "grant"),
        ("approval", "grant", "lease"),
        ("lease", "approval", "grant"),
        ("lease", "grant", "approval"),
        ("grant", "approval", "lease"),
        ("grant", "lease", "approval"),
    ],
    ids="-".join,
)
def test_k_11_the_oldest_deadline_comes_first(order: tuple[str, str, str]) -> None:
    """Whatever its kind."""
    play = three_deadlines({kind: 10.0 + place for place, kind in enumerate(order)})

    assert play.at(20.0).ticks() == happens(*(WAITING[kind] for kind in order))


def test_k_11_ties_in_the_order_approval_lease_grant() -> None:
    """All three over at once."""
    play = three_deadlines({"approval": 10.0, "lease": 10.0, "grant": 10.0})

    assert play.at(10.0).ticks() == happens()
    assert play.at(10.5).ticks() == happens(*WAITING.values())


@pytest.mark.parametrize("later", WAITING)
def test_k_11_ties_of_two(later: str) -> None:
    """Each pair of kinds tied, the third long after."""
    play = three_deadlines({**dict.fromkeys(WAITING, 10.0), later: 99.0})

    assert play.at(11.0).ticks() == happens(*(WAITING[kind] for kind in WAITING if kind != later))
    assert play.at(100.0).ticks() == happens(WAITING[later])


def interrupted_with(lease: float, grant: float, grace: float) -> Outcome:
    """What a late tick brings to an interrupted turn with these deadlines."""
    play = Script()
    play.step = 0.0
    play.opens("T1", gated("g"), "l", "m")
    play.approves("g", Scope.SESSION, expires_in=grant)
    play.claims("l", lease=lease)
    play.claims("m", lease=lease)
    play.interrupts(grace=grace)
    return play.at(20.0).ticks()


LEASES = ("EXECUTION_IN_DOUBT l", "EXECUTION_IN_DOUBT m")
GRANT = ("GRANT_EXPIRED grant/r/1",)
GRACE = ("TOOL_EXECUTION_FAILED l", "TOOL_EXECUTION_FAILED m", "TURN_INTERRUPTED T1")


def test_k_11_ties_in_the_order_lease_grant_grace() -> None:
    """All three over at once: the grace comes last, and finds two in doubt."""
    assert interrupted_with(10.0, 10.0, 10.0) == happens(*LEASES, *GRANT, *GRACE)


def test_k_11_ties_with_the_grace_and_one_other() -> None:
    """Lease before grace, grant before grace."""
    assert interrupted_with(10.0, 5.0, 10.0) == happens(*GRANT, *LEASES, *GRACE)
    assert interrupted_with(5.0, 10.0, 10.0) == happens(*LEASES, *GRANT, *GRACE)


def test_k_11_an_older_grace_comes_before_a_younger_lease_or_grant() -> None:
    """And ends the leases, which therefore never run out; the grant outlives the turn."""
    assert interrupted_with(12.0, 12.0, 10.0) == happens(*GRACE, *GRANT)


def test_k_11_ties_of_one_kind_in_expected_order() -> None:
    """Whatever the order of claims; approvals, too, in the order of the calls."""
    play = Script()
    play.step = 0.0
    play.opens("T1", "c", gated("z", timeout=9.0), "a", gated("y", timeout=9.0), "b", "open")
    for invocation in ("a", "b", "c"):
        play.claims(invocation, lease=9.0)

    assert play.at(10.0).ticks() == happens(
        "TOOL_DENIED z",
        "TOOL_DENIED y",
        "EXECUTION_IN_DOUBT c",
        "EXECUTION_IN_DOUBT a",
        "EXECUTION_IN_DOUBT b",
    )


def test_k_11_ties_of_grants_in_the_order_of_their_issue() -> None:
    """Not of their ids as text: grant/r/10 comes after grant/r/9."""
    play = Script()
    play.step = 0.0
    names = [f"i{number}" for number in range(11)]
    play.opens("T1", *(gated(name, n=number) for number, name in enumerate(names)), "open")
    for name in names:
        play.approves(name, Scope.SESSION, Match.EXACT, expires_in=5.0)

    assert play.at(6.0).ticks() == happens(
        *(f"GRANT_EXPIRED grant/r/{number}" for number in range(1, 12))
    )


def test_k_11_what_is_due_is_looked_up_again_after_each() -> None:
    """The last denial settles the turn, and its grant, as overdue, ends with it without a fact."""
    play = Script()
    play.step = 0.0
    play.opens("T1", gated("a", timeout=10.0), gated("b", n=1))
    play.approves("b", Scope.TURN, expires_in=10.0)
    play.rejects("b")

    assert play.at(20.0).ticks() == happens("TOOL_DENIED a", "TURN_SETTLED T1").asking(
        "continue T1"
    )


def test_k_11_a_grant_that_outlives_its_turn_expires_outside_of_it() -> None:
    """The turn settles by an earlier deadline of the same receive: turn_id is null by then."""
    play = Script()
    play.step = 0.0
    play.opens("T1", gated("a", timeout=10.0), gated("b", n=1))
    play.approves("b", Scope.SESSION, expires_in=15.0)
    play.rejects("b")

    assert play.at(20.0).ticks() == happens(
        "TOOL_DENIED a", "TURN_SETTLED T1", "GRANT_EXPIRED grant/r/1"
    ).asking("continue T1")
    assert play.last(GrantExpired).turn_id is None


def test_k_11_a_deadline_that_comes_due_once_never_comes_again() -> None:
    """One tick tells it, the next has nothing to tell."""
    play = three_deadlines({"approval": 10.0, "lease": 10.0, "grant": 10.0})

    assert play.at(11.0).ticks() == happens(*WAITING.values())
    assert play.at(11.0).ticks() == happens()
    assert play.at(1e9).ticks() == happens()


def with_an_early_deadline() -> Script:
    """A session grant that expires at 5 s, so that what is stale behind it stays unseen till then.

    The turn that issued it is over.
    """
    play = Script()
    play.step = 0.0
    play.opens("T0", gated("g", "other"))
    play.approves("g", Scope.SESSION, expires_in=5.0)
    play.interrupts()
    return play


EARLY = "GRANT_EXPIRED grant/r/1"


def test_k_11_an_approval_deadline_that_was_met_is_not_mistaken_for_a_lease() -> None:
    """Both at one instant, of one invocation: what is over is the lease alone."""
    play = with_an_early_deadline()
    play.opens("T1", gated("a", timeout=10.0), "open")
    play.approves("a")
    play.claims("a", lease=10.0)

    assert play.at(11.0).ticks() == happens(EARLY, "EXECUTION_IN_DOUBT a")


def test_k_11_a_deadline_that_was_met_never_comes() -> None:
    """Approved in time, reported in time, revoked in time, closed in time."""
    play = with_an_early_deadline()
    play.opens("T1", gated("a", timeout=10.0), gated("b", n=1), "c", gated("d", "rm", timeout=10.0))
    play.approves("a")
    play.approves("b", Scope.SESSION, expires_in=10.0)
    play.revokes("grant/r/2")
    play.claims("c", lease=10.0)
    play.reports("c")
    play.denies("d")
    play.claims("a")

    assert play.at(11.0).ticks() == happens(EARLY)
    assert play.at(1e9).ticks() == happens()


def test_k_11_deadlines_of_a_closed_turn_are_not_those_of_the_next() -> None:
    """Same place in the order, same instant, another kind, another turn."""
    play = with_an_early_deadline()
    play.opens("T1", gated("a", timeout=10.0), "b", gated("c", timeout=10.0), "d")
    play.claims("b", lease=10.0)
    play.claims("d", lease=10.0)
    play.interrupts(grace=10.0)
    play.reports("b")
    play.reports("d")

    play.opens("T2", "a", gated("b", timeout=10.0), "c")
    play.claims("a", lease=10.0)
    play.claims("c")
    assert play.at(11.0).ticks() == happens(EARLY, "TOOL_DENIED b", "EXECUTION_IN_DOUBT a")
    assert play.owed == []


def test_k_11_a_lease_taken_twice_until_one_instant_runs_out_once() -> None:
    """Lost, retried and claimed again: the second doubt is not the first one's deadline."""
    play = with_an_early_deadline()
    play.opens("T1", "a", "open")
    play.claims("a", lease=10.0)
    play.loses("a")
    play.retries("a")
    play.claims("a", 2, lease=10.0)

    assert play.at(11.0).ticks() == happens(EARLY, "EXECUTION_IN_DOUBT a")
    assert play.at(12.0).retries("a", 2) == happens("RETRY_AUTHORISED a").asking("execute a 3")


def test_k_11_what_is_due_does_not_depend_on_how_much_was_renewed() -> None:
    """Hundreds of leases come and go behind an early deadline: the same things happen."""
    play = with_an_early_deadline()
    play.opens("T1", gated("a", timeout=20.0), "b", gated("c", "rm", timeout=30.0))
    play.approves("a")
    play.claims("a")
    play.claims("b", lease=25.0)
    for number in range(500):
        play.renews("b", 40.0 + number)
    play.renews("b", 25.0)

    assert play.at(29.0).ticks() == happens(EARLY, "EXECUTION_IN_DOUBT b")
    assert play.at(1e6).ticks() == happens("TOOL_DENIED c")
    assert play.at(1e9).ticks() == happens()
