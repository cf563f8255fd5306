"""The part of the journal that keeps logs, which nobody owns (W-10 … W-12)."""

from __future__ import annotations

from functools import cached_property, partial

from ....models.values import Json
from ..contract import PAGE, Entered, Entry, LogEntry
from ..logs import MOST, check_id, check_log, check_page, check_prefix, given_entry
from . import logs as logs_
from .database import Database
from .doors import Doors
from .lanes import Kind


class PostgresLogs(Doors):
    """Shared logs."""

    _database: Database

    @cached_property
    def _entering(self) -> Kind:
        return Kind(logs_.entering(self._tables, where=self._where))

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        """Keep an entry once."""
        given = given_entry(log, entry_id, body, at=at)
        entered: Entered = await self._database.do(
            self._entering, given, size=len(given.content), settled=partial(self._heeds.tell, log)
        )
        return entered

    async def entries(self, log: str, *, after: int = 0, limit: int = PAGE) -> tuple[Entry, ...]:
        """Return the next entries."""
        check_page(log, after=after, limit=limit)
        return await self._read(
            lambda it: logs_.entries(
                it,
                self._tables,
                log,
                after=min(after, MOST),
                limit=min(limit, MOST),
                where=self._where,
            )
        )

    async def find_entry(self, log: str, entry_id: str) -> Entry | None:
        """Return the entry of this id."""
        check_log(log)
        check_id(entry_id)
        return await self._read(
            lambda it: logs_.find_entry(it, self._tables, log, entry_id=entry_id, where=self._where)
        )

    async def logs(self, prefix: str = "") -> tuple[LogEntry, ...]:
        """Return the logs with this prefix."""
        check_prefix(prefix)
        return await self._read(lambda it: logs_.logs(it, self._tables, prefix, where=self._where))
