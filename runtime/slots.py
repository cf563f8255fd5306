"""How many tools run at once: over all, for each run, for each tool; first come, first served.

Who cannot start because of one bound does not stand in the way of others: a call takes all its
slots together, or none.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import attrs

Kind: TypeAlias = tuple[str, str]
"""A run and a tool: calls of one kind wait in one line."""


@attrs.frozen
class _Waiting:
    ticket: int
    started: asyncio.Future[None]


class Slots:
    """The slots of one runtime."""

    def __init__(self, *, all_runs: int, each_run: int) -> None:
        """Begin with all slots free."""
        self._all: Final = all_runs
        self._each: Final = each_run
        self._taken = 0
        self._of_run: Counter[str] = Counter()
        self._of_tool: Counter[str] = Counter()
        self._sequential: set[str] = set()
        """Runs in which a sequential tool runs."""
        self._lines: dict[Kind, deque[_Waiting]] = {}
        self._bounds: dict[Kind, tuple[int | None, bool]] = {}
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
        kind = (run_id, tool)
        await self._take(kind, concurrency, sequential=sequential)
        try:
            yield
        finally:
            self._give_back(kind, sequential=sequential)

    async def _take(self, kind: Kind, concurrency: int | None, *, sequential: bool) -> None:
        self._tickets += 1
        waiting = _Waiting(self._tickets, asyncio.get_running_loop().create_future())
        self._lines.setdefault(kind, deque()).append(waiting)
        self._bounds[kind] = (concurrency, sequential)
        self._start()
        try:
            await waiting.started
        except asyncio.CancelledError:
            if waiting.started.done() and not waiting.started.cancelled():
                self._give_back(kind, sequential=sequential)  # let in while it was cancelled
            else:
                self._start()  # who waited behind it may go
            raise

    def _give_back(self, kind: Kind, *, sequential: bool) -> None:
        run_id, tool = kind
        self._taken -= 1
        for counter, key in ((self._of_run, run_id), (self._of_tool, tool)):
            counter[key] -= 1
            if not counter[key]:
                del counter[key]
        if sequential:
            self._sequential.discard(run_id)
        self._start()

    def _tidy(self, kind: Kind) -> None:
        if not self._lines[kind]:
            del self._lines[kind], self._bounds[kind]

    def _start(self) -> None:
        """Let in whoever can start, the longest waiting first."""
        while self._taken < self._all:
            self._forget_cancelled()
            kinds = [kind for kind in self._lines if self._may_start(kind)]
            if not kinds:
                return
            kind = min(kinds, key=lambda one: self._lines[one][0].ticket)
            run_id, tool = kind
            self._taken += 1
            self._of_run[run_id] += 1
            self._of_tool[tool] += 1
            if self._bounds[kind][1]:
                self._sequential.add(run_id)
            waiting = self._lines[kind].popleft()
            self._tidy(kind)
            waiting.started.set_result(None)

    def _forget_cancelled(self) -> None:
        """Take those out of their lines that were cancelled and may not have noticed yet."""
        for kind, line in tuple(self._lines.items()):
            while line and line[0].started.cancelled():
                line.popleft()
            self._tidy(kind)

    def _may_start(self, kind: Kind) -> bool:
        run_id, tool = kind
        concurrency, sequential = self._bounds[kind]
        return (
            self._of_run[run_id] < self._each
            and (concurrency is None or self._of_tool[tool] < concurrency)
            and not (sequential and (run_id in self._sequential or self._behind(kind)))
        )

    def _behind(self, kind: Kind) -> bool:
        """Whether another sequential tool of the run asked before."""
        first = self._lines[kind][0].ticket
        return any(
            other[0] == kind[0] and self._bounds[other][1] and line[0].ticket < first
            for other, line in self._lines.items()
        )
