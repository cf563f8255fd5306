"""Why the kernel's refusal of what the normaliser said is to be expected (S-38).

The normaliser speaks of what it heard; meanwhile people decide, deadlines run out and turns are
interrupted. Each pair below is one such race, or one thing that Codex does. What is not listed is a
defect, of ours or of the runtime, and is never explained away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...models.deliveries import (
    AddCall,
    Claim,
    Decide,
    Delivery,
    Interrupt,
    Lose,
    Reject,
    Report,
    Resolve,
    SealTurn,
)
from ...models.reasons import Reason
from ...models.verdicts import Refused
from .telling import BY_RUNTIME

_CLOSED: Final = "its turn was closed meanwhile: it was interrupted, and its grace was over"
_STOPPED: Final = "its turn is being interrupted, and takes nothing more"
_NOT_ADDED: Final = "it was not added: its turn was being interrupted; it is held for the next one"
_NEVER_IN: Final = "its turn was closed before it could be added; it is added to the next one"
_ENDED: Final = "it was denied, or ended, meanwhile"

_EXPECTED: Final[Mapping[tuple[type[Delivery], Reason], str]] = {
    (AddCall, Reason.INTERRUPTING): _STOPPED,
    (AddCall, Reason.LATE): _CLOSED,
    (SealTurn, Reason.INTERRUPTING): _STOPPED,
    (SealTurn, Reason.LATE): _CLOSED,
    (Interrupt, Reason.DUPLICATE): "somebody here asked for it before the runtime said it",
    (Interrupt, Reason.LATE): _CLOSED,
    (Claim, Reason.ALREADY_SETTLED): "it ran though it was denied, or ended, meanwhile",
    (Claim, Reason.DUPLICATE): "its start was recorded before its permission was passed on",
    (Claim, Reason.UNKNOWN_INVOCATION): _NOT_ADDED,
    (Claim, Reason.LATE): _CLOSED,
    (Claim, Reason.NO_ACTIVE_TURN): _NEVER_IN,
    (Report, Reason.ALREADY_SETTLED): "it ran though it was denied meanwhile",
    (Report, Reason.UNKNOWN_INVOCATION): _NOT_ADDED,
    (Report, Reason.CONFLICTING_DUPLICATE): "a person, or an end of grace, settled it before",
    (Report, Reason.LATE): _CLOSED,
    (Report, Reason.NO_ACTIVE_TURN): _NEVER_IN,
    (Reject, Reason.ALREADY_SETTLED): _ENDED,
    (Reject, Reason.ALREADY_STARTED): "it was let start meanwhile",
    (Reject, Reason.UNKNOWN_INVOCATION): _NOT_ADDED,
    (Reject, Reason.LATE): _CLOSED,
    (Reject, Reason.NO_ACTIVE_TURN): _NEVER_IN,
    (Lose, Reason.ALREADY_SETTLED): _ENDED,
    (Lose, Reason.UNKNOWN_INVOCATION): _NOT_ADDED,
    (Lose, Reason.LATE): _CLOSED,
    (Lose, Reason.NO_ACTIVE_TURN): _NEVER_IN,
    (Resolve, Reason.ALREADY_SETTLED): _ENDED,
    (Resolve, Reason.UNKNOWN_INVOCATION): _NOT_ADDED,
    (Resolve, Reason.LATE): _CLOSED,
    (Resolve, Reason.NO_ACTIVE_TURN): _NEVER_IN,
}
_DECIDED: Final[Mapping[Reason, str]] = {
    Reason.DUPLICATE: "somebody here decided the same before the runtime's word of it came",
    Reason.ALREADY_DECIDED: "somebody here decided, or the turn was interrupted, before it came",
    Reason.LATE: _CLOSED,
    Reason.NO_ACTIVE_TURN: _NEVER_IN,
}


def explained(delivery: Delivery, refused: Refused) -> str | None:
    """Return why a delivery of the normaliser was refused; None: that is a defect."""
    if isinstance(delivery, Decide):
        return _DECIDED.get(refused.reason) if delivery.decided_by == BY_RUNTIME else None
    return _EXPECTED.get((type(delivery), refused.reason))
