"""The effects that are owed: a function of state alone (K-3).

`pending` derives them all. `added` returns what one receive added, by looking only at what its
facts touched; that both agree is a property test, and the reason why a receive stays cheap in a
turn of ten thousand calls. Order: executes and cancels in expected order, continuations in the
order of settling, then the wake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ..lifecycle.invocation import Invocation, owed_attempt
from ..lifecycle.phases import Phase
from ..models.effects import Cancel, Continue, Effect, Execute, Wake
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
    continue_id,
    execute_id,
    idempotency_key,
    invocation_path,
    wake_id,
)
from ..models.values import NO_ARGUMENTS
from ..turn.phases import TurnPhase
from ..turn.turn import Turn
from . import minting
from .deadlines import first_float_past
from .state import Owed, State


def pending(state: State) -> tuple[Effect, ...]:
    """Return all the effects that are owed in this state."""
    turn = state.turn
    effects: list[Effect] = []
    if turn is not None:
        effects += _executes(turn, turn.order)
        effects += _cancels(turn)
    effects += (_continue(state, owed) for owed in state.continuations.values())
    effects += _wakes(state)
    return tuple(effects)


def added(state: State, facts: Sequence[Fact], woken: float | None) -> tuple[Effect, ...]:
    """Return the effects owed since these facts; `woken` was the earliest deadline before them."""
    deadlines = state.deadlines
    unmoved = (deadlines[0][0] if deadlines else None) == woken
    if len(facts) == 1 and type(facts[0]) not in _OWING:
        return () if unmoved else tuple(_wakes(state))
    effects: list[Effect] = []
    turn = state.turn
    if turn is not None:
        effects += _executes(turn, _readied(turn, facts))
    for fact in facts:
        if type(fact) is TurnInterrupting and turn is not None:
            effects += _cancels(turn)
        elif type(fact) is TurnSettled and fact.turn_id in state.continuations:
            effects.append(_continue(state, state.continuations[fact.turn_id]))
    if not unmoved:
        effects += _wakes(state)
    return tuple(effects)


_READYING: Final = frozenset({TurnOpened, CallAdded, ToolApproved, RetryAuthorised})
"""After these facts an execute may newly be owed."""
_OWING: Final = _READYING | {TurnInterrupting, TurnSettled}
"""After these facts something other than a wake may newly be owed."""


def _readied(turn: Turn, facts: Iterable[Any]) -> Iterable[Invocation]:
    """Return the members that these facts may have readied, in expected order."""
    readied: set[str] = set()
    for fact in facts:
        if type(fact) is TurnOpened:
            return turn.order
        if type(fact) is CallAdded:
            return turn.order[-1:]
        if type(fact) in _READYING:
            readied.add(fact.invocation_id)
    return sorted((turn.members[name] for name in readied), key=_position) if readied else ()


def _position(invocation: Invocation) -> int:
    return invocation.position


def _executes(turn: Turn, invocations: Iterable[Invocation]) -> Iterator[Execute]:
    for invocation in invocations:
        attempt = owed_attempt(invocation)
        if attempt:
            path = invocation_path(turn.scope, invocation.invocation_id)
            yield minting.execute(
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
    if turn.phase is not TurnPhase.INTERRUPTING:
        return
    for invocation in turn.order:
        if invocation.phase is Phase.STARTED:
            yield minting.cancel(
                effect_id=cancel_id(
                    invocation_path(turn.scope, invocation.invocation_id), invocation.attempt
                ),
                turn_id=turn.turn_id,
                invocation_id=invocation.invocation_id,
                attempt=invocation.attempt,
            )


def _continue(state: State, owed: Owed) -> Continue:
    return minting.continue_(
        effect_id=continue_id(state.scope_of(owed.turn_id, owed.epoch)),
        turn_id=owed.turn_id,
        results=owed.results,
    )


def _wakes(state: State) -> Iterator[Wake]:
    """Ask to be woken when the earliest deadline is over, if there is one (section 9)."""
    earliest = state.earliest_deadline
    if earliest is not None:
        yield minting.wake(effect_id=wake_id(state.run.run_id), at=first_float_past(earliest))
