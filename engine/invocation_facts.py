"""The facts that a move of one invocation brings forth (kernel.md section 4).

`MAKERS` finds the function by the fact that the row names. Each returns the facts in their order;
what closes the turn is not its concern (see `turn_facts.settled`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ..lifecycle.invocation import Invocation
from ..lifecycle.table import InvocationRow
from ..models.calls import Call
from ..models.deliveries import (
    Claim,
    Decide,
    Match,
    OpenTurn,
    Reject,
    Renew,
    Report,
    Resolve,
    Scope,
)
from ..models.fact import FactType
from ..models.facts import Fact
from ..models.ids import grant_id
from ..models.inputs import Input
from ..models.values import arguments_digest
from ..turn.turn import Turn
from . import unchecked
from .deadlines import after
from .guards import row_for
from .state import State

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
    reaches = delivery.scope is not Scope.ONCE
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
        and (other.digest == digest if delivery.match is Match.EXACT else other.gated)
        and other is not invocation
        and row_for(state, other, Input.GRANT).fact is not None
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
        state, turn, invocation, now, number, Input.GRANT, scope=Scope.ONCE, grant_id=grant
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
