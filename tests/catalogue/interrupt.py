"""Bugs in interrupting a turn: what it stops, what it must not, and how it ends (K-53)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from turnlock.engine import decide, effects
from turnlock.engine.decide import Decision
from turnlock.engine.state import State
from turnlock.lifecycle.phases import Guard, Phase
from turnlock.models.deliveries import Interrupt, Report
from turnlock.models.effects import Cancel
from turnlock.models.fact import FactType
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.turn.phases import TurnGuard, TurnPhase
from turnlock.turn.turn import Turn

from .bug import Family, Shelf
from .field import Field
from .planting import (
    Decider,
    around,
    deciding,
    moves,
    reason_of,
    replaced,
    row,
    turn_row,
)

AdmitToTurn = Callable[[State, Interrupt, float], Turn | Reason]


def _deaf_while_interrupting(real: Decider) -> Decider:
    def decide_(state: State, of: Report, now: float) -> Decision:
        decision = real(state, of, now)
        stopping = state.turn is not None and state.turn.phase is TurnPhase.INTERRUPTING
        return Reason.INTERRUPTING if stopping and reason_of(decision) is None else decision

    return decide_


def _no_cancels(_: Turn) -> Iterator[Cancel]:
    return iter(())


def _widened(real: AdmitToTurn) -> AdmitToTurn:
    def admit_to_turn(state: State, delivery: Interrupt, now: float) -> Turn | Reason:
        found = real(state, delivery, now)
        if type(delivery) is Interrupt and isinstance(found, Reason) and state.turn is not None:
            return state.turn
        return found

    return admit_to_turn


_bug: Final = Shelf(Family.INTERRUPT)

BUGS: Final = (
    _bug(
        "what waits is left",
        "an interrupt does not deny what has not been approved",
        "K-53",
        row(Phase.REQUESTED, Input.INTERRUPT, target=Phase.REQUESTED, fact=None),
    ),
    _bug(
        "what is approved still starts",
        "an interrupt does not deny what is approved: it may still be claimed",
        "K-53",
        row(Phase.APPROVED, Input.INTERRUPT, target=Phase.APPROVED, fact=None),
    ),
    _bug(
        "what runs is denied",
        "an interrupt says of a call that runs that it did not",
        "K-53",
        row(Phase.STARTED, Input.INTERRUPT, **moves(Phase.DENIED, FactType.TOOL_DENIED)),
        Field.INTERRUPTED_IS_NOT_STOPPED,
    ),
    _bug(
        "no true report",
        "what runs when a turn is interrupted can no longer report",
        "K-53",
        deciding(Report, _deaf_while_interrupting),
    ),
    _bug(
        "interrupted and continued",
        "an interrupted turn settles, and asks for a continuation",
        "K-53",
        turn_row(
            TurnPhase.INTERRUPTING,
            Input.SETTLE,
            TurnGuard.COMPLETE,
            **moves(TurnPhase.SETTLED, FactType.TURN_SETTLED),
        ),
    ),
    _bug(
        "no cancel",
        "nobody is asked to cancel what runs",
        "K-53",
        replaced(effects, "_cancels", _no_cancels),
    ),
    _bug(
        "no end of doubt",
        "what is in doubt does not fail when the grace is over: the turn never closes",
        "K-53",
        row(Phase.IN_DOUBT, Input.GRACE_OVER, target=Phase.IN_DOUBT, fact=None),
    ),
    _bug(
        "grace renewed",
        "a second interrupt lets the grace begin anew",
        "K-53",
        turn_row(
            TurnPhase.INTERRUPTING,
            Input.INTERRUPT,
            **moves(TurnPhase.INTERRUPTING, FactType.TURN_INTERRUPTING),
        ),
    ),
    _bug(
        "a retry is left",
        "an interrupt does not withdraw a retry that was authorised",
        "K-60",
        row(
            Phase.RETRY_AUTHORISED,
            Input.INTERRUPT,
            **moves(Phase.RETRY_AUTHORISED, FactType.TURN_INTERRUPTING),
        ),
        also=("K-53",),
    ),
    _bug(
        "interrupt widened",
        "an interrupt for another turn stops the active one",
        "K-22",
        around(decide, "admit_to_turn", _widened),
    ),
    _bug(
        "retried while stopping",
        "a retry is authorised in a turn that is being interrupted",
        "K-53",
        row(
            Phase.IN_DOUBT,
            Input.RESOLVE_RETRY,
            Guard.INTERRUPTING,
            **moves(Phase.RETRY_AUTHORISED, FactType.RETRY_AUTHORISED),
        ),
    ),
    _bug(
        "sealed while stopping",
        "a seal ends the interrupting of a turn",
        "K-22",
        turn_row(
            TurnPhase.INTERRUPTING,
            Input.SEAL_TURN,
            **moves(TurnPhase.SEALED, FactType.TURN_SEALED),
        ),
        also=("K-53",),
    ),
)
