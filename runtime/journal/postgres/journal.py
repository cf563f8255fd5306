"""The journal that many hosts share: a schema in a PostgreSQL database.

What is asked of it stands in the modules beside this one, its tables in `tables`, how appends are
judged in `appends`, its connections in `links`, `lanes` and `readers`, and what is done where an
outcome is not known in `database`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, Self, TypeVar

from ....models.fact import Fact
from ....models.run import Run
from ...errors import Overloaded
from ..contract import (
    PAGE,
    RUNS,
    Appended,
    Busy,
    Note,
    RunEntry,
    Summary,
    check_batch,
    check_lease,
    check_limit,
    rewound,
    run_forgotten,
    unknown_run,
)
from ..given import ends_of, given_notes
from ..rows import Row, row_of
from . import entries, owning
from .appends import Asked, Judged, Verdict, appending
from .database import Database
from .doors import Ask, Doors
from .facts import facts
from .known import Known, Remembered
from .lanes import Kind
from .listening import Ears, Listener
from .owning import Lease, Taken
from .recovering import recover
from .server_clock import PATIENCE, ServerClock
from .tables import text_of
from .url import Place

T = TypeVar("T")

APPEND_BYTES: Final = 256_000_000
"""Bytes of JSON that one append may bring."""
STALE_TRIES: Final = 10
"""Times that an append is judged anew because somebody has settled its run meanwhile."""


class PostgresJournal(Doors):
    """Runs in a schema of a PostgreSQL database. `PostgresJournal.open` makes one."""

    def __init__(self, database: Database, clock: ServerClock) -> None:
        """Take over what `open` has opened."""
        self._database = database
        self._tables = database.tables
        self._where = database.where
        self._clock = clock
        self._ears = Ears()
        self._listener: Listener | None = None
        self._measuring: asyncio.Task[None] | None = None
        self._appending = Kind(appending(database.tables), single=True)
        self._owning = Kind(owning.owning(database.tables))
        self._acknowledged = Remembered[int]()

    @classmethod
    async def open(cls, place: Place, *, create: bool = True, read_only: bool = False) -> Self:
        """Open a journal; make its tables where there are none, unless `create` is False.

        Raises `JournalError` where there is no server, or one that is unfit; `NoJournal` where
        there are no tables; what it says names host, database and schema, and no password.
        """
        database = await Database.open(place, create=create, read_only=read_only)
        clock = ServerClock()
        try:
            await database.read(clock.measure)
        except BaseException:
            await database.close()
            raise
        journal = cls(database, clock)
        journal._begin(listens=place.listen)
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
    def hears(self) -> bool:
        """Whether notices come at the moment."""
        return self._listener is not None and self._listener.hears

    async def heard(self, timeout: float, *, answer: int | None = None) -> None:  # noqa: ASYNC109 - D-10 names it
        """Return when a post, an answer or an append may be there."""
        if self.hears:
            await self._ears.wait(timeout, answer=answer)
        else:
            await asyncio.sleep(min(timeout, self._database.place.poll))

    async def declare(self, run: Run) -> None:
        """Make a run known."""
        await self._write(lambda it: entries.declare(it, self._tables, run, where=self._where))

    async def own(
        self, run_id: str, *, owner: str, now: float, lease: float, gone: str | None = None
    ) -> int:
        """Take a run."""
        check_lease(owner, now=now, lease=lease)
        asked = Lease(run_id=run_id, owner=owner, now=now, until=float(now + lease), gone=gone)
        taken: Taken = await self._database.do(self._owning, asked, run=run_id)
        self._database.learn(run_id, Known(taken.number, taken.settle))
        return taken.fence

    async def renew(self, *, owner: str, now: float, lease: float) -> frozenset[str]:
        """Renew the leases of an owner."""
        check_lease(owner, now=now, lease=lease)
        until = float(now + lease)
        return await self._write(
            lambda it: owning.renew(it, self._tables, owner=owner, until=until)
        )

    async def release(self, run_id: str, *, fence: int) -> None:
        """Let a run go."""
        await self._write(
            lambda it: owning.release(it, self._tables, run_id, fence=fence), run=run_id
        )

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
        """Keep facts, with those of other runs that are appended at the same time."""
        check_batch(run_id, after=after, facts=facts)
        given = given_notes(run_id, notes, ends=ends_of(facts, after=after)) if notes else ()
        row = row_of(run_id, facts, correlations)
        self._check_size(run_id, len(row.facts) + sum(len(it.content) for it in given))
        if given:
            return await self._append_noted(run_id, row, fence=fence, busy=busy, notes=given)
        return await self._append(run_id, row, fence=fence, busy=busy)

    async def _append(self, run_id: str, row: Row, *, fence: int | None, busy: Busy) -> Appended:
        """Append until the answer is not that somebody has settled the run meanwhile."""
        known = await self._database.known(run_id)
        for _ in range(STALE_TRIES):
            asked = Asked(number=known.number, fence=fence, settle=known.settle, row=row, busy=busy)
            judged: Judged | None = await self._database.append(
                self._appending, asked, run=run_id, number=known.number, size=len(row.facts)
            )
            if judged is None:
                self._database.forget(run_id)
                raise unknown_run(run_id)
            if judged.verdict is not Verdict.STALE:
                return await self._answer(run_id, row, judged)
            known = await self._database.known(run_id, anew=True)
        raise Overloaded(
            f"run {run_id!r}: others settle it all the time; nothing was written, try again"
        )

    async def _answer(self, run_id: str, row: Row, judged: Judged) -> Appended:
        """Return what an append is told. One that was told more than there is finds out (D-62)."""
        if judged.forgotten is not None:
            raise run_forgotten(run_id, at=judged.forgotten)
        if judged.rewound is not None:
            raise rewound(run_id, why=text_of(judged.rewound))
        told = self._acknowledged.get(run_id) or 0
        if judged.verdict is Verdict.OK:
            self._acknowledged.put(run_id, row.last)
        elif judged.verdict is Verdict.CONFLICT and judged.sequence < told:
            why = f"it had acknowledged fact {told}, and ends with fact {judged.sequence}"
            await self.mark_rewound(run_id, why=why)
            raise rewound(run_id, why=why)
        return _ANSWERS[judged.verdict]

    def _check_size(self, run_id: str, size: int) -> None:
        if size > APPEND_BYTES:
            raise Overloaded(
                f"run {run_id!r}: an append of {size:,} bytes; APPEND_BYTES is"
                f" {APPEND_BYTES:,}: keep large results elsewhere, and a reference here"
            )

    async def read(self, run_id: str, *, after: int = 0, limit: int = PAGE) -> tuple[Fact, ...]:
        """Return the next facts."""
        check_limit(after=after, limit=limit)
        return await self._read(
            lambda it: facts(it, self._tables, run_id, after=after, limit=limit, where=self._where),
            run=run_id,
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
        return await self._read(
            lambda it: entries.entries(
                it,
                self._tables,
                busy=busy,
                kind=kind,
                forgotten=forgotten,
                after=after,
                limit=limit,
                where=self._where,
            )
        )

    async def entry(self, run_id: str) -> RunEntry:
        """Return one run's entry."""
        return await self._read(
            lambda it: entries.entry(it, self._tables, run_id, where=self._where), run=run_id
        )

    async def tell(self, run_id: str, *, after: int, summary: Summary, changed: float) -> None:
        """Keep where a run stands, if nobody has said it."""
        await self._write(
            lambda it: entries.tell(
                it, self._tables, run_id, after=after, summary=summary, changed=changed
            ),
            run=run_id,
        )

    async def mark_rewound(self, run_id: str, *, why: str) -> None:
        """Mark a run as one that nobody may go on with."""
        await self._write(
            lambda it: owning.mark_rewound(it, self._tables, run_id, why=why), run=run_id
        )

    async def recover(
        self,
        run_id: str,
        *,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        correlations: Sequence[bytes | None] | None = None,
    ) -> Appended:
        """Keep what was decided about a run, and free it."""
        if facts:
            check_batch(run_id, after=after, facts=facts)
        row = row_of(run_id, facts, correlations) if facts else None
        answer = await self._write(
            lambda it: recover(it, self._tables, run_id, row, after=after, busy=busy), run=run_id
        )
        self._acknowledged.drop(run_id)
        self._database.forget(run_id)
        return answer

    async def close(self) -> None:
        """Finish what was begun, and let all connections go."""
        if self._measuring is not None:
            self._measuring.cancel()
            await asyncio.wait([self._measuring])
        if self._listener is not None:
            await self._listener.close()
        await self._database.close()

    async def _read(self, ask: Ask[T], *, run: str | None = None, whole: bool = False) -> T:
        return await self._database.read(ask, run=run, whole=whole)

    async def _write(self, work: Ask[T], *, run: str | None = None) -> T:
        return await self._database.write(work, run=run)


_ANSWERS: Final[Mapping[Verdict, Appended]] = {
    Verdict.OK: Appended.OK,
    Verdict.CONFLICT: Appended.CONFLICT,
    Verdict.FENCED: Appended.FENCED,
}
