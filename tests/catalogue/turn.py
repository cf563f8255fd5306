"""Bugs in the turn: what opens, what belongs to it, and what is about another one (K-20 … K-22)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from turnlock.engine import evolve
from turnlock.engine.kernel import Kernel, state_of
from turnlock.engine.state import State
from turnlock.lifecycle.invocation import Invocation
from turnlock.models.deliveries import Delivery
from turnlock.models.fact import FactType
from turnlock.models.facts import Fact, TurnSealed
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.models.record import changed
from turnlock.models.verdicts import Verdict
from turnlock.turn.memory import Memory
from turnlock.turn.phases import TurnGuard, TurnPhase

from .bug import Family, Shelf
from .field import Field
from .planting import (
    Receive,
    admitting,
    around,
    moves,
    opens_despite,
    receiving,
    replaced,
    turn_row,
)

_REPORTS: Final = (Input.REPORT_RESULT, Input.REPORT_ERROR)


def _for_another_turn(
    state: State, _: str | None, invocation_id: str, input_: Input, found: Reason | Invocation
) -> Reason | Invocation:
    if input_ in _REPORTS and found in {Reason.LATE, Reason.TURN_MISMATCH} and state.turn:
        return state.turn.members.get(invocation_id, Reason.UNKNOWN_INVOCATION)
    return found


def _seen_before(
    state: State, _: str | None, invocation_id: str, input_: Input, found: Reason | Invocation
) -> Reason | Invocation:
    seen = state.memory.holds_invocation(invocation_id, now=state.at)
    if input_ in _REPORTS and isinstance(found, Invocation) and seen:
        return Reason.LATE
    return found


def _never(*_: object, **__: object) -> bool:
    return False


def _for_any_run(real: Receive) -> Receive:
    def receive(self: Kernel, delivery: Delivery, now: float) -> Verdict:
        return real(self, changed(delivery, run_id=None), now)

    return receive


def _deaf_to_the_seal(real: Callable[..., None]) -> Callable[..., None]:
    def happen(self: Kernel, facts: list[Fact], now: float) -> None:
        if isinstance(facts[0], TurnSealed):
            evolve.fold(state_of(self), facts)
        else:
            real(self, facts, now)

    return happen


def _of_the_first_epoch(real: Callable[[str, int, str], str]) -> Callable[[str, int, str], str]:
    def turn_scope(prefix: str, _: int, turn_id: str) -> str:
        return real(prefix, 1, turn_id)

    return turn_scope


_bug: Final = Shelf(Family.TURN)

BUGS: Final = (
    _bug(
        "added after the seal",
        "a call is added to a turn that is sealed",
        "K-22",
        turn_row(
            TurnPhase.SEALED,
            Input.ADD_CALL,
            **moves(TurnPhase.SEALED, FactType.CALL_ADDED),
        ),
    ),
    _bug(
        "two turns at once",
        "a turn opens while another is active, which is forgotten",
        "K-21",
        opens_despite(Reason.TURN_BUSY),
    ),
    _bug(
        "opened again",
        "opening the active turn again starts it anew",
        "K-21",
        opens_despite(Reason.TURN_OPEN),
    ),
    _bug(
        "a turn reused",
        "a turn that has closed opens again",
        "K-54",
        opens_despite(Reason.TURN_REUSED),
        also=("K-21",),
    ),
    _bug(
        "an empty turn opens",
        "a turn opens sealed and without calls",
        "K-21",
        opens_despite(Reason.EMPTY_TURN),
    ),
    _bug(
        "a stale epoch opens",
        "an opening that names another epoch than the next one opens",
        "K-55",
        opens_despite(Reason.STALE_EPOCH),
    ),
    _bug(
        "opened beyond the limit",
        "neither calls nor continuations are limited when a turn opens",
        "K-56",
        opens_despite(Reason.LIMIT_REACHED),
    ),
    _bug(
        "added beyond the limit",
        "a call is added to a turn that has as many as it may",
        "K-56",
        turn_row(
            TurnPhase.OPEN,
            Input.ADD_CALL,
            TurnGuard.FULL,
            **moves(TurnPhase.OPEN, FactType.CALL_ADDED),
        ),
    ),
    _bug(
        "a result of another turn",
        "a result for another turn settles the call of that id in the active one",
        "K-20",
        admitting(_for_another_turn),
        Field.LATE_COMPLETION,
        also=("section 5",),
    ),
    _bug(
        "an id seen before",
        "a result for an id that an earlier turn had is dropped as late",
        "K-20",
        admitting(_seen_before),
        Field.REUSED_ID_DROPPED,
        also=("section 5", "K-54"),
    ),
    _bug(
        "nothing is ambiguous",
        "an id without a turn is taken for the active turn's, whoever else had it",
        "K-20",
        replaced(Memory, "holds_invocation", _never),
        also=("K-54",),
    ),
    _bug(
        "for any run",
        "a delivery for another run is judged",
        "section 5",
        receiving(_for_any_run),
    ),
    _bug(
        "sealed too late",
        "a turn whose calls have all ended is not settled by its seal",
        "K-50",
        around(Kernel, "_happen", _deaf_to_the_seal),
    ),
    _bug(
        "one epoch for all",
        "the ids of effects do not tell the epochs of a turn apart",
        "K-7",
        around(evolve, "turn_scope", _of_the_first_epoch),
        also=("section 9",),
    ),
)
