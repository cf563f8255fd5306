"""Bugs about calls that another runtime starts (K-58) and in what brought a fact about (K-59)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnlock.engine import unchecked
from turnlock.engine.decide import Decision
from turnlock.engine.state import State
from turnlock.lifecycle.invocation import Invocation
from turnlock.lifecycle.phases import READY, Guard, Phase
from turnlock.models.deliveries import Claim
from turnlock.models.fact import FactType
from turnlock.models.facts import Fact, TurnOpened
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.turn.turn import Turn

from .bug import Family, Shelf
from .planting import (
    Answer,
    Decider,
    Evolver,
    answering,
    around,
    deciding,
    folding,
    moves,
    reason_of,
    replaced,
    row,
    while_recovering,
)

Make = Callable[..., Fact]


def _telling(told: dict[Input, Input | None]) -> Callable[[Make], Make]:
    """Let a fact tell another input than its own: the last thing that a maker is given by place."""

    def wrap(real: Make) -> Make:
        def make(*of: Any, **fields: Any) -> Fact:
            return real(*of[:-1], told.get(of[-1], of[-1]), **fields)

        return make

    return wrap


def _owed_all_the_same(invocation: Invocation) -> int:
    return 0 if invocation.phase not in READY or invocation.gated else invocation.attempt + 1


def _free_if_observed(real: Answer) -> Answer:
    def answer(state: State, invocation: Invocation, delivery: Claim) -> str:
        return Guard.FREE if invocation.observed else real(state, invocation, delivery)

    return answer


def _claims_refused(real: Decider) -> Decider:
    def decide_(state: State, of: Claim, now: float) -> Decision:
        turn = state.turn
        named = None if turn is None else turn.members.get(of.invocation_id)
        decision = real(state, of, now)
        refuses = named is not None and named.observed and reason_of(decision) is None
        return Reason.NOT_OWNED if refuses else decision

    return decide_


def _forgotten(real: Evolver) -> Evolver:
    def fold(state: State, turn: Turn | None, fact: TurnOpened) -> None:
        real(state, turn, fact)
        for invocation in state.turn.order if state.turn is not None else ():
            invocation.observed = False

    return fold


_observed: Final = Shelf(Family.OBSERVED)
_cause: Final = Shelf(Family.CAUSES)

BUGS: Final = (
    _observed(
        "an observed call is owed",
        "the host is asked to execute what another runtime starts by itself",
        "K-58",
        replaced(Invocation, "owed", property(_owed_all_the_same)),
    ),
    _observed(
        "an observation is lost",
        "recovery forgets that a call is observed, and asks for its execution",
        "K-58",
        while_recovering(folding(TurnOpened, _forgotten)),
        also=("K-2", "K-3"),
    ),
    _observed(
        "an observed call is never asked",
        "an observed call that requires approval is claimed without",
        "K-58",
        answering(Phase.REQUESTED, Input.CLAIM, _free_if_observed),
        also=("K-33",),
    ),
    _observed(
        "an observed call is not claimed",
        "the claim that records the start of an observed call is refused",
        "K-58",
        deciding(Claim, _claims_refused),
    ),
    _observed(
        "an observed call is retried",
        "a retry of what another runtime starts is authorised",
        "K-58",
        row(
            Phase.IN_DOUBT,
            Input.RESOLVE_RETRY,
            Guard.OBSERVED,
            **moves(Phase.RETRY_AUTHORISED, FactType.RETRY_AUTHORISED),
        ),
    ),
    _cause(
        "a report tells of a resolution",
        "a success that was reported says that somebody resolved it",
        "K-59",
        around(
            unchecked,
            "tool_execution_succeeded",
            _telling({Input.REPORT_RESULT: Input.RESOLVE_RESULT}),
        ),
    ),
    _cause(
        "a resolution tells of a report",
        "a success that somebody resolved says that it was reported",
        "K-59",
        around(
            unchecked,
            "tool_execution_succeeded",
            _telling({Input.RESOLVE_RESULT: Input.REPORT_RESULT}),
        ),
    ),
    _cause(
        "a lease tells of a loss",
        "a doubt that came with the end of a lease says that the executor was lost",
        "K-59",
        around(unchecked, "execution_in_doubt", _telling({Input.LEASE_OVER: Input.LOSE})),
    ),
    _cause(
        "a grant tells of an approval",
        "an approval by grant says that somebody approved it",
        "K-59",
        around(unchecked, "tool_approved", _telling({Input.GRANT: Input.APPROVE})),
    ),
    _cause(
        "an added call tells of an opening",
        "the request of a call that was added says that it came with the turn",
        "K-59",
        around(unchecked, "tool_approval_requested", _telling({Input.ADD_CALL: Input.OPEN_TURN})),
    ),
    _cause(
        "a closing without a cause",
        "the fact that settles a turn does not say what brought it about",
        "K-59",
        around(unchecked, "turn_settled", _telling({Input.SETTLE: None})),
    ),
)
