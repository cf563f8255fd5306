"""The makers that the kernel uses for what it emits (see `models.record.unchecked_maker`).

They trust their arguments: every value that goes in here was checked when its delivery was built.
The makers of facts read what all facts have off the state, the turn and the invocation; the rest
are keyword arguments with the names of the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..lifecycle.invocation import Decision
from ..models.calls import CallResult
from ..models.effects import Cancel, Continue, Execute, Wake
from ..models.facts import (
    CallAdded,
    ContinuationTaken,
    ExecutionInDoubt,
    ExecutionRetried,
    Fact,
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
from ..models.record import unchecked_maker, unchecked_maker_from
from ..models.verdicts import Accepted, Refused
from .state import Owed

R = TypeVar("R")

_RUN = {"run": "state.run"}
_FACT = {
    "run_id": "run.run_id",
    "sequence": "number",
    "commit": "number",  # right for the last fact of a receive; `seal_commit` corrects the others
    "at": "now",
    "input": "input_",
}
_TURN = {**_FACT, "turn_id": "turn.turn_id"}
_INVOCATION = {**_TURN, "invocation_id": "invocation.invocation_id"}
_LIFECYCLE = {
    **_INVOCATION,
    "tool_name": "invocation.tool_name",
    "agent_id": "run.agent_id",
    "agent_name": "run.agent_name",
}


def _of_invocation(cls: Callable[..., R], fields: dict[str, str]) -> Callable[..., R]:
    context = ("state", "turn", "invocation", "now", "number", "input_")
    return unchecked_maker_from(cls, context=context, shorthand=_RUN, fields=fields)


def _of_turn(cls: Callable[..., R]) -> Callable[..., R]:
    context = ("state", "turn", "now", "number", "input_")
    return unchecked_maker_from(cls, context=context, shorthand=_RUN, fields=_TURN)


def _of_run(cls: Callable[..., R]) -> Callable[..., R]:
    return unchecked_maker_from(
        cls, context=("state", "now", "number", "input_"), shorthand=_RUN, fields=_FACT
    )


tool_approval_requested = _of_invocation(ToolApprovalRequested, _LIFECYCLE)
tool_approved = _of_invocation(ToolApproved, _LIFECYCLE)
tool_denied = _of_invocation(ToolDenied, _LIFECYCLE)
tool_execution_started = _of_invocation(ToolExecutionStarted, _LIFECYCLE)
tool_execution_succeeded = _of_invocation(ToolExecutionSucceeded, _LIFECYCLE)
tool_execution_failed = _of_invocation(ToolExecutionFailed, _LIFECYCLE)
execution_in_doubt = _of_invocation(ExecutionInDoubt, _INVOCATION)
retry_authorised = _of_invocation(RetryAuthorised, _INVOCATION)
execution_retried = _of_invocation(ExecutionRetried, _INVOCATION)
lease_renewed = _of_invocation(LeaseRenewed, _INVOCATION)

turn_opened = _of_turn(TurnOpened)
call_added = _of_turn(CallAdded)
turn_sealed = _of_turn(TurnSealed)
turn_settled = _of_turn(TurnSettled)
turn_interrupting = _of_turn(TurnInterrupting)
turn_interrupted = _of_turn(TurnInterrupted)
continuation_taken = _of_turn(ContinuationTaken)

grant_issued = _of_run(GrantIssued)
grant_revoked = _of_run(GrantRevoked)
grant_expired = _of_run(GrantExpired)

cancel = unchecked_maker(Cancel)
continue_ = unchecked_maker(Continue)
execute = unchecked_maker(Execute)
wake = unchecked_maker(Wake)

accepted = unchecked_maker(Accepted)
refused = unchecked_maker(Refused)
call_result = unchecked_maker(CallResult)
owed = unchecked_maker(Owed)
decision = unchecked_maker(Decision)

_set_commit = vars(Fact)["commit"].__set__


def seal_commit(facts: Sequence[Fact]) -> None:
    """Write into each fact of one receive the sequence of the last of them (K-9).

    Facts are made with their own sequence there, which is right for the last. The others are
    corrected here, before anybody has seen them.
    """
    last = facts[-1].sequence
    for fact in facts[:-1]:
        _set_commit(fact, last)
