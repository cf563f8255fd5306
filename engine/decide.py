"""Decide: state, delivery, now → the facts, or the refusal (K-2). It changes nothing.

One function for each delivery, found by its class (`DECIDERS`). Those that name an invocation all
go through `_ask`: admission → table → the facts of the row. Nothing here moves a phase.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ..lifecycle.table import InvocationRow
from ..models.deliveries import (
    Acknowledge,
    AddCall,
    Claim,
    Decide,
    Delivery,
    ForInvocation,
    Interrupt,
    Log,
    Lose,
    OpenTurn,
    Reject,
    Renew,
    Report,
    Resolution,
    Resolve,
    Revoke,
    SealTurn,
    Tick,
)
from ..models.facts import Fact
from ..models.inputs import Input
from ..models.reasons import Reason
from ..turn.table import TurnRow
from ..turn.table import step as turn_step
from . import new_facts
from .admission import admit, admit_opening, admit_to_turn, room_guard, row_for
from .state import State

Refusal: TypeAlias = Reason | InvocationRow | TurnRow
Decision: TypeAlias = Refusal | list[Fact]

_ADD_CALL: Final = Input.ADD_CALL
_APPROVE: Final = Input.APPROVE
_CLAIM: Final = Input.CLAIM
_DENY: Final = Input.DENY
_INTERRUPT: Final = Input.INTERRUPT
_LOSE: Final = Input.LOSE
_REJECT: Final = Input.REJECT
_RENEW: Final = Input.RENEW
_REPORT_ERROR: Final = Input.REPORT_ERROR
_REPORT_RESULT: Final = Input.REPORT_RESULT
_RESOLVE_ERROR: Final = Input.RESOLVE_ERROR
_RESOLVE_RESULT: Final = Input.RESOLVE_RESULT
_RESOLVE_RETRY: Final = Input.RESOLVE_RETRY
_SEAL_TURN: Final = Input.SEAL_TURN
"""Bound once, as the phases are (lifecycle/phases.py)."""

_RESOLUTIONS: Final = {
    Resolution.RETRY: _RESOLVE_RETRY,
    Resolution.RESULT: _RESOLVE_RESULT,
    Resolution.ERROR: _RESOLVE_ERROR,
}


def _ask(
    state: State,
    delivery: ForInvocation,
    now: float,
    turn_id: str | None,
    invocation_id: str,
    attempt: int | None,
    input_: Input,
) -> Decision:
    """Admission → table → facts, for whatever names an invocation (section 5)."""
    turn = state.turn
    found: Any = admit(state, turn_id, invocation_id, attempt, input_, now)
    if turn is None or type(found) is Reason:
        reason: Reason = found
        return reason
    row = row_for(state, found, input_, delivery)
    if row.fact is None:
        return row
    return new_facts.MAKERS[row.fact](state, turn, found, row, delivery, now)


# Each reads the ids off a delivery of its own class: one place that reads them off all classes
# would cost more.


def _decide(state: State, of: Decide, now: float) -> Decision:
    input_ = _APPROVE if of.approved else _DENY
    return _ask(state, of, now, of.turn_id, of.invocation_id, None, input_)


def _claim(state: State, of: Claim, now: float) -> Decision:
    return _ask(state, of, now, of.turn_id, of.invocation_id, of.attempt, _CLAIM)


def _renew(state: State, of: Renew, now: float) -> Decision:
    return _ask(state, of, now, of.turn_id, of.invocation_id, of.attempt, _RENEW)


def _reject(state: State, of: Reject, now: float) -> Decision:
    return _ask(state, of, now, of.turn_id, of.invocation_id, None, _REJECT)


def _report(state: State, of: Report, now: float) -> Decision:
    input_ = _REPORT_RESULT if of.error is None else _REPORT_ERROR
    return _ask(state, of, now, of.turn_id, of.invocation_id, of.attempt, input_)


def _lose(state: State, of: Lose, now: float) -> Decision:
    return _ask(state, of, now, of.turn_id, of.invocation_id, of.attempt, _LOSE)


def _resolve(state: State, of: Resolve, now: float) -> Decision:
    input_ = _RESOLUTIONS[of.resolution]
    return _ask(state, of, now, of.turn_id, of.invocation_id, of.attempt, input_)


def _open_turn(state: State, delivery: OpenTurn, now: float) -> Decision:
    reason = admit_opening(state, delivery, now)
    return new_facts.opened(state, delivery, now) if reason is None else reason


def _add_call(state: State, delivery: AddCall, now: float) -> Decision:
    turn = admit_to_turn(state, delivery, now)
    if isinstance(turn, Reason):
        return turn
    row = turn_step(turn.phase, _ADD_CALL, room_guard(state, turn, delivery.call))
    return new_facts.call_added(state, turn, delivery, now) if row.fact is not None else row


def _seal_turn(state: State, delivery: SealTurn, now: float) -> Decision:
    turn = admit_to_turn(state, delivery, now)
    if isinstance(turn, Reason):
        return turn
    row = turn_step(turn.phase, _SEAL_TURN)
    return new_facts.sealed(state, turn, now) if row.fact is not None else row


def _interrupt(state: State, delivery: Interrupt, now: float) -> Decision:
    turn = admit_to_turn(state, delivery, now)
    if isinstance(turn, Reason):
        return turn
    row = turn_step(turn.phase, _INTERRUPT)
    return new_facts.interrupting(state, turn, delivery, now) if row.fact is not None else row


def _acknowledge(state: State, delivery: Acknowledge, now: float) -> Decision:
    """Nobody can have taken a continuation that this very receive's deadlines brought forth."""
    owed = state.continuations.get(delivery.turn_id)
    if owed is None or owed.settled > state.committed:
        return Reason.NO_CONTINUATION
    return new_facts.continuation_taken(state, delivery, now)


def _revoke(state: State, delivery: Revoke, now: float) -> Decision:
    if delivery.grant_id not in state.grants.in_force:
        return Reason.UNKNOWN_GRANT
    return new_facts.grant_revoked(state, delivery, now)


def _nothing(_: State, __: Delivery, ___: float) -> Decision:
    """Accept a log or a tick: diagnostics and time are never facts of their own."""
    return []


DECIDERS: Final[dict[type[Delivery], Callable[[State, Any, float], Decision]]] = {
    OpenTurn: _open_turn,
    AddCall: _add_call,
    SealTurn: _seal_turn,
    Decide: _decide,
    Claim: _claim,
    Renew: _renew,
    Reject: _reject,
    Report: _report,
    Lose: _lose,
    Resolve: _resolve,
    Interrupt: _interrupt,
    Acknowledge: _acknowledge,
    Revoke: _revoke,
    Log: _nothing,
    Tick: _nothing,
}
