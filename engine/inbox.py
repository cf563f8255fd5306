"""The inbox: the order in which queued deliveries are served (kernel.md section 10).

Lanes are served highest first, and each first come, first served: results before requests always
(seed use case 10). Two rules stand above the lanes:

- Nothing overtakes an earlier open, add or seal of its own turn. A delivery that names a turn for
  which one of those waits is *held* until it was taken. It then stands in its lane where its
  arrival puts it; meanwhile it blocks nobody. A delivery that names no turn is never held.
- No lane starves (`STARVATION_BOUND`). This alone lets a lower lane go before a higher one.

Every delivery draws a ticket when it arrives. Tickets only grow, so whatever is queued together is
sorted already: a *strand*. A lane is a heap of strands by their first ticket, and what one barrier
holds is a strand for each lane, let go whole. So a put and a take cost O(log n), whatever is held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from enum import IntEnum
from heapq import heappop, heappush, heapreplace
from types import MappingProxyType
from typing import Final, TypeAlias

from ..models.deliveries import (
    Acknowledge,
    AddCall,
    Claim,
    Decide,
    Delivery,
    Interrupt,
    Log,
    Lose,
    OpenTurn,
    Reject,
    Renew,
    Report,
    Resolve,
    Revoke,
    SealTurn,
    Tick,
)
from ..models.errors import InboxFull, InvalidValue, shown

Strand: TypeAlias = deque[tuple[int, Delivery]]
"""Deliveries with their tickets, in the order of the tickets."""


class Lane(IntEnum):
    """The lanes, highest first (section 10)."""

    STOP = 0
    """What is to happen no more: interrupt, revoke."""
    OUTCOME = 1
    """What became of a call: report, reject, lose, resolve."""
    DECISION = 2
    """What somebody answered: decide, acknowledge."""
    CLAIM = 3
    """What an executor asks for: claim, renew."""
    MEMBERSHIP = 4
    """What a turn expects: open, add, seal. The others are held behind these."""
    REST = 5
    """What can wait: log; and tick, which carries nothing but time, as every receive does."""


LANES: Final[Mapping[type[Delivery], Lane]] = MappingProxyType(
    {
        Interrupt: Lane.STOP,
        Revoke: Lane.STOP,
        Report: Lane.OUTCOME,
        Reject: Lane.OUTCOME,
        Lose: Lane.OUTCOME,
        Resolve: Lane.OUTCOME,
        Decide: Lane.DECISION,
        Acknowledge: Lane.DECISION,
        Claim: Lane.CLAIM,
        Renew: Lane.CLAIM,
        OpenTurn: Lane.MEMBERSHIP,
        AddCall: Lane.MEMBERSHIP,
        SealTurn: Lane.MEMBERSHIP,
        Log: Lane.REST,
        Tick: Lane.REST,
    }
)
"""The lane of every delivery."""

CAPACITY: Final = 100_000
"""Deliveries that an inbox holds unless told otherwise, the held ones too (K-6)."""

STARVATION_BOUND: Final = 64
"""A lane that was passed over so many times in a row starves, and goes next (section 10).

To be passed over is to have something to serve and to see another lane served. When several lanes
starve at once, the one that has waited longest goes first, of equals the higher. Behind at most
`len(Lane) - 2` others (not itself, and not the lane that was served last), a lane is passed over at
most ``STARVATION_BOUND + len(Lane) - 2`` times in a row: 68.
"""


class Inbox:
    """The queue of one run's deliveries, bounded, in the order of service.

    It holds no lock: one owner at a time calls it. It judges nothing: what it hands out goes to
    `Kernel.receive`, with the time of that call.
    """

    __slots__ = ("_barriers", "_held", "_lines", "_passed", "_size", "_tickets", "capacity")

    def __init__(self, *, capacity: int = CAPACITY) -> None:
        """Start empty. Raises `InvalidValue` for a capacity that is not a positive integer."""
        if type(capacity) is not int or capacity < 1:
            raise InvalidValue(
                place="capacity",
                cause=f"{shown(capacity)} is no positive whole number",
                fix="give 1 or more",
            )
        self.capacity: Final = capacity
        self._size = 0
        self._tickets = 0
        self._lines: list[_Line | None] = [None] * _LANES
        """By lane; made when something first comes to it: most inboxes only ever see one."""
        self._passed = [0] * _LANES
        """How often in a row each lane was passed over."""
        self._barriers: dict[str, int] = {}
        """By turn: the ticket of its last open, add or seal that waits."""
        self._held: dict[int, dict[Lane, Strand]] = {}
        """By the ticket of such a barrier: what arrived after it and waits for it."""

    def __len__(self) -> int:
        """Count what waits, the held ones too."""
        return self._size

    def put(self, delivery: Delivery) -> None:
        """Queue one delivery.

        Raises `InboxFull` when `capacity` deliveries wait, and `InvalidValue` for what is no
        delivery (K-8); either way nothing is lost and nothing has changed.
        """
        lane = LANES.get(type(delivery))
        if lane is None:
            raise InvalidValue(
                place="delivery",
                cause=f"{shown(delivery)} is no delivery",
                fix="build one of turnlock.models.deliveries",
            )
        if self._size >= self.capacity:
            raise InboxFull(
                f"the inbox holds {self._size} deliveries, its capacity; "
                "take some, then put this one again"
            )
        ticket = self._tickets
        turn_id = _turn_of(delivery)
        barrier = None if turn_id is None else self._barriers.get(turn_id)
        if lane is Lane.MEMBERSHIP and turn_id is not None:
            self._barriers[turn_id] = ticket
            barrier = None  # whatever it may not overtake is in its own lane, before it
        if barrier is None:
            self._line(lane).append(ticket, delivery)
        else:
            held = self._held.setdefault(barrier, {})
            held.setdefault(lane, deque()).append((ticket, delivery))
        self._tickets = ticket + 1
        self._size += 1

    def take(self) -> Delivery | None:
        """Hand out the delivery whose turn it is, or None when nothing waits."""
        if not self._size:
            return None
        lane = self._next_lane()
        ticket, delivery = self._line(lane).popleft()
        self._size -= 1
        if lane is Lane.MEMBERSHIP:
            self._release(ticket, delivery)
        return delivery

    def drain(self) -> Iterator[Delivery]:
        """Take until nothing waits; what is put meanwhile is served, too."""
        while (delivery := self.take()) is not None:
            yield delivery

    def _line(self, lane: Lane) -> _Line:
        line = self._lines[lane]
        if line is None:
            line = self._lines[lane] = _Line()
        return line

    def _next_lane(self) -> Lane:
        """Choose the highest lane that has something to serve, unless one starves."""
        servable = [
            lane
            for lane, line in zip(_HIGHEST_FIRST, self._lines, strict=True)
            if line is not None and line.strands
        ]
        passed = self._passed
        if len(servable) == 1:
            passed[servable[0]] = 0
            return servable[0]
        hungriest = max(servable, key=lambda lane: passed[lane])  # of equals the first: the highest
        chosen = hungriest if passed[hungriest] >= STARVATION_BOUND else servable[0]
        for lane in servable:
            passed[lane] += 1
        passed[chosen] = 0
        return chosen

    def _release(self, ticket: int, taken: Delivery) -> None:
        """Let go what waited for this open, add or seal."""
        for lane, strand in self._held.pop(ticket, {}).items():
            self._line(lane).join(strand)
        turn_id = _turn_of(taken)
        if turn_id is not None and self._barriers[turn_id] == ticket:
            del self._barriers[turn_id]


class _Line:
    """What one lane can serve: strands that are not empty, in a heap by their first ticket."""

    __slots__ = ("free", "strands")

    def __init__(self) -> None:
        self.free: Strand = deque()
        """The strand of what was never held; in the heap while it is not empty."""
        self.strands: list[tuple[int, Strand]] = []

    def append(self, ticket: int, delivery: Delivery) -> None:
        """Queue what need not be held; its ticket is the highest so far."""
        if not self.free:
            heappush(self.strands, (ticket, self.free))
        self.free.append((ticket, delivery))

    def join(self, strand: Strand) -> None:
        """Take in a strand that was held."""
        heappush(self.strands, (strand[0][0], strand))

    def popleft(self) -> tuple[int, Delivery]:
        """Hand out what arrived first, with its ticket."""
        strand = self.strands[0][1]
        first = strand.popleft()
        if strand:
            heapreplace(self.strands, (strand[0][0], strand))
        else:
            heappop(self.strands)
        return first


_HIGHEST_FIRST: Final = tuple(Lane)
_LANES: Final = len(_HIGHEST_FIRST)


def _turn_of(delivery: Delivery) -> str | None:
    """Return the turn that a delivery names, if it names one."""
    turn_id: str | None = getattr(delivery, "turn_id", None)
    return turn_id
