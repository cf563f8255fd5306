"""What happens because time has passed (K-11, K-34): one due deadline, and its facts.

The caller asks again after each one, because the facts of one deadline may end another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ..lifecycle.invocation import Invocation
from ..models.fact import FactType
from ..models.facts import Fact
from ..models.ids import grant_id
from ..models.inputs import Input
from ..turn.turn import Turn
from . import unchecked
from .admission import row_for
from .new_facts import in_doubt
from .state import APPROVAL, GRACE, GRANT, State

EXPIRED: Final = "approval expired"
"""What an approval deadline says (section 6)."""
UNKNOWN: Final = "interrupted; outcome unknown"
"""What the end of the grace says to an invocation that has not reported (K-53)."""


def expired(state: State, now: float) -> list[Fact]:
    """Return the facts of the earliest deadline if it is over at `now`, else none."""
    heap = state.deadlines
    if not heap or heap[0][0] >= now:
        return []
    _, kind, order = heap[0]
    turn = state.turn
    if turn is None or kind is GRANT:
        return _grant_over(state, order, now)
    if kind is GRACE:
        return list(_over(state, turn, turn.order, Input.GRACE_OVER, now))
    input_ = Input.APPROVAL_OVER if kind is APPROVAL else Input.LEASE_OVER
    return list(_over(state, turn, [turn.order[order]], input_, now))


def _over(
    state: State, turn: Turn, invocations: Iterable[Invocation], input_: Input, now: float
) -> Iterator[Fact]:
    """Ask the table what the end of a deadline means to each invocation (K-4)."""
    number = state.sequence
    for invocation in invocations:
        row = row_for(state, invocation, input_)
        if row.fact is None:
            continue
        number += 1
        if row.fact is FactType.TOOL_DENIED:
            yield unchecked.tool_denied(
                state,
                turn,
                invocation,
                now,
                number,
                row.input,
                reason=EXPIRED,
                error=None,
                cause=row.cause,
                decided_by=None,
            )
        elif row.fact is FactType.EXECUTION_IN_DOUBT:
            yield from in_doubt(state, turn, invocation, row, None, now)
        else:
            yield unchecked.tool_execution_failed(
                state,
                turn,
                invocation,
                now,
                number,
                row.input,
                error=UNKNOWN,
                cause=row.cause,
            )


def _grant_over(state: State, order: int, now: float) -> list[Fact]:
    turn_id = None if state.turn is None else state.turn.turn_id
    grant = grant_id(state.run.run_id, order)
    number = state.sequence + 1
    return [
        unchecked.grant_expired(
            state, now, number, Input.GRANT_OVER, turn_id=turn_id, grant_id=grant
        )
    ]
