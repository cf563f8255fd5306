"""What happens because time has passed (K-11, K-34): one due deadline, and its facts.

The caller asks again after each one, because the facts of one deadline may end another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..lifecycle.phases import Input
from ..lifecycle.table import step
from ..models.facts import DenialCause, Fact, FailureCause
from ..models.ids import grant_id
from ..turn.turn import Turn
from . import minting
from .deadlines import DeadlineKind
from .invocation_facts import in_doubt
from .state import State

EXPIRED: Final = "approval expired"
"""What an approval deadline says (section 6)."""
UNKNOWN: Final = "interrupted; outcome unknown"
"""What the end of the grace says to an invocation that has not reported (K-53)."""


def lapsed(state: State, now: float) -> list[Fact]:
    """Return the facts of the earliest deadline if it is over at `now`, else none."""
    heap = state.deadlines
    if not heap or heap[0][0] >= now:
        return []
    _, kind, order = heap[0]
    if kind is DeadlineKind.GRANT:
        return _grant_over(state, order, now)
    turn = state.turn
    return [] if turn is None else _TURN_DEADLINES[kind](state, turn, order, now)


def _approval_over(state: State, turn: Turn, order: int, now: float) -> list[Fact]:
    number = state.sequence + 1
    cause = DenialCause.EXPIRY
    return [
        minting.tool_denied(
            state, turn, turn.order[order], now, number, reason=EXPIRED, cause=cause
        )
    ]


def _lease_over(state: State, turn: Turn, order: int, now: float) -> list[Fact]:
    return in_doubt(state, turn, turn.order[order], None, now)


def _grace_over(state: State, turn: Turn, _: int, now: float) -> list[Fact]:
    return [
        minting.tool_execution_failed(
            state,
            turn,
            invocation,
            now,
            number,
            error=UNKNOWN,
            cause=FailureCause.INTERRUPTED,
        )
        for number, invocation in enumerate(turn.unfinished(), start=state.sequence + 1)
    ]


def _grant_over(state: State, order: int, now: float) -> list[Fact]:
    turn_id = None if state.turn is None else state.turn.turn_id
    grant = grant_id(state.run.run_id, order)
    number = state.sequence + 1
    return [minting.grant_expired(state, now, number, turn_id=turn_id, grant_id=grant)]


_TURN_DEADLINES: Final[dict[DeadlineKind, Callable[[State, Turn, int, float], list[Fact]]]] = {
    DeadlineKind.APPROVAL: _approval_over,
    DeadlineKind.LEASE: _lease_over,
    DeadlineKind.GRACE: _grace_over,
}
