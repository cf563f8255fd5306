"""The facts that a move brings forth: of an invocation, of the turn, of the grants (section 4).

`MAKERS` finds the function for a move of one invocation by the fact that its row names. Each
returns the facts in their order; what closes the turn is `settled`'s concern alone (K-51).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ..lifecycle.invocation import Invocation
from ..lifecycle.table import InvocationRow
from ..models.calls import Call
from ..models.deliveries import (
    Acknowledge,
    AddCall,
    Claim,
    Decide,
    Interrupt,
    Match,
    OpenTurn,
    Reject,
    Renew,
    Report,
    Resolve,
    Revoke,
    Scope,
)
from ..models.fact import FactType
from ..models.facts import Fact
from ..models.ids import grant_id
from ..models.inputs import Input
from ..models.values import arguments_digest
from ..turn.phases import TurnGuard
from ..turn.table import step as turn_step
from ..turn.turn import Turn
from . import unchecked
from .admission import row_for
from .state import State, after

_ADD_CALL: Final = Input.ADD_CALL
_GRANT: Final = Input.GRANT
_INTERRUPT: Final = Input.INTERRUPT
_OPEN_TURN: Final = Input.OPEN_TURN
_SEAL_TURN: Final = Input.SEAL_TURN
_SETTLE: Final = Input.SETTLE
_ACKNOWLEDGE: Final = Input.ACKNOWLEDGE
_COMPLETE: Final = TurnGuard.COMPLETE
_INCOMPLETE: Final = TurnGuard.INCOMPLETE
_ONCE: Final = Scope.ONCE
_EXACT: Final = Match.EXACT
_TOOL_DENIED: Final = FactType.TOOL_DENIED
_TURN_SETTLED: Final = FactType.TURN_SETTLED
"""Bound once, as the phases are (lifecycle/phases.py)."""

Maker: TypeAlias = "Callable[[State, Turn, Invocation, InvocationRow, Any, float], list[Fact]]"

DENIED: Final = "denied"
"""What a deny without a reason says (section 4)."""


def _approved(
    state: State,
    turn: Turn,
    invocation: Invocation,
    row: InvocationRow,
    delivery: Decide,
    now: float,
) -> list[Fact]:
    """Approve it, issue the grant if one is asked, and approve what else that covers (K-41)."""
    reaches = delivery.scope is not _ONCE
    number = state.sequence + 1
    approved = unchecked.tool_approved(
        state,
        turn,
        invocation,
        now,
        number,
        row.input,
        scope=delivery.scope,
        match=delivery.match if reaches else None,
        arguments=delivery.arguments,
        reason=delivery.reason,
        decided_by=delivery.decided_by,
        grant_id=None,
    )
    if not reaches:
        return [approved]
    digest = invocation.digest
    if delivery.arguments is not None:  # those that will run (K-40)
        digest = arguments_digest(delivery.arguments)
    grant = grant_id(state.run.run_id, state.grants.issued + 1)
    issued = unchecked.grant_issued(
        state,
        now,
        number + 1,
        row.input,
        turn_id=turn.turn_id,
        grant_id=grant,
        tool_name=invocation.tool_name,
        match=delivery.match,
        arguments_digest=digest,
        scope=delivery.scope,
        expires_at=None if delivery.expires_in is None else after(now, delivery.expires_in),
    )
    covered = (
        other
        for other in turn.order
        if other.tool_name == invocation.tool_name
        and (other.digest == digest if delivery.match is _EXACT else other.gated)
        and other is not invocation
        and row_for(state, other, _GRANT).fact is not None
    )
    return [
        approved,
        issued,
        *(
            by_grant(state, turn, other, grant, now, sequence)
            for sequence, other in enumerate(covered, start=number + 2)
        ),
    ]


def by_grant(
    state: State,
    turn: Turn | OpenTurn,
    invocation: Invocation | Call,
    grant: str,
    now: float,
    number: int,
) -> Fact:
    """Approve an invocation because a grant covers it; that counts as `once` (K-41, D)."""
    return unchecked.tool_approved(
        state,
        turn,
        invocation,
        now,
        number,
        _GRANT,
        scope=_ONCE,
        match=None,
        arguments=None,
        reason=None,
        decided_by=None,
        grant_id=grant,
    )


def _denied(
    state: State,
    turn: Turn,
    invocation: Invocation,
    row: InvocationRow,
    delivery: Decide,
    now: float,
) -> list[Fact]:
    return [
        unchecked.tool_denied(
            state,
            turn,
            invocation,
            now,
            state.sequence + 1,
            row.input,
            reason=delivery.reason or DENIED,
            error=None,
            cause=row.cause,
            decided_by=delivery.decided_by,
        )
    ]


def _started(
    state: State,
    turn: Turn,
    invocation: Invocation,
    row: InvocationRow,
    delivery: Claim,
    now: float,
) -> list[Fact]:
    return [
        unchecked.tool_execution_started(
            state,
            turn,
            invocation,
            now,
            state.sequence + 1,
            row.input,
            arguments=invocation.arguments,
            attempt=1,
            worker=delivery.worker,
            lease_until=None if delivery.lease is None else after(now, delivery.lease),
        )
    ]


def _retried(
    state: State,
    turn: Turn,
    invocation: Invocation,
    row: InvocationRow,
    delivery: Claim,
    now: float,
) -> list[Fact]:
    return [
        unchecked.execution_retried(
            state,
            turn,
            invocation,
            now,
            state.sequence + 1,
            row.input,
            attempt=invocation.attempt + 1,
            worker=delivery.worker,
            lease_until=None if delivery.lease is None else after(now, delivery.lease),
        )
    ]


def _renewed(
    state: State,
    turn: Turn,
    invocation: Invocation,
    row: InvocationRow,
    delivery: Renew,
    now: float,
) -> list[Fact]:
    return [
        unchecked.lease_renewed(
            state,
            turn,
            invocation,
            now,
            state.sequence + 1,
            row.input,
            attempt=invocation.attempt,
            lease_until=after(now, delivery.lease),
        )
    ]


def _succeeded(
    state: State,
    turn: Turn,
    invocation: Invocation,
    row: InvocationRow,
    delivery: Report | Resolve,
    now: float,
) -> list[Fact]:
    return [
        unchecked.tool_execution_succeeded(
            state, turn, invocation, now, state.sequence + 1, row.input, result=delivery.result
        )
    ]


def _failed(
    state: State,
    turn: Turn,
    invocation: Invocation,
    row: InvocationRow,
    delivery: Reject | Report | Resolve,
    now: float,
) -> list[Fact]:
    return [
        unchecked.tool_execution_failed(
            state,
            turn,
            invocation,
            now,
            state.sequence + 1,
            row.input,
            error=delivery.error,
            cause=row.cause,
        )
    ]


def in_doubt(
    state: State, turn: Turn, invocation: Invocation, row: InvocationRow, _: object, now: float
) -> list[Fact]:
    """Nobody knows what became of the current attempt: it was lost, or its lease is over (K-35)."""
    number = state.sequence + 1
    return [
        unchecked.execution_in_doubt(
            state, turn, invocation, now, number, row.input, attempt=invocation.attempt
        )
    ]


def _authorised(
    state: State, turn: Turn, invocation: Invocation, row: InvocationRow, _: Resolve, now: float
) -> list[Fact]:
    number = state.sequence + 1
    return [
        unchecked.retry_authorised(
            state, turn, invocation, now, number, row.input, attempt=invocation.attempt
        )
    ]


MAKERS: Final[dict[FactType, Maker]] = {
    FactType.TOOL_APPROVED: _approved,
    FactType.TOOL_DENIED: _denied,
    FactType.TOOL_EXECUTION_STARTED: _started,
    FactType.TOOL_EXECUTION_SUCCEEDED: _succeeded,
    FactType.TOOL_EXECUTION_FAILED: _failed,
    FactType.EXECUTION_IN_DOUBT: in_doubt,
    FactType.RETRY_AUTHORISED: _authorised,
    FactType.EXECUTION_RETRIED: _retried,
    FactType.LEASE_RENEWED: _renewed,
}


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
            _OPEN_TURN,
            epoch=state.epoch + 1,
            sealed=delivery.sealed,
            calls=delivery.calls,
        )
    ]
    for call in delivery.calls:
        if call.requires_approval:
            number += 1
            facts.append(_gate(state, delivery, call, now, number, _OPEN_TURN))
    return facts


def call_added(state: State, turn: Turn, delivery: AddCall, now: float) -> list[Fact]:
    """Add one call to an open turn: CALL_ADDED, then what its gate brings."""
    number = state.sequence + 1
    call = delivery.call
    added = unchecked.call_added(state, turn, now, number, _ADD_CALL, call=call)
    if call.requires_approval:
        return [added, _gate(state, turn, call, now, number + 1, _ADD_CALL)]
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
    return [unchecked.turn_sealed(state, turn, now, state.sequence + 1, _SEAL_TURN)]


def interrupting(state: State, turn: Turn, delivery: Interrupt, now: float) -> list[Fact]:
    """Stop a turn: what has not started is denied, in expected order; what runs may report."""
    number = state.sequence + 1
    facts: list[Fact] = [
        unchecked.turn_interrupting(
            state,
            turn,
            now,
            number,
            _INTERRUPT,
            grace_until=after(now, delivery.grace),
            reason=delivery.reason,
        )
    ]
    for invocation in turn.order:
        row = row_for(state, invocation, _INTERRUPT)
        if row.fact is _TOOL_DENIED:  # TURN_INTERRUPTING is one fact for all it moves
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
                    error=None,
                    cause=row.cause,
                    decided_by=None,
                )
            )
    return facts


def continuation_taken(state: State, delivery: Acknowledge, now: float) -> list[Fact]:
    """Return the fact that the host took the continuation."""
    return [unchecked.continuation_taken(state, delivery, now, state.sequence + 1, _ACKNOWLEDGE)]


def grant_revoked(state: State, delivery: Revoke, now: float) -> list[Fact]:
    """Return the fact that somebody took a grant back."""
    turn_id = None if state.turn is None else state.turn.turn_id
    number = state.sequence + 1
    return [
        unchecked.grant_revoked(
            state, now, number, Input.REVOKE, turn_id=turn_id, grant_id=delivery.grant_id
        )
    ]


def settled(state: State, turn: Turn, now: float) -> list[Fact]:
    """Return the fact that closes the turn, if all of it is done: the one door (K-50, K-51)."""
    guard = _INCOMPLETE if turn.live else _COMPLETE
    row = turn_step(turn.phase, _SETTLE, guard)
    if row.fact is None:
        return []
    close = unchecked.turn_settled if row.fact is _TURN_SETTLED else unchecked.turn_interrupted
    return [close(state, turn, now, state.sequence + 1, row.input)]
