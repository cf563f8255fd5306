"""One turn as its facts tell of it: its phase and its calls.

Phases move by the folds of the kernel's own tables (K-4): nothing here names the phase that follows
another. A turn is folded by itself (`opened`, `after`), or as part of its run (`run_view`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ..lifecycle.table import FOLD
from ..models.calls import Call, CallResult, Status
from ..models.effects import Cancel, Effect, Execute
from ..models.errors import CorruptJournal
from ..models.facts import (
    CallAdded,
    DenialCause,
    ExecutionFact,
    ExecutionInDoubt,
    ExecutionRetried,
    Fact,
    LeaseRenewed,
    LifecycleFact,
    RetryAuthorised,
    ToolApprovalRequested,
    ToolApproved,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionStarted,
    ToolExecutionSucceeded,
    TurnFact,
    TurnInterrupting,
    TurnOpened,
)
from ..models.ids import cancel_id, escape, execute_id, idempotency_key, invocation_path, turn_scope
from ..models.record import Record, changed, field, record
from ..models.values import NO_ARGUMENTS
from ..turn.phases import TurnPhase
from ..turn.table import FOLD as TURN_FOLD
from ..turn.table import TURN
from .call_list import CallList
from .call_view import CallView, DecisionView, OutcomeView, Waits

CLOSED: Final = TURN.terminal


@record
class TurnView(Record):
    """One turn. Times are Unix time in seconds, None where the view was taken from a kernel."""

    run_id: str
    turn_id: str
    epoch: int
    phase: TurnPhase
    calls: CallList = field(factory=CallList)
    """In expected order; `calls.get(invocation_id)` and `calls.waiting_for(…)` find them."""
    grace_until: float | None = None
    """Until when what runs may report while it is being stopped (K-53)."""
    interrupt_reason: str | None = None
    opened_at: float | None = None
    closed_at: float | None = None

    @classmethod
    def opened(cls, fact: TurnOpened) -> TurnView:
        """Begin with the fact that opened it."""
        turn = cls(
            run_id=fact.run_id,
            turn_id=fact.turn_id,
            epoch=fact.epoch,
            phase=TurnPhase.SEALED if fact.sealed else TurnPhase.OPEN,
            opened_at=fact.at,
        )
        calls = CallList.of(
            turn._called(call, place, fact) for place, call in enumerate(fact.calls)
        )
        return changed(turn, calls=calls)

    def after(self, fact: TurnFact) -> TurnView:
        """Return the turn after one of its facts. Raises `CorruptJournal` for one that cannot be.

        Of facts about its calls one call is another afterwards, and the rest is shared.
        """
        if isinstance(fact, LifecycleFact | ExecutionFact):
            call = self.calls.get(fact.invocation_id)
            if call is None:
                raise impossible(fact, f"the turn has no invocation {fact.invocation_id!r}")
            return changed(self, calls=self.calls.with_call(_call_after(call, fact)))
        phase = TURN_FOLD[fact.type].get(self.phase)
        if phase is None:
            raise impossible(fact, f"turn {self.turn_id!r} is {self.phase}")
        if isinstance(fact, CallAdded):
            added = self._called(fact.call, len(self.calls), fact)
            return changed(self, phase=phase, calls=self.calls.with_added(added))
        if isinstance(fact, TurnInterrupting):
            return changed(
                self,
                phase=phase,
                calls=self._interrupted_calls(fact),
                grace_until=fact.grace_until,
                interrupt_reason=fact.reason,
            )
        closed_at = fact.at if phase in CLOSED else None
        return changed(self, phase=phase, closed_at=closed_at)

    @property
    def closed(self) -> bool:
        """Whether it is over."""
        return self.phase in CLOSED

    @property
    def interrupted(self) -> bool:
        """Whether it was stopped: the model is not told."""
        return self.phase is TurnPhase.INTERRUPTED

    @property
    def unfinished(self) -> tuple[CallView, ...]:
        """The calls that have not ended, in expected order."""
        return tuple(self.calls.waiting_for(*UNFINISHED))

    @property
    def scope(self) -> str:
        """Its part of the ids that are made for it (K-7)."""
        return turn_scope(escape(self.run_id), self.epoch, self.turn_id)

    @property
    def results(self) -> tuple[CallResult, ...]:
        """What the model is told of the calls that have ended, in expected order (K-52)."""
        return tuple(result for call in self.calls if (result := call.result) is not None)

    @property
    def owed(self) -> Iterator[Effect]:
        """What is asked of executors: to start what is ready, then to stop what runs (K-3)."""
        for call in self.calls.waiting_for(Waits.CLAIM, Waits.RETRY):
            if call.owed:
                path = invocation_path(self.scope, call.invocation_id)
                yield Execute(
                    effect_id=execute_id(path, call.owed),
                    turn_id=self.turn_id,
                    invocation_id=call.invocation_id,
                    attempt=call.owed,
                    tool_name=call.tool_name,
                    arguments=call.arguments or NO_ARGUMENTS,
                    idempotency_key=idempotency_key(path),
                )
        for call in self.calls.waiting_for(Waits.REPORT):
            if call.cancel_asked:
                path = invocation_path(self.scope, call.invocation_id)
                yield Cancel(
                    effect_id=cancel_id(path, call.attempt),
                    turn_id=self.turn_id,
                    invocation_id=call.invocation_id,
                    attempt=call.attempt,
                )

    def _called(self, call: Call, position: int, fact: Fact) -> CallView:
        return CallView(
            run_id=self.run_id,
            turn_id=self.turn_id,
            epoch=self.epoch,
            position=position,
            invocation_id=call.invocation_id,
            tool_name=call.tool_name,
            arguments=call.arguments,
            requires_approval=call.requires_approval,
            provider_call_id=call.provider_call_id,
            observed=call.observed,
            requested_at=fact.at,
            since=fact.at,
        )

    def _interrupted_calls(self, fact: TurnInterrupting) -> CallList:
        """Mark what has not ended; a retry that was authorised is withdrawn (K-60)."""
        calls = self.calls
        for call in self.unfinished:
            phase = FOLD[fact.type].get(call.phase, call.phase)
            since = call.since if phase is call.phase else fact.at
            marked = changed(call, phase=phase, since=since, interrupting=True)
            calls = calls.with_call(marked)
        return calls


UNFINISHED: Final = tuple(waits for waits in Waits if waits is not Waits.NOTHING)


def _call_after(call: CallView, fact: LifecycleFact | ExecutionFact) -> CallView:
    if isinstance(fact, ToolApprovalRequested):
        return changed(
            call,
            arguments_digest=fact.arguments_digest,
            deadline=fact.deadline,
            asked_at=fact.at,
            since=fact.at,
        )
    phase = FOLD[fact.type].get(call.phase)
    if phase is None:
        raise impossible(fact, f"{call.invocation_id!r} is {call.phase}")
    since = call.since if phase is call.phase else fact.at
    return changed(call, phase=phase, since=since, **_TELLS[type(fact)](call, fact))


_Changes = dict[str, Any]


def _approved(call: CallView, fact: ToolApproved) -> _Changes:
    decision = DecisionView(
        approved=True,
        scope=fact.scope,
        match=fact.match,
        arguments=fact.arguments,
        by=fact.decided_by,
        reason=fact.reason,
        grant_id=fact.grant_id,
        at=fact.at,
        sequence=fact.sequence,
    )
    arguments = call.arguments if fact.arguments is None else fact.arguments
    return {"decision": decision, "arguments": arguments, "deadline": None}


def _denied(call: CallView, fact: ToolDenied) -> _Changes:
    decision = call.decision
    if fact.cause is DenialCause.DECISION:
        decision = DecisionView(
            approved=False,
            by=fact.decided_by,
            reason=fact.reason if fact.reason is not None else fact.error,
            at=fact.at,
            sequence=fact.sequence,
        )
    outcome = OutcomeView(
        status=Status.DENIED,
        reason=fact.reason if fact.reason is not None else fact.error,
        cause=fact.cause,
        at=fact.at,
        sequence=fact.sequence,
    )
    return {"decision": decision, **_ended(outcome)}


def _started(call: CallView, fact: ToolExecutionStarted | ExecutionRetried) -> _Changes:
    return {
        "attempt": fact.attempt,
        "worker": fact.worker,
        "deadline": fact.lease_until,
        "started_at": fact.at if call.started_at is None else call.started_at,
    }


def _renewed(_: CallView, fact: LeaseRenewed) -> _Changes:
    return {"deadline": fact.lease_until}


def _in_doubt(_: CallView, __: ExecutionInDoubt) -> _Changes:
    return {"worker": None, "deadline": None}


def _authorised(_: CallView, __: RetryAuthorised) -> _Changes:
    return {}


def _succeeded(_: CallView, fact: ToolExecutionSucceeded) -> _Changes:
    return _ended(
        OutcomeView(status=Status.SUCCEEDED, result=fact.result, at=fact.at, sequence=fact.sequence)
    )


def _failed(_: CallView, fact: ToolExecutionFailed) -> _Changes:
    return _ended(
        OutcomeView(
            status=Status.FAILED,
            error=fact.error,
            cause=fact.cause,
            at=fact.at,
            sequence=fact.sequence,
        )
    )


def _ended(outcome: OutcomeView) -> _Changes:
    return {"outcome": outcome, "worker": None, "deadline": None, "interrupting": False}


_TELLS: Final[dict[type[Fact], Callable[[CallView, Any], _Changes]]] = {
    ToolApproved: _approved,
    ToolDenied: _denied,
    ToolExecutionStarted: _started,
    ToolExecutionSucceeded: _succeeded,
    ToolExecutionFailed: _failed,
    ExecutionInDoubt: _in_doubt,
    RetryAuthorised: _authorised,
    ExecutionRetried: _started,
    LeaseRenewed: _renewed,
}
"""What each fact tells of its call besides its phase."""


def impossible(fact: Fact, cause: str) -> CorruptJournal:
    """Return the error for a fact that cannot have happened where it stands."""
    return CorruptJournal(
        sequence=fact.sequence,
        cause=f"{fact.type}: {cause}",
        fix="find the line with: turnlock check LOG",
    )
