"""The facts of the turn and of the grants (kernel.md section 4)."""

from __future__ import annotations

from typing import Final

from ..models.calls import Call
from ..models.deliveries import Acknowledge, AddCall, Interrupt, OpenTurn, Revoke
from ..models.fact import FactType
from ..models.facts import Fact
from ..models.inputs import Input
from ..turn.phases import TurnGuard
from ..turn.table import step as turn_step
from ..turn.turn import Turn
from . import unchecked
from .deadlines import after
from .guards import row_for
from .invocation_facts import by_grant
from .state import State

INTERRUPTED: Final = "interrupted"
"""What an interrupt says to an invocation that has not started (K-53)."""


def opened(state: State, delivery: OpenTurn, now: float) -> list[Fact]:
    """Open a turn: TURN_OPENED, then per call in order what its gate brings (section 4)."""
    number = state.sequence + 1
    facts: list[Fact] = [
        unchecked.turn_opened(
            state,
            delivery,
            now,
            number,
            Input.OPEN_TURN,
            epoch=state.epoch + 1,
            sealed=delivery.sealed,
            calls=delivery.calls,
        )
    ]
    for call in delivery.calls:
        if call.requires_approval:
            number += 1
            facts.append(_gate(state, delivery, call, now, number, Input.OPEN_TURN))
    return facts


def call_added(state: State, turn: Turn, delivery: AddCall, now: float) -> list[Fact]:
    """Add one call to an open turn: CALL_ADDED, then what its gate brings."""
    number = state.sequence + 1
    call = delivery.call
    added = unchecked.call_added(state, turn, now, number, Input.ADD_CALL, call=call)
    if call.requires_approval:
        return [added, _gate(state, turn, call, now, number + 1, Input.ADD_CALL)]
    return [added]


def _gate(
    state: State,
    turn: Turn | OpenTurn,
    call: Call,
    now: float,
    number: int,
    input_: Input,
) -> Fact:
    """Approve a gated call by the oldest grant that covers it, or ask for approval (K-41).

    `input_` is what brought the call.
    """
    digest = str(call.arguments_digest)
    grant = state.grants.covering(call.tool_name, digest)
    if grant is not None:
        return by_grant(state, turn, call, grant.grant_id, now, number)
    timeout = call.approval_timeout
    return unchecked.tool_approval_requested(
        state,
        turn,
        call,
        now,
        number,
        input_,
        arguments=call.arguments,
        arguments_digest=digest,
        deadline=None if timeout is None else after(now, timeout),
    )


def sealed(state: State, turn: Turn, now: float) -> list[Fact]:
    """Return the fact that no more calls will come."""
    return [unchecked.turn_sealed(state, turn, now, state.sequence + 1, Input.SEAL_TURN)]


def interrupting(state: State, turn: Turn, delivery: Interrupt, now: float) -> list[Fact]:
    """Stop a turn: what has not started is denied, in expected order; what runs may report."""
    number = state.sequence + 1
    facts: list[Fact] = [
        unchecked.turn_interrupting(
            state,
            turn,
            now,
            number,
            Input.INTERRUPT,
            grace_until=after(now, delivery.grace),
            reason=delivery.reason,
        )
    ]
    for invocation in turn.order:
        row = row_for(state, invocation, Input.INTERRUPT)
        if row.fact is FactType.TOOL_DENIED:  # TURN_INTERRUPTING is one fact for all it moves
            number += 1
            facts.append(
                unchecked.tool_denied(
                    state,
                    turn,
                    invocation,
                    now,
                    number,
                    row.input,
                    reason=INTERRUPTED,
                    cause=row.cause,
                )
            )
    return facts


def continuation_taken(state: State, delivery: Acknowledge, now: float) -> list[Fact]:
    """Return the fact that the host took the continuation."""
    return [
        unchecked.continuation_taken(state, delivery, now, state.sequence + 1, Input.ACKNOWLEDGE)
    ]


def grant_revoked(state: State, delivery: Revoke, now: float) -> list[Fact]:
    """Return the fact that somebody took a grant back."""
    turn_id = None if state.turn is None else state.turn.turn_id
    number = state.sequence + 1
    return [
        unchecked.grant_revoked(
            state, now, number, Input.REVOKE, turn_id=turn_id, grant_id=delivery.grant_id
        )
    ]


_CLOSING: Final = {
    FactType.TURN_SETTLED: unchecked.turn_settled,
    FactType.TURN_INTERRUPTED: unchecked.turn_interrupted,
}


def settled(state: State, turn: Turn, now: float) -> list[Fact]:
    """Return the fact that closes the turn, if all of it is done: the one door (K-50, K-51)."""
    guard = TurnGuard.INCOMPLETE if turn.live else TurnGuard.COMPLETE
    row = turn_step(turn.phase, Input.SETTLE, guard)
    if row.fact is None:
        return []
    return [_CLOSING[row.fact](state, turn, now, state.sequence + 1, row.input)]
