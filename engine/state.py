"""All of one run's state: the fold of its facts, and nothing else (K-2); deadlines (K-11, K-34).

Deadlines are a heap whose stale entries are dropped as they surface. An entry is (at, kind, order):
oldest first, then the kinds in the order of K-11, then expected order. It is live while the state
still says so; the heap never decides that, it only sorts. The first entry is live whenever a
receive begins.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from ..lifecycle.phases import REQUESTED
from ..models.effects import Continue
from ..models.ids import escape, grant_id
from ..models.record import Record, count, field, instance, record
from ..models.run import Run
from ..turn.memory import Grants, Memory
from ..turn.turn import Turn


class DeadlineKind(IntEnum):
    """The kinds, in the order in which ties are served (K-11)."""

    APPROVAL = 0
    LEASE = 1
    GRANT = 2
    GRACE = 3


APPROVAL: Final = DeadlineKind.APPROVAL
LEASE: Final = DeadlineKind.LEASE
GRANT: Final = DeadlineKind.GRANT
GRACE: Final = DeadlineKind.GRACE
"""Bound once, as the phases are (lifecycle/phases.py)."""

Entry: TypeAlias = tuple[float, DeadlineKind, int]

FOREVER: Final = sys.float_info.max
"""A deadline so far away that no finite time is past it: it never comes due."""

SLACK: Final = 16
"""Stale entries that are tolerated beyond twice the live ones before the heap is rebuilt (K-6)."""


def after(now: float, seconds: float) -> float:
    """Return the deadline that lies `seconds` after `now`."""
    return min(now + seconds, FOREVER)


def first_float_past(deadline: float) -> float:
    """Return the first time at which the deadline is over: strictly past it (K-34)."""
    return math.nextafter(deadline, math.inf)


def arm(heap: list[Entry], at: float, kind: DeadlineKind, order: int) -> None:
    """Add a deadline; one that never comes due is left out."""
    if at < FOREVER:
        heappush(heap, (at, kind, order))


def prune(heap: list[Entry], live: Callable[[Entry], bool]) -> None:
    """Drop stale entries until the first one is live."""
    while heap and not live(heap[0]):
        heappop(heap)


def heap_of(entries: Iterable[Entry]) -> list[Entry]:
    """Return a heap of these entries."""
    heap = [entry for entry in entries if entry[0] < FOREVER]
    heapify(heap)
    return heap


@record
class Owed(Record):
    """A continuation that the host has not yet taken (K-52).

    `settled` is the sequence of the fact that brought it forth.
    """

    effect: Continue = field(validator=instance(Continue))
    settled: int = field(validator=count)


class State:
    """What a run remembers; its facts change it, in `evolve`."""

    __slots__ = (
        "at",
        "committed",
        "continuations",
        "deadlines",
        "epoch",
        "grants",
        "memory",
        "prefix",
        "run",
        "sequence",
        "turn",
    )

    def __init__(self, run: Run) -> None:
        """Start a run in which nothing has happened."""
        self.run = run
        self.prefix = escape(run.run_id)
        """The run's part of the ids that are made for it (K-7)."""
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

    def clone(self) -> State:
        """Return a copy that shares nothing which changes: for whoever explores what comes next."""
        twin = State.__new__(State)
        twin.run = self.run
        twin.prefix = self.prefix
        twin.sequence = self.sequence
        twin.committed = self.committed
        twin.at = self.at
        twin.epoch = self.epoch
        twin.turn = None if self.turn is None else self.turn.clone()
        twin.continuations = self.continuations.copy()
        twin.grants = self.grants.clone()
        twin.memory = self.memory.clone()
        twin.deadlines = self.deadlines.copy()
        return twin

    @property
    def earliest_deadline(self) -> float | None:
        """The earliest deadline, or None (K-11)."""
        return self.deadlines[0][0] if self.deadlines else None

    def tidy_deadlines(self) -> None:
        """Make the heap's first entry a live one, and keep the stale ones bounded (K-6)."""
        if len(self.deadlines) > SLACK:
            turn_deadlines = self.turn.live + 1 if self.turn is not None else 0
            if len(self.deadlines) > 2 * (turn_deadlines + len(self.grants)) + SLACK:
                self.rebuild_deadlines()
        prune(self.deadlines, self._is_live)

    def rebuild_deadlines(self) -> None:
        """Fill the heap anew from the rest of the state."""
        self.deadlines = heap_of(self._live_entries())

    def _live_entries(self) -> Iterator[Entry]:
        for grant in self.grants:
            if grant.expires_at is not None:
                yield grant.expires_at, GRANT, grant.number
        if self.turn is None:
            return
        if self.turn.grace_until is not None:
            yield self.turn.grace_until, GRACE, 0
        for invocation in self.turn.unfinished():
            if invocation.deadline is not None:
                waits = invocation.phase is REQUESTED
                kind = APPROVAL if waits else LEASE
                yield invocation.deadline, kind, invocation.position

    def _is_live(self, entry: Entry) -> bool:
        at, kind, order = entry
        if kind is GRANT:
            return grant_id(self.run.run_id, order) in self.grants.in_force
        turn = self.turn
        if turn is None:
            return False
        if kind is GRACE:
            return turn.grace_until == at
        if order >= len(turn.order):
            return False
        invocation = turn.order[order]
        waits = invocation.phase is REQUESTED
        return invocation.deadline == at and waits is (kind is APPROVAL)
