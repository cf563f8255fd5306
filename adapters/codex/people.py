"""What a recorded client told its process, taken for what people decided.

The client answered requests itself, in forms that we never use (`acceptForSession`, amendments,
`cancel`): an approval of it is one of ours, `cancel` an interrupt (S-35).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from typing import Any, Final

from ...models.deliveries import Decide, Delivery, Interrupt, Report
from ...models.errors import InvalidValue
from ...models.reasons import Reason
from ...models.verdicts import Refused
from .answers import ELICITATION, PERMISSIONS_APPROVAL
from .messages import object_of

CLIENT: Final = "the recorded client"
NO_WORDS: Final = "the client answered with an error"


class Decided(StrEnum):
    """What an answer to a request says of a call that waits for a decision."""

    APPROVED = "approved"
    DENIED = "denied"
    INTERRUPTED = "interrupted"


def decided(method: str, answer: Mapping[str, Any]) -> Decided:
    """Say what an answer of the client decides; an error decides against it."""
    result = object_of(answer.get("result"))
    if method == PERMISSIONS_APPROVAL:
        return Decided.APPROVED if result.get("permissions") else Decided.DENIED
    if method == ELICITATION:
        return Decided.APPROVED if result.get("action") == "accept" else Decided.DENIED
    decision = result.get("decision")
    if decision == "cancel":
        return Decided.INTERRUPTED
    accepts = isinstance(decision, dict) or str(decision).startswith(("accept", "approved"))
    return Decided.APPROVED if accepts else Decided.DENIED


def delivered(
    by: Decided, *, turn_id: str, invocation_id: str, digest: str | None
) -> Decide | Interrupt:
    """Return the delivery of a decision about a call; `digest` is that which was shown (S-40)."""
    if by is Decided.INTERRUPTED:
        return Interrupt(turn_id=turn_id, reason="cancelled")
    return Decide(
        turn_id=turn_id,
        invocation_id=invocation_id,
        approved=by is Decided.APPROVED,
        decided_by=CLIENT,
        arguments_digest=digest,
    )


def reported(answer: Mapping[str, Any], *, turn_id: str, invocation_id: str) -> Report:
    """Return the outcome of an owned call, which the client performed (S-28)."""
    report = partial(Report, turn_id=turn_id, invocation_id=invocation_id)
    result, error = answer.get("result"), answer.get("error")
    if "error" in answer:
        words = object_of(error).get("message")
        return report(error=words if isinstance(words, str) and words else NO_WORDS)
    if object_of(result).get("success") is False:
        return report(error=str(object_of(result).get("contentItems")) or NO_WORDS)
    try:
        return report(result=result)
    except InvalidValue as wrong:
        return report(error=f"the client answered what is no value: {wrong}")


_OVER: Final = frozenset(
    {Reason.LATE, Reason.NO_ACTIVE_TURN, Reason.TURN_MISMATCH, Reason.INTERRUPTING}
)
_STANDS: Final = frozenset(
    {
        Reason.DUPLICATE,
        Reason.CONFLICTING_DUPLICATE,
        Reason.ALREADY_DECIDED,
        Reason.ALREADY_SETTLED,
        Reason.NOT_AWAITING_APPROVAL,
    }
)


def why_refused(delivery: Delivery, refused: Refused) -> str | None:
    """Say why a refusal of what the client decided is to be expected; None: it is not."""
    reason = refused.reason
    if isinstance(delivery, Interrupt) and reason in _OVER | {Reason.DUPLICATE}:
        return "the client interrupts a turn that is being stopped, is over, or never was"
    if isinstance(delivery, Decide | Report) and reason in _OVER:
        return "the client answered when the turn was over"
    if isinstance(delivery, Decide | Report) and reason in _STANDS:
        return "the client answered when that was settled; what came first counts (K-30)"
    return None
