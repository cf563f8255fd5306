"""The database of one journal: its connections, and what is not known of writes to it.

A write whose outcome is not known is settled before anything is read or written for its run again:
on a new connection the run's row is locked, which waits for a statement that is under way, and its
`settle` is raised, which makes stale a statement that arrives later (D-41). Other transactions
lock the row before they write, so that waiting for the lock is enough for them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from typing import Any, Final, Self, TypeVar

import attrs

from ...errors import JournalError
from ..refusals import closed, only_read, unknown_run
from .appends import look_types_up
from .counts import Counts
from .doors import Ask, Connection
from .failures import FAILURES, cause_of, not_opened
from .heads import head_of
from .known import Known, Remembered
from .lanes import ALONE, Kind, Lane
from .links import Link, open_link
from .migrating import prepare
from .readers import Readers
from .tables import Tables, key_of
from .timeline import note_timeline
from .url import Place

T = TypeVar("T")


class Database:
    """Where a journal is kept, and its doors (see `doors`)."""

    def __init__(self, place: Place, *, read_only: bool) -> None:
        """Begin with no connection; `open` makes them."""
        self.place: Final = place
        self.tables: Final[Tables] = place.tables
        self.where: Final = place.shown
        self.counts: Final = Counts(where=place.shown)
        self.read_only = read_only
        self._closed = False
        self._process = os.getpid()
        self._readers = Readers(self.where, self.reading_link, counts=self.counts)
        self._facts: Sequence[Lane] = ()
        self._all_else: Lane | None = None
        self._slow: set[Lane] = set()
        """Those of works that take long: no renewal may wait behind one."""
        self._known = Remembered[Known]()
        self._unsettled: dict[str, asyncio.Task[None] | None] = {}

    @classmethod
    async def open(cls, place: Place, *, create: bool, read_only: bool) -> Self:
        """Connect, and see that the tables are there."""
        database = cls(place, read_only=read_only)
        link = await open_link(place, reads=read_only)
        try:
            await prepare(
                link,
                place.tables,
                place.shown,
                create=create and not read_only,
                changes=not read_only,
            )
        except FAILURES as error:
            link.drop()
            raise not_opened(place.shown, error) from error
        except BaseException:
            link.drop()
            raise
        database._readers.add(link)
        if not read_only:
            database._start()
        return database

    def _start(self) -> None:
        self._facts = [self._lane(self._appending_link) for _ in range(self.place.lanes)]
        self._all_else = self._lane(self.writing_link)

    def _lane(self, connect: Callable[[], Awaitable[Link]]) -> Lane:
        return Lane(self.where, connect, counts=self.counts, lost=self._lost)

    async def writing_link(self) -> Link:
        """Return a new connection to the server that takes writes."""
        link = await open_link(self.place)
        try:
            await note_timeline(link, self.tables, self.where)
        except BaseException:
            link.drop()
            raise
        return link

    async def _appending_link(self) -> Link:
        """Return a new connection to append by. What its appends need of the driver is there.

        That takes longer than many appends. What the server has against it is told to the first.
        """
        link = await self.writing_link()
        try:
            await link.ask(lambda it: look_types_up(it, self.tables), whole=False)
        except FAILURES:
            if not link.is_open:
                raise
        except BaseException:
            link.drop()
            raise
        return link

    async def reading_link(self) -> Link:
        """Return a new connection to read; of a journal that is written, from where it is."""
        return await open_link(self.place, reads=self.read_only)

    # The doors.

    async def read(
        self,
        ask: Ask[T],
        *,
        run: str | None = None,
        whole: bool = False,
        within: float | None = None,
    ) -> T:
        """Ask for what is kept; see `Doors`."""
        self._check_open()
        if run in self._unsettled:
            await self._settle(run)
        return await self._readers.ask(ask, whole=whole, within=within)

    async def write(
        self,
        work: Ask[T],
        *,
        run: str | None = None,
        settled: Callable[[T], None] | None = None,
        within: float | None = None,
    ) -> T:
        """Do a work in a transaction of its own; see `Doors`."""
        done: T
        if within is None:
            done = await self.do(ALONE, work, run=run, settled=settled)
            return done
        self._writable()
        if run in self._unsettled:
            await self._settle(run)
        lane = self._lane(self.writing_link)
        self._slow.add(lane)
        try:
            kind = attrs.evolve(ALONE, within=within)
            done = await lane.do(kind, work, run=run, settled=settled)
        finally:
            self._slow.discard(lane)
            await lane.close()
        return done

    async def do(
        self,
        kind: Kind,
        asked: Any,  # noqa: ANN401 - whatever the kind is given
        *,
        run: str | None = None,
        size: int = 0,
        settled: Callable[[Any], None] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the kind returns
        """Do a work together with the others of its kind."""
        lane = self._writable()
        if run in self._unsettled:
            await self._settle(run)
        return await lane.do(kind, asked, run=run, size=size, settled=settled)

    async def append(self, kind: Kind, asked: Any, *, run: str, number: int, size: int) -> Any:  # noqa: ANN401
        """Do a work on facts, in the lane of its run (D-33)."""
        self._writable()
        if run in self._unsettled:
            await self._settle(run)
        lane = self._facts[number % len(self._facts)]
        return await lane.do(kind, asked, run=run, size=size)

    def expect_appends(self) -> None:
        """Be ready for the first: it need not wait for a connection then."""
        self._writable()
        for lane in self._facts:
            lane.expect()

    def _writable(self) -> Lane:
        self._check_open()
        if self.read_only or self._all_else is None:
            raise only_read(self.where)
        return self._all_else

    @property
    def is_of_parent(self) -> bool:
        """Whether this process was forked from the one that has opened it.

        What is sent then would stand between what that one sends: nothing may be, nor the goodbye.
        """
        return os.getpid() != self._process

    def _check_open(self) -> None:
        if self._closed:
            raise closed()
        if self.is_of_parent:
            raise JournalError(
                f"journal {self.where}: it was opened by the process from which this one was"
                " forked, and its connections are that one's; nothing was written or read: open it"
                " anew in this process"
            )

    # What is known of runs.

    async def known(self, run_id: str, *, anew: bool = False) -> Known:
        """Return the number of a run's row, and what its appends say. Raises `UnknownRun`."""
        if run_id in self._unsettled:
            await self._settle(run_id)
        found = None if anew else self._known.get(run_id)
        if found is None:
            head = await self.read(
                lambda it: head_of(it, self.tables, run_id, even_forgotten=True), run=run_id
            )
            found = Known(head.number, head.settle)
            self._known.put(run_id, found)
        return found

    def learn(self, run_id: str, known: Known) -> None:
        """Remember what `own` has said of a run."""
        self._known.put(run_id, known)

    def forget(self, run_id: str) -> None:
        """Remember nothing of a run."""
        self._known.drop(run_id)

    # What is not known.

    def _lost(self, runs: Sequence[Hashable]) -> None:
        for run in runs:
            self._unsettled.setdefault(str(run), None)

    async def settle(self, runs: Iterable[str]) -> None:
        """Find out what became of the last writes to these runs, where that is not known (D-41)."""
        for run in runs:
            await self._settle(run)

    async def _settle(self, run: str | None) -> None:
        """Find out what became of the last write to a run, once for all who ask."""
        if run is None or run not in self._unsettled:
            return
        task = self._unsettled[run]
        if task is None or task.done():
            task = asyncio.create_task(self._settled(run), name=f"settling {run!r}")
            self._unsettled[run] = task
        try:
            await asyncio.shield(task)
        except FAILURES as error:
            raise JournalError(
                f"journal {self.where}: run {run!r}: it is not known yet whether the last write was"
                f" kept: {cause_of(error)}; try again"
            ) from error

    async def _settled(self, run: str) -> None:
        link = await self.writing_link()
        try:
            row = await link.single(lambda it: self._raise(it, run))
        finally:
            await link.close()
        self.counts.settles += 1
        if row is None:
            raise unknown_run(run)
        self._known.put(run, Known(row["number"], row["settle"]))
        self._unsettled.pop(run, None)

    async def _raise(self, connection: Connection, run: str) -> Any:  # noqa: ANN401 - a record
        return await connection.fetchrow(
            f"UPDATE {self.tables.runs} SET settle = settle + 1 WHERE key = $1"  # noqa: S608 - ours
            " RETURNING number, settle",
            key_of(run),
        )

    async def close(self) -> None:
        """Do what was asked, and let all connections go."""
        self._closed = True
        lanes = [*self._facts, *self._slow, *([] if self._all_else is None else [self._all_else])]
        await asyncio.gather(*(lane.close() for lane in lanes))
        for task in self._unsettled.values():
            if task is not None:
                task.cancel()
        await self._readers.close()
