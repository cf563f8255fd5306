"""What the closed lists mean, a sentence each: reasons, phases, statuses."""

from __future__ import annotations

from typing import Final

from ..lifecycle.phases import Phase
from ..models.reasons import Reason
from .call_view import CallView, Waits

REASONS: Final[dict[Reason, str]] = {
    Reason.RUN_MISMATCH: "it is for another run",
    Reason.LATE: "its turn has closed",
    Reason.NO_ACTIVE_TURN: "no turn is open",
    Reason.TURN_MISMATCH: "it is for another turn than the open one",
    Reason.UNKNOWN_INVOCATION: "the turn has no such call",
    Reason.AMBIGUOUS_INVOCATION: "an earlier turn had a call with this id: name the turn",
    Reason.STALE_ATTEMPT: "it is of another attempt than the current one",
    Reason.STALE_EPOCH: "the turn was opened before, or another was",
    Reason.TURN_OPEN: "this turn is open already",
    Reason.TURN_BUSY: "another turn is open",
    Reason.TURN_REUSED: "a turn with this id has closed, or its results are still owed",
    Reason.DUPLICATE_INVOCATION: "two calls of the turn would have one id",
    Reason.EMPTY_TURN: "a sealed turn has calls",
    Reason.TURN_SEALED: "no more calls may be added",
    Reason.INTERRUPTING: "the turn is being stopped",
    Reason.DUPLICATE: "what it asks for holds already",
    Reason.CONFLICTING_DUPLICATE: "another outcome was reported first, and stays",
    Reason.ALREADY_DECIDED: "it was decided otherwise before",
    Reason.NOT_AWAITING_APPROVAL: "nobody was asked about this call",
    Reason.NOT_APPROVED: "the call waits for approval",
    Reason.NOT_STARTED: "the call was not started",
    Reason.ALREADY_STARTED: "the call was started already",
    Reason.ALREADY_SETTLED: "the call has ended",
    Reason.NOT_AUTHORISED: "the call is in doubt, and no retry was authorised",
    Reason.NOT_IN_DOUBT: "the call is not in doubt",
    Reason.LEASE_LOST: "the lease ran out, and the call is in doubt",
    Reason.ARGUMENTS_MISMATCH: "other arguments wait than were shown",
    Reason.NO_CONTINUATION: "no results of this turn are owed",
    Reason.UNKNOWN_GRANT: "no such grant is in force",
    Reason.NOT_OWNED: "another runtime starts this call: it is not ours to retry",
    Reason.LIMIT_REACHED: "a limit of the run is reached",
}
"""Why a delivery was refused (kernel.md section 11)."""


def refused(reason: Reason, *, long: bool = False) -> str:
    """Tell a refusal: its reason, and in the long form what that means."""
    return f"refused: {reason}" + (f" – {REASONS[reason]}" if long else "")


PHASES: Final[dict[Phase, str]] = {
    Phase.REQUESTED: "requested",
    Phase.APPROVED: "approved",
    Phase.STARTED: "running",
    Phase.IN_DOUBT: "in doubt",
    Phase.RETRY_AUTHORISED: "may be retried",
    Phase.SUCCEEDED: "succeeded",
    Phase.FAILED: "failed",
    Phase.DENIED: "denied",
}
"""Where a call stands."""


def stands(call: CallView) -> str:
    """Say where a call stands, and what a requested one waits for."""
    if call.phase is not Phase.REQUESTED:
        return PHASES[call.phase]
    return "asks for approval" if call.waits is Waits.APPROVAL else "ready"
