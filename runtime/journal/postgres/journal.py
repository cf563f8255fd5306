"""The journal that many hosts share: a schema in a PostgreSQL database.

What is asked of it stands in the modules beside this one, its tables in `tables`, how appends are
judged in `appends`, its connections in `links`, `lanes` and `readers`, and what is done where an
outcome is not known in `database`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self, TypeVar

import attrs

from .counts import Counts
from .database import Database
from .doors import Ask
from .gauges import PostgresGauges
from .inspection import PostgresInspection
from .known import Known
from .ledgers import PostgresLedgers
from .listening import Ears, Listener
from .posting import PostgresPosts
from .retaining import PostgresRetention
from .runs import PostgresRuns
from .server_clock import PATIENCE, ServerClock
from .shared_logs import PostgresLogs
from .url import Place, place_of
from .waking import check
from .writing import PostgresFacts

T = TypeVar("T")


async def open_place(place: str, *, create: bool, read_only: bool) -> PostgresJournal:
    """Open `//USER@HOST/DATABASE?schema=NAME`, see `open_journal`. Raises `JournalError`."""
    found = place_of(f"postgresql:{place}", read_only=read_only)
    return await PostgresJournal.open(found, create=create, read_only=read_only)


class PostgresJournal(
    PostgresFacts,
    PostgresRuns,
    PostgresLedgers,
    PostgresPosts,
    PostgresLogs,
    PostgresRetention,
    PostgresInspection,
    PostgresGauges,
):
    """Runs in a schema of a PostgreSQL database. `PostgresJournal.open` makes one."""

    def __init__(self, database: Database, clock: ServerClock) -> None:
        """Take over what `open` has opened."""
        self._database = database
        self._tables = database.tables
        self._where = database.where
        self._is_read_only = database.read_only
        self._clock = clock
        self._ears = Ears()
        self._listener: Listener | None = None
        self._measuring: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        place: Place | str,
        *,
        create: bool = True,
        read_only: bool = False,
        on_busy: str | None = None,
    ) -> Self:
        """Open the journal of a URL; make its tables where there are none, unless told otherwise.

        `on_busy` is a statement of SQL that is done in the transaction of each append that opens a
        turn which is under way afterwards: it wakes somebody (D-72). It reads a table `busy` with
        `run_id text` (as JSON), `run_key text` (its SHA-256 in hex) and `turn_epoch bigint`; where
        it fails, nothing is kept.

        Raises `JournalError` where there is no server, or one that is unfit; `NoJournal` where
        there are no tables; what it says names host, database and schema, and no password.
        `InvalidValue` is raised for an `on_busy` that this server cannot do.
        """
        found = place_of(place, read_only=read_only) if isinstance(place, str) else place
        if on_busy is not None:
            found = attrs.evolve(found, on_busy=on_busy)
        database = await Database.open(found, create=create, read_only=read_only)
        clock = ServerClock()
        try:
            await database.read(clock.measure)
            if on_busy is not None and found.prepared:
                await database.read(lambda it: check(it, on_busy))
        except BaseException:
            await database.close()
            raise
        journal = cls(database, clock)
        journal._begin(listens=found.listen)
        return journal

    def _begin(self, *, listens: bool) -> None:
        database = self._database
        if listens:
            self._listener = Listener(
                self._tables, database.reading_link, ears=self._ears, counts=database.counts
            )
        self._measuring = asyncio.create_task(
            self._clock.keep(database.read), name=f"journal {self._where}, clock"
        )

    @property
    def clock(self) -> ServerClock:
        """The server's time, which leases count by (D-44)."""
        return self._clock

    @property
    def patience(self) -> float:
        """Seconds for which takers wait beyond a lease."""
        return PATIENCE

    @property
    def counts(self) -> Counts:
        """What it has counted of itself since it was opened."""
        return self._database.counts

    @property
    def rewinds(self) -> bool:
        """Whether it may go on from an older state: a standby may take over."""
        return True

    @property
    def hears(self) -> bool:
        """Whether notices come at the moment."""
        return self._listener is not None and self._listener.hears

    async def heard(self, timeout: float, *, answer: int | None = None) -> None:  # noqa: ASYNC109 - D-10 names it
        """Return when a post, an answer or an append may be there."""
        if self.hears:
            await self._ears.wait(timeout, answer=answer)
        else:
            await asyncio.sleep(min(timeout, self._database.place.poll))

    async def close(self) -> None:
        """Finish what was begun, and let all connections go; not those of a parent process."""
        if self._database.is_of_parent:
            return
        if self._measuring is not None:
            self._measuring.cancel()
            await asyncio.wait([self._measuring])
        if self._listener is not None:
            await self._listener.close()
        await self._database.close()

    async def _read(
        self,
        ask: Ask[T],
        *,
        run: str | None = None,
        whole: bool = False,
        within: float | None = None,
    ) -> T:
        return await self._database.read(ask, run=run, whole=whole, within=within)

    async def _write(
        self,
        work: Ask[T],
        *,
        run: str | None = None,
        settled: Callable[[T], None] | None = None,
        within: float | None = None,
    ) -> T:
        return await self._database.write(work, run=run, settled=settled, within=within)

    async def _known(self, run_id: str) -> Known:
        return await self._database.known(run_id)
