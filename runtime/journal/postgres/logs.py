"""Shared logs: entries in one order, which any process may append to (W-10 … W-12).

The row of a log says where it ends, and is locked by whoever appends: so numbers have no gaps, and
what stands in the log is seen by the statement that follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from ....models.errors import TurnlockError
from .. import pages
from ..log_rows import EntryRow, LogRow, entry_sum, log_sum
from ..logs import Entered, Entry, GivenEntry, LogEntry, behind, check_room
from .doors import Connection
from .lanes import Body, Outcome
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


def entering(tables: Tables, *, where: str) -> Body:
    """Return what appends a group of entries, to whatever logs, in one transaction (D-33).

    Who appends to several logs locks them in the order of their names.
    """

    async def body(connection: Connection, works: Sequence[GivenEntry]) -> Sequence[Outcome]:
        rows = await _locked(connection, tables, sorted({it.log for it in works}))
        group = _Group(
            rows=rows,
            ends=await _ends(connection, tables, list(rows.values())),
            known=await _known(connection, tables, rows, works),
            where=where,
        )
        outcomes = [group.enter(it) for it in works]
        await _keep(connection, tables, group)
        return outcomes

    return body


@attrs.define
class _Group:
    """Entries that are appended together: each sees those before it."""

    rows: dict[str, LogRow]
    ends: dict[str, int]
    known: dict[tuple[str, str], EntryRow]
    """What stands under the ids that are given."""
    where: str
    fresh: list[tuple[str, EntryRow]] = attrs.field(factory=list[tuple[str, EntryRow]])
    """What is to be kept, with the names of the logs."""

    def enter(self, given: GivenEntry) -> Outcome:
        """Give an entry its number, once, at the end of its log."""
        try:
            return Outcome(self._entered(given))
        except TurnlockError as error:
            return Outcome(error=error)

    def _entered(self, given: GivenEntry) -> Entered:
        log, name = given.log, (given.log, given.entry_id)
        found = self.known.get(name)
        if found is not None:
            return found.again(given, self.where)
        row = self.rows[log]
        row.check_end(self.ends[log], self.where)
        check_room(log, row.last)
        number = row.last + 1
        summed = entry_sum(given.content, log, number, given.entry_id, given.at)
        self.known[name] = EntryRow(number, given.entry_id, given.at, given.content, summed)
        self.fresh.append((log, self.known[name]))
        self.rows[log] = attrs.evolve(row, last=number, kept=log_sum(log, number))
        self.ends[log] = number
        return Entered(number, new=True)


async def _locked(
    connection: Connection, tables: Tables, names: Sequence[str]
) -> dict[str, LogRow]:
    """Lock the rows of logs until the transaction ends; make those that are not there."""
    found = await _lock(connection, tables, names)
    absent = [name for name in names if name not in found]
    if absent:
        await connection.execute(
            f"INSERT INTO {tables.logs} (name, last, checksum)"  # noqa: S608 - ours
            " SELECT name, 0, checksum FROM unnest($1::bytea[], $2::bigint[]) AS n(name, checksum)"
            " ORDER BY name ON CONFLICT DO NOTHING",
            [*map(bytes_of, absent)],
            [log_sum(name, 0) for name in absent],
        )
        found |= await _lock(connection, tables, absent)
    return found


async def _lock(connection: Connection, tables: Tables, names: Sequence[str]) -> dict[str, LogRow]:
    rows: Any = await connection.fetch(
        f"SELECT {LOGS} FROM {tables.logs} WHERE name = ANY ($1)"  # noqa: S608 - ours
        " ORDER BY name FOR NO KEY UPDATE",
        [*map(bytes_of, names)],
    )
    return {it.name: it for it in map(log_in, rows)}


async def _ends(connection: Connection, tables: Tables, rows: Sequence[LogRow]) -> dict[str, int]:
    """Return the numbers of the last entries that are there."""
    found: Any = await connection.fetch(
        "SELECT l.number, (SELECT coalesce(max(e.number), 0)"  # noqa: S608 - ours
        f" FROM {tables.entries} e WHERE e.log = l.number) AS last"
        " FROM unnest($1::bigint[]) AS l(number)",
        [it.key for it in rows],
    )
    names = {it.key: it.name for it in rows}
    return {names[number]: last for number, last in map(tuple, found)}


async def _known(
    connection: Connection,
    tables: Tables,
    rows: Mapping[str, LogRow],
    works: Sequence[GivenEntry],
) -> dict[tuple[str, str], EntryRow]:
    found: Any = await connection.fetch(
        f"SELECT e.log, {ENTRIES} FROM {tables.entries} e"  # noqa: S608 - ours
        " JOIN unnest($1::bigint[], $2::bytea[]) AS k(log, key) ON e.log = k.log AND e.key = k.key",
        [rows[it.log].key for it in works],
        [key_of(it.entry_id) for it in works],
    )
    names = {it.key: it.name for it in rows.values()}
    entries = ((names[log], entry_in(kept)) for log, *kept in map(tuple, found))
    return {(name, it.entry_id): it for name, it in entries}


async def _keep(connection: Connection, tables: Tables, group: _Group) -> None:
    """Keep the entries, and say where their logs end."""
    fresh = group.fresh
    if not fresh:
        return
    grown = [group.rows[name] for name in dict.fromkeys(name for name, _ in fresh)]
    await connection.execute(
        f"WITH ends AS (UPDATE {tables.logs} l SET last = g.last, checksum = g.checksum"  # noqa: S608 - ours
        " FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS g(number, last, checksum)"
        " WHERE l.number = g.number)"
        f" INSERT INTO {tables.entries} (log, number, key, entry_id, at, body, checksum)"
        " SELECT * FROM unnest($4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[],"
        " $8::float8[], $9::bytea[], $10::bigint[])",
        [it.key for it in grown],
        [it.last for it in grown],
        [it.kept for it in grown],
        [group.rows[name].key for name, _ in fresh],
        [it.number for _, it in fresh],
        [key_of(it.entry_id) for _, it in fresh],
        [bytes_of(it.entry_id) for _, it in fresh],
        [it.at for _, it in fresh],
        [it.body for _, it in fresh],
        [it.kept for _, it in fresh],
    )


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
    found: Any = await connection.fetchrow(
        f"SELECT {ENTRIES} FROM {tables.entries} e JOIN {tables.logs} l ON l.number = e.log"  # noqa: S608 - ours
        " WHERE l.name = $1 AND e.key = $2",
        bytes_of(log),
        key_of(entry_id),
    )
    return None if found is None else entry_in(found).entry(log, where)


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
    found = [*map(log_in, rows)]
    odd = [it for it in found if it.problem is not None]
    ends = await _ends(connection, tables, odd) if odd else {}
    return tuple([it.listed(ends.get(it.name, 0), where) for it in found])
