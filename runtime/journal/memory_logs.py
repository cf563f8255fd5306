"""The logs of a journal in memory."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import attrs

from ...models.values import Json
from .contract import PAGE, Journal
from .logs import (
    Entered,
    Entry,
    GivenEntry,
    LogEntry,
    check_id,
    check_log,
    check_page,
    check_prefix,
    check_room,
    first_won,
    given_entry,
)


@attrs.define
class _Log:
    """One log: its entries, and by their ids where they stand and what they say."""

    entries: list[Entry] = attrs.field(factory=list[Entry])
    by_id: dict[str, tuple[int, bytes]] = attrs.field(factory=dict[str, tuple[int, bytes]])

    def append(self, given: GivenEntry) -> Entered:
        """Keep an entry once."""
        known = self.by_id.get(given.entry_id)
        if known is not None:
            return first_won(given, known[1], known[0])
        check_room(given.log, len(self.entries))
        number = len(self.entries) + 1
        self.entries.append(Entry(number, given.entry_id, given.at, given.body))
        self.by_id[given.entry_id] = (number, given.content)
        return Entered(number, new=True)


class MemoryLogs(Journal):
    """The part of a journal in memory that keeps logs."""

    @cached_property
    def _logs(self) -> dict[str, _Log]:
        return {}

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        """Keep an entry once."""
        given = given_entry(log, entry_id, body, at=at)
        await self._turn()
        kept = self._logs.get(log) or _Log()
        entered = kept.append(given)
        self._logs[log] = kept
        self._heeds.tell(log, entered)
        return entered

    async def entries(self, log: str, *, after: int = 0, limit: int = PAGE) -> tuple[Entry, ...]:
        """Return the next entries."""
        check_page(log, after=after, limit=limit)
        await self._turn()
        kept = self._logs.get(log)
        return () if kept is None else tuple(kept.entries[after : after + limit])

    async def find_entry(self, log: str, entry_id: str) -> Entry | None:
        """Return the entry of this id."""
        check_log(log)
        check_id(entry_id)
        await self._turn()
        kept = self._logs.get(log)
        known = None if kept is None else kept.by_id.get(entry_id)
        return None if kept is None or known is None else kept.entries[known[0] - 1]

    async def logs(self, prefix: str = "") -> tuple[LogEntry, ...]:
        """Return the logs with this prefix."""
        check_prefix(prefix)
        await self._turn()
        names = sorted(name for name in self._logs if name.startswith(prefix))
        return tuple(LogEntry(name, len(self._logs[name].entries)) for name in names)

    @abstractmethod
    async def _turn(self) -> None:
        """Give way to other tasks; raises `Closed` after the end."""
