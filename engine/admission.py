"""What is asked before a table is read: admission, and the questions of both tables.

Admission is whether a delivery is about something that lives (kernel.md section 5; K-20 … K-22).
Each function returns what it found, or the reason for refusing. The order of the checks is part of
the contract. Which run it is for was checked before (`decide`).

A table says which pair asks which question; here each question has its one answer (sections 6 and
8). A pair that asks nothing costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ..lifecycle.invocation import Decision, Invocation
from ..lifecycle.phases import Guard, Phase, Question
from ..lifecycle.table import INVOCATION, InvocationRow, step
from ..machines.rows import ALWAYS, questions_of
from ..models.calls import Call
from ..models.deliveries import (
    Decide,
    ForTurn,
    OpenTurn,
    Scope,
)
from ..models.inputs import Input
from ..models.reasons import Reason
from ..models.values import same_json
from ..turn.phases import TurnGuard, TurnPhase
from ..turn.table import TURN
from ..turn.turn import Turn
from .state import State


def admit(
    state: State,
    turn_id: str | None,
    invocation_id: str,
    attempt: int | None,
    input: Input,  # noqa: A002 - the word of the spec
    now: float,
) -> Any:  # noqa: ANN401 - an Invocation or a Reason
    """Find the `Invocation` that is meant, or the `Reason` why there is none (section 5, 1 … 4)."""
    turn = state.turn
    if turn is not None and turn_id == turn.turn_id:
        found: Any = turn.members.get(invocation_id, _UNKNOWN_INVOCATION)
    elif turn_id is None:
        found = _admit_without_turn(state, invocation_id, now)
    elif state.memory.holds(turn_id, invocation_id, now=now):
        return _LATE
    else:
        return _NO_ACTIVE_TURN if turn is None else _TURN_MISMATCH
    if attempt is None or type(found) is Reason:
        return found
    # The attempt that counts (section 5, 4): for a claim while an execute is owed the owed one;
    # otherwise, once the invocation was started, the current one; before that, any.
    counts = (input is _CLAIM and found.owed) or found.attempt
    return found if attempt == counts or not counts else _STALE_ATTEMPT


def _admit_without_turn(state: State, invocation_id: str, now: float) -> Invocation | Reason:
    """Find it by its id alone: safe only where no other turn can be meant (K-20)."""
    turn = state.turn
    remembered = state.memory.holds_invocation(invocation_id, now=now)
    invocation = turn.members.get(invocation_id) if turn is not None else None
    if invocation is not None:
        return Reason.AMBIGUOUS_INVOCATION if remembered else invocation
    if remembered:
        return _LATE
    return _NO_ACTIVE_TURN if turn is None else _UNKNOWN_INVOCATION


def admit_to_turn(state: State, delivery: ForTurn, now: float) -> Turn | Reason:
    """Find the turn that a delivery means (K-22)."""
    turn = state.turn
    if turn is not None and turn.turn_id == delivery.turn_id:
        return turn
    if state.memory.holds_turn(delivery.turn_id, now=now):
        return _LATE
    return _NO_ACTIVE_TURN if turn is None else _TURN_MISMATCH


def admit_opening(state: State, delivery: OpenTurn, now: float) -> Reason | None:  # noqa: PLR0911
    """Say why a turn cannot be opened, or None (K-21, K-56). The order is the order written."""
    turn, turn_id, calls = state.turn, delivery.turn_id, delivery.calls
    if turn is not None:
        return Reason.TURN_OPEN if turn.turn_id == turn_id else Reason.TURN_BUSY
    if turn_id in state.continuations or state.memory.holds_turn(turn_id, now=now):
        return Reason.TURN_REUSED
    if delivery.epoch is not None and delivery.epoch != state.epoch + 1:
        return Reason.STALE_EPOCH
    if len({call.invocation_id for call in calls}) < len(calls):
        return Reason.DUPLICATE_INVOCATION
    if delivery.sealed and not calls:
        return Reason.EMPTY_TURN
    limits = state.run.limits
    if len(calls) > limits.calls or len(state.continuations) >= limits.continuations:
        return Reason.LIMIT_REACHED
    return None


_CLAIM: Final = Input.CLAIM
_LATE: Final = Reason.LATE
_NO_ACTIVE_TURN: Final = Reason.NO_ACTIVE_TURN
_STALE_ATTEMPT: Final = Reason.STALE_ATTEMPT
_TURN_MISMATCH: Final = Reason.TURN_MISMATCH
_UNKNOWN_INVOCATION: Final = Reason.UNKNOWN_INVOCATION
_GATED: Final = Guard.GATED
_FREE: Final = Guard.FREE
_SHOWN: Final = Guard.SHOWN
_NOT_SHOWN: Final = Guard.NOT_SHOWN
_SAME_WORKER: Final = Guard.SAME_WORKER
_OTHER_WORKER: Final = Guard.OTHER_WORKER
_SAME_APPROVAL: Final = Guard.SAME_APPROVAL
_OTHER_APPROVAL: Final = Guard.OTHER_APPROVAL
_SAME_DECISION: Final = Guard.SAME_DECISION
_OTHER_DECISION: Final = Guard.OTHER_DECISION
_NO_DECISION: Final = Guard.NO_DECISION
_DECIDED: Final = Guard.DECIDED
_SAME_OUTCOME: Final = Guard.SAME_OUTCOME
_OTHER_OUTCOME: Final = Guard.OTHER_OUTCOME
_INTERRUPTING: Final = TurnPhase.INTERRUPTING
_ONCE: Final = Scope.ONCE
"""Bound once, as the phases are (lifecycle/phases.py)."""

Answer: TypeAlias = "Callable[[State, Invocation, Any], Guard]"


def _gate(_: State, invocation: Invocation, __: object) -> Guard:
    return _GATED if invocation.requires_approval else _FREE


def _approval(state: State, invocation: Invocation, delivery: Decide) -> Guard:
    """Answer K-32 and, checked last, K-56."""
    if not invocation.requires_approval:
        return _FREE
    if delivery.arguments_digest not in (None, invocation.digest):
        return _NOT_SHOWN
    if delivery.scope is not _ONCE and len(state.grants) >= state.run.limits.grants:
        return Guard.GRANTS_FULL
    return _SHOWN


def _holder(_: State, invocation: Invocation, delivery: Any) -> Guard:  # noqa: ANN401 - a Claim
    same = delivery.worker is not None and delivery.worker == invocation.worker
    return _SAME_WORKER if same else _OTHER_WORKER


def _retry(state: State, invocation: Invocation, _: object) -> Guard:
    """Answer K-58 first: what another runtime starts is not ours to start again."""
    if invocation.observed:
        return Guard.OBSERVED
    turn = state.turn
    stopping = turn is not None and turn.phase is _INTERRUPTING
    return Guard.INTERRUPTING if stopping else Guard.OWNED


def _approved_alike(_: State, invocation: Invocation, delivery: Decide) -> Guard:
    same = _same_decision(invocation.decision, delivery)
    return _SAME_APPROVAL if same else _OTHER_APPROVAL


def _decided_alike(_: State, invocation: Invocation, delivery: Decide) -> Guard:
    if invocation.decision is None:
        return _NO_DECISION
    same = _same_decision(invocation.decision, delivery)
    return _SAME_DECISION if same else _OTHER_DECISION


def _same_decision(recorded: Decision | None, delivery: Decide) -> bool:
    """Compare what counts: an approval's scope, its match where that counts, its edits (D)."""
    if recorded is None or delivery.approved is not recorded.approved:
        return False
    return not delivery.approved or (
        delivery.scope is recorded.scope
        and recorded.match in {None, delivery.match}
        and same_json(delivery.arguments, recorded.edited)
    )


def _ever_decided(_: State, invocation: Invocation, __: object) -> Guard:
    return _NO_DECISION if invocation.decision is None else _DECIDED


def _outcome_alike(_: State, invocation: Invocation, delivery: Any) -> Guard:  # noqa: ANN401
    recorded: Any = invocation.outcome
    if delivery.error is not None:
        same = recorded is not None and delivery.error == recorded.error
    else:
        same = recorded is not None and same_json(delivery.result, recorded.result)
    return _SAME_OUTCOME if same else _OTHER_OUTCOME


_ANSWER_TO: Final[dict[Question, Answer]] = {
    Question.GATE: _gate,
    Question.APPROVAL: _approval,
    Question.HOLDER: _holder,
    Question.RETRY: _retry,
    Question.APPROVED_ALIKE: _approved_alike,
    Question.DECIDED_IF_AT_ALL: _decided_alike,
    Question.EVER_DECIDED: _ever_decided,
    Question.OUTCOME_ALIKE: _outcome_alike,
}

_ASKED: Final[dict[Phase, dict[Input, Answer | None]]] = {
    phase: dict.fromkeys(INVOCATION.inputs) for phase in Phase
}
for (_phase, _input), _question in questions_of(INVOCATION).items():
    _ASKED[_phase][_input] = _ANSWER_TO[Question(_question)]


def row_for(
    state: State,
    invocation: Invocation,
    input: Input,  # noqa: A002 - the word of the spec
    delivery: object = None,
) -> InvocationRow:
    """Return the one row that holds: for a pair that asks, the question is answered first."""
    phase = invocation.phase
    answer = _ASKED[phase][input]
    return step(phase, input, ALWAYS if answer is None else answer(state, invocation, delivery))


_ROOM_ASKED: Final = frozenset(
    phase for phase, input_ in questions_of(TURN) if input_ is Input.ADD_CALL
)


def room_guard(state: State, turn: Turn, call: Call) -> str:
    """Return the guard that holds for one call more: is it new, and is there room? (K-22, K-56)."""
    if turn.phase not in _ROOM_ASKED:
        return ALWAYS
    if call.invocation_id in turn.members:
        return TurnGuard.KNOWN
    return TurnGuard.FULL if len(turn.order) >= state.run.limits.calls else TurnGuard.NEW
