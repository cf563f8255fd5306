"""The effects that are owed: a function of state alone (K-3).

`pending` derives them all. `owed_since` returns what one receive added, by looking only at what
its facts touched; that both agree is a property test, and the reason why a receive stays cheap in a
turn of ten thousand calls. Order: executes and cancels in expected order, continuations in the
order of settling, then the wake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ..lifecycle.invocation import Invocation
from ..lifecycle.phases import STARTED
from ..models.effects import Cancel, Effect, Execute, Wake
from ..models.facts import (
    CallAdded,
    Fact,
    RetryAuthorised,
    ToolApproved,
    TurnInterrupting,
    TurnOpened,
    TurnSettled,
)
from ..models.ids import (
    cancel_id,
    execute_id,
    idempotency_key,
    invocation_path,
    wake_id,
)
from ..models.values import NO_ARGUMENTS
from ..turn.phases import TurnPhase
from ..turn.turn import Turn
from . import unchecked
from .state import State, first_float_past


def pending(state: State) -> tuple[Effect, ...]:
    """Return all the effects that are owed in this state."""
    turn = state.turn
    effects: list[Effect] = []
    if turn is not None:
        effects += _executes(turn, turn.order)
        effects += _cancels(turn)
    effects += (owed.effect for owed in state.continuations.values())
    if state.deadlines:
        effects += _moved_wake(state, None)
    return tuple(effects)


def owed_since(state: State, facts: Sequence[Fact], woken: float | None) -> tuple[Effect, ...]:
    """Return what the facts of one receive made owed, and make them one commit (K-3, K-9).

    `woken` was the earliest deadline before them.
    """
    if len(facts) > 1:
        unchecked.seal_commit(facts)
    elif type(facts[0]) not in OWING:  # most facts are of this kind
        return _moved_wake(state, woken) if state.deadlines else ()
    effects = _newly_owed(state, facts)
    if state.deadlines:
        effects += _moved_wake(state, woken)
    return tuple(effects)


def _newly_owed(state: State, facts: Sequence[Fact]) -> list[Effect]:
    turn = state.turn
    effects: list[Effect] = []
    if turn is not None:
        effects += _executes(turn, _readied(turn, facts))
    for fact in facts:
        if type(fact) is TurnSettled and fact.turn_id in state.continuations:
            effects.append(state.continuations[fact.turn_id].effect)
        elif type(fact) is TurnInterrupting and turn is not None:
            effects += _cancels(turn)
    return effects


_INTERRUPTING: Final = TurnPhase.INTERRUPTING
"""Bound once, as the phases are (lifecycle/phases.py)."""

OWING: Final = frozenset(
    {TurnOpened, CallAdded, ToolApproved, RetryAuthorised, TurnInterrupting, TurnSettled}
)
"""After these facts something other than a wake may newly be owed."""

_READYING: Final = frozenset({ToolApproved, RetryAuthorised})
"""Each of these readies the one invocation that it names."""


def _readied(turn: Turn, facts: Sequence[Any]) -> Sequence[Invocation]:
    """Return the members that these facts may have readied, in expected order."""
    members: list[Invocation] = []
    for fact in facts:
        if type(fact) is TurnOpened:
            return turn.order
        if type(fact) is CallAdded:
            return turn.order[-1:]
        if type(fact) in _READYING:
            members.append(turn.members[fact.invocation_id])
    if len(members) > 1:
        members.sort(key=_position)
    return members


def _position(invocation: Invocation) -> int:
    return invocation.position


def _executes(turn: Turn, invocations: Iterable[Invocation]) -> list[Execute]:
    return [
        _execute(turn, invocation, attempt)
        for invocation in invocations
        if (attempt := invocation.owed)
    ]


def _execute(turn: Turn, invocation: Invocation, attempt: int) -> Execute:
    path = invocation_path(turn.scope, invocation.invocation_id)
    return unchecked.execute(
        effect_id=execute_id(path, attempt),
        turn_id=turn.turn_id,
        invocation_id=invocation.invocation_id,
        attempt=attempt,
        tool_name=invocation.tool_name,
        arguments=invocation.arguments or NO_ARGUMENTS,
        idempotency_key=idempotency_key(path),
    )


def _cancels(turn: Turn) -> Iterator[Cancel]:
    """Ask to cancel whatever runs in a turn that is being interrupted (K-53)."""
    if turn.phase is not _INTERRUPTING:
        return
    for invocation in turn.order:
        if invocation.phase is STARTED:
            yield unchecked.cancel(
                effect_id=cancel_id(
                    invocation_path(turn.scope, invocation.invocation_id), invocation.attempt
                ),
                turn_id=turn.turn_id,
                invocation_id=invocation.invocation_id,
                attempt=invocation.attempt,
            )


def _moved_wake(state: State, woken: float | None) -> tuple[Wake, ...]:
    """Ask to be woken when the earliest deadline is over, if it is another than `woken`."""
    earliest = state.deadlines[0][0]
    if earliest == woken:
        return ()
    return (unchecked.wake(effect_id=wake_id(state.run.run_id), at=first_float_past(earliest)),)
