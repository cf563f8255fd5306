"""All of one run's state: the fold of its facts, and nothing else (K-2)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from ..models.calls import CallResult
from ..models.checks import count, identifier, instances
from ..models.ids import grant_id, turn_scope
from ..models.record import Record, record
from ..models.run import Run
from ..turn.grants import Grants
from ..turn.memory import Memory
from ..turn.turn import Turn
from .deadlines import SLACK, DeadlineKind, Entry, heap_of, prune


@record
class Owed(Record):
    """A continuation that the host has not yet taken (K-52).

    `settled` is the sequence of the fact that brought it forth.
    """

    turn_id: str = attrs.field(validator=identifier)
    epoch: int = attrs.field(validator=count)
    settled: int = attrs.field(validator=count)
    results: tuple[CallResult, ...] = attrs.field(validator=instances(CallResult))


class State:
    """Changed by `evolve` alone."""

    __slots__ = (
        "at",
        "committed",
        "continuations",
        "deadlines",
        "epoch",
        "grants",
        "memory",
        "run",
        "sequence",
        "turn",
    )

    def __init__(self, run: Run) -> None:
        """Start a run in which nothing has happened."""
        self.run = run
        self.sequence = 0
        self.committed = 0
        """Sequence of the last fact before the receive under way (K-9)."""
        self.at = -math.inf
        """Time of the latest fact: the clock is a fold of facts, too (K-10)."""
        self.epoch = 0
        """Turns opened so far (K-21)."""
        self.turn: Turn | None = None
        self.continuations: dict[str, Owed] = {}
        self.grants = Grants()
        self.memory = Memory(capacity=run.limits.remembered, retention=run.limits.remember_for)
        self.deadlines: list[Entry] = []
        """A heap; its first entry is live whenever a receive begins (see `deadlines`)."""

    @property
    def earliest_deadline(self) -> float | None:
        """The earliest deadline, or None (K-11)."""
        return self.deadlines[0][0] if self.deadlines else None

    def scope_of(self, turn_id: str, epoch: int) -> str:
        """Return a turn's part of the ids that are made for it."""
        return turn_scope(self.run.run_id, epoch, turn_id)

    def tidy_deadlines(self) -> None:
        """Make the heap's first entry a live one, and keep the stale ones bounded (K-6)."""
        turn_deadlines = self.turn.live + 1 if self.turn is not None else 0
        if len(self.deadlines) > 2 * (turn_deadlines + len(self.grants)) + SLACK:
            self.rebuild_deadlines()
        else:
            prune(self.deadlines, self._is_live)

    def rebuild_deadlines(self) -> None:
        """Fill the heap anew from the rest of the state."""
        self.deadlines = heap_of(self._live_entries())

    def _live_entries(self) -> Iterator[Entry]:
        for grant in self.grants:
            if grant.expires_at is not None:
                yield grant.expires_at, DeadlineKind.GRANT, grant.number
        if self.turn is None:
            return
        if self.turn.grace_until is not None:
            yield self.turn.grace_until, DeadlineKind.GRACE, 0
        for invocation in self.turn.unfinished():
            if invocation.approve_by is not None:
                yield invocation.approve_by, DeadlineKind.APPROVAL, invocation.position
            if invocation.lease_until is not None:
                yield invocation.lease_until, DeadlineKind.LEASE, invocation.position

    def _is_live(self, entry: Entry) -> bool:
        at, kind, order = entry
        if kind is DeadlineKind.GRANT:
            return grant_id(self.run.run_id, order) in self.grants.in_force
        turn = self.turn
        if turn is None:
            return False
        if kind is DeadlineKind.GRACE:
            return turn.grace_until == at
        if order >= len(turn.order):
            return False
        invocation = turn.order[order]
        if kind is DeadlineKind.APPROVAL:
            return invocation.approve_by == at
        return invocation.lease_until == at
