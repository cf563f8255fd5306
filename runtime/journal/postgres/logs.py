"""Shared logs: entries in one order, which any process may append to (W-10 … W-12).

The row of a log says where it ends, and is locked by whoever appends: so numbers have no gaps, and
what stands in the log is seen by the statement that follows.
"""

from __future__ import annotations

from typing import Any, Final

from .. import pages
from ..log_rows import EntryRow, LogRow, entry_sum, log_sum
from ..logs import Entered, Entry, GivenEntry, LogEntry, behind, check_room
from .doors import Connection
from .tables import Tables, bytes_of, key_of, text_of

LOGS: Final = "number, name, last, checksum"
"""What `log_in` is given."""
ENTRIES: Final = "e.number, e.entry_id, e.at, e.body, e.checksum"
"""What `entry_in` is given, of entries `e`."""
MOST: Final = 2**31 - 1
"""Entries of a page; a limit may be larger."""


def log_in(kept: Any) -> LogRow:  # noqa: ANN401 - a record of `LOGS`
    """Return a log as it is kept."""
    number, name, last, summed = kept
    return LogRow(number, text_of(name), last, summed)


def entry_in(kept: Any) -> EntryRow:  # noqa: ANN401 - a record of `ENTRIES`
    """Return an entry as it is kept."""
    number, entry_id, at, body, summed = kept
    return EntryRow(number, text_of(entry_id), at, body, summed)


async def log_of(connection: Connection, tables: Tables, log: str) -> LogRow | None:
    """Return where a log ends; None where nobody has appended to it."""
    row: Any = await connection.fetchrow(
        f"SELECT {LOGS} FROM {tables.logs} WHERE name = $1",  # noqa: S608 - ours
        bytes_of(log),
    )
    return None if row is None else log_in(row)


async def append_entry(
    connection: Connection, tables: Tables, given: GivenEntry, *, where: str
) -> Entered:
    """Keep an entry once, at the end of its log."""
    row = await _locked(connection, tables, given.log)
    found = await _of_id(connection, tables, row, given.entry_id)
    if found is not None:
        return found.again(given, where)
    row.check_end(await end_of(connection, tables, row), where)
    check_room(given.log, row.last)
    number = row.last + 1
    await connection.execute(
        f"WITH ends AS (UPDATE {tables.logs} SET last = $2, checksum = $8 WHERE number = $1)"  # noqa: S608 - ours
        f" INSERT INTO {tables.entries} (log, number, key, entry_id, at, body, checksum)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7)",
        row.key,
        number,
        key_of(given.entry_id),
        bytes_of(given.entry_id),
        given.at,
        given.content,
        entry_sum(given.content, given.log, number, given.entry_id, given.at),
        log_sum(given.log, number),
    )
    return Entered(number, new=True)


async def _locked(connection: Connection, tables: Tables, log: str) -> LogRow:
    """Lock the row of a log until the transaction ends; make it where there is none."""
    lock = f"SELECT {LOGS} FROM {tables.logs} WHERE name = $1 FOR NO KEY UPDATE"  # noqa: S608 - ours
    row: Any = await connection.fetchrow(lock, bytes_of(log))
    if row is None:
        await connection.execute(
            f"INSERT INTO {tables.logs} (name, last, checksum) VALUES ($1, 0, $2)"  # noqa: S608 - ours
            " ON CONFLICT DO NOTHING",
            bytes_of(log),
            log_sum(log, 0),
        )
        row = await connection.fetchrow(lock, bytes_of(log))
    return log_in(row)


async def _of_id(
    connection: Connection, tables: Tables, row: LogRow, entry_id: str
) -> EntryRow | None:
    found: Any = await connection.fetchrow(
        f"SELECT {ENTRIES} FROM {tables.entries} e WHERE e.log = $1 AND e.key = $2",  # noqa: S608 - ours
        row.key,
        key_of(entry_id),
    )
    return None if found is None else entry_in(found)


async def end_of(connection: Connection, tables: Tables, row: LogRow) -> int:
    """Return the number of the last entry that is there."""
    last: int | None = await connection.fetchval(
        f"SELECT max(number) FROM {tables.entries} WHERE log = $1",  # noqa: S608 - ours
        row.key,
    )
    return last or 0


async def entries(  # noqa: PLR0913 - what is asked
    connection: Connection,
    tables: Tables,
    log: str,
    *,
    after: int,
    limit: int,
    where: str,
) -> tuple[Entry, ...]:
    """Return the next entries."""
    row = await log_of(connection, tables, log)
    if row is None:
        return ()
    rows: Any = await connection.fetch(
        f"SELECT {ENTRIES} FROM (SELECT e.*,"  # noqa: S608 - ours
        " sum(octet_length(e.body)) OVER (ORDER BY e.number) - octet_length(e.body) AS before"
        f" FROM {tables.entries} e WHERE e.log = $1 AND e.number > $2"
        " ORDER BY e.number LIMIT $3) e WHERE e.before < $4 ORDER BY e.number",
        row.key,
        after,
        min(limit, MOST),
        pages.PAGE_BYTES,
    )
    return row.page(map(entry_in, rows), after=after, where=where)


async def find_entry(
    connection: Connection, tables: Tables, log: str, *, entry_id: str, where: str
) -> Entry | None:
    """Return the entry of this id."""
    row = await log_of(connection, tables, log)
    found = None if row is None else await _of_id(connection, tables, row, entry_id)
    return None if found is None else found.entry(log, where)


async def logs(
    connection: Connection, tables: Tables, prefix: str, *, where: str
) -> tuple[LogEntry, ...]:
    """Return the logs with this prefix, by name: bytes have the order of code points."""
    end = behind(prefix)
    rows: Any = await connection.fetch(
        f"SELECT {LOGS} FROM {tables.logs}"  # noqa: S608 - ours
        " WHERE name >= $1 AND ($2::bytea IS NULL OR name < $2) ORDER BY name",
        bytes_of(prefix),
        None if end is None else bytes_of(end),
    )
    return tuple([await _listed(connection, tables, log_in(row), where) for row in rows])


async def _listed(connection: Connection, tables: Tables, row: LogRow, where: str) -> LogEntry:
    ends = 0 if row.problem is None else await end_of(connection, tables, row)
    return row.listed(ends, where)
