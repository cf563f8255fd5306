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
        self._of_kind: Counter[Kind] = Counter()
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

        `concurrency` bounds the calls of the tool over all runs; a `sequential` tool runs once at a
        time in its run.
        """
        kind = (run_id, tool)
        await self._take(kind, concurrency, sequential=sequential)
        try:
            yield
        finally:
            self._give_back(kind)

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
                self._give_back(kind)  # it was let in while it was being cancelled
            else:
                self._leave(kind, waiting)
            raise

    def _leave(self, kind: Kind, waiting: _Waiting) -> None:
        line = self._lines[kind]
        line.remove(waiting)
        self._tidy(kind)

    def _give_back(self, kind: Kind) -> None:
        run_id, tool = kind
        self._taken -= 1
        for counter, key in ((self._of_run, run_id), (self._of_tool, tool)):
            counter[key] -= 1
            if not counter[key]:
                del counter[key]
        self._of_kind[kind] -= 1
        self._tidy(kind)
        self._start()

    def _tidy(self, kind: Kind) -> None:
        if not self._lines.get(kind):
            self._lines.pop(kind, None)
            self._bounds.pop(kind, None)
        if not self._of_kind[kind]:
            del self._of_kind[kind]

    def _start(self) -> None:
        """Let in whoever can start, the longest waiting first."""
        while self._taken < self._all:
            kinds = [kind for kind in self._lines if self._may_start(kind)]
            if not kinds:
                return
            kind = min(kinds, key=lambda one: self._lines[one][0].ticket)
            waiting = self._lines[kind].popleft()
            if not self._lines[kind]:
                del self._lines[kind]
            self._taken += 1
            self._of_run[kind[0]] += 1
            self._of_tool[kind[1]] += 1
            self._of_kind[kind] += 1
            waiting.started.set_result(None)

    def _may_start(self, kind: Kind) -> bool:
        run_id, tool = kind
        concurrency, sequential = self._bounds[kind]
        return (
            self._of_run[run_id] < self._each
            and (concurrency is None or self._of_tool[tool] < concurrency)
            and not (sequential and self._of_kind[kind])
        )
