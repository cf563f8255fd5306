"""The logs of a SQLite journal: the tables `logs` and `entries`, and what is asked of them.

A row of `logs` says where a log ends, in the transaction that brings the entry: so entries that are
missing at the end show, and all logs are looked at without their entries. Rows of `entries` are
never removed, so that the largest rowid tells whether anything was appended to any log since.
"""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cached_property, partial
from typing import Final, TypeVar

from ...models.values import Json
from .contract import PAGE, Finding, Journal
from .log_rows import EntryRow, LogChecked, LogRow, entry_sum, log_sum
from .logs import (
    MOST,
    Entered,
    Entry,
    GivenEntry,
    LogEntry,
    behind,
    check_id,
    check_log,
    check_page,
    check_prefix,
    check_room,
    given_entry,
)
from .sqlite_heads import Heads, head_of_log, log_key

T = TypeVar("T")

LISTS: Final = 16
"""Answers of `logs` that are remembered, each of its own prefix."""

_LOGS: Final = "SELECT number, name, last, checksum FROM logs"
_ENTRIES: Final = "SELECT number, entry_id, at, body, checksum FROM entries WHERE log = ?"


def log_of(connection: sqlite3.Connection, log: str) -> LogRow | None:
    """Return where a log ends; None where nobody has appended to it."""
    row = connection.execute(f"{_LOGS} WHERE name = ?", (log,)).fetchone()
    return None if row is None else LogRow(*row)


def _end_of(connection: sqlite3.Connection, row: LogRow) -> int:
    """Return the number of the last entry that is there."""
    (last,) = connection.execute(
        "SELECT max(number) FROM entries WHERE log = ?", (row.key,)
    ).fetchone()
    return last if type(last) is int else 0


def append_entry(
    connection: sqlite3.Connection, given: GivenEntry, *, heads: Heads, where: str
) -> Entered:
    """Keep an entry once, at the end of its log."""
    row = log_of(connection, given.log)
    if row is not None:
        found = _of_id(connection, row, given.entry_id)
        if found is not None:
            return found.again(given, where)
        row.check_end(_end_of(connection, row), where)
        check_room(given.log, row.last)
    number = 1 if row is None else row.last + 1
    key = _moved(connection, given.log, row, number)
    kept = entry_sum(given.content, given.log, number, given.entry_id, given.at)
    connection.execute(
        "INSERT INTO entries (log, number, entry_id, at, body, checksum) VALUES (?, ?, ?, ?, ?, ?)",
        (key, number, given.entry_id, given.at, given.content, kept),
    )
    heads.note(log_key(given.log), head_of_log(number, kept))
    return Entered(number, new=True)


def _of_id(connection: sqlite3.Connection, row: LogRow, entry_id: str) -> EntryRow | None:
    found = connection.execute(f"{_ENTRIES} AND entry_id = ?", (row.key, entry_id)).fetchone()
    return None if found is None else EntryRow(*found)


def _moved(connection: sqlite3.Connection, name: str, row: LogRow | None, last: int) -> int:
    """Write where the log ends, and return its key."""
    kept = log_sum(name, last)
    if row is None:
        made = connection.execute(
            "INSERT INTO logs (name, last, checksum) VALUES (?, ?, ?)", (name, last, kept)
        )
        key = made.lastrowid
        assert key is not None  # noqa: S101 - for the type alone: a row was inserted
        return key
    connection.execute(
        "UPDATE logs SET last = ?, checksum = ? WHERE number = ?", (last, kept, row.key)
    )
    return row.key


def entries(
    connection: sqlite3.Connection, log: str, *, after: int, limit: int, where: str
) -> tuple[Entry, ...]:
    """Return the next entries. Where the log ends is asked first: rows can only be added since."""
    row = log_of(connection, log)
    if row is None:
        return ()
    rows = connection.execute(
        f"{_ENTRIES} AND number > ? ORDER BY number LIMIT ?", (row.key, after, limit)
    )
    with closing(rows):
        return row.page((EntryRow(*kept) for kept in rows), after=after, where=where)


def find_entry(
    connection: sqlite3.Connection, log: str, *, entry_id: str, where: str
) -> Entry | None:
    """Return the entry of this id."""
    row = log_of(connection, log)
    found = None if row is None else _of_id(connection, row, entry_id)
    return None if found is None else found.entry(log, where)


class Listed:
    """The logs as they were listed last: only those are read anew that have more entries since."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._connection: sqlite3.Connection | None = None
        self._newest = 0
        self.answers: dict[str, dict[str, LogEntry]] = {}
        """By prefix, the one asked for last at the end; each by name, in order."""

    def logs(
        self, connection: sqlite3.Connection, prefix: str, *, where: str
    ) -> tuple[LogEntry, ...]:
        """Return the logs with this prefix; in the reader's thread."""
        self._renew(connection, where)
        answer = self.answers.pop(prefix, None)
        if answer is None:
            answer = {it.name: it for it in read_logs(connection, prefix, where)}
        self.answers[prefix] = answer
        if len(self.answers) > LISTS:
            del self.answers[next(iter(self.answers))]
        return tuple(answer.values())

    def _renew(self, connection: sqlite3.Connection, where: str) -> None:
        """Bring what is remembered up to date."""
        (newest,) = connection.execute("SELECT coalesce(max(rowid), 0) FROM entries").fetchone()
        if connection is not self._connection or newest < self._newest:
            self.answers.clear()
        elif newest > self._newest:
            grown = connection.execute(
                f"{_LOGS} WHERE number IN (SELECT log FROM entries WHERE rowid > ?)",  # noqa: S608 - ours
                (self._newest,),
            )
            self._take(_listed(connection, grown, where))
        self._connection, self._newest = connection, newest

    def _take(self, grown: Sequence[LogEntry]) -> None:
        for prefix, answer in self.answers.items():
            mine = {it.name: it for it in grown if it.name.startswith(prefix)}
            is_known = mine.keys() <= answer.keys()
            answer.update(mine)
            if not is_known:
                self.answers[prefix] = {name: answer[name] for name in sorted(answer)}


def read_logs(connection: sqlite3.Connection, prefix: str, where: str) -> Sequence[LogEntry]:
    """Return the logs with this prefix, as they are in the file, by name."""
    end = behind(prefix)
    if end is None:
        rows = connection.execute(f"{_LOGS} WHERE name >= ? ORDER BY name", (prefix,))
    else:
        rows = connection.execute(
            f"{_LOGS} WHERE name >= ? AND name < ? ORDER BY name", (prefix, end)
        )
    return _listed(connection, rows, where)


def _listed(connection: sqlite3.Connection, rows: sqlite3.Cursor, where: str) -> Sequence[LogEntry]:
    found = [LogRow(*row) for row in rows.fetchall()]
    return [
        it.listed(0 if it.problem is None else _end_of(connection, it), where)
        for it in found
        if type(it.name) is str  # a damaged one can be anything, and `check` tells of it
    ]


def check_logs(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """Look at each log and each entry by itself, and whether any is missing between them."""
    for kept in connection.execute(f"{_LOGS} ORDER BY number").fetchall():
        row = LogRow(*kept)
        checked = LogChecked(row, where)
        yield from checked.of_row()
        rows = connection.execute(f"{_ENTRIES} ORDER BY number", (row.key,))
        with closing(rows):
            for fields in rows:
                yield from checked.next(EntryRow(*fields))
        yield from checked.of_end()


class SqliteLogs(Journal):
    """The part of a SQLite journal that keeps logs."""

    _where: str
    _heads: Heads

    @cached_property
    def _listed(self) -> Listed:
        return Listed()

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        """Keep an entry once."""
        given = given_entry(log, entry_id, body, at=at)
        return await self._write(
            partial(append_entry, given=given, heads=self._heads, where=self._where),
            settled=partial(self._heeds.tell, log),
        )

    async def entries(self, log: str, *, after: int = 0, limit: int = PAGE) -> tuple[Entry, ...]:
        """Return the next entries."""
        check_page(log, after=after, limit=limit)
        return await self._read(
            partial(
                entries,
                log=log,
                after=min(after, MOST),
                limit=min(limit, MOST),
                where=self._where,
            )
        )

    async def find_entry(self, log: str, entry_id: str) -> Entry | None:
        """Return the entry of this id."""
        check_log(log)
        check_id(entry_id)
        return await self._read(partial(find_entry, log=log, entry_id=entry_id, where=self._where))

    async def logs(self, prefix: str = "") -> tuple[LogEntry, ...]:
        """Return the logs with this prefix."""
        check_prefix(prefix)
        return await self._read(partial(self._listed.logs, prefix=prefix, where=self._where))

    @abstractmethod
    async def _write(
        self,
        work: Callable[[sqlite3.Connection], T],
        *,
        settled: Callable[[T], None] | None = None,
    ) -> T:
        """Have a work done in a transaction; `settled` is told on the loop what it returned.

        That is so even where the task that waits for it was cancelled meanwhile.
        """

    @abstractmethod
    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Have a work done that changes nothing."""
