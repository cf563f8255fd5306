"""The rows that move, and wrong tables: one row changed in each, and the property it breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnlock.lifecycle.phases import Guard, Phase
from turnlock.lifecycle.table import INVOCATION
from turnlock.machines.rows import ALWAYS, Machine, Row
from turnlock.models.fact import FactType
from turnlock.models.inputs import Input
from turnlock.models.record import changed
from turnlock.turn.phases import TurnGuard, TurnPhase
from turnlock.turn.table import TURN
from turnlock.verification.exports.derive import derive
from turnlock.verification.exports.model import Model, Scope

ROWS: Final[tuple[Row[Any, Any], ...]] = (*INVOCATION.rows, *TURN.rows)
MOVING: Final = tuple(str(row) for row in ROWS if row.fact is not None)
"""The rows of both tables that move something, read aloud."""


def with_row(
    machine: Machine[Any, Any], phase: str, input_: str, guard: str = ALWAYS, **change: object
) -> Machine[Any, Any]:
    """The machine with one row changed; that row must be there."""
    key = (phase, input_, guard)
    assert key in {(row.phase, row.input, row.guard) for row in machine.rows}
    rows = tuple(
        changed(row, **change) if (row.phase, row.input, row.guard) == key else row
        for row in machine.rows
    )
    return changed(machine, rows=rows)


def row(phase: Phase, input_: Input, guard: str = ALWAYS, **change: object) -> Model:
    """The model of one invocation whose table has this row changed."""
    wrong = with_row(INVOCATION, phase, input_, guard, **change)
    return derive(Scope(invocations=1), invocation=wrong)


def turn_row(phase: TurnPhase, input_: Input, guard: str = ALWAYS, **change: object) -> Model:
    """The model of one invocation in a turn whose table has this row changed."""
    return derive(Scope(invocations=1), turn=with_row(TURN, phase, input_, guard, **change))


PLANTS: Final[dict[str, Callable[[], Model]]] = {
    "ExactlyOneContinuation": lambda: turn_row(
        TurnPhase.INTERRUPTING,
        Input.SETTLE,
        TurnGuard.COMPLETE,
        fact=FactType.TURN_SETTLED,
    ),
    "NeverDeniedAndStarted": lambda: row(
        Phase.STARTED, Input.LOSE, target=Phase.DENIED, fact=FactType.TOOL_DENIED
    ),
    "RunsOnlyWhatWasOwed": lambda: row(
        Phase.REQUESTED,
        Input.CLAIM,
        Guard.GATED,
        reason=None,
        target=Phase.STARTED,
        fact=FactType.TOOL_EXECUTION_STARTED,
    ),
    "ClosedIffAllTerminal": lambda: turn_row(
        TurnPhase.SEALED,
        Input.SETTLE,
        TurnGuard.COMPLETE,
        target=TurnPhase.SEALED,
        fact=None,
        note="nobody closes it",
    ),
    "RankNeverFalls": lambda: row(
        Phase.STARTED, Input.LOSE, target=Phase.APPROVED, fact=FactType.TOOL_APPROVED
    ),
}
