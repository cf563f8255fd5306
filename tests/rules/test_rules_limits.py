"""K-56 and K-57: what is limited, and what waits for ever."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from turnlock import Limits, Match, Reason, Scope
from turnlock.models.facts import ToolApprovalRequested

from ..outcome import Outcome, call, gated, happens, refused
from ..script import Script

# ------------------------------------------------------------------------------------------- K-56


@pytest.mark.parametrize("limit", [1, 3])
def test_k_56_calls_of_one_turn_when_it_is_opened(limit: int) -> None:
    """The limit itself is allowed, one more is not."""
    names = [f"i{number}" for number in range(limit + 1)]
    play = Script(limits=Limits(calls=limit))

    assert play.opens("T1", *names) == refused(Reason.LIMIT_REACHED)
    assert play.opens("T1", *names, sealed=False) == refused(Reason.LIMIT_REACHED)
    assert play.opens("T1", *names[:limit]).reason is None


def test_k_56_calls_of_one_turn_as_they_stream_in() -> None:
    """Terminal ones count too; the duplicate is found first, the limit is checked last."""
    play = Script(limits=Limits(calls=2))
    play.opens("T1", "a", sealed=False)
    assert play.adds("b").reason is None
    play.rejects("a")

    assert play.adds("c") == refused(Reason.LIMIT_REACHED)
    assert play.adds("a") == refused(Reason.DUPLICATE_INVOCATION)
    play.seals()
    assert play.adds("c") == refused(Reason.TURN_SEALED)


def test_k_56_ten_thousand_calls_by_default() -> None:
    """10,000 open a turn, 10,001 do not, and none can be added."""
    calls = [call(f"i{number}") for number in range(10_001)]
    play = Script()

    assert play.opens("T1", *calls) == refused(Reason.LIMIT_REACHED)
    assert play.opens("T1", *calls[:10_000], sealed=False).reason is None
    assert play.adds("more") == refused(Reason.LIMIT_REACHED)


def test_k_56_grants_in_force() -> None:
    """The limit itself is allowed; beyond it the decision is refused, wholly."""
    play = Script(limits=Limits(grants=2))
    play.opens("T1", *(gated(f"i{number}", n=number) for number in range(4)))
    assert play.approves("i0", Scope.SESSION).reason is None
    assert play.approves("i1", Scope.TURN).reason is None

    assert play.approves("i2", Scope.SESSION) == refused(Reason.LIMIT_REACHED)
    assert play.approves("i2", Scope.TURN, Match.TOOL) == refused(Reason.LIMIT_REACHED)
    assert play.approves("i2") == happens("TOOL_APPROVED i2").asking("execute i2 1")

    assert play.revokes("grant/r/1").reason is None
    assert play.approves("i3", Scope.SESSION).facts[1] == "GRANT_ISSUED grant/r/3"


def test_k_56_a_grant_makes_room_by_expiring_or_with_its_turn() -> None:
    """Those that ended do not count; not even one that ends in the same receive."""
    play = Script(limits=Limits(grants=1))
    play.opens("T1", gated("a"), gated("b", n=1))
    play.at(1.0).approves("a", Scope.SESSION, expires_in=10.0)
    assert play.at(11.0).approves("b", Scope.TURN) == refused(Reason.LIMIT_REACHED)
    assert play.at(11.5).approves("b", Scope.TURN) == happens(
        "GRANT_EXPIRED grant/r/1", "TOOL_APPROVED b", "GRANT_ISSUED grant/r/2"
    ).asking("execute b 1")

    play.interrupts()
    play.opens("T2", gated("c"))
    assert play.approves("c", Scope.TURN).facts[1] == "GRANT_ISSUED grant/r/3"


def test_k_56_the_grants_are_checked_last() -> None:
    """After the digest, and after whatever the table says."""
    play = Script(limits=Limits(grants=0))
    play.opens("T1", gated("a"), gated("b", n=1), "free")
    play.approves("b")

    assert play.approves("a", Scope.TURN, digest="00") == refused(Reason.ARGUMENTS_MISMATCH)
    assert play.approves("b", Scope.TURN) == refused(Reason.ALREADY_DECIDED)
    assert play.approves("free", Scope.TURN) == refused(Reason.NOT_AWAITING_APPROVAL)
    assert play.approves("a", Scope.TURN, digest=digest_of(play)) == refused(Reason.LIMIT_REACHED)


def digest_of(play: Script) -> str:
    """The digest that was shown first."""
    shown = [it for it in play.journal if isinstance(it, ToolApprovalRequested)]
    return shown[0].arguments_digest


def test_k_56_a_thousand_grants_by_default() -> None:
    """1,000 are issued, the next is not."""
    play = Script()
    play.opens("T1", *(gated(f"i{number}", n=number) for number in range(1_001)))
    issued = [play.approves(f"i{number}", Scope.SESSION).reason for number in range(1_001)]

    assert issued == [*[None] * 1_000, Reason.LIMIT_REACHED]


def test_k_56_continuations_owed_are_checked_when_a_turn_is_opened() -> None:
    """Settling cannot be refused: at the limit no turn opens until one is taken."""
    play = Script(limits=Limits(continuations=2))
    for turn in ("T1", "T2"):
        assert play.opens(turn, "a").reason is None
        assert play.rejects("a").asks == (f"continue {turn}",)

    assert play.opens("T3", "a") == refused(Reason.LIMIT_REACHED)
    assert play.opens("T3", sealed=False) == refused(Reason.LIMIT_REACHED)
    play.acknowledges("T1")
    assert play.opens("T3", "a").reason is None


def test_k_56_a_thousand_continuations_by_default() -> None:
    """1,000 are owed, and then no turn opens."""
    play = Script()
    for number in range(1_000):
        assert play.opens(f"T{number}", "a").reason is None
        play.rejects("a")

    assert len(play.owed) == 1_000
    assert play.opens("T1000", "a") == refused(Reason.LIMIT_REACHED)


def test_k_56_limits_of_none_at_all() -> None:
    """A bound of zero is a bound: no calls, no grants, no turns that could settle."""
    none = Script(limits=Limits(continuations=0))
    assert none.opens("T1", "a") == refused(Reason.LIMIT_REACHED)

    empty = Script(limits=Limits(calls=0))
    assert empty.opens("T1", "a") == refused(Reason.LIMIT_REACHED)
    assert empty.opens("T1", sealed=False) == happens("TURN_OPENED T1")
    assert empty.adds("a") == refused(Reason.LIMIT_REACHED)


# ------------------------------------------------------------------------------------------- K-57

WAITING: dict[str, list[Callable[[Script], Outcome]]] = {
    "a gated call": [lambda play: play.opens("T1", gated("a"))],
    "an approved call": [
        lambda play: play.opens("T1", gated("a")),
        lambda play: play.approves("a"),
    ],
    "a ready call": [lambda play: play.opens("T1", "a")],
    "a free call with a timeout": [lambda play: play.opens("T1", call("a", timeout=1.0))],
    "a started call": [lambda play: play.opens("T1", "a"), lambda play: play.claims("a")],
    "a call in doubt": [
        lambda play: play.opens("T1", "a"),
        lambda play: play.claims("a", lease=5.0),
        lambda play: play.loses("a"),
    ],
    "an authorised retry": [
        lambda play: play.opens("T1", "a"),
        lambda play: play.claims("a"),
        lambda play: play.loses("a"),
        lambda play: play.retries("a"),
    ],
    "an unsealed turn": [lambda play: play.opens("T1", sealed=False)],
    "a continuation": [lambda play: play.opens("T1", "a"), lambda play: play.rejects("a")],
    "a grant": [
        lambda play: play.opens("T1", gated("a"), "b"),
        lambda play: play.approves("a", Scope.SESSION),
    ],
}


@pytest.mark.parametrize("what", WAITING)
def test_k_57_the_kernel_invents_no_deadline(what: str) -> None:
    """What nobody bounded waits for ever: nothing happens, nobody is woken, all is still owed."""
    play = Script()
    for line in WAITING[what]:
        assert line(play).reason is None
    owed = play.owed

    assert play.wake is None
    assert play.at(1e15).ticks() == happens()
    assert play.owed == owed


def test_k_57_the_fields_that_bound_a_wait() -> None:
    """approval_timeout a gated call, lease a started one; with them somebody is woken."""
    play = Script()
    play.at(0.0).opens("T1", gated("a", timeout=30.0), "b")
    assert play.wake == math.nextafter(30.0, math.inf)

    play.at(0.0).claims("b", lease=20.0)
    assert play.wake == math.nextafter(20.0, math.inf)


def test_k_57_the_approval_timeout_counts_from_when_the_call_was_asked_for() -> None:
    """From the opening, or from the adding; the deadline stands in the fact."""
    play = Script()
    play.at(10.0).opens("T1", gated("a", timeout=5.0), sealed=False)
    play.at(12.0).adds(gated("b", n=1, timeout=5.0))

    asked = [it.deadline for it in play.journal if isinstance(it, ToolApprovalRequested)]
    assert asked == [15.0, 17.0]
    assert play.at(15.0).ticks() == happens()
    assert play.at(17.0).ticks() == happens("TOOL_DENIED a")
    assert play.at(17.5).ticks() == happens("TOOL_DENIED b")
