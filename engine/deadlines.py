"""The deadlines of a run (K-11, K-34): a heap whose stale entries are dropped as they surface.

An entry is (at, kind, order): oldest first, then the kinds in the order of K-11, then expected
order. It is live while the state still says so; what is here never decides that, it only sorts.
The first entry is live whenever a receive begins.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias


class DeadlineKind(IntEnum):
    """The kinds, in the order in which ties are served (K-11)."""

    APPROVAL = 0
    LEASE = 1
    GRANT = 2
    GRACE = 3


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
