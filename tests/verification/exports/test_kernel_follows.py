"""The kernel moves as the model says, and rests where the model has no action."""

# A plant reaches into what it makes wrong.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable

import pytest

from turnlock.engine import evolve, new_facts
from turnlock.engine.state import State
from turnlock.lifecycle import table
from turnlock.lifecycle.phases import Guard, Phase
from turnlock.models.fact import FactType
from turnlock.models.facts import Fact, TurnSettled
from turnlock.models.inputs import Input
from turnlock.models.record import changed
from turnlock.turn.turn import Turn
from turnlock.verification.exports.derive import derive
from turnlock.verification.exports.model import Scope

from ..depth import DEEP
from .kernel_walk import disagreements, paths

TWO = derive(Scope(invocations=2))
ONE = derive(Scope(invocations=1))

Plant = Callable[[pytest.MonkeyPatch], None]


def test_the_kernel_follows_every_transition() -> None:
    """At each of the 955 states each of 33 letters does to the kernel what it does to the model.

    The gate tries each fifth of them, and all of a turn with one call.
    """
    assert len(paths(TWO)) == 955
    assert list(disagreements(TWO, every=1 if DEEP else 5)) == []
    assert list(disagreements(ONE)) == []


def wrong_row(phase: Phase, input_: Input, guard: str = "", **change: object) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        key = (phase, input_, guard)
        patch.setitem(table._TABLE, key, changed(table._TABLE[key], **change))

    return plant


def no_withdrawal(patch: pytest.MonkeyPatch) -> None:
    """An interrupt that leaves an authorised retry owed."""
    moved = table.FOLD[FactType.TURN_INTERRUPTING]
    patch.setitem(moved, Phase.RETRY_AUTHORISED, Phase.RETRY_AUTHORISED)


def no_continuation(patch: pytest.MonkeyPatch) -> None:
    """A turn that settles and asks for nothing."""
    fold = evolve.EVOLVERS[TurnSettled.type]

    def close(state: State, turn: Turn, fact: TurnSettled) -> None:
        fold(state, turn, fact)
        state.continuations.clear()

    patch.setitem(evolve.EVOLVERS, TurnSettled.type, close)


def no_seal(patch: pytest.MonkeyPatch) -> None:
    """A seal that is accepted and brings forth nothing."""

    def nothing(*_: object) -> list[Fact]:
        return []

    patch.setattr(new_facts, "sealed", nothing)


PLANTS: dict[str, Plant] = {
    "a refused row moves": wrong_row(
        Phase.REQUESTED,
        Input.CLAIM,
        Guard.GATED,
        reason=None,
        target=Phase.STARTED,
        fact=FactType.TOOL_EXECUTION_STARTED,
    ),
    "a refused row makes a fact": wrong_row(
        Phase.IN_DOUBT,
        Input.RESOLVE_RETRY,
        Guard.INTERRUPTING,
        reason=None,
        target=Phase.RETRY_AUTHORISED,
        fact=FactType.RETRY_AUTHORISED,
    ),
    "an interrupt spares what is approved": wrong_row(
        Phase.APPROVED, Input.INTERRUPT, fact=None, note="spared"
    ),
    "a lease that runs out fails": wrong_row(
        Phase.STARTED, Input.LEASE_OVER, fact=FactType.TOOL_EXECUTION_FAILED
    ),
    "an interrupt keeps a retry": no_withdrawal,
    "a turn settles in silence": no_continuation,
    "a doubt outlives the grace": wrong_row(
        Phase.IN_DOUBT, Input.GRACE_OVER, fact=None, note="never over"
    ),
    "a seal is lost": no_seal,
}


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_a_kernel_that_does_not_follow_is_found(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: one line wrong in the kernel, and the walk parts from the model."""
    plant(monkeypatch)

    assert next(disagreements(ONE), None) is not None
