"""What is under way in a run, as its facts tell: no more than a status needs to know.

Phases move by the folds of the kernel's own tables (K-4); nothing here names the phase that follows
another. Of calls that are equally pressing the first in expected order stands for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from heapq import heappop, heappush
from typing import Final

import attrs

from ...engine.state import State
from ...lifecycle.phases import TERMINAL, Phase
from ...lifecycle.table import FOLD
from ...models.calls import Call
from ...models.facts import (
    CallAdded,
    ContinuationTaken,
    ExecutionFact,
    Fact,
    LifecycleFact,
    ToolApprovalRequested,
    TurnInterrupted,
    TurnInterrupting,
    TurnOpened,
    TurnSealed,
    TurnSettled,
)
from ...turn.phases import TurnPhase
from ...turn.table import FOLD as TURN_FOLD
from .words import Pressing


class Place(StrEnum):
    """Where a call stands, as far as a status cares."""

    DOUBTED = "doubted"
    ASKED = "asked"
    RUNNING = "running"
    READY = "ready"
    ENDED = "ended"
    UNSAID = "unsaid"
    """Gated, and a next fact of the commit says whether somebody is asked or a grant covers it."""


_PLACES = {
    Phase.APPROVED: Place.READY,
    Phase.STARTED: Place.RUNNING,
    Phase.IN_DOUBT: Place.DOUBTED,
    Phase.RETRY_AUTHORISED: Place.DOUBTED,
    **dict.fromkeys(TERMINAL, Place.ENDED),
}


@attrs.define(eq=False)
class Member:
    """One call of the active turn."""

    position: int
    invocation_id: str
    tool_name: str
    gated: bool
    asked: bool = False
    phase: Phase = Phase.REQUESTED

    @property
    def place(self) -> Place:
        """Where it stands."""
        if self.phase is not Phase.REQUESTED:
            return _PLACES[self.phase]
        if not self.gated:
            return Place.READY
        return Place.ASKED if self.asked else Place.UNSAID


class _Roster:
    """The calls of one turn, and which is the first in each place.

    Each place has a heap of positions. A call that moves on leaves its old entry behind; that is
    dropped when it comes to the top: no fact looks at all calls.
    """

    def __init__(self, turn_id: str, phase: TurnPhase) -> None:
        self.turn_id = turn_id
        self.phase = phase
        self.members: dict[str, Member] = {}
        self._order: list[Member] = []
        self._places: dict[Place, list[int]] = {}

    def add(self, call: Call) -> None:
        self.enrol(
            Member(len(self._order), call.invocation_id, call.tool_name, call.requires_approval)
        )

    def enrol(self, member: Member) -> None:
        self.members[member.invocation_id] = member
        self._order.append(member)
        self.moved(member)

    def moved(self, member: Member) -> None:
        heappush(self._places.setdefault(member.place, []), member.position)

    def first(self, *places: Place) -> Member | None:
        """Return the first call in the first of these places where there is one."""
        for place in places:
            heap = self._places.get(place, [])
            while heap:
                member = self._order[heap[0]]
                if member.place is place:
                    return member
                heappop(heap)
        return None


_NO_TURN: Final = _Roster("", TurnPhase.SETTLED)
"""Stands where no turn is active; nothing changes it."""


class View:
    """What is under way in one run."""

    def __init__(self) -> None:
        """Begin where nothing has happened."""
        self._turn = _NO_TURN
        self._owed: dict[str, None] = {}
        """The turns whose continuations are owed, the oldest first."""
        self._interrupted: str | None = None
        """The turn that the latest fact closed by an interrupt."""

    @classmethod
    def of(cls, state: State, latest: Fact | None) -> View:
        """Begin where the kernel is, between two commits; `latest` is the run's latest fact."""
        view = cls()
        view._owed = dict.fromkeys(state.continuations)
        view._interrupted = _closed_by_interrupt(latest)
        if state.turn is not None:
            turn = view._turn = _Roster(state.turn.turn_id, state.turn.phase)
            for known in state.turn.order:
                member = Member(known.position, known.invocation_id, known.tool_name, known.gated)
                member.asked = known.gated  # a commit that opens the gate asks at once
                member.phase = known.phase
                turn.enrol(member)
        return view

    def fold(self, fact: Fact) -> None:
        """Learn of the next fact."""
        self._interrupted = _closed_by_interrupt(fact)
        turn = self._turn
        if isinstance(fact, LifecycleFact | ExecutionFact):
            _move(turn, fact)
        elif isinstance(fact, TurnOpened):
            phase = TurnPhase.SEALED if fact.sealed else TurnPhase.OPEN
            turn = self._turn = _Roster(fact.turn_id, phase)
            for call in fact.calls:
                turn.add(call)
        elif isinstance(fact, CallAdded | TurnSealed | TurnInterrupting):
            turn.phase = TURN_FOLD[turn.phase, fact.type]
            if isinstance(fact, CallAdded):
                turn.add(fact.call)
        elif isinstance(fact, TurnSettled | TurnInterrupted):
            if isinstance(fact, TurnSettled) and turn.members:  # none: nothing to tell (K-52)
                self._owed[turn.turn_id] = None
            self._turn = _NO_TURN
        elif isinstance(fact, ContinuationTaken):
            del self._owed[fact.turn_id]

    @property
    def pressing(self) -> Pressing:
        """The most pressing of all that is under way."""
        return next(self._all())

    def _all(self) -> Iterator[Pressing]:
        turn = self._turn
        if self._interrupted is not None or turn.phase is TurnPhase.INTERRUPTING:
            yield Pressing.STOP
        if turn.first(Place.DOUBTED):
            yield Pressing.DOUBT
        if turn.first(Place.ASKED):
            yield Pressing.APPROVAL
        if turn.first(Place.RUNNING, Place.READY):
            yield Pressing.WORK
        if self._owed or turn.first(Place.ENDED):
            yield Pressing.RESULTS
        yield Pressing.NOTHING

    def shown(self, pressing: Pressing) -> tuple[str | None, Member | None]:
        """Return the turn and the call to show for what is pressing; None where there is none."""
        if pressing is Pressing.NOTHING:
            return None, None
        if pressing is Pressing.RESULTS and self._owed:
            return next(iter(self._owed)), None
        if self._interrupted is not None:
            return self._interrupted, None
        return self._turn.turn_id, self._turn.first(*_SHOWN[pressing])


_SHOWN = {
    Pressing.STOP: (Place.RUNNING, Place.DOUBTED),
    Pressing.DOUBT: (Place.DOUBTED,),
    Pressing.APPROVAL: (Place.ASKED,),
    Pressing.WORK: (Place.RUNNING, Place.READY),
    Pressing.RESULTS: (),
}
"""The calls that stand for what is pressing; while it stops, what has not stopped yet."""


def _move(turn: _Roster, fact: LifecycleFact | ExecutionFact) -> None:
    member = turn.members[fact.invocation_id]
    before = member.place
    if isinstance(fact, ToolApprovalRequested):
        member.asked = True
    else:
        member.phase = FOLD[member.phase, fact.type]
    if member.place is not before:
        turn.moved(member)


def _closed_by_interrupt(fact: Fact | None) -> str | None:
    return fact.turn_id if isinstance(fact, TurnInterrupted) else None
