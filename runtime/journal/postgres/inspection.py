"""A journal in PostgreSQL looked at as a whole, in portions that fit into memory.

Each run and each log is looked at as one moment has it, so that nothing that happens meanwhile is
taken for damage; different ones at different moments, so that no transaction lasts for long.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from ....models.errors import TurnlockError
from ...errors import Closed
from ..checked import DAMAGED, FactsChecked, NotesChecked, post_checked, snapshot_checked
from ..contract import PAGE, Finding, RunEntry, findings_of
from ..log_rows import LogChecked, LogRow
from ..logs import finding
from ..rows import Row, checksum
from .doors import Connection, Doors
from .facts import rows_after
from .heads import HEAD, Head, head_in
from .logs import ENTRIES, LOGS, entry_in, log_in
from .notes import COLUMNS, row_in
from .tables import Tables, key_of, text_of

PORTION: Final = 100
"""Notes, entries, posts and workers that are read together."""
WITHIN: Final = 3_600.0
"""Seconds that looking at one run or log may take: a million facts took half a minute."""
ORPHANS: Final = 1_000
"""Rows of runs that are not there are told up to so many, of each table."""

_HIDDEN: Final = "it is kept under another key than its own, so that nobody finds it"

T = TypeVar("T")

Portion: TypeAlias = tuple[Sequence[Finding], Sequence[T]]
"""What was found, and where what was looked at stands: the next portion begins behind it."""


class PostgresInspection(Doors):
    """The part of a journal in PostgreSQL that reads all of it."""

    async def check(self) -> tuple[Finding, ...]:
        """Read all that is kept, and return what is not as it was written."""
        found: list[Finding] = []
        async for entry in self.run_entries(forgotten=True):
            found += findings_of(entry)
            found += await self._looked_at(entry)
        for table in ("appends", "snapshots", "notes", "posts"):
            found += await self._orphans(table)
        found += [it async for it in self._portions(posts_checked, 0)]
        found += [it async for it in self._portions(workers_checked, b"")]
        return (*found, *await self.check_logs())

    async def _looked_at(self, entry: RunEntry) -> Sequence[Finding]:
        """Look at a run; what the server itself cannot read hides nothing of the others."""
        run_id = entry.run.run_id
        try:
            return await self._read(
                lambda it: run_checked(it, self._tables, run_id, where=self._where),
                run=run_id,
                whole=True,
                within=WITHIN,
            )
        except Closed:
            raise
        except TurnlockError as error:
            return [Finding(run_id=run_id, what="run", cause=f"cannot be read: {error}")]

    async def check_logs(self) -> list[Finding]:
        """Read all entries, and return what is missing, or not as it was written."""
        return [it async for it in self._portions(self._log_checked, 0)]

    async def _log_checked(
        self, connection: Connection, tables: Tables, after: int
    ) -> Portion[int]:
        return await log_checked(connection, tables, after, where=self._where)

    async def _portions(
        self, look: Callable[[Connection, Tables, T], Awaitable[Portion[T]]], first: T
    ) -> AsyncIterator[Finding]:
        found, places = await self._portion(look, first)
        while places:
            for it in found:
                yield it
            found, places = await self._portion(look, places[-1])

    async def _portion(
        self, look: Callable[[Connection, Tables, T], Awaitable[Portion[T]]], after: T
    ) -> Portion[T]:
        return await self._read(lambda it: look(it, self._tables, after), whole=True, within=WITHIN)

    async def _orphans(self, table: str) -> Sequence[Finding]:
        return await self._read(lambda it: orphans(it, self._tables, table), within=WITHIN)


async def run_checked(
    connection: Connection, tables: Tables, run_id: str, *, where: str
) -> list[Finding]:
    """Look at all that is kept of a run, as one moment has it; of one that was removed, nothing."""
    row: Any = await connection.fetchrow(
        f"SELECT {HEAD}, began, changed, status, told FROM {tables.runs} WHERE key = $1",  # noqa: S608 - ours
        key_of(run_id),
    )
    if row is None:
        return [Finding(run_id=run_id, what="row", cause=_HIDDEN)]
    head = head_in(row)
    if head.forgotten is not None:
        return []
    facts = FactsChecked(run_id, where)
    found = await _facts(connection, tables, head, facts)
    found += facts.of_row(
        head.sequence,
        began=row["began"],
        changed=row["changed"],
        status=row["status"],
        told=row["told"],
    )
    found += await _notes(connection, tables, head, where)
    return found + await _snapshot(connection, tables, head)


async def _facts(
    connection: Connection, tables: Tables, head: Head, checked: FactsChecked
) -> list[Finding]:
    found: list[Finding] = []
    while rows := await rows_after(connection, tables, head, after=checked.after, limit=PAGE):
        for kept in rows:
            found += checked.next(Row(*kept))
    found += checked.of_end(head.sequence)
    return found


async def _notes(connection: Connection, tables: Tables, head: Head, where: str) -> list[Finding]:
    run_id = head.run_id
    checked = NotesChecked(run_id, where, sequence=head.sequence)
    found: list[Finding] = []
    after = (-1, 0)
    while True:
        rows: Any = await connection.fetch(
            f"SELECT n.key, {COLUMNS} FROM {tables.notes} n"  # noqa: S608 - ours
            " WHERE n.run = $1 AND (n.sequence, n.part) > ($2, $3)"
            " ORDER BY n.sequence, n.part LIMIT $4",
            head.number,
            *after,
            PORTION,
        )
        for key, *kept in map(tuple, rows):
            row = row_in(kept)
            found += checked.next(row)
            if key != (None if row.id is None else key_of(row.id)):
                found.append(Finding(run_id=run_id, what=f"note {row.id!r}", cause=_HIDDEN))
            after = (row.sequence, row.part)
        if not rows:
            break
    ends = checked.ends.part if checked.ends.sequence == head.sequence else 0
    if ends != head.part or head.shown > ends:
        cause = f"it ends with note {head.part} (shown: {head.shown}), and there are {ends}"
        found.append(Finding(run_id=run_id, what="row", cause=cause))
    return found


async def _snapshot(connection: Connection, tables: Tables, head: Head) -> list[Finding]:
    row: Any = await connection.fetchrow(
        f"SELECT sequence, snapshot, checksum FROM {tables.snapshots} WHERE run = $1",  # noqa: S608 - ours
        head.number,
    )
    sequence = 0 if row is None else row["sequence"]
    found: list[Finding] = []
    if row is not None:
        found += snapshot_checked(
            head.run_id, sequence=sequence, content=row["snapshot"], kept=row["checksum"]
        )
    if sequence != head.snapped:
        cause = f"its snapshot is of {sequence}, and should be of {head.snapped}"
        found.append(Finding(run_id=head.run_id, what="row", cause=cause))
    return found


async def orphans(connection: Connection, tables: Tables, table: str) -> list[Finding]:
    """Tell of rows that belong to no run: the database keeps no watch over it (D-21)."""
    rows: Any = await connection.fetch(
        f"SELECT t.run, count(*) AS many FROM {getattr(tables, table)} t"  # noqa: S608 - ours
        f" WHERE NOT EXISTS (SELECT FROM {tables.runs} r WHERE r.number = t.run)"
        " GROUP BY t.run ORDER BY t.run LIMIT $1",
        ORPHANS,
    )
    return [
        Finding(run_id=None, what=table, cause=f"{many} rows belong to run {number}, not there")
        for number, many in map(tuple, rows)
    ]


async def posts_checked(connection: Connection, tables: Tables, after: int) -> Portion[int]:
    """Look at the next posts and their answers."""
    rows: Any = await connection.fetch(
        "SELECT p.number, r.run_id, p.delivery, p.checksum, p.problem, p.receipt,"  # noqa: S608 - ours
        f" p.receipt_checksum FROM {tables.posts} p JOIN {tables.runs} r ON r.number = p.run"
        " WHERE p.number > $1 ORDER BY p.number LIMIT $2",
        after,
        PORTION,
    )
    found: list[Finding] = []
    for number, run_id, delivery, kept, problem, receipt, receipt_kept in map(tuple, rows):
        found += post_checked(
            number,
            text_of(run_id),
            delivery=delivery,
            kept=kept,
            problem=None if problem is None else text_of(problem),
            receipt=receipt,
            receipt_kept=receipt_kept,
        )
    return found, [row["number"] for row in rows]


async def workers_checked(connection: Connection, tables: Tables, after: bytes) -> Portion[bytes]:
    """Look at what the next workers stand for."""
    rows: Any = await connection.fetch(
        f"SELECT key, worker, meaning, checksum FROM {tables.workers}"  # noqa: S608 - ours
        " WHERE key > $1 ORDER BY key LIMIT $2",
        after,
        PORTION,
    )
    found: list[Finding] = []
    for key, kept, meaning, summed in map(tuple, rows):
        name = text_of(kept)
        if checksum(meaning, name) != summed or key != key_of(name):
            found.append(Finding(run_id=None, what=f"worker {name!r}", cause=DAMAGED))
    return found, [row["key"] for row in rows]


async def log_checked(
    connection: Connection, tables: Tables, after: int, *, where: str
) -> Portion[int]:
    """Look at the next log, all of it."""
    kept: Any = await connection.fetchrow(
        f"SELECT {LOGS} FROM {tables.logs} WHERE number > $1 ORDER BY number LIMIT 1",  # noqa: S608 - ours
        after,
    )
    if kept is None:
        return [], []
    row = log_in(kept)
    checked = LogChecked(row, where)
    found = [*checked.of_row(), *await _entries(connection, tables, row, checked)]
    return [*found, *checked.of_end()], [row.key]


async def _entries(
    connection: Connection, tables: Tables, log: LogRow, checked: LogChecked
) -> list[Finding]:
    found: list[Finding] = []
    after = -(2**63)
    while True:
        rows: Any = await connection.fetch(
            f"SELECT e.key, {ENTRIES} FROM {tables.entries} e"  # noqa: S608 - ours
            " WHERE e.log = $1 AND e.number > $2 ORDER BY e.number LIMIT $3",
            log.key,
            after,
            PORTION,
        )
        for key, *kept in map(tuple, rows):
            entry = entry_in(kept)
            found += checked.next(entry)
            if key != key_of(entry.entry_id):
                found.append(finding(log.name, entry.number, _HIDDEN))
            after = entry.number
        if not rows:
            return found
