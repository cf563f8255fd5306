"""One timer for all runs: it rings for those whose earliest deadline is over (`wake`, K-11)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

from .clock import Clock

STALE: Final = 64
"""Entries of the heap that may be out of date beyond as many as are not (K-6)."""
LONGEST: Final = 3_600.0
"""Seconds that one timer is set for at most: a clock that was stopped is seen again."""


class Timers:
    """Rings for run ids at their times. It must be used inside a running loop."""

    def __init__(self, *, clock: Clock, ring: Callable[[str], None]) -> None:
        """Begin with nothing set."""
        self._clock = clock
        self._ring = ring
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._timer: asyncio.TimerHandle | None = None

    def set(self, run_id: str, at: float | None) -> None:
        """Ring for this run at `at`, Unix time, instead of at whatever was set; None: never."""
        if at == self._due.get(run_id):
            return
        if at is None:
            del self._due[run_id]
        else:
            self._due[run_id] = at
            heappush(self._heap, (at, run_id))
        if len(self._heap) > 2 * len(self._due) + STALE:
            self._heap = [(at, run_id) for run_id, at in self._due.items()]
            heapify(self._heap)
        self._arm()

    def close(self) -> None:
        """Ring no more."""
        self._due.clear()
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        if self._heap:
            left = max(0.0, self._heap[0][0] - self._clock.now())
            self._timer = asyncio.get_running_loop().call_later(min(left, LONGEST), self._fire)

    def _fire(self) -> None:
        now = self._clock.now()
        due: list[str] = []
        while self._heap and self._heap[0][0] <= now:
            at, run_id = heappop(self._heap)
            if self._due.get(run_id) == at:
                del self._due[run_id]
                due.append(run_id)
        self._timer = None
        self._arm()
        for run_id in due:
            self._ring(run_id)
