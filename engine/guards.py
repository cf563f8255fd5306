"""How the questions of both tables are answered (kernel.md sections 6 and 8).

The table says which pair asks which question; here each question has its one answer. A pair that
asks nothing costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

from ..lifecycle.invocation import Decision, Invocation
from ..lifecycle.phases import Guard, Question
from ..lifecycle.table import INVOCATION, InvocationRow, step
from ..machines.rows import ALWAYS, questions_of
from ..models.calls import Call
from ..models.deliveries import Decide, Scope
from ..models.inputs import Input
from ..models.values import Json, same_json
from ..turn.phases import TurnGuard, TurnPhase
from ..turn.table import TURN
from ..turn.turn import Turn
from .state import State

Answer: TypeAlias = "Callable[[State, Invocation, Any], Guard]"


def _gate(_: State, invocation: Invocation, __: object) -> Guard:
    return Guard.GATED if invocation.requires_approval else Guard.FREE


def _approval(state: State, invocation: Invocation, delivery: Decide) -> Guard:
    """Answer K-32 and, checked last, K-56."""
    if not invocation.requires_approval:
        return Guard.FREE
    if delivery.arguments_digest not in (None, invocation.digest):
        return Guard.NOT_SHOWN
    if delivery.scope is not Scope.ONCE and len(state.grants) >= state.run.limits.grants:
        return Guard.GRANTS_FULL
    return Guard.SHOWN


def _holder(_: State, invocation: Invocation, delivery: Any) -> Guard:  # noqa: ANN401 - a Claim
    same = delivery.worker is not None and delivery.worker == invocation.worker
    return Guard.SAME_WORKER if same else Guard.OTHER_WORKER


def _retry(state: State, invocation: Invocation, _: object) -> Guard:
    """Answer K-58 first: what another runtime starts is not ours to start again."""
    if invocation.observed:
        return Guard.OBSERVED
    turn = state.turn
    stopping = turn is not None and turn.phase is TurnPhase.INTERRUPTING
    return Guard.INTERRUPTING if stopping else Guard.OWNED


def _approved_alike(_: State, invocation: Invocation, delivery: Decide) -> Guard:
    same = _same_decision(invocation.decision, delivery)
    return Guard.SAME_APPROVAL if same else Guard.OTHER_APPROVAL


def _decided_alike(_: State, invocation: Invocation, delivery: Decide) -> Guard:
    if invocation.decision is None:
        return Guard.NO_DECISION
    same = _same_decision(invocation.decision, delivery)
    return Guard.SAME_DECISION if same else Guard.OTHER_DECISION


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
    return Guard.NO_DECISION if invocation.decision is None else Guard.DECIDED


def _outcome_alike(_: State, invocation: Invocation, delivery: Any) -> Guard:  # noqa: ANN401
    recorded = invocation.outcome
    if delivery.error is not None:
        same = recorded is not None and delivery.error == recorded.error
    else:
        same = recorded is not None and same_json(delivery.result, cast("Json", recorded.result))
    return Guard.SAME_OUTCOME if same else Guard.OTHER_OUTCOME


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

_ASKED: Final = {
    pair: _ANSWER_TO[Question(question)] for pair, question in questions_of(INVOCATION).items()
}


def row_for(
    state: State,
    invocation: Invocation,
    input: Input,  # noqa: A002 - the word of the spec
    delivery: object = None,
) -> InvocationRow:
    """Return the one row that holds: for a pair that asks, the question is answered first."""
    phase = invocation.phase
    answer = _ASKED.get((phase, input))
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
