"""The kernel's own doors: many deliveries at once, what cannot be received, endless deadlines."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest

from turnlock import (
    Call,
    Claim,
    Decide,
    FactType,
    Interrupt,
    InvalidValue,
    Kernel,
    OpenTurn,
    Reason,
    Refused,
    Renew,
    Report,
    Revoke,
    Run,
    Scope,
    Tick,
    Wake,
)
from turnlock.engine.kernel import state_of
from turnlock.engine.state import GRACE, SLACK
from turnlock.lifecycle.phases import Phase
from turnlock.models.inputs import Input
from turnlock.turn.memory import Memory


def call(name: str) -> Call:
    return Call(invocation_id=name, tool_name="ls", arguments={}, requires_approval=False)


def test_receive_many_is_receive_in_order() -> None:
    deliveries = [
        (OpenTurn(turn_id="T1", calls=(call("a"),)), 0.0),
        (Claim(turn_id="T1", invocation_id="a", attempt=1), 1.0),
        (Tick(), 2.0),
    ]
    one, other = Kernel(Run(run_id="r")), Kernel(Run(run_id="r"))

    assert one.receive_many(deliveries) == [other.receive(*pair) for pair in deliveries]


@pytest.mark.parametrize("bad", [(Tick(), float("nan")), ("tick", 0.0), (Tick(), "now")])
def test_receive_many_loses_no_verdict(bad: Any) -> None:
    """K-9: what cannot be received is told before anything happens."""
    kernel = Kernel(Run(run_id="r"))

    with pytest.raises(InvalidValue):
        kernel.receive_many([(OpenTurn(turn_id="T1", calls=(call("a"),)), 0.0), bad])

    assert kernel.sequence == 0


def test_a_refusal_says_where_it_stands_beside_what_time_brought() -> None:
    """K-11: the lease ran out, so the claim meets a call in doubt; the verdict tells both."""
    kernel = Kernel(Run(run_id="r"))
    kernel.receive(OpenTurn(turn_id="T1", calls=(call("a"),)), 0.0)
    kernel.receive(Claim(turn_id="T1", invocation_id="a", attempt=1, lease=1.0), 0.0)

    refused = kernel.receive(Claim(turn_id="T1", invocation_id="a", attempt=1), 5.0)

    assert isinstance(refused, Refused)
    assert [fact.type for fact in refused.facts] == [FactType.EXECUTION_IN_DOUBT]
    assert (refused.reason, refused.phase, refused.input) == (
        Reason.NOT_AUTHORISED,
        Phase.IN_DOUBT,
        Input.CLAIM,
    )


def test_a_deadline_that_no_time_is_past_is_none() -> None:
    """K-34: nothing is due, and nobody is woken, when no float lies beyond."""
    kernel = Kernel(Run(run_id="r"))
    kernel.receive(OpenTurn(turn_id="T1", calls=(call("a"),)), 0.0)

    verdict = kernel.receive(
        Claim(turn_id="T1", invocation_id="a", attempt=1, lease=sys.float_info.max), 1e300
    )

    assert verdict.accepted
    assert not [effect for effect in verdict.effects if isinstance(effect, Wake)]
    assert kernel.earliest_deadline is None
    assert not kernel.receive(Tick(), sys.float_info.max).facts
    restarted = Kernel.recover(kernel.run, (), snapshot=kernel.snapshot())
    assert restarted.earliest_deadline is None
    assert restarted.pending_effects == kernel.pending_effects


class Sneaky(Call):
    """A call that shows one thing and runs another."""


def test_a_subclass_of_a_call_is_refused() -> None:
    """K-32: a property in the place of a field could answer otherwise each time."""
    sneaky = Sneaky(invocation_id="a", tool_name="pay", arguments={}, requires_approval=True)

    with pytest.raises(InvalidValue, match="is not a Call"):
        OpenTurn(turn_id="T1", calls=(sneaky,))


def test_a_time_that_is_no_float_becomes_one() -> None:
    kernel = Kernel(Run(run_id="r"))

    verdict = kernel.receive(OpenTurn(turn_id="T1", calls=(), sealed=False), 1)

    assert [type(fact.at) for fact in verdict.facts] == [float]


def test_a_time_equal_to_the_latest_facts_is_kept_as_it_was_given() -> None:
    """K-10: only an earlier one is taken for the fact's; zeros are equal, and written unlike."""
    kernel = Kernel(Run(run_id="r"))
    kernel.receive(OpenTurn(turn_id="T1", calls=(call("a"),)), 0.0)

    verdict = kernel.receive(Claim(turn_id="T1", invocation_id="a", attempt=1), -0.0)

    assert [math.copysign(1.0, fact.at) for fact in verdict.facts] == [-1.0]


def test_the_memory_keeps_no_more_than_its_bound() -> None:
    """K-54, K-6: of a closing larger than the memory only the last entries are kept at all."""
    kernel = Kernel(Run(run_id="r"))
    calls = tuple(call(f"c{index}") for index in range(3_000))
    kernel.receive(OpenTurn(turn_id="T1", calls=calls), 0.0)
    for one in calls:
        kernel.receive(Claim(turn_id="T1", invocation_id=one.invocation_id, attempt=1), 0.0)
    assert not kernel.receive(Decide(turn_id="T1", invocation_id="c0", approved=True), 0.0).accepted

    kernel.receive(Interrupt(turn_id="T1", grace=0.0), 0.0)
    kernel.receive(Tick(), 1.0)

    (closing,) = state_of(kernel).memory.closings
    assert len(closing.invocation_ids) == 1_023


def test_forgetting_one_closing_spares_a_later_one_of_the_same_turn() -> None:
    """K-54: entries leave one by one, and what still stands is still remembered."""
    memory = Memory(capacity=2, retention=300.0)
    for turn in ("T", "T", "U"):
        memory.close(turn, (), at=0.0)

    assert memory.holds_turn("T", now=0.0)
    assert memory.holds_turn("U", now=0.0)


@pytest.mark.parametrize("grants", [0, 1, 3])
def test_stale_deadlines_of_a_turn_are_swept_once_they_outnumber_the_live_ones(grants: int) -> None:
    """K-6: twice one for each live member, one more and each grant, and `SLACK` more."""
    kernel = Kernel(Run(run_id="r"))
    asked = [gated(f"g{number}") for number in range(grants)]
    early = gated("early", timeout=1.0)
    kernel.receive(OpenTurn(turn_id="T1", calls=(early, call("late"), *asked)), 0.0)
    for number in range(grants):
        kernel.receive(granting(f"g{number}", expires_in=1000.0), 0.0)
    kernel.receive(Claim(turn_id="T1", invocation_id="late", attempt=1, lease=2.0), 0.0)

    bound = 2 * (2 + grants + 1 + grants) + SLACK
    held: list[int] = []
    for number in range(bound - grants):
        kernel.receive(Renew(turn_id="T1", invocation_id="late", lease=3.0 + number), 0.0)
        held.append(len(state_of(kernel).deadlines))

    live = 2 + grants
    assert held[: bound - live] == [*range(live + 1, bound + 1)]
    assert held[bound - live] == live


def test_stale_deadlines_of_grants_are_swept_once_they_outnumber_the_live_ones() -> None:
    """K-6: without a turn, twice the grants that are left, and `SLACK` more."""
    kernel = Kernel(Run(run_id="r"))
    names = [f"g{number}" for number in range(SLACK + 4)]
    kernel.receive(OpenTurn(turn_id="T1", calls=tuple(map(gated, names))), 0.0)
    for number, name in enumerate(names):
        kernel.receive(granting(name, expires_in=10.0 + number), 0.0)
    kernel.receive(Interrupt(turn_id="T1", grace=0.0), 0.0)
    assert kernel.turn is None

    held: list[int] = []
    for number in range(len(names), 1, -1):
        kernel.receive(Revoke(grant_id=f"grant/r/{number}"), 0.0)
        held.append(len(state_of(kernel).deadlines))

    assert held == [*(len(names) for _ in range(SLACK + 2)), 1]


def test_graces_of_two_turns_that_end_at_one_time_are_told_apart_by_nothing() -> None:
    """K-53, K-6: one left over from a closed turn, in a heap filled anew, is like the next one."""
    kernel = Kernel(Run(run_id="r"))
    first, second = gated("a"), call("b")
    kernel.receive(OpenTurn(turn_id="T1", calls=(first, second)), 0.0)
    kernel.receive(granting("a", expires_in=100.0), 0.0)
    for name in "ab":
        kernel.receive(Claim(turn_id="T1", invocation_id=name, attempt=1, lease=150.0), 0.0)
    kernel.receive(Interrupt(turn_id="T1", grace=200.0), 0.0)
    sizes: list[int] = []
    while len(sizes) < 2 or sizes[-1] > sizes[-2]:  # until the stale ones are swept
        renew = Renew(turn_id="T1", invocation_id="b", lease=200.0 + len(sizes))
        kernel.receive(renew, 0.0)
        sizes.append(len(state_of(kernel).deadlines))
    for name in "ab":
        kernel.receive(Report(turn_id="T1", invocation_id=name, result=1), 0.0)
    assert kernel.turn is None
    assert [at for at, kind, _ in state_of(kernel).deadlines if kind == GRACE] == [200.0]

    kernel.receive(OpenTurn(turn_id="T2", calls=(call("a"),)), 0.0)
    kernel.receive(Claim(turn_id="T2", invocation_id="a", attempt=1), 0.0)
    assert kernel.receive(Interrupt(turn_id="T2", grace=200.0), 0.0).accepted
    ended = kernel.receive(Tick(), 201.0).facts

    assert [fact.type for fact in ended][-2:] == [
        FactType.TOOL_EXECUTION_FAILED,
        FactType.TURN_INTERRUPTED,
    ]


def gated(name: str, *, timeout: float | None = None) -> Call:
    """A call that waits for approval; each is of a tool of its own."""
    return Call(
        invocation_id=name,
        tool_name=f"tool {name}",
        arguments={},
        requires_approval=True,
        approval_timeout=timeout,
    )


def granting(name: str, *, expires_in: float) -> Decide:
    """An approval for the session."""
    return Decide(
        turn_id="T1",
        invocation_id=name,
        approved=True,
        scope=Scope.SESSION,
        expires_in=expires_in,
    )
