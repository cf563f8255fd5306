"""The settlement machine as one total table (kernel.md section 8; K-4, K-5, K-50 … K-53).

`settle` is the one door (K-51): it is asked after whatever may have made the last member terminal,
after a seal and after an interrupt, and it alone closes a turn.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ..machines.rows import ALWAYS, Machine, Row, fold_of, moves, refuses, rests, table_of
from ..models.fact import FactType
from ..models.reasons import Reason
from .phases import QUESTIONS, RANK, TurnGuard, TurnInput, TurnPhase

TurnRow: TypeAlias = Row[TurnPhase, TurnInput]

OPEN = TurnPhase.OPEN
SEALED = TurnPhase.SEALED
INTERRUPTING = TurnPhase.INTERRUPTING
SETTLED = TurnPhase.SETTLED
INTERRUPTED = TurnPhase.INTERRUPTED

_MORE_MAY_COME = "members may still be added"
_NOT_YET = "a member is not terminal"
_CLOSED = "a closed turn is no longer the active one"
_NO_GRACE = "no grace runs in this phase"


def _closed(phase: TurnPhase) -> tuple[TurnRow, ...]:
    """Answer what admission already calls late: here for totality."""
    return (
        refuses(phase, TurnInput.ADD_CALL, Reason.LATE, possible=False),
        refuses(phase, TurnInput.SEAL_TURN, Reason.LATE, possible=False),
        refuses(phase, TurnInput.INTERRUPT, Reason.LATE, possible=False),
        rests(phase, TurnInput.GRACE_OVER, _CLOSED, possible=False),
        rests(phase, TurnInput.SETTLE, _CLOSED, possible=False),
    )


_OPEN = (
    moves(OPEN, TurnInput.ADD_CALL, OPEN, FactType.CALL_ADDED, when=TurnGuard.NEW),
    refuses(OPEN, TurnInput.ADD_CALL, Reason.DUPLICATE_INVOCATION, when=TurnGuard.KNOWN),
    refuses(OPEN, TurnInput.ADD_CALL, Reason.LIMIT_REACHED, when=TurnGuard.FULL),
    moves(OPEN, TurnInput.SEAL_TURN, SEALED, FactType.TURN_SEALED),
    moves(OPEN, TurnInput.INTERRUPT, INTERRUPTING, FactType.TURN_INTERRUPTING),
    rests(OPEN, TurnInput.GRACE_OVER, _NO_GRACE, possible=False),
    rests(OPEN, TurnInput.SETTLE, _MORE_MAY_COME, when=TurnGuard.COMPLETE),
    rests(OPEN, TurnInput.SETTLE, _MORE_MAY_COME, when=TurnGuard.INCOMPLETE),
)

_SEALED = (
    refuses(SEALED, TurnInput.ADD_CALL, Reason.TURN_SEALED),
    refuses(SEALED, TurnInput.SEAL_TURN, Reason.DUPLICATE),
    moves(SEALED, TurnInput.INTERRUPT, INTERRUPTING, FactType.TURN_INTERRUPTING),
    rests(SEALED, TurnInput.GRACE_OVER, _NO_GRACE, possible=False),
    moves(SEALED, TurnInput.SETTLE, SETTLED, FactType.TURN_SETTLED, when=TurnGuard.COMPLETE),
    rests(SEALED, TurnInput.SETTLE, _NOT_YET, when=TurnGuard.INCOMPLETE),
)

_INTERRUPTING = (
    refuses(INTERRUPTING, TurnInput.ADD_CALL, Reason.INTERRUPTING),
    refuses(INTERRUPTING, TurnInput.SEAL_TURN, Reason.INTERRUPTING),
    refuses(INTERRUPTING, TurnInput.INTERRUPT, Reason.DUPLICATE),
    rests(INTERRUPTING, TurnInput.GRACE_OVER, "every member left fails; then settle closes"),
    moves(
        INTERRUPTING,
        TurnInput.SETTLE,
        INTERRUPTED,
        FactType.TURN_INTERRUPTED,
        when=TurnGuard.COMPLETE,
    ),
    rests(INTERRUPTING, TurnInput.SETTLE, _NOT_YET, when=TurnGuard.INCOMPLETE),
)

TURN: Final[Machine[TurnPhase, TurnInput]] = Machine(
    name="turn",
    phases=TurnPhase,
    inputs=TurnInput,
    initial=(OPEN, SEALED),
    rank=RANK,
    questions=QUESTIONS,
    rows=_OPEN + _SEALED + _INTERRUPTING + _closed(SETTLED) + _closed(INTERRUPTED),
)

_TABLE = table_of(TURN.rows)

FOLD: Final = fold_of(TURN.rows)
"""Where a fact leads from a phase: what the fold of a journal looks up."""


def step(phase: TurnPhase, input: TurnInput, guard: str = ALWAYS) -> TurnRow:  # noqa: A002
    """Return the row for this phase, input and guard. This is the one reader of the table."""
    return _TABLE[phase, input, guard]
