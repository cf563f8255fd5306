"""Evolve: the fold of facts into the state (K-2). All that is state changes here, and only here.

Live and in recovery the same functions run, so a replayed run is the run that was. They know a fact
by its type, so that a reader of journals may give what they read of it, and no more (`Foldable`).
Where a phase moves, the table's own fold is looked up: nothing here names the phase that follows
another (K-4). The state is folded in place: whoever needs the one before takes a snapshot first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ..lifecycle.invocation import Invocation
from ..lifecycle.table import FOLD
from ..models.calls import Status
from ..models.deliveries import Scope
from ..models.fact import FactType, Foldable
from ..models.facts import (
    CallAdded,
    ContinuationTaken,
    DenialCause,
    ExecutionInDoubt,
    ExecutionRetried,
    GrantExpired,
    GrantIssued,
    GrantRevoked,
    LeaseRenewed,
    RetryAuthorised,
    ToolApprovalRequested,
    ToolApproved,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
    TurnInterrupted,
    TurnInterrupting,
    TurnOpened,
    TurnSealed,
    TurnSettled,
)
from ..models.ids import continue_id, turn_scope
from ..models.values import ABSENT
from ..turn.memory import Grant
from ..turn.phases import TurnPhase
from ..turn.table import FOLD as TURN_FOLD
from ..turn.turn import Turn
from . import unchecked
from .state import APPROVAL, GRACE, GRANT, LEASE, State, arm

_ONCE: Final = Scope.ONCE
_SUCCEEDED: Final = Status.SUCCEEDED
_FAILED: Final = Status.FAILED
_DENIED: Final = Status.DENIED
_DECISION: Final = DenialCause.DECISION
_OPEN: Final = TurnPhase.OPEN
_SEALED: Final = TurnPhase.SEALED
"""Bound once, as the phases are (lifecycle/phases.py)."""

_ON_APPROVED: Final = FOLD[FactType.TOOL_APPROVED]
_ON_DENIED: Final = FOLD[FactType.TOOL_DENIED]
_ON_RENEWED: Final = FOLD[FactType.LEASE_RENEWED]
_ON_SUCCEEDED: Final = FOLD[FactType.TOOL_EXECUTION_SUCCEEDED]
_ON_FAILED: Final = FOLD[FactType.TOOL_EXECUTION_FAILED]
_ON_IN_DOUBT: Final = FOLD[FactType.EXECUTION_IN_DOUBT]
_ON_AUTHORISED: Final = FOLD[FactType.RETRY_AUTHORISED]
"""Where each of these facts leads, from each phase: looked up in the table's own fold, once."""

APPROVED_ONCE: Final = unchecked.decision(approved=True, scope=_ONCE, match=None, edited=None)
DENIED_ONCE: Final = unchecked.decision(approved=False, scope=_ONCE, match=None, edited=None)


def fold(state: State, facts: Sequence[Foldable]) -> None:
    """Fold facts into the state. They must be the next ones, and possible here; one at least."""
    for fact in facts:
        EVOLVERS[fact.type](state, state.turn, fact)
    state.sequence += len(facts)
    state.at = facts[-1].at


def _approval_requested(state: State, turn: Turn, fact: ToolApprovalRequested) -> None:
    invocation = turn.members[fact.invocation_id]
    invocation.digest = fact.arguments_digest
    if fact.deadline is not None:
        invocation.deadline = fact.deadline
        arm(state.deadlines, fact.deadline, APPROVAL, invocation.position)


def _approved(_: State, turn: Turn, fact: ToolApproved) -> None:
    invocation = turn.members[fact.invocation_id]
    invocation.phase = _ON_APPROVED[invocation.phase]
    invocation.digest = None
    invocation.deadline = None
    if fact.arguments is not None:
        invocation.arguments = fact.arguments
    if fact.scope is _ONCE and fact.arguments is None:
        invocation.decision = APPROVED_ONCE
    else:
        invocation.decision = unchecked.decision(
            approved=True, scope=fact.scope, match=fact.match, edited=fact.arguments
        )


def _denied(_: State, turn: Turn, fact: ToolDenied) -> None:
    invocation = turn.members[fact.invocation_id]
    invocation.phase = _ON_DENIED[invocation.phase]
    if fact.cause is _DECISION:
        invocation.decision = DENIED_ONCE
    invocation.outcome = unchecked.call_result(
        invocation_id=invocation.invocation_id,
        tool_name=invocation.tool_name,
        status=_DENIED,
        result=ABSENT,
        error=None,
        reason=fact.reason if fact.reason is not None else fact.error,
        provider_call_id=invocation.provider_call_id,
    )
    _ended(turn, invocation)


def _started(state: State, turn: Turn, fact: ToolExecutionStarted | ExecutionRetried) -> None:
    invocation = turn.members[fact.invocation_id]
    invocation.phase = FOLD[fact.type][invocation.phase]
    invocation.attempt = fact.attempt
    invocation.worker = fact.worker
    if fact.lease_until is not None:
        _lease(state, invocation, fact.lease_until)


def _lease(state: State, invocation: Invocation, until: float) -> None:
    invocation.deadline = until
    arm(state.deadlines, until, LEASE, invocation.position)


def _renewed(state: State, turn: Turn, fact: LeaseRenewed) -> None:
    invocation = turn.members[fact.invocation_id]
    invocation.phase = _ON_RENEWED[invocation.phase]
    _lease(state, invocation, fact.lease_until)


def _succeeded(_: State, turn: Turn, fact: ToolExecutionSucceeded) -> None:
    invocation = turn.members[fact.invocation_id]
    invocation.phase = _ON_SUCCEEDED[invocation.phase]
    invocation.outcome = unchecked.call_result(
        invocation_id=invocation.invocation_id,
        tool_name=invocation.tool_name,
        status=_SUCCEEDED,
        result=fact.result,
        error=None,
        reason=None,
        provider_call_id=invocation.provider_call_id,
    )
    _ended(turn, invocation)


def _failed(_: State, turn: Turn, fact: ToolExecutionFailed) -> None:
    invocation = turn.members[fact.invocation_id]
    invocation.phase = _ON_FAILED[invocation.phase]
    invocation.outcome = unchecked.call_result(
        invocation_id=invocation.invocation_id,
        tool_name=invocation.tool_name,
        status=_FAILED,
        result=ABSENT,
        error=fact.error,
        reason=None,
        provider_call_id=invocation.provider_call_id,
    )
    _ended(turn, invocation)


def _ended(turn: Turn, invocation: Invocation) -> None:
    """Drop what only a life needs, and count one fewer (K-50)."""
    invocation.arguments = None
    invocation.digest = None
    invocation.deadline = None
    invocation.worker = None
    turn.live -= 1


def _in_doubt(_: State, turn: Turn, fact: ExecutionInDoubt) -> None:
    invocation = turn.members[fact.invocation_id]
    invocation.phase = _ON_IN_DOUBT[invocation.phase]
    invocation.worker = None
    invocation.deadline = None


def _authorised(_: State, turn: Turn, fact: RetryAuthorised) -> None:
    invocation = turn.members[fact.invocation_id]
    invocation.phase = _ON_AUTHORISED[invocation.phase]


def _opened(state: State, _: None, fact: TurnOpened) -> None:
    state.epoch = fact.epoch
    turn = state.turn = Turn(
        turn_id=fact.turn_id,
        phase=_SEALED if fact.sealed else _OPEN,
        scope=turn_scope(state.prefix, fact.epoch, fact.turn_id),
    )
    for call in fact.calls:
        turn.add(call)


def _call_added(_: State, turn: Turn, fact: CallAdded) -> None:
    turn.phase = TURN_FOLD[fact.type][turn.phase]
    turn.add(fact.call)


def _sealed(_: State, turn: Turn, fact: TurnSealed) -> None:
    turn.phase = TURN_FOLD[fact.type][turn.phase]


def _interrupting(state: State, turn: Turn, fact: TurnInterrupting) -> None:
    turn.phase = TURN_FOLD[fact.type][turn.phase]
    turn.grace_until = fact.grace_until
    arm(state.deadlines, fact.grace_until, GRACE, 0)
    withdrawn = FOLD[fact.type]
    for invocation in turn.order:
        invocation.phase = withdrawn.get(invocation.phase, invocation.phase)


def _settled(state: State, turn: Turn, fact: TurnSettled) -> None:
    turn.phase = TURN_FOLD[fact.type][turn.phase]
    results = [done.outcome for done in turn.order if done.outcome is not None]
    if results:  # a turn without calls settles without a continuation (K-52)
        taking = unchecked.continue_(
            effect_id=continue_id(turn.scope), turn_id=turn.turn_id, results=tuple(results)
        )
        state.continuations[turn.turn_id] = unchecked.owed(effect=taking, settled=fact.sequence)
    _close(state, turn, fact)


def _interrupted(state: State, turn: Turn, fact: TurnInterrupted) -> None:
    turn.phase = TURN_FOLD[fact.type][turn.phase]
    _close(state, turn, fact)


def _close(state: State, turn: Turn, fact: TurnSettled | TurnInterrupted) -> None:
    state.memory.close(turn.turn_id, tuple(turn.members), at=fact.at)
    state.grants.end_with_turn()
    state.turn = None


def _taken(state: State, _: Turn | None, fact: ContinuationTaken) -> None:
    del state.continuations[fact.turn_id]


def _issued(state: State, _: Turn | None, fact: GrantIssued) -> None:
    number = state.grants.issued + 1
    state.grants.issue(
        Grant(
            grant_id=fact.grant_id,
            number=number,
            tool_name=fact.tool_name,
            match=fact.match,
            arguments_digest=fact.arguments_digest,
            scope=fact.scope,
            expires_at=fact.expires_at,
        )
    )
    if fact.expires_at is not None:
        arm(state.deadlines, fact.expires_at, GRANT, number)


def _ended_grant(state: State, _: Turn | None, fact: GrantRevoked | GrantExpired) -> None:
    state.grants.end(fact.grant_id)


EVOLVERS: Final[dict[FactType, Callable[[State, Any, Any], None]]] = {
    FactType.TOOL_APPROVAL_REQUESTED: _approval_requested,
    FactType.TOOL_APPROVED: _approved,
    FactType.TOOL_DENIED: _denied,
    FactType.TOOL_EXECUTION_STARTED: _started,
    FactType.TOOL_EXECUTION_SUCCEEDED: _succeeded,
    FactType.TOOL_EXECUTION_FAILED: _failed,
    FactType.TURN_OPENED: _opened,
    FactType.CALL_ADDED: _call_added,
    FactType.TURN_SEALED: _sealed,
    FactType.TURN_SETTLED: _settled,
    FactType.TURN_INTERRUPTING: _interrupting,
    FactType.TURN_INTERRUPTED: _interrupted,
    FactType.CONTINUATION_TAKEN: _taken,
    FactType.EXECUTION_IN_DOUBT: _in_doubt,
    FactType.RETRY_AUTHORISED: _authorised,
    FactType.EXECUTION_RETRIED: _started,
    FactType.LEASE_RENEWED: _renewed,
    FactType.GRANT_ISSUED: _issued,
    FactType.GRANT_REVOKED: _ended_grant,
    FactType.GRANT_EXPIRED: _ended_grant,
}
