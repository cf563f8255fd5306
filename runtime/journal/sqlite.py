"""The embedded journal: one SQLite file, durable at each append.

Two threads, each with a connection of its own (WAL: readers do not wait for writers). All writes of
one tick of the loop, and those that arrived while the last transaction was on its way to the disk,
are one transaction. In one thread a page of a thousand facts, 5 ms, would hold up every append that
comes meanwhile, each of which takes 0.4 ms (measured).

A flipped bit in the -wal file, before it is merged into the main one, looks to SQLite like the torn
end of a crash, and what follows it is gone: `sqlite_heads` notices.

The file belongs to nobody as a whole. Any number of processes may open it at the same time, to read
and to post; each run has one owner at most (`own`), and then only the owner's appends are kept.

What is asked of the file is in `sqlite_statements`, its tables in `sqlite_schema`, its rows in
`rows`, how it is opened in `sqlite_file`, and its threads in `sqlite_worker`.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import attrs
import msgspec

from ...engine.snapshot import Snapshot
from ...models.codec import to_json
from ...models.deliveries import Delivery
from ...models.fact import Fact, Foldable
from ...models.record import number
from ...models.run import Run
from ...models.strict_json import parse
from ...views.status import Status
from ..errors import JournalError, JournalOwned
from ..leases import Leases
from ..log import logger
from ..owners import short_name
from . import sqlite_entries as entries
from . import sqlite_posts as posts
from . import sqlite_room as room
from . import sqlite_statements as statements
from .backups import Backup, Restored
from .bare_facts import BARE_FACTS
from .contract import (
    PAGE,
    RUNS,
    Appended,
    Busy,
    Finding,
    Note,
    Post,
    RunEntry,
    RunsPage,
    check_batch,
    check_limit,
    closed,
    only_read,
)
from .given import check_size, ends_of, given_notes
from .latest import place_read
from .rows import RECORDS, Reader, row_of
from .sqlite_backup import openers, put_back, write_backup
from .sqlite_check import check
from .sqlite_clock import FileClock
from .sqlite_file import open_reader, open_writer, path_of
from .sqlite_guard import Guard
from .sqlite_heads import Heads, lost_tails
from .sqlite_ledgers import SqliteLedgers
from .sqlite_logs import SqliteLogs
from .sqlite_owning import SqliteOwning
from .sqlite_reading import ReadOnly
from .sqlite_worker import Worker, reading, writing

T = TypeVar("T")
F = TypeVar("F", bound=Foldable)

_log = logger(__name__)

BUSY_TIMEOUT: Final = 5.0
"""Seconds for which a write waits for another process that is writing, unless told otherwise."""


async def open_place(place: str, *, create: bool, read_only: bool) -> SqliteJournal:
    """Open `PATH`, `/ABSOLUTE` or `///ABSOLUTE`, see `open_journal`. Raises `JournalError`."""
    return await SqliteJournal.open(path_of(place), create=create, read_only=read_only)


async def restore_place(place: str, backup: Path) -> Restored:
    """Put a backup in the place of a journal, see `restore_journal`. Raises `JournalError`."""
    path = path_of(place)
    living = await _living(path)
    if living is not None:
        raise JournalOwned(f"journal {path}: {living}; stop that process, then restore")
    return await asyncio.to_thread(put_back, backup, path)


async def _living(path: Path) -> str | None:
    """Say who performs a run of this journal; None: nobody does, as far as anybody can tell.

    Of a file that cannot be read nobody knows; then no process may have it open.
    """
    try:
        async with await SqliteJournal.open(path, read_only=True) as journal:
            leases = Leases(now=journal.clock.now())
            async for entry in journal.run_entries():
                if entry.owner is not None and leases.is_owned(entry):
                    return f"{short_name(entry.owner)} performs run {entry.run.run_id!r}"
    except JournalError:
        if found := openers(path):
            return f"it cannot be read, and process {found[0]} has it open"
    return None


class SqliteJournal(SqliteOwning, SqliteLedgers, SqliteLogs):
    """Runs in a SQLite file. `SqliteJournal.open` makes one."""

    def __init__(self, path: Path, *, writer: Worker | None, reader: Worker, heads: Heads) -> None:
        """Take over what `open` has opened; without a writer it is only read."""
        self.path: Final = path
        self._where = str(path)
        self._writer = writer
        self._reader = reader
        self._heads = heads
        self._closed = False
        self._clock = FileClock()

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        read_only: bool = False,
        busy_timeout: float = BUSY_TIMEOUT,
    ) -> Self:
        """Open a journal; make the file where there is none, unless `create` is False.

        `read_only` needs no right to write, changes nothing and leaves nothing behind, and waits
        for nobody who writes (see `sqlite_reading`); a file of an older version stays as it is.

        A file of an older version is brought up to date. Raises `JournalError` for what is no
        journal, is damaged, or was written by a newer version; nothing is ever begun anew over it.
        The file is not read through. A `quick_check` of a million facts (295 MB) took 0.1 s of CPU
        time (measured), but from a cold disk as long as reading all of it; and it finds none of the
        flipped bits in a fact that `read` finds. `check` does it on demand.
        """
        place = Path(path)
        where = str(place)
        if read_only:
            only = ReadOnly(place, busy_timeout=busy_timeout)
            reader = Worker(
                f"journal {where}, reader",
                connect=only.connect,
                perform=only.perform,
                disconnect=lambda _: only.close(),
            )
            await reader.connected()
            journal = cls(place, writer=None, reader=reader, heads=Heads(place))
            try:
                with suppress(JournalError):  # then it shows the wall clock's time
                    await reader.do(journal.clock.look)
            except BaseException:
                await journal.close()
                raise
            return journal
        guard = Guard(place)
        heads = Heads(place, guard=guard)

        def connect() -> sqlite3.Connection:
            connection = open_writer(place, create=create, busy_timeout=busy_timeout, guard=guard)
            heads.begin(connection)
            return connection

        writer = Worker(
            f"journal {where}, writer",
            connect=connect,
            perform=writing(where, guard=guard, heads=heads),
            rest=heads.rest,
            disconnect=heads.close,
        )
        try:
            await writer.connected()
            reader = Worker(
                f"journal {where}, reader",
                connect=partial(open_reader, place, busy_timeout=busy_timeout),
                perform=reading(where, guard),
            )
        except BaseException:
            await writer.close()
            raise
        journal = cls(place, writer=writer, reader=reader, heads=heads)
        try:
            await reader.connected()
            with suppress(JournalError):  # a full disk, say: it goes by the wall clock
                await writer.do(journal.clock.agree)
        except BaseException:
            await journal.close()
            raise
        return journal

    async def declare(self, run: Run) -> None:
        """Make a run known."""
        await self._write(partial(entries.declare, run=run, where=self._where))

    async def append(  # noqa: PLR0913 - what is asked
        self,
        run_id: str,
        *,
        fence: int | None,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        notes: Sequence[Note] = (),
        correlations: Sequence[bytes | None] | None = None,
    ) -> Appended:
        """Keep facts. They are encoded here, while the writer may be waiting for the disk."""
        check_batch(run_id, after=after, facts=facts)
        given = given_notes(run_id, notes, ends=ends_of(facts, after=after)) if notes else ()
        row = row_of(run_id, facts, correlations)
        check_size(run_id, len(row.facts) + sum(len(it.content) for it in given))
        return await self._write(
            partial(
                statements.append,
                run_id=run_id,
                row=row,
                fence=fence,
                busy=busy,
                heads=self._heads,
                notes=given,
            )
        )

    async def read(self, run_id: str, *, after: int = 0, limit: int = PAGE) -> tuple[Fact, ...]:
        """Return the next facts."""
        return await self._facts(run_id, after=after, limit=limit, read=RECORDS)

    async def read_to_fold(
        self, run_id: str, *, after: int = 0, limit: int = PAGE
    ) -> tuple[Foldable, ...]:
        """Return of the next facts what the fold reads."""
        return await self._facts(run_id, after=after, limit=limit, read=BARE_FACTS)

    async def _facts(
        self, run_id: str, *, after: int, limit: int, read: Reader[F]
    ) -> tuple[F, ...]:
        check_limit(after=after, limit=limit)
        return await self._read(
            partial(
                statements.facts,
                run_id=run_id,
                after=after,
                limit=limit,
                where=self._where,
                read=read,
            )
        )

    async def runs(
        self,
        *,
        busy: bool | None = None,
        kind: str | None = None,
        forgotten: bool = False,
        after: str | None = None,
        limit: int = RUNS,
    ) -> tuple[RunEntry, ...]:
        """List the next runs."""
        check_limit(limit=limit)
        page = await self._read(
            partial(
                entries.entries,
                busy=busy,
                kind=kind,
                forgotten=forgotten,
                after=after,
                limit=limit,
                where=self._where,
            )
        )
        return await self._as_acknowledged(page)

    async def _as_acknowledged(self, page: Sequence[RunEntry]) -> tuple[RunEntry, ...]:
        """Say of a file that is only read what whoever opens it to write would mark in it."""
        lost: dict[str, str] = {}
        if self._writer is None:
            lost = await self._read(partial(lost_tails, path=self.path))
        return tuple(
            attrs.evolve(it, rewound=it.rewound or lost[it.run.run_id])
            if it.run.run_id in lost
            else it
            for it in page
        )

    async def latest(
        self,
        *,
        status: Status | None = None,
        waiting: bool | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> RunsPage:
        """List runs for people."""
        check_limit(limit=limit)
        page = await self._read(
            partial(
                entries.latest,
                status=status,
                waiting=waiting,
                before=None if before is None else place_read(before),
                limit=limit,
                where=self._where,
            )
        )
        return attrs.evolve(page, entries=await self._as_acknowledged(page.entries))

    async def entry(self, run_id: str) -> RunEntry:
        """Return one run's entry."""
        entry = await self._read(partial(entries.entry, run_id=run_id, where=self._where))
        return (await self._as_acknowledged([entry]))[0]

    async def forget(
        self, run_id: str, *, fence: int, after: int, at: float, gone: str | None = None
    ) -> None:
        """Remove a run."""
        await self._write(
            partial(
                entries.forget,
                run_id=run_id,
                fence=fence,
                after=after,
                at=number(at, place="at"),
                gone=gone,
                where=self._where,
            )
        )

    async def compact(self) -> None:
        """Give free pages back, in portions between which others write."""
        while await self._write(room.give_back):
            pass
        await self._read(room.merge)

    async def keep_snapshot(self, snapshot: Snapshot, *, fence: int | None) -> Appended:
        """Keep a snapshot."""
        content = to_json(snapshot)
        return await self._write(
            partial(
                statements.keep_snapshot,
                snapshot=snapshot,
                content=content,
                fence=fence,
                where=self._where,
            )
        )

    async def snapshot(self, run_id: str) -> Snapshot | None:
        """Return the kept snapshot."""
        return await self._read(partial(statements.snapshot, run_id=run_id))

    async def post(self, run_id: str, delivery: Delivery) -> int:
        """Leave a delivery."""
        return await self._write(partial(posts.post, run_id=run_id, delivery=to_json(delivery)))

    async def posts(self, run_ids: Sequence[str], *, after: int = 0) -> tuple[Post, ...]:
        """Return the posts that wait; those that cannot be read are set aside."""
        found, unreadable = await self._read(partial(posts.posts, run_ids=run_ids, after=after))
        if unreadable:
            for it in unreadable:
                _log.error("%s", it.logged(self._where))
            if self._writer is not None:
                await self._write(partial(posts.set_aside, unreadable=unreadable))
        return found

    async def answer(self, run_id: str, number: int, receipt: Mapping[str, Any]) -> None:
        """Answer a post."""
        content = msgspec.json.encode(receipt)
        await self._write(partial(posts.answer, run_id=run_id, number=number, receipt=content))

    async def answered(self, run_id: str, number: int) -> Mapping[str, Any] | None:
        """Return the answer."""
        content = await self._read(
            partial(posts.answered, run_id=run_id, number=number, where=self._where)
        )
        return None if content is None else parse(content)

    async def posted(self, run_id: str, number: int) -> bool:
        """Say whether this is a post for this run."""
        return await self._read(partial(posts.posted, run_id=run_id, number=number))

    async def findings(self, run_id: str) -> tuple[Finding, ...]:
        """Return what stands in a run's way, and the posts that were set aside."""
        found = await super().findings(run_id)
        return (*found, *await self._read(partial(posts.put_aside, run_id=run_id)))

    async def check(self) -> tuple[Finding, ...]:
        """Read all of the file, and return what is not as it was written."""
        return await self._read(partial(check, where=self._where))

    async def backup(self, path: str | os.PathLike[str], *, force: bool = False) -> Backup:
        """Copy the journal; nobody who writes is held up."""
        await self._read(_nothing)  # raises what has become of the file
        return await asyncio.to_thread(write_backup, self.path, Path(path), force=force)

    async def close(self) -> None:
        """Finish what was begun, and close both connections."""
        self._closed = True
        try:
            await self._reader.close()
        finally:
            if self._writer is not None:
                await self._writer.close()

    async def _write(
        self,
        work: Callable[[sqlite3.Connection], T],
        *,
        settled: Callable[[T], None] | None = None,
    ) -> T:
        if self._closed:
            raise closed()
        if self._writer is None:
            raise only_read(self._where)
        return await self._writer.do(work, settled=settled)

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._closed:
            raise closed()
        return await self._reader.do(work)


def _nothing(_: sqlite3.Connection) -> None:
    """Ask nothing."""
