"""The words of one invocation's machine: phases, inputs, guards (kernel.md section 6)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Phase(StrEnum):
    """Where an invocation stands; the last three are the end.

    RETRY_AUTHORISED is IN_DOUBT with one more attempt allowed and not yet claimed (K-31): a phase
    of its own, because it decides what a claim means, and an interrupt takes it back (K-60).
    """

    REQUESTED = "REQUESTED"
    APPROVED = "APPROVED"
    STARTED = "STARTED"
    IN_DOUBT = "IN_DOUBT"
    RETRY_AUTHORISED = "RETRY_AUTHORISED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    DENIED = "DENIED"


REQUESTED: Final = Phase.REQUESTED
APPROVED: Final = Phase.APPROVED
STARTED: Final = Phase.STARTED
IN_DOUBT: Final = Phase.IN_DOUBT
RETRY_AUTHORISED: Final = Phase.RETRY_AUTHORISED
SUCCEEDED: Final = Phase.SUCCEEDED
FAILED: Final = Phase.FAILED
DENIED: Final = Phase.DENIED
"""Bound once: on CPython 3.11 looking a member up on its class costs as much as a small call."""

RANK: Final = {
    Phase.REQUESTED: 0,
    Phase.APPROVED: 1,
    Phase.STARTED: 2,
    Phase.IN_DOUBT: 2,
    Phase.RETRY_AUTHORISED: 2,
    Phase.SUCCEEDED: 3,
    Phase.FAILED: 3,
    Phase.DENIED: 3,
}

READY: Final = frozenset({Phase.REQUESTED, Phase.APPROVED, Phase.RETRY_AUTHORISED})
"""Where an executor may claim, unless approval is awaited (K-33)."""

DOUBTED: Final = frozenset({Phase.IN_DOUBT, Phase.RETRY_AUTHORISED})
"""It was started, and nobody knows whether it happened (K-35), a retry authorised or not."""

TERMINAL: Final = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.DENIED})


class Guard(StrEnum):
    """The answers to the questions below; each is a condition that holds or does not."""

    GATED = "gated"
    FREE = "free"
    SHOWN = "shown"
    NOT_SHOWN = "not_shown"
    GRANTS_FULL = "grants_full"
    SAME_WORKER = "same_worker"
    OTHER_WORKER = "other_worker"
    OWNED = "owned"
    OBSERVED = "observed"
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
    RETRY = "is it ours to start again, and may it still?"
    APPROVED_ALIKE = "is it the recorded approval?"
    DECIDED_IF_AT_ALL = "is it the recorded decision, if there is one?"
    EVER_DECIDED = "was any decision recorded?"
    OUTCOME_ALIKE = "is it the recorded outcome?"


QUESTIONS: Final[dict[str, tuple[str, ...]]] = {
    Question.GATE: (Guard.GATED, Guard.FREE),
    Question.APPROVAL: (Guard.SHOWN, Guard.FREE, Guard.NOT_SHOWN, Guard.GRANTS_FULL),
    Question.HOLDER: (Guard.SAME_WORKER, Guard.OTHER_WORKER),
    Question.RETRY: (Guard.OWNED, Guard.OBSERVED, Guard.INTERRUPTING),
    Question.APPROVED_ALIKE: (Guard.SAME_APPROVAL, Guard.OTHER_APPROVAL),
    Question.DECIDED_IF_AT_ALL: (Guard.SAME_DECISION, Guard.OTHER_DECISION, Guard.NO_DECISION),
    Question.EVER_DECIDED: (Guard.DECIDED, Guard.NO_DECISION),
    Question.OUTCOME_ALIKE: (Guard.SAME_OUTCOME, Guard.OTHER_OUTCOME),
}
