"""Which row of which table each fact took, and which row refused, read off a recording.

Every fact names the input that brought it about (K-59), so that in the phase where it found its
invocation or turn one row is the one. A journal of an older version names none: then every row is a
candidate that leads to that fact, with its cause where the fact tells one, and none is chosen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final, TypeAlias

import attrs

from ...engine.decide import DECIDERS
from ...engine.evolve import fold
from ...engine.recovery import replay
from ...engine.state import State
from ...lifecycle.phases import Phase
from ...lifecycle.table import INVOCATION
from ...machines.rows import Machine, Row
from ...models.codec import read_delivery
from ...models.errors import CorruptJournal, InvalidValue
from ...models.fact import Fact
from ...models.facts import (
    CallAdded,
    ExecutionFact,
    LifecycleFact,
    TurnInterrupting,
    TurnOpened,
)
from ...models.inputs import Input
from ...models.reasons import Reason
from ...models.safe_text import harmless
from ...turn.phases import TurnPhase
from ...turn.table import TURN
from ..errors import not_there
from .recording import Moment, Recording

AnyRow: TypeAlias = Row[Any, Any]


@attrs.frozen(kw_only=True)
class Step:
    """One move of an invocation or, where `invocation_id` is None, of a turn.

    `rows` are the rows that the fact can have taken, of the machine so named: one where its input
    is known, never none. An interrupt moves an authorised retry, too: its fact is then the turn's
    (K-60). `epoch` tells turns apart that have one id (K-21). `at` is Unix time, in seconds.
    """

    at: float
    fact: Fact
    machine: str
    turn_id: str
    epoch: int
    invocation_id: str | None
    source: str
    target: str
    rows: tuple[AnyRow, ...]


@attrs.frozen(kw_only=True)
class RefusedStep:
    """One delivery that was refused.

    `rows` are the rows that can have refused it: one where that is known, several where too little
    of the delivery was recorded (a diagnostic tells only its type and its ids), none where
    admission refused, or where this turnlock would have answered otherwise. `turn_id` is that of
    the active turn where the delivery named none and the invocation is a member, or that of the one
    turn that ever had it. `phase` is where the invocation stood, or the turn if no invocation was
    named; None, with an `epoch` of 0, for what is not known, and for a delivery to another run.
    """

    at: float
    kind: str
    turn_id: str | None
    epoch: int
    invocation_id: str | None
    reason: Reason
    phase: str | None
    rows: tuple[AnyRow, ...]


Event: TypeAlias = Step | RefusedStep


def events(recording: Recording) -> Iterator[Event]:
    """Return moves and refusals of the run, in order.

    An incomplete last commit did not happen (K-9). Raises `CorruptJournal`, before anything else,
    for facts that no run can have written, and for those that do not begin with the first.
    """
    whole = State(recording.run)
    replay(whole, recording.facts)
    return _Playback(recording, until=whole.sequence).events()


_ROWS: Final = tuple((machine.name, row) for machine in (INVOCATION, TURN) for row in machine.rows)
_INPUTS_OF_TYPE: Final[dict[str, frozenset[str]]] = {
    "decide": frozenset({Input.APPROVE, Input.DENY}),
    "report": frozenset({Input.REPORT_RESULT, Input.REPORT_ERROR}),
    "resolve": frozenset({Input.RESOLVE_RETRY, Input.RESOLVE_RESULT, Input.RESOLVE_ERROR}),
}
"""What a delivery may be to a table; any other type is the name of its input."""


def _standing() -> dict[tuple[str, str, str], tuple[AnyRow, ...]]:
    """Return, by machine, phase and fact, the rows that let this fact happen in this phase."""
    found: defaultdict[tuple[str, str, str], tuple[AnyRow, ...]] = defaultdict(tuple)
    for machine, row in _ROWS:
        if row.fact is not None:
            found[machine, row.phase, row.fact] += (row,)
    return dict(found)


_STANDING: Final = _standing()

_Key: TypeAlias = tuple[str, str | None]
"""A turn and an invocation of it, or the turn itself."""


class _Playback:
    """One recording, played from its beginning."""

    def __init__(self, recording: Recording, *, until: int) -> None:
        self._recording = recording
        self._until = until
        self._state = State(recording.run)
        self._phases: dict[_Key, tuple[int, str]] = {}
        """Epoch and phase of whatever has lived."""
        self._turns_of: dict[str, set[str]] = {}

    def events(self) -> Iterator[Event]:
        state = self._state
        for moment in self._recording.moments:
            state.committed = state.sequence
            for fact in moment.facts:
                if fact.sequence > self._until:
                    return
                if state.sequence < fact.sequence:
                    yield from self._happens(fact)
            state.tidy_deadlines()
            if moment.reason is not None and moment.delivery is not None:
                yield self._refused(moment, moment.reason)

    def _happens(self, fact: Fact) -> Iterator[Step]:
        if isinstance(fact, LifecycleFact | ExecutionFact):
            yield from self._moved(INVOCATION, fact, fact.turn_id, fact.invocation_id)
        else:
            turn_id = getattr(fact, "turn_id", None) or ""
            yield from self._moved(TURN, fact, turn_id, None)
            if isinstance(fact, TurnInterrupting) and self._state.turn is not None:
                for invocation_id in self._state.turn.members:  # a retry is withdrawn (K-60)
                    yield from self._moved(INVOCATION, fact, turn_id, invocation_id)
        fold(self._state, (fact,))
        self._born(fact)

    def _moved(
        self, machine: Machine[Any, Any], fact: Fact, turn_id: str, invocation_id: str | None
    ) -> Iterator[Step]:
        key: _Key = (turn_id, invocation_id)
        epoch, phase = self._phases.get(key, (0, ""))
        rows = _STANDING.get((machine.name, phase, fact.type), ())
        if not rows:
            return
        fitting = tuple(row for row in rows if _fits(row, fact))
        if not fitting:
            raise CorruptJournal(
                sequence=fact.sequence,
                cause=f"{fact.type}: {fact.input} cannot bring it about while {phase}",
                fix="restore the journal from a copy; no run writes this",
            )
        target = str(fitting[0].target)
        self._phases[key] = epoch, target
        yield Step(
            at=fact.at,
            fact=fact,
            machine=machine.name,
            turn_id=turn_id,
            epoch=epoch,
            invocation_id=invocation_id,
            source=phase,
            target=target,
            rows=fitting,
        )

    def _born(self, fact: Fact) -> None:
        if isinstance(fact, TurnOpened):
            begins = TurnPhase.SEALED if fact.sealed else TurnPhase.OPEN
            self._phases[fact.turn_id, None] = fact.epoch, begins
            calls = fact.calls
        elif isinstance(fact, CallAdded):
            calls = (fact.call,)
        else:
            return
        for call in calls:
            self._phases[fact.turn_id, call.invocation_id] = self._state.epoch, Phase.REQUESTED
            self._turns_of.setdefault(call.invocation_id, set()).add(fact.turn_id)

    def _refused(self, moment: Moment, reason: Reason) -> RefusedStep:
        invocation_id = moment.invocation_id
        turn_id = moment.turn_id or self._only_turn(invocation_id)
        epoch, phase = 0, None
        rows: tuple[AnyRow, ...] = ()
        if reason is not Reason.RUN_MISMATCH:
            epoch, phase = self._standing(turn_id, invocation_id)
            rows = self._refusing(moment, reason, phase)
        return RefusedStep(
            at=moment.at,
            kind=str(moment.kind),
            turn_id=turn_id,
            epoch=epoch,
            invocation_id=invocation_id,
            reason=reason,
            phase=phase,
            rows=rows,
        )

    def _refusing(self, moment: Moment, reason: Reason, phase: str | None) -> tuple[AnyRow, ...]:
        """Ask the deciders again; where too little is known of the delivery, look for what fits."""
        try:
            delivery = read_delivery(dict(moment.delivery or {}))
        except InvalidValue:
            kind = str(moment.kind)
            inputs = _INPUTS_OF_TYPE.get(kind, frozenset({kind}))
            return tuple(
                row
                for _, row in _ROWS
                if (row.phase, row.reason) == (phase, reason)
                and row.input in inputs
                and row.possible
            )
        state = self._state
        decision = DECIDERS[type(delivery)](state, delivery, max(moment.at, state.at))
        if isinstance(decision, Row) and decision.reason == reason:
            return (decision,)
        return ()

    def _standing(self, turn_id: str | None, invocation_id: str | None) -> tuple[int, str | None]:
        """Return the epoch of the latest turn of that id, and the phase of what is named in it."""
        unknown = (0, None)
        if turn_id is None:
            return unknown
        turn = self._phases.get((turn_id, None), unknown)
        found = self._phases.get((turn_id, invocation_id), unknown)
        return found if found[0] == turn[0] else unknown

    def _only_turn(self, invocation_id: str | None) -> str | None:
        """Return the turn that is meant where none is named, or None."""
        turn = self._state.turn
        if turn is not None and invocation_id in turn.members:
            return turn.turn_id
        turns = self._turns_of.get(invocation_id or "", set())
        return next(iter(turns)) if len(turns) == 1 else None


def _fits(row: AnyRow, fact: Any) -> bool:  # noqa: ANN401 - any fact
    """Whether a fact can have come of a row that stands where it happened."""
    if fact.input is not None:
        return bool(row.input == fact.input)
    return row.cause is None or bool(row.cause == fact.cause)


NAME: Final = 60
"""Characters of a name in a message or a title."""


@attrs.frozen(kw_only=True)
class Birth:
    """How an invocation came to be: `epoch` is that of its turn, `by` the type of the delivery."""

    turn_id: str
    epoch: int
    invocation_id: str
    tool_name: str
    at: float
    by: str


@attrs.frozen(kw_only=True)
class Life:
    """One invocation: its birth, its moves, and what was refused, in order."""

    birth: Birth
    steps: tuple[Step, ...]
    refused: tuple[RefusedStep, ...]

    @property
    def arrivals(self) -> tuple[tuple[float, str], ...]:
        """When it came to which phase; a move back to the phase in which it stood is none."""
        came = [(self.birth.at, str(Phase.REQUESTED)), *((s.at, s.target) for s in self.steps)]
        return tuple(next(stay) for _, stay in groupby(came, key=lambda arrival: arrival[1]))

    def since(self, at: float) -> float:
        """Return the seconds since it was requested."""
        return at - self.birth.at


def life_in(
    recording: Recording, *, turn_id: str, invocation_id: str, epoch: int | None = None
) -> Life:
    """Return the life of an invocation, for which see `life.life_of`."""
    told = tuple(events(recording))
    of_turn = [birth for birth in _births(recording) if birth.turn_id == turn_id]
    births = [birth for birth in of_turn if birth.invocation_id == invocation_id]
    opened = [fact.turn_id for fact in recording.facts if isinstance(fact, TurnOpened)]
    if turn_id not in opened:
        raise not_there("turn", turn_id, opened)
    if not births:
        there = (birth.invocation_id for birth in of_turn)
        raise not_there("invocation", invocation_id, there)
    meant = [birth for birth in births if epoch in {None, birth.epoch}]
    if not meant:
        raise not_there("epoch", str(epoch), (str(birth.epoch) for birth in births))
    birth = meant[-1]
    key = turn_id, invocation_id, birth.epoch
    about = [one for one in told if (one.turn_id, one.invocation_id, one.epoch) == key]
    return Life(
        birth=birth,
        steps=tuple(event for event in about if isinstance(event, Step)),
        refused=tuple(event for event in about if isinstance(event, RefusedStep)),
    )


def _births(recording: Recording) -> Iterator[Birth]:
    epoch = 0
    for fact in recording.facts:
        if isinstance(fact, TurnOpened):
            epoch, by, calls = fact.epoch, "open_turn", fact.calls
        elif isinstance(fact, CallAdded):
            by, calls = "add_call", (fact.call,)
        else:
            continue
        for call in calls:
            yield Birth(
                turn_id=fact.turn_id,
                epoch=epoch,
                invocation_id=call.invocation_id,
                tool_name=call.tool_name,
                at=fact.at,
                by=by,
            )


def named(name: str) -> str:
    """Return a name from outside as a message or a title shows it."""
    return harmless(repr(name), limit=NAME)
