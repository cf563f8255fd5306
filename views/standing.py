"""What the agent of a run is doing, and with what: its status told of one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..models.effects import Continue
from ..models.record import Record, record
from ..turn.phases import TurnPhase
from .call_view import Waits
from .status import STATUS_OF, Pressing, Status
from .turn_view import TurnView


@record
class Standing(Record):
    """What the agent is doing, and with what.

    `tool_name` and `invocation_id` are those of the call that the status is about: of several, a
    running one before a ready one, then the first in expected order. While INTERRUPTED, of one that
    has not stopped yet.
    """

    status: Status = Status.IDLE
    turn_id: str | None = None
    invocation_id: str | None = None
    tool_name: str | None = None

    @property
    def data(self) -> dict[str, str]:
        """What an update carries beside the statuses, as JSON: the fields that are there."""
        fields = {
            "turn_id": self.turn_id,
            "invocation_id": self.invocation_id,
            "tool_name": self.tool_name,
        }
        return {name: value for name, value in fields.items() if value is not None}


@record
class StatusUpdate(Record):
    """The standing has changed with the commit that ended with fact `sequence`, at `at`, Unix time.

    Where both have the same status, it is about another call now.
    """

    run_id: str
    sequence: int
    at: float
    old: Standing
    new: Standing

    @property
    def payload(self) -> dict[str, object]:
        """The update as JSON."""
        return {
            "run_id": self.run_id,
            "sequence": self.sequence,
            "at": self.at,
            "old_status": self.old.status.value,
            "new_status": self.new.status.value,
            **self.new.data,
        }


def pressing_of(
    turn: TurnView | None, continuations: Sequence[Continue], interrupted: str | None
) -> Pressing:
    """Return the most pressing of all that is under way.

    `interrupted` is the turn that the latest fact closed by an interrupt.
    """
    if interrupted is not None:
        return Pressing.STOP
    if turn is not None:
        if turn.phase is TurnPhase.INTERRUPTING:
            return Pressing.STOP
        for pressing, waits in _IN_A_TURN.items():
            if turn.calls.any_waiting_for(*waits):
                return pressing
    return Pressing.RESULTS if continuations else Pressing.NOTHING


def standing_of(
    status: Status,
    turn: TurnView | None,
    continuations: Sequence[Continue],
    interrupted: str | None,
) -> Standing:
    """Return the standing for a status: the turn and the call to show."""
    pressing = _PRESSING[status]
    if pressing is Pressing.NOTHING:
        return Standing(status=status)
    if pressing is Pressing.RESULTS and continuations:
        return Standing(status=status, turn_id=continuations[0].turn_id)
    if interrupted is not None or turn is None:
        return Standing(status=status, turn_id=interrupted)
    found = (turn.calls.first(*waits) for waits in _SHOWN[pressing])
    shown = next(filter(None, found), None)
    return Standing(
        status=status,
        turn_id=turn.turn_id,
        invocation_id=None if shown is None else shown.invocation_id,
        tool_name=None if shown is None else shown.tool_name,
    )


_PRESSING: Final = {status: pressing for pressing, status in STATUS_OF.items()}
_DOUBTED: Final = (Waits.RESOLUTION, Waits.RETRY)
_IN_A_TURN: Final = {
    Pressing.DOUBT: _DOUBTED,
    Pressing.APPROVAL: (Waits.APPROVAL,),
    Pressing.WORK: (Waits.REPORT, Waits.CLAIM),
    Pressing.RESULTS: (Waits.NOTHING,),
}
_SHOWN: Final[dict[Pressing, tuple[tuple[Waits, ...], ...]]] = {
    Pressing.STOP: ((Waits.REPORT,), _DOUBTED),
    Pressing.DOUBT: (_DOUBTED,),
    Pressing.APPROVAL: ((Waits.APPROVAL,),),
    Pressing.WORK: ((Waits.REPORT,), (Waits.CLAIM,)),
    Pressing.RESULTS: (),
}
"""The calls that stand for what is pressing, the first kind that there is; while it stops, what has
not stopped yet."""
