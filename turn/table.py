"""The settlement machine as one total table (kernel.md section 8; K-4, K-5, K-50 … K-53).

`settle` is the one door (K-51): it is asked after whatever may have made the last member terminal,
after a seal and after an interrupt, and it alone closes a turn.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ..machines.rows import ALWAYS, Machine, Row, fold_of, machine, moves, refuses, rests, table_of
from ..models.fact import FactType
from ..models.inputs import OF_TURNS, Input
from ..models.reasons import Reason
from .phases import QUESTIONS, RANK, TurnGuard, TurnPhase

TurnRow: TypeAlias = Row[TurnPhase, Input]

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
        refuses(phase, Input.ADD_CALL, Reason.LATE, "K-22", possible=False),
        refuses(phase, Input.SEAL_TURN, Reason.LATE, "K-22", possible=False),
        refuses(phase, Input.INTERRUPT, Reason.LATE, "K-22", possible=False),
        rests(phase, Input.GRACE_OVER, _CLOSED, "K-54", possible=False),
        rests(phase, Input.SETTLE, _CLOSED, "K-54", possible=False),
    )


_OPEN = (
    moves(OPEN, Input.ADD_CALL, OPEN, FactType.CALL_ADDED, "K-22", when=TurnGuard.NEW),
    refuses(OPEN, Input.ADD_CALL, Reason.DUPLICATE_INVOCATION, "K-22", when=TurnGuard.KNOWN),
    refuses(OPEN, Input.ADD_CALL, Reason.LIMIT_REACHED, "K-56", when=TurnGuard.FULL),
    moves(OPEN, Input.SEAL_TURN, SEALED, FactType.TURN_SEALED, "K-22"),
    moves(OPEN, Input.INTERRUPT, INTERRUPTING, FactType.TURN_INTERRUPTING, "K-53"),
    rests(OPEN, Input.GRACE_OVER, _NO_GRACE, "K-53", possible=False),
    rests(OPEN, Input.SETTLE, _MORE_MAY_COME, "K-50", when=TurnGuard.COMPLETE),
    rests(OPEN, Input.SETTLE, _MORE_MAY_COME, "K-50", when=TurnGuard.INCOMPLETE),
)

_SEALED = (
    refuses(SEALED, Input.ADD_CALL, Reason.TURN_SEALED, "K-22"),
    refuses(SEALED, Input.SEAL_TURN, Reason.DUPLICATE, "K-22"),
    moves(SEALED, Input.INTERRUPT, INTERRUPTING, FactType.TURN_INTERRUPTING, "K-53"),
    rests(SEALED, Input.GRACE_OVER, _NO_GRACE, "K-53", possible=False),
    moves(SEALED, Input.SETTLE, SETTLED, FactType.TURN_SETTLED, "K-50", when=TurnGuard.COMPLETE),
    rests(SEALED, Input.SETTLE, _NOT_YET, "K-50", when=TurnGuard.INCOMPLETE),
)

_INTERRUPTING = (
    refuses(INTERRUPTING, Input.ADD_CALL, Reason.INTERRUPTING, "K-22"),
    refuses(INTERRUPTING, Input.SEAL_TURN, Reason.INTERRUPTING, "K-22"),
    refuses(INTERRUPTING, Input.INTERRUPT, Reason.DUPLICATE, "K-53"),
    rests(INTERRUPTING, Input.GRACE_OVER, "every member left fails; then settle closes", "K-53"),
    moves(
        INTERRUPTING,
        Input.SETTLE,
        INTERRUPTED,
        FactType.TURN_INTERRUPTED,
        "K-53",
        when=TurnGuard.COMPLETE,
    ),
    rests(INTERRUPTING, Input.SETTLE, _NOT_YET, "K-50", when=TurnGuard.INCOMPLETE),
)

TURN: Final[Machine[TurnPhase, Input]] = machine(
    name="turn",
    phases=TurnPhase,
    inputs=OF_TURNS,
    initial=(OPEN, SEALED),
    rank=RANK,
    questions=QUESTIONS,
    rows=_OPEN + _SEALED + _INTERRUPTING + _closed(SETTLED) + _closed(INTERRUPTED),
)

_TABLE = table_of(TURN.rows)

FOLD: Final = fold_of(TURN.rows)
"""Where a fact leads from a phase: what the fold of a journal looks up."""


def step(phase: TurnPhase, input: Input, guard: str = ALWAYS) -> TurnRow:  # noqa: A002
    """Return the row for this phase, input and guard. This is the one reader of the table."""
    return _TABLE[phase, input, guard]
