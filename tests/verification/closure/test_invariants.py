"""What is held against the rules without the oracle: each rule is seen to be broken once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from turnlock import Acknowledge, Claim, Fact, Kernel, Limits, OpenTurn, Report, Run
from turnlock.engine.kernel import state_of
from turnlock.models.calls import Call
from turnlock.models.record import changed
from turnlock.turn.phases import TurnPhase
from turnlock.verification.closure.kernel_player import flaw_of_lives, flaw_of_numbers, flaw_of_turn

CALLS = tuple(
    Call(invocation_id=name, tool_name="ls", arguments={}, requires_approval=False)
    for name in ("a", "b")
)


def played(**limits: int) -> tuple[Kernel, list[Fact]]:
    """A kernel with a turn of two calls, of which one has reported; and its journal."""
    kernel = Kernel(Run(run_id="r", limits=Limits(**limits)))
    journal: list[Fact] = []
    for delivery in (
        OpenTurn(turn_id="T", calls=CALLS),
        Claim(turn_id="T", invocation_id="a", attempt=1),
        Report(turn_id="T", invocation_id="a", result=1),
    ):
        journal += kernel.receive(delivery, 0.0).facts
    return kernel, journal


def test_a_healthy_run_has_no_flaw() -> None:
    """The control: nothing is told of what is right."""
    kernel, journal = played()

    assert flaw_of_turn(state_of(kernel)) is None
    assert flaw_of_lives(journal) is None
    assert flaw_of_numbers(journal[:1], 0, 1) is None


@pytest.mark.parametrize(
    ("rule", "fields", "before", "after"),
    [
        ("K-9", {"sequence": 3}, 0, 1),
        ("K-9", {"commit": 2}, 0, 1),
        ("K-9", {}, 0, 2),
    ],
)
def test_wrong_numbers_are_told(rule: str, fields: Any, before: int, after: int) -> None:
    """K-9: a gap, another commit, a fact that is missing."""
    _, journal = played()

    flaw = flaw_of_numbers([changed(journal[0], **fields)], before, after)

    assert flaw is not None
    assert flaw[0] == rule


def test_two_times_in_one_receive_are_told() -> None:
    """K-11: all that a receive lets happen is at its time."""
    _, journal = played()
    facts = [changed(journal[0], commit=2), changed(journal[1], commit=2, at=1.0)]

    flaw = flaw_of_numbers(facts, 0, 2)

    assert flaw is not None
    assert flaw[0] == "K-11"


def miscount(kernel: Kernel) -> None:
    """One that is terminal counts as live."""
    state_of(kernel).turn.live = 2  # type: ignore[union-attr]


def close_without_leaving(kernel: Kernel) -> None:
    """A closed turn stays the active one."""
    state_of(kernel).turn.phase = TurnPhase.SETTLED  # type: ignore[union-attr]


def lose_a_member(kernel: Kernel) -> None:
    """The roster and the order no longer agree."""
    del state_of(kernel).turn.members["b"]  # type: ignore[union-attr]


@pytest.mark.parametrize("spoil", [miscount, close_without_leaving, lose_a_member])
def test_a_wrong_roster_is_told(spoil: Callable[[Kernel], None]) -> None:
    """K-50: settled by unique membership."""
    kernel, _ = played()
    spoil(kernel)

    flaw = flaw_of_turn(state_of(kernel))

    assert flaw is not None
    assert flaw[0] == "K-50"


@pytest.mark.parametrize("limit", ["calls", "grants", "continuations", "remembered"])
def test_what_goes_beyond_its_bound_is_told(limit: str) -> None:
    """K-54, K-56: lower a bound below what is held."""
    kernel, _ = played()
    state = state_of(kernel)
    state.grants.in_force["g"] = state.continuations["T"] = object()  # type: ignore[assignment]
    state.memory.close("T0", ("a",), at=0.0)
    state.run = changed(state.run, limits=changed(state.run.limits, **{limit: 0}))

    flaw = flaw_of_turn(state)

    assert flaw is not None
    assert flaw[0] == ("K-54" if limit == "remembered" else "K-56")


def test_a_life_that_goes_on_after_its_end_is_told() -> None:
    """K-31: exactly one end, and each kind at most once."""
    _, journal = played()

    flaw = flaw_of_lives([*journal, journal[-1]])

    assert flaw is not None
    assert flaw[0] == "K-31"


def test_a_continuation_taken_twice_is_told() -> None:
    """K-52: it is owed until it is taken, and once."""
    kernel, journal = played()
    for delivery in (
        Claim(turn_id="T", invocation_id="b", attempt=1),
        Report(turn_id="T", invocation_id="b", result=1),
        Acknowledge(turn_id="T"),
    ):
        journal += kernel.receive(delivery, 0.0).facts
    assert flaw_of_lives(journal) is None

    flaw = flaw_of_lives([*journal, journal[-1]])

    assert flaw is not None
    assert flaw[0] == "K-52"
