"""Bugs that show in the reason of a refusal alone: the verdict is right, and the why is wrong."""

from __future__ import annotations

from typing import Final

from turnlock.engine import admission, decide
from turnlock.engine.decide import Decision
from turnlock.engine.state import State
from turnlock.lifecycle.invocation import Decision as Recorded
from turnlock.lifecycle.phases import Guard, Phase
from turnlock.models.deliveries import Decide, Log, OpenTurn
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.models.record import changed
from turnlock.turn.phases import TurnPhase

from .bug import Family, Shelf
from .planting import (
    Decider,
    Opening,
    around,
    deciding,
    replaced,
    row,
    together,
    turn_row,
)


def _equal_in_python(one: object, other: object) -> bool:
    return one == other


def _by_kind_alone(recorded: Recorded | None, delivery: Decide) -> bool:
    return recorded is not None and recorded.approved is delivery.approved


def _blind_to_edits(real: object) -> object:
    def same_decision(recorded: Recorded | None, delivery: Decide) -> bool:
        if recorded is not None:
            delivery = changed(delivery, arguments=recorded.edited)
        return bool(callable(real) and real(recorded, delivery))

    return same_decision


def _busy_is_open(real: Opening) -> Opening:
    def admit_opening(state: State, delivery: OpenTurn, now: float) -> Reason | None:
        reason = real(state, delivery, now)
        return Reason.TURN_OPEN if reason is Reason.TURN_BUSY else reason

    return admit_opening


def _only_of_members(_: Decider) -> Decider:
    def decide_(state: State, of: Log, __: float) -> Decision:
        member = state.turn is not None and of.invocation_id in state.turn.members
        return [] if member else Reason.UNKNOWN_INVOCATION

    return decide_


_bug: Final = Shelf(Family.REASONS)

BUGS: Final = (
    _bug(
        "a duplicate called a conflict",
        "the same result again is called a conflict",
        "K-30",
        row(
            Phase.SUCCEEDED,
            Input.REPORT_RESULT,
            Guard.SAME_OUTCOME,
            reason=Reason.CONFLICTING_DUPLICATE,
        ),
    ),
    _bug(
        "a conflict called a duplicate",
        "another result than the recorded one is called a duplicate",
        "K-30",
        row(Phase.SUCCEEDED, Input.REPORT_RESULT, Guard.OTHER_OUTCOME, reason=Reason.DUPLICATE),
    ),
    _bug(
        "equal in Python",
        "what is equal in Python is called a duplicate, though its JSON is another",
        "K-30",
        replaced(admission, "same_json", _equal_in_python),
        also=("K-31", "section 6"),
    ),
    _bug(
        "approved is approved",
        "a second approval with another scope is called a duplicate",
        "section 6",
        replaced(admission, "_same_decision", _by_kind_alone),
    ),
    _bug(
        "edited or not",
        "a second approval with other edited arguments is called a duplicate",
        "section 6",
        around(admission, "_same_decision", _blind_to_edits),
    ),
    _bug(
        "denied, then reported",
        "a report of a call that was denied is called a conflict",
        "K-30",
        together(
            row(Phase.DENIED, Input.REPORT_RESULT, reason=Reason.CONFLICTING_DUPLICATE),
            row(Phase.DENIED, Input.REPORT_ERROR, reason=Reason.CONFLICTING_DUPLICATE),
        ),
        also=("K-31", "section 6"),
    ),
    _bug(
        "denied without a decision",
        "an approval of a call that nobody decided and that was denied is called one not awaited",
        "section 6",
        row(
            Phase.DENIED,
            Input.APPROVE,
            Guard.NO_DECISION,
            reason=Reason.NOT_AWAITING_APPROVAL,
        ),
    ),
    _bug(
        "a lost lease called no start",
        "a renewal of a lease that was lost is told that the call was not started",
        "K-34",
        row(Phase.IN_DOUBT, Input.RENEW, reason=Reason.NOT_STARTED),
        also=("section 6",),
    ),
    _bug(
        "doubt called a start",
        "a claim of a call in doubt is told that it is already started",
        "K-35",
        row(Phase.IN_DOUBT, Input.CLAIM, reason=Reason.ALREADY_STARTED),
        also=("section 6",),
    ),
    _bug(
        "the holder is not known",
        "a worker's own claim that comes again is told that another holds the call",
        "K-33",
        row(Phase.STARTED, Input.CLAIM, Guard.SAME_WORKER, reason=Reason.ALREADY_STARTED),
        also=("section 6",),
    ),
    _bug(
        "busy called open",
        "an opening while another turn is active is told that it is open already",
        "K-21",
        around(decide, "admit_opening", _busy_is_open),
    ),
    _bug(
        "stopping called sealed",
        "a call for a turn that is being interrupted is told that it is sealed",
        "K-22",
        turn_row(TurnPhase.INTERRUPTING, Input.ADD_CALL, reason=Reason.TURN_SEALED),
    ),
    _bug(
        "a log that is refused",
        "a log of a call that the active turn does not have is refused",
        "K-20",
        deciding(Log, _only_of_members),
        also=("section 3",),
    ),
)
