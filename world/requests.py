"""Approvals as messages: what the facts of a member's run say to people (W-40, W-43, W-46).

None of it stands in a log, so none can be forged there, nor differ from what waits: each is a
projection of facts, by the one fold of turns that there is. What is told of a call beside its fact
– its arguments, who decided – is its view after that fact.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, TypeAlias

import attrs

from ..models.calls import Status
from ..models.deliveries import Resolution, Scope
from ..models.facts import (
    ContinuationTaken,
    DenialCause,
    ExecutionInDoubt,
    Fact,
    ToolApprovalRequested,
    ToolApproved,
    ToolDenied,
    ToolExecutionFailed,
    ToolExecutionSucceeded,
    TurnFact,
    TurnOpened,
)
from ..models.values import ABSENT, NO_ARGUMENTS, Json
from ..views.call_view import CallView
from ..views.run_view import RunView
from ..views.turn_view import TurnView, impossible
from .names import decision_id, doubt_id, member_of, request_id, result_id

TOOL_NAME: Final = "client.requestApproval"
"""What a request calls itself, as a tool of whoever shows it (W-40)."""
CHOICES: Final = (str(Scope.ONCE), str(Scope.SESSION), "deny")
"""What a request may be answered (W-40)."""
ANSWERS: Final = tuple(map(str, Resolution))
"""What a doubt may be answered, as `resolve` takes it (W-46)."""


def _agent(call: CallView) -> str:
    member = member_of(call.run_id)
    return call.run_id if member is None else member.agent


def _asks(call: CallView) -> dict[str, Json]:
    return {
        "tool_name": call.tool_name,
        "arguments": NO_ARGUMENTS if call.arguments is None else call.arguments,
        "arguments_digest": call.arguments_digest,
        "deadline": call.deadline,
    }


@attrs.frozen(kw_only=True)
class Request:
    """Somebody is asked whether a call may run (W-40)."""

    role: ClassVar[str] = "request"
    call: CallView
    sequence: int | None = None
    """That of the fact that says so; None where it was made of a view."""
    at: float | None = None

    @property
    def id(self) -> str:
        """Names one call of one turn of one run, and nothing else (W-42)."""
        return request_id(self.call.run_id, self.call.turn_id, self.call.invocation_id)

    def as_json(self) -> dict[str, Json]:
        """Return it as the wire says it."""
        return {
            "role": self.role,
            "id": self.id,
            "agent": _agent(self.call),
            "tool_name": TOOL_NAME,
            "asks": _asks(self.call),
            "choices": list(CHOICES),
        }


@attrs.frozen(kw_only=True)
class Decision:
    """Somebody, or a grant, has decided about a call (W-43)."""

    role: ClassVar[str] = "decision"
    call: CallView
    sequence: int | None = None
    at: float | None = None

    @property
    def id(self) -> str:
        """Names the call that was decided about."""
        return decision_id(self.call.run_id, self.call.turn_id, self.call.invocation_id)

    def as_json(self) -> dict[str, Json]:
        """Return it as the wire says it."""
        made = self.call.decision
        approved = made is not None and made.approved
        said: dict[str, Json] = {
            "role": self.role,
            "id": self.id,
            "agent": _agent(self.call),
            "tool_name": self.call.tool_name,
            "approved": approved,
            "decided_by": None if made is None else made.by,
            "scope": str(made.scope) if made is not None and approved else None,
            "grant_id": None if made is None else made.grant_id,
            "reason": None if made is None else made.reason,
        }
        if made is not None and made.arguments is not None:
            said["arguments"] = made.arguments  # edited: these run, and not those that were asked
        return said


@attrs.frozen(kw_only=True)
class ToolResult:
    """What became of a call (W-43)."""

    role: ClassVar[str] = "tool"
    call: CallView
    sequence: int | None = None
    at: float | None = None

    @property
    def id(self) -> str:
        """Names the call that has ended."""
        return result_id(self.call.run_id, self.call.turn_id, self.call.invocation_id)

    def as_json(self) -> dict[str, Json]:
        """Return it as the wire says it."""
        said: dict[str, Json] = {
            "role": self.role,
            "id": self.id,
            "agent": _agent(self.call),
            "tool_name": self.call.tool_name,
        }
        outcome = self.call.outcome
        if outcome is None:
            return said
        said["status"] = str(outcome.status)
        if outcome.status is Status.SUCCEEDED:
            said["result"] = None if outcome.result is ABSENT else outcome.result
        elif outcome.status is Status.FAILED:
            said["error"] = outcome.error
        else:
            said["reason"] = outcome.reason
        return said


@attrs.frozen(kw_only=True)
class Doubt:
    """A call was started, and nobody knows whether it happened (W-46)."""

    role: ClassVar[str] = "doubt"
    call: CallView
    sequence: int | None = None
    at: float | None = None

    @property
    def id(self) -> str:
        """Names the attempt that nobody knows about."""
        at = self.call
        return doubt_id(at.run_id, at.turn_id, at.invocation_id, at.attempt)

    def as_json(self) -> dict[str, Json]:
        """Return it as the wire says it."""
        asks = _asks(self.call)
        return {
            "role": self.role,
            "id": self.id,
            "agent": _agent(self.call),
            "attempt": self.call.attempt,
            "asks": {"tool_name": asks["tool_name"], "arguments": asks["arguments"]},
            "choices": list(ANSWERS),
        }


Projection: TypeAlias = Request | Decision | ToolResult | Doubt
"""A message that no log holds."""


class Projections:
    """The fold of one run's facts into these messages: those of the open turn are remembered."""

    def __init__(self, view: RunView | None = None) -> None:
        """Begin before the first fact of a run, or after those that a view was made of."""
        self._turn: TurnView | None = None if view is None else view.turn

    def take(self, fact: Fact) -> tuple[Projection, ...]:
        """Take the next fact of the run, and return what it says to people.

        Raises `CorruptJournal` for a fact that cannot be where it stands.
        """
        if isinstance(fact, ContinuationTaken) or not isinstance(fact, TurnFact):
            return ()
        if isinstance(fact, TurnOpened):
            self._turn = TurnView.opened(fact)
            return ()
        turn = self._turn
        if turn is None or turn.turn_id != fact.turn_id:
            raise impossible(fact, f"turn {fact.turn_id!r} is not the active one")
        turn = turn.after(fact)
        self._turn = None if turn.closed else turn
        return tuple(_said_by(fact, turn))


def waiting(view: RunView) -> tuple[Request, ...]:
    """Return the requests of a run that wait for a decision, in expected order."""
    return tuple(Request(call=call, at=call.asked_at) for call in view.waiting)


def doubts(view: RunView) -> tuple[Doubt, ...]:
    """Return the doubts of a run that wait for somebody who knows, in expected order."""
    return tuple(
        Doubt(call=call, at=call.since) for call in view.in_doubt if not call.retry_authorised
    )


def _said_by(fact: TurnFact, turn: TurnView) -> Iterator[Projection]:
    """Yield what a fact says, with its call as it is after it."""
    if not isinstance(fact, _TELLING):
        return
    call = turn.calls.get(fact.invocation_id)
    if call is None:
        return
    for kind in _kinds(fact):
        yield kind(call=call, sequence=fact.sequence, at=fact.at)


_TELLING: Final = (
    ToolApprovalRequested,
    ToolApproved,
    ToolDenied,
    ToolExecutionSucceeded,
    ToolExecutionFailed,
    ExecutionInDoubt,
)


def _kinds(fact: TurnFact) -> tuple[type[Projection], ...]:
    if isinstance(fact, ToolApprovalRequested):
        return (Request,)
    if isinstance(fact, ToolApproved):
        return (Decision,)
    if isinstance(fact, ToolDenied):
        decided = fact.cause is DenialCause.DECISION
        return (Decision, ToolResult) if decided else (ToolResult,)
    return (Doubt,) if isinstance(fact, ExecutionInDoubt) else (ToolResult,)
