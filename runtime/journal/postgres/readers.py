"""Connections that only read: a few, made when they are needed, each asked one thing at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from ....models.errors import TurnlockError
from .counts import Counts
from .doors import Ask
from .failures import FAILURES, is_retried, not_read, was_lost
from .links import Link

T = TypeVar("T")

READERS: Final = 3
"""Connections that read at the same time at most (D-59)."""
TRIES: Final = 3
"""Times that something is asked where the connection was lost: it may have been so for long."""


class Readers:
    """Asks on whichever connection is free."""

    def __init__(
        self, where: str, connect: Callable[[], Awaitable[Link]], *, counts: Counts
    ) -> None:
        """Begin with no connection."""
        self._where = where
        self._connect = connect
        self._counts = counts
        self._idle: list[Link] = []
        self._free = asyncio.Semaphore(READERS)

    async def ask(self, ask: Ask[T], *, whole: bool = False, within: float | None = None) -> T:
        """Ask for something, again where the connection was lost. Raises `JournalError`."""
        async with self._free:
            for left in reversed(range(TRIES)):
                link = self._idle.pop() if self._idle else await self._connect()
                try:
                    answer = await link.ask(ask, whole=whole, within=within)
                except BaseException as error:
                    lost = was_lost(error) or not link.is_open
                    if isinstance(error, TurnlockError) and not whole:
                        self._idle.append(link)
                    else:  # something may be under way on it
                        link.drop()
                    if not isinstance(error, FAILURES):
                        raise
                    if not left or not (lost or is_retried(error)):
                        raise not_read(self._where, error) from error
                    if lost:
                        self._counts.dropped(error)
                        self.drop()
                else:
                    self._idle.append(link)
                    return answer
        raise AssertionError(ask)

    def add(self, link: Link) -> None:
        """Take over a connection that is there."""
        self._idle.append(link)

    def drop(self) -> None:
        """Let go of the connections that nobody uses: what has ended one has ended them."""
        while self._idle:
            self._idle.pop().drop()

    async def close(self) -> None:
        """Let all connections go that nobody uses."""
        while self._idle:
            await self._idle.pop().close()
