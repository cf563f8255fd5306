"""Why a delivery was refused: the closed list of kernel.md section 11.

The reason is part of the contract: some bugs can be seen from outside only through it.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """One reason for each way in which a delivery can be wrong."""

    RUN_MISMATCH = "run_mismatch"
    LATE = "late"
    NO_ACTIVE_TURN = "no_active_turn"
    TURN_MISMATCH = "turn_mismatch"
    UNKNOWN_INVOCATION = "unknown_invocation"
    AMBIGUOUS_INVOCATION = "ambiguous_invocation"
    STALE_ATTEMPT = "stale_attempt"
    STALE_EPOCH = "stale_epoch"
    TURN_OPEN = "turn_open"
    TURN_BUSY = "turn_busy"
    TURN_REUSED = "turn_reused"
    DUPLICATE_INVOCATION = "duplicate_invocation"
    EMPTY_TURN = "empty_turn"
    TURN_SEALED = "turn_sealed"
    INTERRUPTING = "interrupting"
    DUPLICATE = "duplicate"
    CONFLICTING_DUPLICATE = "conflicting_duplicate"
    ALREADY_DECIDED = "already_decided"
    NOT_AWAITING_APPROVAL = "not_awaiting_approval"
    NOT_APPROVED = "not_approved"
    NOT_STARTED = "not_started"
    ALREADY_STARTED = "already_started"
    ALREADY_SETTLED = "already_settled"
    NOT_AUTHORISED = "not_authorised"
    NOT_IN_DOUBT = "not_in_doubt"
    LEASE_LOST = "lease_lost"
    ARGUMENTS_MISMATCH = "arguments_mismatch"
    NO_CONTINUATION = "no_continuation"
    UNKNOWN_GRANT = "unknown_grant"
    NOT_OWNED = "not_owned"
    LIMIT_REACHED = "limit_reached"
