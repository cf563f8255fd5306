"""The words of one invocation's machine: phases, inputs, guards (kernel.md section 6)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Phase(StrEnum):
    """Where an invocation stands; STARTED and IN_DOUBT share a rank, the last three are the end."""

    REQUESTED = "REQUESTED"
    APPROVED = "APPROVED"
    STARTED = "STARTED"
    IN_DOUBT = "IN_DOUBT"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    DENIED = "DENIED"


RANK: Final = {
    Phase.REQUESTED: 0,
    Phase.APPROVED: 1,
    Phase.STARTED: 2,
    Phase.IN_DOUBT: 2,
    Phase.SUCCEEDED: 3,
    Phase.FAILED: 3,
    Phase.DENIED: 3,
}

TERMINAL: Final = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.DENIED})


class Input(StrEnum):
    """What can come to an invocation: deliveries, then deadlines, then a grant that covers it."""

    APPROVE = "approve"
    DENY = "deny"
    CLAIM = "claim"
    RENEW = "renew"
    REJECT = "reject"
    REPORT_RESULT = "report_result"
    REPORT_ERROR = "report_error"
    LOSE = "lose"
    RESOLVE_RETRY = "resolve_retry"
    RESOLVE_RESULT = "resolve_result"
    RESOLVE_ERROR = "resolve_error"
    INTERRUPT = "interrupt"
    APPROVAL_OVER = "approval_over"
    LEASE_OVER = "lease_over"
    GRACE_OVER = "grace_over"
    GRANT = "grant"


class Guard(StrEnum):
    """The answers to the questions below; each is a condition that holds or does not."""

    GATED = "gated"
    FREE = "free"
    SHOWN = "shown"
    NOT_SHOWN = "not_shown"
    GRANTS_FULL = "grants_full"
    SAME_WORKER = "same_worker"
    OTHER_WORKER = "other_worker"
    AUTHORISED = "authorised"
    UNAUTHORISED = "unauthorised"
    FIRST_ASKED = "first_asked"
    ASKED_AGAIN = "asked_again"
    INTERRUPTING = "interrupting"
    SAME_APPROVAL = "same_approval"
    OTHER_APPROVAL = "other_approval"
    SAME_DECISION = "same_decision"
    OTHER_DECISION = "other_decision"
    NO_DECISION = "no_decision"
    DECIDED = "decided"
    SAME_OUTCOME = "same_outcome"
    OTHER_OUTCOME = "other_outcome"


class Question(StrEnum):
    """What a pair with several rows asks. Of its answers exactly one holds."""

    GATE = "does it wait for approval?"
    APPROVAL = "does it wait for approval, of what was shown, and is there room for a grant?"
    HOLDER = "who holds it?"
    RETRY = "was a retry authorised?"
    RETRY_ASKED = "may a retry be authorised?"
    APPROVED_ALIKE = "is it the recorded approval?"
    DECIDED_IF_AT_ALL = "is it the recorded decision, if there is one?"
    EVER_DECIDED = "was any decision recorded?"
    OUTCOME_ALIKE = "is it the recorded outcome?"


QUESTIONS: Final[dict[str, tuple[str, ...]]] = {
    Question.GATE: (Guard.GATED, Guard.FREE),
    Question.APPROVAL: (Guard.SHOWN, Guard.FREE, Guard.NOT_SHOWN, Guard.GRANTS_FULL),
    Question.HOLDER: (Guard.SAME_WORKER, Guard.OTHER_WORKER),
    Question.RETRY: (Guard.AUTHORISED, Guard.UNAUTHORISED),
    Question.RETRY_ASKED: (Guard.FIRST_ASKED, Guard.ASKED_AGAIN, Guard.INTERRUPTING),
    Question.APPROVED_ALIKE: (Guard.SAME_APPROVAL, Guard.OTHER_APPROVAL),
    Question.DECIDED_IF_AT_ALL: (Guard.SAME_DECISION, Guard.OTHER_DECISION, Guard.NO_DECISION),
    Question.EVER_DECIDED: (Guard.DECIDED, Guard.NO_DECISION),
    Question.OUTCOME_ALIKE: (Guard.SAME_OUTCOME, Guard.OTHER_OUTCOME),
}
