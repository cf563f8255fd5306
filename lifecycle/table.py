"""The invocation machine as one total table (kernel.md section 6; K-4, K-5, K-60).

Read a row aloud: *moves(REQUESTED, DENY, DENIED, TOOL_DENIED, "K-31", when=GATED)* – in REQUESTED,
on a deny, when it is gated, TOOL_DENIED happens and the phase becomes DENIED; rule K-31 wants it.
`step` is the one function that reads it; nothing else moves a phase. The proof runs with the tests,
and on demand: `prove`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ..machines.rows import ALWAYS, Machine, Row, fold_of, machine, moves, refuses, rests, table_of
from ..models.fact import FactType
from ..models.inputs import OF_INVOCATIONS, Input
from ..models.lifecycle_facts import DenialCause, FailureCause
from ..models.reasons import Reason
from .phases import (
    APPROVED,
    DENIED,
    FAILED,
    IN_DOUBT,
    QUESTIONS,
    RANK,
    REQUESTED,
    RETRY_AUTHORISED,
    STARTED,
    SUCCEEDED,
    Guard,
    Phase,
)

InvocationRow: TypeAlias = Row[Phase, Input]

STARTS = FactType.TOOL_EXECUTION_STARTED
SUCCEEDS = FactType.TOOL_EXECUTION_SUCCEEDED
FAILS = FactType.TOOL_EXECUTION_FAILED

_NO_DEADLINE = "no such deadline runs in this phase"
_NOT_PENDING = "a grant concerns only what waits for approval"
_UNTOUCHED = "what is true stays true"


def _never_due(phase: Phase, *inputs: Input) -> tuple[InvocationRow, ...]:
    return tuple(rests(phase, it, _NO_DEADLINE, "K-34", possible=False) for it in inputs)


def _not_in_doubt(phase: Phase) -> tuple[InvocationRow, ...]:
    return (
        refuses(phase, Input.RESOLVE_RETRY, Reason.NOT_IN_DOUBT, "K-35"),
        refuses(phase, Input.RESOLVE_RESULT, Reason.NOT_IN_DOUBT, "K-35"),
        refuses(phase, Input.RESOLVE_ERROR, Reason.NOT_IN_DOUBT, "K-35"),
    )


def _not_started(phase: Phase) -> tuple[InvocationRow, ...]:
    return (
        refuses(phase, Input.RENEW, Reason.NOT_STARTED, "K-34"),
        refuses(phase, Input.REPORT_RESULT, Reason.NOT_STARTED, "K-33"),
        refuses(phase, Input.REPORT_ERROR, Reason.NOT_STARTED, "K-33"),
        refuses(phase, Input.LOSE, Reason.NOT_STARTED, "K-35"),
        *_not_in_doubt(phase),
        *_never_due(phase, Input.LEASE_OVER, Input.GRACE_OVER),
    )


def _in_doubt(phase: Phase) -> tuple[InvocationRow, ...]:
    """Answer what comes while nobody knows whether it happened, a retry authorised or not."""
    return (
        refuses(phase, Input.RENEW, Reason.LEASE_LOST, "K-34"),
        refuses(phase, Input.REJECT, Reason.ALREADY_STARTED, "K-33"),
        moves(phase, Input.REPORT_RESULT, SUCCEEDED, SUCCEEDS, "K-35"),
        moves(phase, Input.REPORT_ERROR, FAILED, FAILS, "K-35", cause=FailureCause.REPORTED),
        refuses(phase, Input.LOSE, Reason.DUPLICATE, "K-35"),
        moves(phase, Input.RESOLVE_RESULT, SUCCEEDED, SUCCEEDS, "K-35"),
        moves(phase, Input.RESOLVE_ERROR, FAILED, FAILS, "K-35", cause=FailureCause.RESOLVED),
        *_decided_if_at_all(phase),
        *_never_due(phase, Input.APPROVAL_OVER, Input.LEASE_OVER),
    )


def _decided_if_at_all(phase: Phase) -> tuple[InvocationRow, ...]:
    """Answer a decision after the start: D of section 6."""
    return (
        refuses(phase, Input.APPROVE, Reason.DUPLICATE, "K-31", when=Guard.SAME_DECISION),
        refuses(phase, Input.APPROVE, Reason.ALREADY_DECIDED, "K-31", when=Guard.OTHER_DECISION),
        refuses(phase, Input.APPROVE, Reason.NOT_AWAITING_APPROVAL, "K-31", when=Guard.NO_DECISION),
        refuses(phase, Input.DENY, Reason.ALREADY_DECIDED, "K-31", when=Guard.DECIDED),
        refuses(phase, Input.DENY, Reason.NOT_AWAITING_APPROVAL, "K-31", when=Guard.NO_DECISION),
        rests(phase, Input.GRANT, _NOT_PENDING, "K-41"),
    )


def _settled(phase: Phase) -> tuple[InvocationRow, ...]:
    """Answer what comes after the end: a terminal phase absorbs."""
    return (
        refuses(phase, Input.CLAIM, Reason.ALREADY_SETTLED, "K-33"),
        refuses(phase, Input.RENEW, Reason.ALREADY_SETTLED, "K-34"),
        refuses(phase, Input.REJECT, Reason.ALREADY_SETTLED, "K-30"),
        refuses(phase, Input.LOSE, Reason.ALREADY_SETTLED, "K-30"),
        refuses(phase, Input.RESOLVE_RETRY, Reason.ALREADY_SETTLED, "K-30"),
        refuses(phase, Input.RESOLVE_RESULT, Reason.ALREADY_SETTLED, "K-30"),
        refuses(phase, Input.RESOLVE_ERROR, Reason.ALREADY_SETTLED, "K-30"),
        rests(phase, Input.INTERRUPT, _UNTOUCHED, "K-53"),
        rests(phase, Input.GRACE_OVER, _UNTOUCHED, "K-53"),
        *_never_due(phase, Input.APPROVAL_OVER, Input.LEASE_OVER),
    )


_REQUESTED = (
    moves(REQUESTED, Input.APPROVE, APPROVED, FactType.TOOL_APPROVED, "K-31", when=Guard.SHOWN),
    refuses(REQUESTED, Input.APPROVE, Reason.NOT_AWAITING_APPROVAL, "K-31", when=Guard.FREE),
    refuses(REQUESTED, Input.APPROVE, Reason.ARGUMENTS_MISMATCH, "K-32", when=Guard.NOT_SHOWN),
    refuses(REQUESTED, Input.APPROVE, Reason.LIMIT_REACHED, "K-56", when=Guard.GRANTS_FULL),
    moves(
        REQUESTED,
        Input.DENY,
        DENIED,
        FactType.TOOL_DENIED,
        "K-31",
        when=Guard.GATED,
        cause=DenialCause.DECISION,
    ),
    refuses(REQUESTED, Input.DENY, Reason.NOT_AWAITING_APPROVAL, "K-31", when=Guard.FREE),
    refuses(REQUESTED, Input.CLAIM, Reason.NOT_APPROVED, "K-33", when=Guard.GATED),
    moves(REQUESTED, Input.CLAIM, STARTED, STARTS, "K-33", when=Guard.FREE),
    moves(REQUESTED, Input.REJECT, FAILED, FAILS, "K-51", cause=FailureCause.REJECTED),
    moves(
        REQUESTED,
        Input.INTERRUPT,
        DENIED,
        FactType.TOOL_DENIED,
        "K-53",
        cause=DenialCause.INTERRUPT,
    ),
    moves(
        REQUESTED,
        Input.APPROVAL_OVER,
        DENIED,
        FactType.TOOL_DENIED,
        "K-34",
        cause=DenialCause.EXPIRY,
    ),
    moves(REQUESTED, Input.GRANT, APPROVED, FactType.TOOL_APPROVED, "K-41", when=Guard.GATED),
    rests(REQUESTED, Input.GRANT, _NOT_PENDING, "K-41", when=Guard.FREE),
    *_not_started(REQUESTED),
)

_APPROVED = (
    refuses(APPROVED, Input.APPROVE, Reason.DUPLICATE, "K-31", when=Guard.SAME_APPROVAL),
    refuses(APPROVED, Input.APPROVE, Reason.ALREADY_DECIDED, "K-31", when=Guard.OTHER_APPROVAL),
    refuses(APPROVED, Input.DENY, Reason.ALREADY_DECIDED, "K-31"),
    moves(APPROVED, Input.CLAIM, STARTED, STARTS, "K-33"),
    moves(APPROVED, Input.REJECT, FAILED, FAILS, "K-51", cause=FailureCause.REJECTED),
    moves(
        APPROVED,
        Input.INTERRUPT,
        DENIED,
        FactType.TOOL_DENIED,
        "K-53",
        cause=DenialCause.INTERRUPT,
    ),
    rests(APPROVED, Input.GRANT, _NOT_PENDING, "K-41"),
    *_not_started(APPROVED),
    *_never_due(APPROVED, Input.APPROVAL_OVER),
)

_STARTED = (
    refuses(STARTED, Input.CLAIM, Reason.DUPLICATE, "K-33", when=Guard.SAME_WORKER),
    refuses(STARTED, Input.CLAIM, Reason.ALREADY_STARTED, "K-33", when=Guard.OTHER_WORKER),
    moves(STARTED, Input.RENEW, STARTED, FactType.LEASE_RENEWED, "K-34"),
    refuses(STARTED, Input.REJECT, Reason.ALREADY_STARTED, "K-33"),
    moves(STARTED, Input.REPORT_RESULT, SUCCEEDED, SUCCEEDS, "K-30"),
    moves(STARTED, Input.REPORT_ERROR, FAILED, FAILS, "K-30", cause=FailureCause.REPORTED),
    moves(STARTED, Input.LOSE, IN_DOUBT, FactType.EXECUTION_IN_DOUBT, "K-35"),
    moves(STARTED, Input.LEASE_OVER, IN_DOUBT, FactType.EXECUTION_IN_DOUBT, "K-34"),
    moves(STARTED, Input.GRACE_OVER, FAILED, FAILS, "K-53", cause=FailureCause.INTERRUPTED),
    rests(STARTED, Input.INTERRUPT, "it runs: a cancel is asked", "K-53"),
    *_decided_if_at_all(STARTED),
    *_not_in_doubt(STARTED),
    *_never_due(STARTED, Input.APPROVAL_OVER),
)

_IN_DOUBT = (
    refuses(IN_DOUBT, Input.CLAIM, Reason.NOT_AUTHORISED, "K-35"),
    moves(
        IN_DOUBT,
        Input.RESOLVE_RETRY,
        RETRY_AUTHORISED,
        FactType.RETRY_AUTHORISED,
        "K-31",
        when=Guard.OWNED,
    ),
    refuses(IN_DOUBT, Input.RESOLVE_RETRY, Reason.NOT_OWNED, "K-58", when=Guard.OBSERVED),
    refuses(IN_DOUBT, Input.RESOLVE_RETRY, Reason.INTERRUPTING, "K-53", when=Guard.INTERRUPTING),
    moves(IN_DOUBT, Input.GRACE_OVER, FAILED, FAILS, "K-53", cause=FailureCause.INTERRUPTED),
    rests(IN_DOUBT, Input.INTERRUPT, "it may still report truthfully", "K-53"),
    *_in_doubt(IN_DOUBT),
)

_RETRY_AUTHORISED = (
    moves(RETRY_AUTHORISED, Input.CLAIM, STARTED, FactType.EXECUTION_RETRIED, "K-31"),
    refuses(RETRY_AUTHORISED, Input.RESOLVE_RETRY, Reason.DUPLICATE, "K-31"),
    moves(RETRY_AUTHORISED, Input.INTERRUPT, IN_DOUBT, FactType.TURN_INTERRUPTING, "K-60"),
    *_in_doubt(RETRY_AUTHORISED),
    *_never_due(RETRY_AUTHORISED, Input.GRACE_OVER),
)

_SUCCEEDED = (
    refuses(SUCCEEDED, Input.REPORT_RESULT, Reason.DUPLICATE, "K-30", when=Guard.SAME_OUTCOME),
    refuses(
        SUCCEEDED,
        Input.REPORT_RESULT,
        Reason.CONFLICTING_DUPLICATE,
        "K-30",
        when=Guard.OTHER_OUTCOME,
    ),
    refuses(SUCCEEDED, Input.REPORT_ERROR, Reason.CONFLICTING_DUPLICATE, "K-30"),
    *_decided_if_at_all(SUCCEEDED),
    *_settled(SUCCEEDED),
)

_FAILED = (
    refuses(FAILED, Input.REPORT_RESULT, Reason.CONFLICTING_DUPLICATE, "K-30"),
    refuses(FAILED, Input.REPORT_ERROR, Reason.DUPLICATE, "K-30", when=Guard.SAME_OUTCOME),
    refuses(
        FAILED, Input.REPORT_ERROR, Reason.CONFLICTING_DUPLICATE, "K-30", when=Guard.OTHER_OUTCOME
    ),
    *_decided_if_at_all(FAILED),
    *_settled(FAILED),
)

_DENIED = (
    refuses(DENIED, Input.APPROVE, Reason.DUPLICATE, "K-31", when=Guard.SAME_DECISION),
    refuses(DENIED, Input.APPROVE, Reason.ALREADY_DECIDED, "K-31", when=Guard.OTHER_DECISION),
    refuses(DENIED, Input.APPROVE, Reason.ALREADY_DECIDED, "K-31", when=Guard.NO_DECISION),
    refuses(DENIED, Input.DENY, Reason.DUPLICATE, "K-31", when=Guard.SAME_DECISION),
    refuses(DENIED, Input.DENY, Reason.ALREADY_DECIDED, "K-31", when=Guard.OTHER_DECISION),
    refuses(DENIED, Input.DENY, Reason.ALREADY_DECIDED, "K-31", when=Guard.NO_DECISION),
    refuses(DENIED, Input.REPORT_RESULT, Reason.ALREADY_SETTLED, "K-31"),
    refuses(DENIED, Input.REPORT_ERROR, Reason.ALREADY_SETTLED, "K-31"),
    rests(DENIED, Input.GRANT, _NOT_PENDING, "K-41"),
    *_settled(DENIED),
)

INVOCATION: Final[Machine[Phase, Input]] = machine(
    name="invocation",
    phases=Phase,
    inputs=OF_INVOCATIONS,
    initial=(REQUESTED,),
    rank=RANK,
    questions=QUESTIONS,
    rows=(
        _REQUESTED
        + _APPROVED
        + _STARTED
        + _IN_DOUBT
        + _RETRY_AUTHORISED
        + _SUCCEEDED
        + _FAILED
        + _DENIED
    ),
)

_TABLE = table_of(INVOCATION.rows)

FOLD: Final = fold_of(INVOCATION.rows)
"""Where a fact leads from a phase: what the fold of a journal looks up."""


def step(phase: Phase, input: Input, guard: str = ALWAYS) -> InvocationRow:  # noqa: A002
    """Return the row for this phase, input and guard. This is the one reader of the table."""
    return _TABLE[phase, input, guard]
