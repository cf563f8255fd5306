"""Snapshots: all of a run's state at a sequence, as records that the codec can write (K-2).

A snapshot is equal to that of the fold of the journal up to its sequence. Indexes and the heap of
deadlines are not in it: they follow from the rest and are built again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..lifecycle.invocation import Decision, Invocation
from ..lifecycle.phases import READY, TERMINAL, Phase
from ..models.calls import CallResult
from ..models.errors import CorruptJournal
from ..models.ids import grant_id, turn_scope
from ..models.record import (
    Record,
    any_text,
    choice,
    count,
    field,
    fields_of,
    flag,
    identifier,
    instance,
    instances,
    instant,
    optional,
    optional_json_object,
    record,
)
from ..models.run import Run
from ..models.values import Json
from ..turn.memory import Closed, Grant
from ..turn.phases import TurnPhase
from ..turn.turn import Turn
from .state import Owed, State


@record
class SavedInvocation(Record):
    """One member of the active turn; the fields are those of `Invocation`."""

    invocation_id: str = field(validator=identifier)
    tool_name: str = field(validator=identifier)
    phase: Phase = field(converter=choice(Phase))
    requires_approval: bool = field(validator=flag)
    observed: bool = field(default=False, validator=flag)
    attempt: int = field(default=0, validator=count)
    provider_call_id: str | None = field(default=None, validator=optional(any_text))
    arguments: Mapping[str, Json] | None = field(default=None, converter=optional_json_object)
    digest: str | None = field(default=None, validator=optional(identifier))
    deadline: float | None = field(default=None, validator=optional(instant))
    decision: Decision | None = field(default=None, validator=optional(instance(Decision)))
    worker: str | None = field(default=None, validator=optional(identifier))
    outcome: CallResult | None = field(default=None, validator=optional(instance(CallResult)))


@record
class SavedTurn(Record):
    """The active turn; its members stand in expected order."""

    turn_id: str = field(validator=identifier)
    phase: TurnPhase = field(converter=choice(TurnPhase))
    members: tuple[SavedInvocation, ...] = field(validator=instances(SavedInvocation))
    grace_until: float | None = field(default=None, validator=optional(instant))


@record
class SavedClosing(Record):
    """One closed turn of the recent-settled memory, with the ids that it still holds."""

    turn_id: str = field(validator=identifier)
    at: float = field(validator=instant)
    invocation_ids: tuple[str, ...] = field(validator=instances(str))


@record
class Snapshot(Record):
    """All of one run's state. `at` is None before the first fact."""

    run: Run = field(validator=instance(Run))
    sequence: int = field(validator=count)
    epoch: int = field(validator=count)
    grants_issued: int = field(validator=count)
    at: float | None = field(default=None, validator=optional(instant))
    turn: SavedTurn | None = field(default=None, validator=optional(instance(SavedTurn)))
    continuations: tuple[Owed, ...] = field(default=(), validator=instances(Owed))
    grants: tuple[Grant, ...] = field(default=(), validator=instances(Grant))
    closings: tuple[SavedClosing, ...] = field(default=(), validator=instances(SavedClosing))


def snapshot_from_json(text: str | bytes) -> Snapshot:
    """Build a snapshot from what `to_json` wrote, in this version or an older one.

    Raises `InvalidValue` at the place of what is not as it must be.
    """
    from ..models.codec import record_from_json  # noqa: PLC0415 - the kernel runs without a codec

    return record_from_json(Snapshot, text)


_SAVED = [field.name for field in fields_of(SavedInvocation)]


def take(state: State) -> Snapshot:
    """Return the state as a snapshot."""
    return Snapshot(
        run=state.run,
        sequence=state.sequence,
        at=None if state.at == -math.inf else state.at,
        epoch=state.epoch,
        turn=None if state.turn is None else _save_turn(state.turn),
        continuations=tuple(state.continuations.values()),
        grants=tuple(state.grants),
        grants_issued=state.grants.issued,
        closings=tuple(
            SavedClosing(
                turn_id=closed.turn_id,
                at=closed.at,
                invocation_ids=closed.invocation_ids[closed.first :],
            )
            for closed in state.memory.closings
        ),
    )


def _save_turn(turn: Turn) -> SavedTurn:
    return SavedTurn(
        turn_id=turn.turn_id,
        phase=turn.phase,
        grace_until=turn.grace_until,
        members=tuple(
            SavedInvocation(**{name: getattr(invocation, name) for name in _SAVED})
            for invocation in turn.order
        ),
    )


def restore(state: State, snapshot: Snapshot) -> None:
    """Put a snapshot into a fresh state. Raises `CorruptJournal` when it is another run's."""
    if snapshot.run != state.run:
        raise CorruptJournal(
            sequence=snapshot.sequence,
            cause=f"the snapshot is of {snapshot.run}, not of {state.run}",
            fix="give the configuration that the run had: identity and limits",
        )
    cause = _impossible(snapshot)
    if cause is not None:
        raise CorruptJournal(
            sequence=snapshot.sequence,
            cause=f"the snapshot says {cause}",
            fix="restore it from a copy, or fold the journal instead",
        )
    state.sequence = state.committed = snapshot.sequence
    state.at = -math.inf if snapshot.at is None else snapshot.at
    state.epoch = snapshot.epoch
    state.continuations = {owed.effect.turn_id: owed for owed in snapshot.continuations}
    for grant in snapshot.grants:
        state.grants.issue(grant)
    state.grants.issued = snapshot.grants_issued
    for closing in snapshot.closings:
        state.memory.restore(Closed(closing.turn_id, closing.at, closing.invocation_ids))
    if snapshot.turn is not None:
        state.turn = _restore_turn(state, snapshot.turn)
    state.rebuild_deadlines()


def _impossible(snapshot: Snapshot) -> str | None:
    """Say what no run's state can be, or None: fields are checked one by one before."""
    turns = [closing.turn_id for closing in snapshot.closings]
    pairs = [(c.turn_id, name) for c in snapshot.closings for name in c.invocation_ids]
    numbers = [grant.number for grant in snapshot.grants]
    run_id = snapshot.run.run_id
    if len({*turns}) < len(turns) or len({*pairs}) < len(pairs):
        return "that a turn closed twice"
    if numbers != sorted({*numbers}) or (numbers and numbers[-1] > snapshot.grants_issued):
        return "that grants were issued out of order"
    if any(grant.grant_id != grant_id(run_id, grant.number) for grant in snapshot.grants):
        return "that a grant has another's id"
    if (snapshot.at is None) is not (snapshot.sequence == 0):
        return "that facts happened at no time, or none at some time"
    return None if snapshot.turn is None else _impossible_turn(snapshot.turn)


def _impossible_turn(turn: SavedTurn) -> str | None:
    if turn.phase in {TurnPhase.SETTLED, TurnPhase.INTERRUPTED}:
        return "that a closed turn is active"
    if (turn.grace_until is None) is (turn.phase is TurnPhase.INTERRUPTING):
        return f"that a turn which is {turn.phase} has no grace, or has one"
    if len({member.invocation_id for member in turn.members}) < len(turn.members):
        return "that two invocations of the turn have one id"
    live = [member for member in turn.members if member.phase not in TERMINAL]
    if turn.phase is TurnPhase.INTERRUPTING and any(member.phase in READY for member in live):
        return "that an interrupt left a call which may start"
    if turn.phase is not TurnPhase.OPEN and not live:
        return "that a turn whose members are all terminal is active"
    return next(filter(None, map(_impossible_member, turn.members)), None)


def _impossible_member(member: SavedInvocation) -> str | None:
    """Hold each field to the phases that may have it (see `Invocation`)."""
    gated = member.phase is Phase.REQUESTED and member.requires_approval
    ended = member.phase in TERMINAL
    started = member.phase in {Phase.STARTED, Phase.IN_DOUBT, Phase.RETRY_AUTHORISED}
    fits = (
        (member.outcome is not None) is ended,
        (member.arguments is None) is ended,
        (member.digest is not None) is gated,
        member.deadline is None or gated or member.phase is Phase.STARTED,
        member.worker is None or member.phase is Phase.STARTED,
        member.requires_approval or member.phase is not Phase.APPROVED,
        not (member.observed and member.phase is Phase.RETRY_AUTHORISED),
        ended or (member.attempt > 0) is started,
    )
    return None if all(fits) else f"of {member.invocation_id!r} what cannot be while {member.phase}"


def _restore_turn(state: State, saved: SavedTurn) -> Turn:
    turn = Turn(
        turn_id=saved.turn_id,
        phase=saved.phase,
        scope=turn_scope(state.prefix, state.epoch, saved.turn_id),
    )
    turn.grace_until = saved.grace_until
    for position, member in enumerate(saved.members):
        fields = {name: getattr(member, name) for name in _SAVED}
        turn.enrol(Invocation(position=position, **fields))
    return turn
