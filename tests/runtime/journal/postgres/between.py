"""What happens between two statements of one question: tests say what, and before which."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias, cast

import asyncpg

from turnlock.runtime.journal.contract import Journal, open_journal
from turnlock.runtime.journal.postgres.doors import Connection
from turnlock.runtime.journal.postgres.tables import Tables
from turnlock.runtime.journal.postgres.url import place_of

from ....postgres.servers import journal_url, url

Happens: TypeAlias = Callable[[], Awaitable[object]]


class Between:
    """A connection on which something happens before its n-th statement."""

    def __init__(self, inner: Connection, *, before: int, happens: Happens) -> None:
        self.inner = inner
        self.before = before
        self.happens = happens
        self.asked = 0

    async def fetch(self, *args: Any) -> Any:
        return await self._ask(self.inner.fetch, *args)

    async def fetchrow(self, *args: Any) -> Any:
        return await self._ask(self.inner.fetchrow, *args)

    async def fetchval(self, *args: Any) -> Any:
        return await self._ask(self.inner.fetchval, *args)

    async def execute(self, *args: Any) -> Any:
        return await self._ask(self.inner.execute, *args)

    async def _ask(self, statement: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        self.asked += 1
        if self.asked == self.before:
            await self.happens()
        return await statement(*args)


class Place:
    """A journal that a folder stands for, and what stands behind it."""

    def __init__(self, folder: Path) -> None:
        self.url = journal_url(folder)
        self.tables: Tables = place_of(self.url).tables

    async def open(self) -> Journal:
        """Open the journal; it is made where there is none."""
        return await open_journal(self.url)

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[Connection]:
        """A connection of its own to the server, which nothing of the journal knows."""
        connection = await asyncpg.connect(url())
        try:
            yield connection
        finally:
            await connection.close()

    @asynccontextmanager
    async def asking(self, *, before: int, happens: Happens) -> AsyncGenerator[Connection]:
        """A connection on which this happens before the n-th statement."""
        async with self.connected() as inner:
            between = Between(inner, before=before, happens=happens)
            yield cast("Connection", between)
            assert between.asked >= before, "it never came so far"

    async def waits(self) -> None:
        """Return once somebody waits for a lock of somebody else."""
        async with self.connected() as connection:
            for _ in range(3_000):
                if await connection.fetchval(
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                    " AND datname = current_database() AND query LIKE '%' || $1 || '%'",
                    self.tables.quoted,
                ):
                    return
                await asyncio.sleep(0.01)
        raise AssertionError("nobody waits")
