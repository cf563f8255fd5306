"""Bugs in the accounting of a turn: who is expected, what counts, when it settles (K-30, K-50)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnlock.engine import decide, kernel, unchecked
from turnlock.engine.decide import Decision
from turnlock.engine.state import State
from turnlock.lifecycle.phases import Guard, Phase
from turnlock.models.calls import Status
from turnlock.models.deliveries import OpenTurn, Report
from turnlock.models.effects import Continue
from turnlock.models.fact import FactType
from turnlock.models.facts import CallAdded, ContinuationTaken, Fact, TurnSettled
from turnlock.models.ids import continue_id, turn_scope
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.models.record import changed
from turnlock.models.values import ABSENT, canonical
from turnlock.turn.phases import TurnGuard, TurnPhase
from turnlock.turn.turn import Turn

from .bug import Family, Shelf
from .field import Field
from .planting import (
    Decider,
    Evolver,
    Opening,
    around,
    deciding,
    folding,
    moves,
    opens_despite,
    reason_of,
    row,
    together,
    turn_row,
)

Settle = Callable[[State, Turn, float], list[Fact]]


def _overwriting(real: Decider) -> Decider:
    def decide_(state: State, of: Report, now: float) -> Decision:
        decision = real(state, of, now)
        if reason_of(decision) is Reason.CONFLICTING_DUPLICATE and state.turn and not of.error:
            invocation = state.turn.members[of.invocation_id]
            invocation.outcome = unchecked.call_result(
                invocation_id=invocation.invocation_id,
                tool_name=invocation.tool_name,
                status=Status.SUCCEEDED,
                result=of.result,
                error=None,
                reason=None,
                provider_call_id=invocation.provider_call_id,
            )
        return decision

    return decide_


def _error_as_result(real: Decider) -> Decider:
    def decide_(state: State, of: Report, now: float) -> Decision:
        result = of if of.error is None else changed(of, error=None, result=of.error)
        return real(state, result, now)

    return decide_


def _falsy_as_error(real: Decider) -> Decider:
    def decide_(state: State, of: Report, now: float) -> Decision:
        nothing = of.error is None and not of.result
        failed = changed(of, result=ABSENT, error="no result") if nothing else of
        return real(state, failed, now)

    return decide_


def _not_while(holds_back: Callable[[State, Turn], bool]) -> Callable[[Settle], Settle]:
    def wrap(real: Settle) -> Settle:
        def settled(state: State, turn: Turn, now: float) -> list[Fact]:
            return [] if holds_back(state, turn) else real(state, turn, now)

        return settled

    return wrap


def _denied_in(_: State, turn: Turn) -> bool:
    denied = any(invocation.phase is Phase.DENIED for invocation in turn.order)
    return denied and turn.phase is TurnPhase.SEALED


def _continuation_waits(state: State, turn: Turn) -> bool:
    return bool(state.continuations) and turn.phase is TurnPhase.SEALED


def _uncounted(real: Evolver) -> Evolver:
    def fold(state: State, turn: Turn, fact: CallAdded) -> None:
        real(state, turn, fact)
        turn.live -= 1

    return fold


def _alike_as_one(real: Opening) -> Opening:
    def admit_opening(state: State, delivery: OpenTurn, now: float) -> Reason | None:
        reason = real(state, delivery, now)
        alike = {(call.tool_name, canonical(call.arguments)) for call in delivery.calls}
        if reason is None and len(alike) < len(delivery.calls):
            return Reason.DUPLICATE_INVOCATION
        return reason

    return admit_opening


def _continue_without_turn(real: Decider) -> Decider:
    def decide_(state: State, of: Report, now: float) -> Decision:
        decision = real(state, of, now)
        if reason_of(decision) is Reason.NO_ACTIVE_TURN and of.turn_id is not None:
            return [unchecked.turn_settled(state, of, now, state.sequence + 1, Input.SETTLE)]
        return decision

    return decide_


def _owe_without_results(state: State, fact: TurnSettled) -> None:
    scope = turn_scope(state.prefix, state.epoch, fact.turn_id)
    effect = unchecked.continue_(effect_id=continue_id(scope), turn_id=fact.turn_id, results=())
    state.continuations[fact.turn_id] = unchecked.owed(effect=effect, settled=fact.sequence)


def _settle_without_turn(real: Evolver) -> Evolver:
    def fold(state: State, turn: Turn | None, fact: TurnSettled) -> None:
        if turn is None:
            _owe_without_results(state, fact)
        else:
            real(state, turn, fact)

    return fold


def _continue_empty(real: Evolver) -> Evolver:
    def fold(state: State, turn: Turn, fact: TurnSettled) -> None:
        real(state, turn, fact)
        if not turn.order:
            _owe_without_results(state, fact)

    return fold


def _no_continuation_for_denied(real: Evolver) -> Evolver:
    def fold(state: State, turn: Turn, fact: TurnSettled) -> None:
        real(state, turn, fact)
        if all(invocation.phase is Phase.DENIED for invocation in turn.order):
            state.continuations.pop(turn.turn_id, None)

    return fold


def _without_failed(real: Callable[..., Continue]) -> Callable[..., Continue]:
    def continue_(*, results: tuple[Any, ...], **fields: str) -> Continue:
        told = tuple(result for result in results if result.status is not Status.FAILED)
        return real(results=told, **fields)

    return continue_


def _still_owed(_: Evolver) -> Evolver:
    def fold(_: State, __: Turn | None, ___: ContinuationTaken) -> None:
        return

    return fold


_bug: Final = Shelf(Family.ACCOUNTING)

BUGS: Final = (
    _bug(
        "a duplicate counts",
        "the same result again settles one more of those that are expected",
        "K-50",
        row(
            Phase.SUCCEEDED,
            Input.REPORT_RESULT,
            Guard.SAME_OUTCOME,
            **moves(Phase.SUCCEEDED, FactType.TOOL_EXECUTION_SUCCEEDED),
        ),
        also=("K-30", "K-31"),
    ),
    _bug(
        "a late success overwrites",
        "a success after a failure changes what the continuation says",
        "K-30",
        deciding(Report, _overwriting),
        Field.STREAM_AND_CONTINUATION_DISAGREE,
        also=("K-2",),
    ),
    _bug(
        "an error is a success",
        "an error that is reported settles as a result",
        "K-30",
        deciding(Report, _error_as_result),
        Field.EMPTY_ERROR,
        also=("K-36",),
    ),
    _bug(
        "a falsy result is an error",
        "a result that is null, 0, false or empty settles as a failure",
        "K-36",
        deciding(Report, _falsy_as_error),
    ),
    _bug(
        "a denial does not settle",
        "a turn in which a call was denied never settles",
        "K-51",
        around(kernel, "settled", _not_while(_denied_in)),
        also=("K-50",),
    ),
    _bug(
        "settled before sealed",
        "a turn settles once its calls have ended, though more may come",
        "K-50",
        turn_row(
            TurnPhase.OPEN,
            Input.SETTLE,
            TurnGuard.COMPLETE,
            **moves(TurnPhase.SETTLED, FactType.TURN_SETTLED),
        ),
    ),
    _bug(
        "an added call is not expected",
        "a call that is added while the response streams is not counted",
        "K-50",
        folding(CallAdded, _uncounted),
        also=("K-22", "K-20"),
    ),
    _bug(
        "an id twice in one response",
        "a turn is opened with two calls of one id: it never completes",
        "K-21",
        opens_despite(Reason.DUPLICATE_INVOCATION),
        Field.ID_TWICE_NEVER_COMPLETES,
    ),
    _bug(
        "an id added twice",
        "a call is added although the turn has one of that id: it runs twice",
        "K-22",
        turn_row(
            TurnPhase.OPEN,
            Input.ADD_CALL,
            TurnGuard.KNOWN,
            **moves(TurnPhase.OPEN, FactType.CALL_ADDED),
        ),
        Field.ID_TWICE_RUNS_TWICE,
    ),
    _bug(
        "alike is the same",
        "two calls of one tool with the same arguments are taken for one call",
        "K-50",
        around(decide, "admit_opening", _alike_as_one),
        Field.ALIKE_TAKEN_FOR_ONE,
        also=("K-21",),
    ),
    _bug(
        "a bogus continuation",
        "a result with no active turn brings forth a continuation",
        "K-52",
        together(
            deciding(Report, _continue_without_turn), folding(TurnSettled, _settle_without_turn)
        ),
        Field.BOGUS_CONTINUATION,
    ),
    _bug(
        "an empty turn continues",
        "a turn that is sealed without calls asks for a continuation",
        "K-52",
        folding(TurnSettled, _continue_empty),
    ),
    _bug(
        "nobody is told of denials",
        "a turn whose calls were all denied asks for no continuation",
        "K-52",
        folding(TurnSettled, _no_continuation_for_denied),
    ),
    _bug(
        "failures are left out",
        "the continuation has no line for a call that failed",
        "K-52",
        around(unchecked, "continue_", _without_failed),
    ),
    _bug(
        "taken and still owed",
        "a continuation that was acknowledged stays owed",
        "K-52",
        folding(ContinuationTaken, _still_owed),
        also=("K-22", "K-3"),
    ),
    _bug(
        "one continuation at a time",
        "a turn stays open while an earlier continuation has not been taken",
        "K-52",
        around(kernel, "settled", _not_while(_continuation_waits)),
        Field.FAILED_ENQUEUE,
        also=("K-50",),
    ),
)
