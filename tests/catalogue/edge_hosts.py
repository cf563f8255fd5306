"""Bugs that only some runs and correlations show: of kinds, agents, turns and a provider's ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from turnlock.engine import decide
from turnlock.engine.kernel import Kernel, state_of
from turnlock.engine.state import State
from turnlock.lifecycle.invocation import Invocation
from turnlock.models.deliveries import Delivery
from turnlock.models.effects import Execute
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.models.record import changed
from turnlock.models.run import OWN, Run
from turnlock.models.verdicts import Accepted, Verdict

from .bug import Family, Shelf
from .planting import Receive, admitting, around, receiving, running


def _owes_its_own_alone(real: Receive) -> Receive:
    def receive(kernel: Kernel, delivery: Delivery, now: float) -> Verdict:
        verdict = real(kernel, delivery, now)
        if state_of(kernel).run.kind == OWN or not isinstance(verdict, Accepted):
            return verdict
        left = tuple(effect for effect in verdict.effects if not isinstance(effect, Execute))
        return changed(verdict, effects=left)

    return receive


def _by_first_word(run: Run) -> Run:
    return run if run.agent_id is None else changed(run, agent_id=run.agent_id.partition(" ")[0])


def _known_or_unnamed(run: Run) -> Run:
    return run if run.agent_id is not None else changed(run, agent_name=None)


def _by_provider(
    state: State, _: str | None, invocation_id: str, __: Input, found: Reason | Invocation
) -> Reason | Invocation:
    if found is Reason.UNKNOWN_INVOCATION and state.turn:
        meant = (one for one in state.turn.order if one.provider_call_id == invocation_id)
        return next(meant, found)
    return found


def _in_any_case(real: Callable[..., Any]) -> Callable[..., Any]:
    def admit_to_turn(state: State, delivery: Any, now: float) -> Any:
        turn = state.turn
        if turn is not None and turn.turn_id.lower() == delivery.turn_id.lower():
            return turn
        return real(state, delivery, now)

    return admit_to_turn


_bug: Final = Shelf(Family.EDGES)

BUGS: Final = (
    _bug.at(
        "a run of another kind",
        "only its own is owed",
        "no execution is returned for a run that another runtime performs",
        "section 9",
        receiving(_owes_its_own_alone),
    ),
    _bug.at(
        "an agent with an id alone",
        "known by its first word",
        "of an agent's id is told what stands before its first space",
        "section 4",
        running(_by_first_word),
    ),
    _bug.at(
        "an agent with a name alone",
        "a name needs an id",
        "an agent that has no id is told without its name",
        "section 4",
        running(_known_or_unnamed),
    ),
    _bug.at(
        "the ids of a provider",
        "found by the provider's id",
        "an unknown call is taken for the one whose provider's id it is",
        "K-20",
        admitting(_by_provider),
    ),
    _bug.at(
        "turns that differ by case or space",
        "turns in any case",
        "what is asked of a turn is asked of the one whose id differs by case alone",
        "K-22",
        around(decide, "admit_to_turn", _in_any_case),
    ),
)
