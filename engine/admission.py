"""Admission: whether a delivery is about something that lives (kernel.md section 5; K-20 … K-22).

Each function returns what it found, or the reason for refusing. The order of the checks is part of
the contract. Which run it is for was checked before (`decide`).
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from ..lifecycle.invocation import Invocation
from ..models.deliveries import (
    AddCall,
    Claim,
    Decide,
    Interrupt,
    Lose,
    OpenTurn,
    Reject,
    Renew,
    Report,
    Resolve,
    SealTurn,
)
from ..models.inputs import Input
from ..models.reasons import Reason
from ..turn.turn import Turn
from .state import State

ForInvocation: TypeAlias = Decide | Claim | Renew | Reject | Report | Lose | Resolve
ForTurn: TypeAlias = AddCall | SealTurn | Interrupt


def admit(
    state: State,
    turn_id: str | None,
    invocation_id: str,
    attempt: int | None,
    input: Input,  # noqa: A002 - the word of the spec
    now: float,
) -> Any:  # noqa: ANN401 - an Invocation or a Reason
    """Find the `Invocation` that is meant, or the `Reason` why there is none (section 5, 1 … 4)."""
    turn = state.turn
    if turn is not None and turn_id == turn.turn_id:
        found = turn.members.get(invocation_id) or Reason.UNKNOWN_INVOCATION
    elif turn_id is None:
        found = _admit_without_turn(state, invocation_id, now)
    elif state.memory.holds(turn_id, invocation_id, now=now):
        return Reason.LATE
    else:
        return Reason.NO_ACTIVE_TURN if turn is None else Reason.TURN_MISMATCH
    if attempt is None or type(found) is Reason:
        return found
    return Reason.STALE_ATTEMPT if _stale(cast("Invocation", found), attempt, input) else found


def _admit_without_turn(state: State, invocation_id: str, now: float) -> Invocation | Reason:
    """Find it by its id alone: safe only where no other turn can be meant (K-20)."""
    turn = state.turn
    remembered = state.memory.holds_invocation(invocation_id, now=now)
    invocation = turn.members.get(invocation_id) if turn is not None else None
    if invocation is not None:
        return Reason.AMBIGUOUS_INVOCATION if remembered else invocation
    if remembered:
        return Reason.LATE
    return Reason.NO_ACTIVE_TURN if turn is None else Reason.UNKNOWN_INVOCATION


def _stale(invocation: Invocation, attempt: int, input: Input) -> bool:  # noqa: A002
    """Say whether the attempt that was named is another than the one that counts (section 5, 4).

    For a claim while an execute is owed that is the owed one; otherwise, once the invocation was
    started, the current one; before that, none.
    """
    if input is Input.CLAIM and invocation.owed:
        return attempt != invocation.owed
    return attempt != invocation.attempt > 0


def admit_to_turn(state: State, delivery: ForTurn, now: float) -> Turn | Reason:
    """Find the turn that a delivery means (K-22)."""
    turn = state.turn
    if turn is not None and turn.turn_id == delivery.turn_id:
        return turn
    if state.memory.holds_turn(delivery.turn_id, now=now):
        return Reason.LATE
    return Reason.NO_ACTIVE_TURN if turn is None else Reason.TURN_MISMATCH


def admit_opening(state: State, delivery: OpenTurn, now: float) -> Reason | None:  # noqa: PLR0911
    """Say why a turn cannot be opened, or None (K-21, K-56). The order is the order written."""
    turn, turn_id, calls = state.turn, delivery.turn_id, delivery.calls
    if turn is not None:
        return Reason.TURN_OPEN if turn.turn_id == turn_id else Reason.TURN_BUSY
    if turn_id in state.continuations or state.memory.holds_turn(turn_id, now=now):
        return Reason.TURN_REUSED
    if delivery.epoch is not None and delivery.epoch != state.epoch + 1:
        return Reason.STALE_EPOCH
    if len({call.invocation_id for call in calls}) < len(calls):
        return Reason.DUPLICATE_INVOCATION
    if delivery.sealed and not calls:
        return Reason.EMPTY_TURN
    limits = state.run.limits
    if len(calls) > limits.calls or len(state.continuations) >= limits.continuations:
        return Reason.LIMIT_REACHED
    return None
