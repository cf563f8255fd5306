"""The invocation machine as one total table (kernel.md section 6; K-4, K-5).

Read a row aloud: *moves(REQUESTED, DENY, DENIED, TOOL_DENIED, when=GATED)* – in REQUESTED, on a
deny, when it is gated, TOOL_DENIED happens and the phase becomes DENIED. `step` is the one function
that reads it; nothing else moves a phase. The proof runs with the tests, and on demand: `prove`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ..machines.rows import ALWAYS, Machine, Row, fold_of, moves, refuses, rests, table_of
from ..models.fact import FactType
from ..models.reasons import Reason
from .phases import QUESTIONS, RANK, Guard, Input, Phase

InvocationRow: TypeAlias = Row[Phase, Input]

REQUESTED = Phase.REQUESTED
APPROVED = Phase.APPROVED
STARTED = Phase.STARTED
IN_DOUBT = Phase.IN_DOUBT
SUCCEEDED = Phase.SUCCEEDED
FAILED = Phase.FAILED
DENIED = Phase.DENIED

_NO_DEADLINE = "no such deadline runs in this phase"
_NOT_PENDING = "a grant concerns only what waits for approval"
_UNTOUCHED = "what is true stays true (K-53)"


def _never_due(phase: Phase, *inputs: Input) -> tuple[InvocationRow, ...]:
    return tuple(rests(phase, input_, _NO_DEADLINE, possible=False) for input_ in inputs)


def _not_in_doubt(phase: Phase) -> tuple[InvocationRow, ...]:
    return (
        refuses(phase, Input.RESOLVE_RETRY, Reason.NOT_IN_DOUBT),
        refuses(phase, Input.RESOLVE_RESULT, Reason.NOT_IN_DOUBT),
        refuses(phase, Input.RESOLVE_ERROR, Reason.NOT_IN_DOUBT),
    )


def _not_started(phase: Phase) -> tuple[InvocationRow, ...]:
    return (
        refuses(phase, Input.RENEW, Reason.NOT_STARTED),
        refuses(phase, Input.REPORT_RESULT, Reason.NOT_STARTED),
        refuses(phase, Input.REPORT_ERROR, Reason.NOT_STARTED),
        refuses(phase, Input.LOSE, Reason.NOT_STARTED),
        *_not_in_doubt(phase),
        *_never_due(phase, Input.LEASE_OVER, Input.GRACE_OVER),
    )


def _decided_if_at_all(phase: Phase) -> tuple[InvocationRow, ...]:
    """Answer a decision after the start: D of section 6."""
    return (
        refuses(phase, Input.APPROVE, Reason.DUPLICATE, when=Guard.SAME_DECISION),
        refuses(phase, Input.APPROVE, Reason.ALREADY_DECIDED, when=Guard.OTHER_DECISION),
        refuses(phase, Input.APPROVE, Reason.NOT_AWAITING_APPROVAL, when=Guard.NO_DECISION),
        refuses(phase, Input.DENY, Reason.ALREADY_DECIDED, when=Guard.DECIDED),
        refuses(phase, Input.DENY, Reason.NOT_AWAITING_APPROVAL, when=Guard.NO_DECISION),
        rests(phase, Input.GRANT, _NOT_PENDING),
    )


def _settled(phase: Phase) -> tuple[InvocationRow, ...]:
    """Answer what comes after the end: a terminal phase absorbs."""
    return (
        refuses(phase, Input.CLAIM, Reason.ALREADY_SETTLED),
        refuses(phase, Input.RENEW, Reason.ALREADY_SETTLED),
        refuses(phase, Input.REJECT, Reason.ALREADY_SETTLED),
        refuses(phase, Input.LOSE, Reason.ALREADY_SETTLED),
        refuses(phase, Input.RESOLVE_RETRY, Reason.ALREADY_SETTLED),
        refuses(phase, Input.RESOLVE_RESULT, Reason.ALREADY_SETTLED),
        refuses(phase, Input.RESOLVE_ERROR, Reason.ALREADY_SETTLED),
        rests(phase, Input.INTERRUPT, _UNTOUCHED),
        rests(phase, Input.GRACE_OVER, _UNTOUCHED),
        *_never_due(phase, Input.APPROVAL_OVER, Input.LEASE_OVER),
    )


_REQUESTED = (
    moves(REQUESTED, Input.APPROVE, APPROVED, FactType.TOOL_APPROVED, when=Guard.SHOWN),
    refuses(REQUESTED, Input.APPROVE, Reason.NOT_AWAITING_APPROVAL, when=Guard.FREE),
    refuses(REQUESTED, Input.APPROVE, Reason.ARGUMENTS_MISMATCH, when=Guard.NOT_SHOWN),
    refuses(REQUESTED, Input.APPROVE, Reason.LIMIT_REACHED, when=Guard.GRANTS_FULL),
    moves(REQUESTED, Input.DENY, DENIED, FactType.TOOL_DENIED, when=Guard.GATED),
    refuses(REQUESTED, Input.DENY, Reason.NOT_AWAITING_APPROVAL, when=Guard.FREE),
    refuses(REQUESTED, Input.CLAIM, Reason.NOT_APPROVED, when=Guard.GATED),
    moves(REQUESTED, Input.CLAIM, STARTED, FactType.TOOL_EXECUTION_STARTED, when=Guard.FREE),
    moves(REQUESTED, Input.REJECT, FAILED, FactType.TOOL_EXECUTION_FAILED),
    moves(REQUESTED, Input.INTERRUPT, DENIED, FactType.TOOL_DENIED),
    moves(REQUESTED, Input.APPROVAL_OVER, DENIED, FactType.TOOL_DENIED),
    moves(REQUESTED, Input.GRANT, APPROVED, FactType.TOOL_APPROVED, when=Guard.GATED),
    rests(REQUESTED, Input.GRANT, _NOT_PENDING, when=Guard.FREE),
    *_not_started(REQUESTED),
)

_APPROVED = (
    refuses(APPROVED, Input.APPROVE, Reason.DUPLICATE, when=Guard.SAME_APPROVAL),
    refuses(APPROVED, Input.APPROVE, Reason.ALREADY_DECIDED, when=Guard.OTHER_APPROVAL),
    refuses(APPROVED, Input.DENY, Reason.ALREADY_DECIDED),
    moves(APPROVED, Input.CLAIM, STARTED, FactType.TOOL_EXECUTION_STARTED),
    moves(APPROVED, Input.REJECT, FAILED, FactType.TOOL_EXECUTION_FAILED),
    moves(APPROVED, Input.INTERRUPT, DENIED, FactType.TOOL_DENIED),
    rests(APPROVED, Input.GRANT, _NOT_PENDING),
    *_not_started(APPROVED),
    *_never_due(APPROVED, Input.APPROVAL_OVER),
)

_STARTED = (
    refuses(STARTED, Input.CLAIM, Reason.DUPLICATE, when=Guard.SAME_WORKER),
    refuses(STARTED, Input.CLAIM, Reason.ALREADY_STARTED, when=Guard.OTHER_WORKER),
    moves(STARTED, Input.RENEW, STARTED, FactType.LEASE_RENEWED),
    refuses(STARTED, Input.REJECT, Reason.ALREADY_STARTED),
    moves(STARTED, Input.REPORT_RESULT, SUCCEEDED, FactType.TOOL_EXECUTION_SUCCEEDED),
    moves(STARTED, Input.REPORT_ERROR, FAILED, FactType.TOOL_EXECUTION_FAILED),
    moves(STARTED, Input.LOSE, IN_DOUBT, FactType.EXECUTION_IN_DOUBT),
    moves(STARTED, Input.LEASE_OVER, IN_DOUBT, FactType.EXECUTION_IN_DOUBT),
    moves(STARTED, Input.GRACE_OVER, FAILED, FactType.TOOL_EXECUTION_FAILED),
    rests(STARTED, Input.INTERRUPT, "it runs: a cancel is asked (K-53)"),
    *_decided_if_at_all(STARTED),
    *_not_in_doubt(STARTED),
    *_never_due(STARTED, Input.APPROVAL_OVER),
)

_IN_DOUBT = (
    moves(IN_DOUBT, Input.CLAIM, STARTED, FactType.EXECUTION_RETRIED, when=Guard.AUTHORISED),
    refuses(IN_DOUBT, Input.CLAIM, Reason.NOT_AUTHORISED, when=Guard.UNAUTHORISED),
    refuses(IN_DOUBT, Input.RENEW, Reason.LEASE_LOST),
    refuses(IN_DOUBT, Input.REJECT, Reason.ALREADY_STARTED),
    moves(IN_DOUBT, Input.REPORT_RESULT, SUCCEEDED, FactType.TOOL_EXECUTION_SUCCEEDED),
    moves(IN_DOUBT, Input.REPORT_ERROR, FAILED, FactType.TOOL_EXECUTION_FAILED),
    refuses(IN_DOUBT, Input.LOSE, Reason.DUPLICATE),
    moves(
        IN_DOUBT, Input.RESOLVE_RETRY, IN_DOUBT, FactType.RETRY_AUTHORISED, when=Guard.FIRST_ASKED
    ),
    refuses(IN_DOUBT, Input.RESOLVE_RETRY, Reason.DUPLICATE, when=Guard.ASKED_AGAIN),
    refuses(IN_DOUBT, Input.RESOLVE_RETRY, Reason.INTERRUPTING, when=Guard.INTERRUPTING),
    moves(IN_DOUBT, Input.RESOLVE_RESULT, SUCCEEDED, FactType.TOOL_EXECUTION_SUCCEEDED),
    moves(IN_DOUBT, Input.RESOLVE_ERROR, FAILED, FactType.TOOL_EXECUTION_FAILED),
    moves(IN_DOUBT, Input.GRACE_OVER, FAILED, FactType.TOOL_EXECUTION_FAILED),
    rests(IN_DOUBT, Input.INTERRUPT, "an authorised retry is withdrawn (K-53)"),
    *_decided_if_at_all(IN_DOUBT),
    *_never_due(IN_DOUBT, Input.APPROVAL_OVER, Input.LEASE_OVER),
)

_SUCCEEDED = (
    refuses(SUCCEEDED, Input.REPORT_RESULT, Reason.DUPLICATE, when=Guard.SAME_OUTCOME),
    refuses(SUCCEEDED, Input.REPORT_RESULT, Reason.CONFLICTING_DUPLICATE, when=Guard.OTHER_OUTCOME),
    refuses(SUCCEEDED, Input.REPORT_ERROR, Reason.CONFLICTING_DUPLICATE),
    *_decided_if_at_all(SUCCEEDED),
    *_settled(SUCCEEDED),
)

_FAILED = (
    refuses(FAILED, Input.REPORT_RESULT, Reason.CONFLICTING_DUPLICATE),
    refuses(FAILED, Input.REPORT_ERROR, Reason.DUPLICATE, when=Guard.SAME_OUTCOME),
    refuses(FAILED, Input.REPORT_ERROR, Reason.CONFLICTING_DUPLICATE, when=Guard.OTHER_OUTCOME),
    *_decided_if_at_all(FAILED),
    *_settled(FAILED),
)

_DENIED = (
    refuses(DENIED, Input.APPROVE, Reason.DUPLICATE, when=Guard.SAME_DECISION),
    refuses(DENIED, Input.APPROVE, Reason.ALREADY_DECIDED, when=Guard.OTHER_DECISION),
    refuses(DENIED, Input.APPROVE, Reason.ALREADY_DECIDED, when=Guard.NO_DECISION),
    refuses(DENIED, Input.DENY, Reason.DUPLICATE, when=Guard.SAME_DECISION),
    refuses(DENIED, Input.DENY, Reason.ALREADY_DECIDED, when=Guard.OTHER_DECISION),
    refuses(DENIED, Input.DENY, Reason.ALREADY_DECIDED, when=Guard.NO_DECISION),
    refuses(DENIED, Input.REPORT_RESULT, Reason.ALREADY_SETTLED),
    refuses(DENIED, Input.REPORT_ERROR, Reason.ALREADY_SETTLED),
    rests(DENIED, Input.GRANT, _NOT_PENDING),
    *_settled(DENIED),
)

INVOCATION: Final[Machine[Phase, Input]] = Machine(
    name="invocation",
    phases=Phase,
    inputs=Input,
    initial=(REQUESTED,),
    rank=RANK,
    questions=QUESTIONS,
    rows=_REQUESTED + _APPROVED + _STARTED + _IN_DOUBT + _SUCCEEDED + _FAILED + _DENIED,
)

_TABLE = table_of(INVOCATION.rows)

FOLD: Final = fold_of(INVOCATION.rows)
"""Where a fact leads from a phase: what the fold of a journal looks up."""


def step(phase: Phase, input: Input, guard: str = ALWAYS) -> InvocationRow:  # noqa: A002
    """Return the row for this phase, input and guard. This is the one reader of the table."""
    return _TABLE[phase, input, guard]
