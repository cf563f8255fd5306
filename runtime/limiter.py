"""How many tools run at once: over all, for each run, for each tool; first come, first served.

Who cannot start because of one bound does not stand in the way of others: a call takes all its
slots together, or none. Calls of one kind wait in a line. The first of a line is either ready to be
tried, or parked at the one bound that stopped it, until somebody leaves there: so a slot that is
given back costs the same whether ten calls wait or ten thousand.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from heapq import heappop, heappush
from typing import Final, TypeAlias

import attrs

Line: TypeAlias = tuple[str, str | None]
"""A run, and the tool that is waited for; None: all sequential tools of the run wait in one."""
Bound: TypeAlias = tuple[str, str]
"""What has stopped a call: the run's own bound, that of a tool, or that of its sequential tools."""


@attrs.frozen(eq=False, kw_only=True)
class _Waiting:
    ticket: int
    run_id: str
    tool: str
    concurrency: int | None
    sequential: bool
    started: asyncio.Future[None]

    @property
    def line(self) -> Line:
        return self.run_id, None if self.sequential else self.tool

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The bounds that it counts under."""
        always = ("run", self.run_id), ("tool", self.tool)
        return (*always, ("sequential", self.run_id)) if self.sequential else always


class Limiter:
    """The slots of one runtime."""

    def __init__(self, *, all_runs: int, each_run: int) -> None:
        """Begin with all slots free."""
        self._all: Final = all_runs
        self._each: Final = each_run
        self._taken = 0
        self._of: Counter[Bound] = Counter()
        """How many run under each bound."""
        self._lines: dict[Line, deque[_Waiting]] = {}
        self._ready: list[tuple[int, Line, Bound | None]] = []
        """The tickets of those that are first in their lines and may be tried, and where they were
        parked before. One that is not the first any more is passed over."""
        self._parked: dict[Bound, list[tuple[int, Line]]] = {}
        self._tickets = 0

    def __len__(self) -> int:
        """Count the slots that are taken."""
        return self._taken

    @asynccontextmanager
    async def taken(
        self, *, run_id: str, tool: str, concurrency: int | None = None, sequential: bool = False
    ) -> AsyncGenerator[None]:
        """Wait for a slot, and hold it.

        `concurrency` bounds the calls of the tool over all runs. Of the sequential tools of a run
        one runs at a time, in the order in which they asked.
        """
        self._tickets += 1
        waiting = _Waiting(
            ticket=self._tickets,
            run_id=run_id,
            tool=tool,
            concurrency=concurrency,
            sequential=sequential,
            started=asyncio.get_running_loop().create_future(),
        )
        await self._take(waiting)
        try:
            yield
        finally:
            self._give_back(waiting)

    async def _take(self, waiting: _Waiting) -> None:
        line = self._lines.setdefault(waiting.line, deque())
        line.append(waiting)
        if len(line) == 1:
            self._ready_first(waiting.line)
        self._start()
        try:
            await waiting.started
        except asyncio.CancelledError:
            if waiting.started.done() and not waiting.started.cancelled():
                self._give_back(waiting)  # let in while it was cancelled
            else:
                self._leave(waiting)
            raise

    def _leave(self, waiting: _Waiting) -> None:
        line = self._lines.get(waiting.line)
        if line is not None and waiting in line:
            was_first = line[0] is waiting
            line.remove(waiting)
            if was_first:
                self._ready_first(waiting.line)
            self._start()

    def _give_back(self, waiting: _Waiting) -> None:
        self._taken -= 1
        for bound in waiting.bounds:
            self._of[bound] -= 1
            if not self._of[bound]:
                del self._of[bound]
            self._unpark(bound)
        self._start()

    def _start(self) -> None:
        """Let in whoever can start, the longest waiting first."""
        while self._taken < self._all and self._ready:
            ticket, line, parked_at = heappop(self._ready)
            first = self._lines[line][0] if line in self._lines else None
            stopped_by = None
            if first is not None and first.ticket == ticket:
                stopped_by = self._stopped_by(first)
                if stopped_by is None:
                    self._let_in(first)
                else:
                    heappush(self._parked.setdefault(stopped_by, []), (ticket, line))
            if parked_at is not None and stopped_by != parked_at:
                self._unpark(parked_at)  # there may be room for another

    def _stopped_by(self, waiting: _Waiting) -> Bound | None:
        if waiting.started.cancelled():
            return None  # it has not noticed yet, and leaves at once
        most = {"run": self._each, "tool": waiting.concurrency, "sequential": 1}
        for bound in waiting.bounds:
            at_most = most[bound[0]]
            if at_most is not None and self._of[bound] >= at_most:
                return bound
        return None

    def _let_in(self, waiting: _Waiting) -> None:
        self._lines[waiting.line].popleft()
        self._ready_first(waiting.line)
        if waiting.started.cancelled():
            return
        self._taken += 1
        for bound in waiting.bounds:
            self._of[bound] += 1
        waiting.started.set_result(None)

    def _ready_first(self, line: Line) -> None:
        """Have the first of a line tried; forget a line in which nobody waits."""
        if self._lines[line]:
            heappush(self._ready, (self._lines[line][0].ticket, line, None))
        else:
            del self._lines[line]

    def _unpark(self, bound: Bound) -> None:
        """Have the longest waiting of those that this bound has stopped tried again."""
        parked = self._parked.get(bound)
        if parked:
            ticket, line = heappop(parked)
            heappush(self._ready, (ticket, line, bound))
            if not parked:
                del self._parked[bound]
