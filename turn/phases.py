"""The words of the settlement machine: its phases, its inputs, its guards (kernel.md section 8)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class TurnPhase(StrEnum):
    """Where a turn stands. Members may be added while OPEN; the last two are closed."""

    OPEN = "OPEN"
    SEALED = "SEALED"
    INTERRUPTING = "INTERRUPTING"
    SETTLED = "SETTLED"
    INTERRUPTED = "INTERRUPTED"


RANK: Final = {
    TurnPhase.OPEN: 0,
    TurnPhase.SEALED: 1,
    TurnPhase.INTERRUPTING: 2,
    TurnPhase.SETTLED: 3,
    TurnPhase.INTERRUPTED: 3,
}


class TurnGuard(StrEnum):
    """The answers to the questions below."""

    NEW = "new"
    KNOWN = "known"
    FULL = "full"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"


QUESTIONS: Final[dict[str, tuple[str, ...]]] = {
    "is the call new to the turn, and is there room?": (
        TurnGuard.NEW,
        TurnGuard.KNOWN,
        TurnGuard.FULL,
    ),
    "is every member terminal?": (TurnGuard.COMPLETE, TurnGuard.INCOMPLETE),
}
