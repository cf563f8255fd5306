"""What can bring a fact about: the closed list of inputs (kernel.md section 4, K-59).

The inputs of both machines stand here under one name each, so that a fact can say which of them
brought it about; the last few ask no table: the delivery's type, or the deadline, is their name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Input(StrEnum):
    """One way in which something comes to a machine, or past it, and leaves facts."""

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
    """A grant that covers the call."""
    ADD_CALL = "add_call"
    SEAL_TURN = "seal_turn"
    SETTLE = "settle"
    """Asked after all else: is every member terminal? (K-51)"""
    OPEN_TURN = "open_turn"
    ACKNOWLEDGE = "acknowledge"
    REVOKE = "revoke"
    GRANT_OVER = "grant_over"


OF_INVOCATIONS: Final = (
    Input.APPROVE,
    Input.DENY,
    Input.CLAIM,
    Input.RENEW,
    Input.REJECT,
    Input.REPORT_RESULT,
    Input.REPORT_ERROR,
    Input.LOSE,
    Input.RESOLVE_RETRY,
    Input.RESOLVE_RESULT,
    Input.RESOLVE_ERROR,
    Input.INTERRUPT,
    Input.APPROVAL_OVER,
    Input.LEASE_OVER,
    Input.GRACE_OVER,
    Input.GRANT,
)
"""What can come to an invocation: deliveries, then deadlines, then a grant that covers it."""

OF_TURNS: Final = (
    Input.ADD_CALL,
    Input.SEAL_TURN,
    Input.INTERRUPT,
    Input.GRACE_OVER,
    Input.SETTLE,
)
"""What can come to a turn; `settle` asks, after all else, whether every member is terminal."""
