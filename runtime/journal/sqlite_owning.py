"""What a SQLite journal is asked about the owners of runs, handed to its threads."""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

from ...models.fact import Fact
from . import sqlite_entries as entries
from . import sqlite_runs as runs
from . import sqlite_statements as statements
from .contract import (
    FREE,
    Appended,
    Busy,
    Journal,
    RunEntry,
    Told,
    check_batch,
    check_lease,
    check_limit,
)
from .given import given_again
from .owning import nobody, taken_at
from .rows import row_of
from .sqlite_clock import FileClock
from .sqlite_heads import Heads

T = TypeVar("T")


class SqliteOwning(Journal):
    """The part of a SQLite journal that keeps who owns a run, and who may not go on with one."""

    _where: str
    _clock: FileClock
    _heads: Heads

    @property
    def clock(self) -> FileClock:
        """The one time line of this boot; see `sqlite_clock`."""
        return self._clock

    async def own(
        self, run_id: str, *, owner: str, now: float, lease: float, gone: str | None = None
    ) -> int:
        """Take a run."""
        check_lease(owner, now=now, lease=lease)
        asked = runs.Lease(owner=owner, now=now, until=float(now + lease), gone=gone)
        return await self._write_in_time(partial(runs.own, run_id=run_id, lease=asked))

    async def free(
        self,
        *,
        now: float,
        gone: Callable[[str], bool] = nobody,
        kind: str | None = None,
        after: str | None = None,
        limit: int = FREE,
    ) -> tuple[RunEntry, ...]:
        """List the busy runs that may be taken."""
        check_limit(limit=limit)
        page = await self._read(
            partial(
                entries.free,
                now=now,
                gone=gone,
                kind=kind,
                after=after,
                limit=limit,
                where=self._where,
            )
        )
        return await self._as_acknowledged(page)

    async def take(
        self,
        seen: Sequence[RunEntry],
        *,
        owner: str,
        now: float,
        lease: float,
        gone: Collection[str] = (),
    ) -> Mapping[str, int]:
        """Take many runs in one transaction."""
        check_lease(owner, now=now, lease=lease)
        asked = [
            (
                entry.run.run_id,
                runs.Lease(
                    owner=owner,
                    now=taken_at(entry, now=now),
                    until=float(now + lease),
                    gone=entry.owner if entry.owner in gone else None,
                ),
            )
            for entry in seen
        ]
        return await self._write_in_time(partial(runs.take, asked=asked)) if asked else {}

    async def renew(self, *, owner: str, now: float, lease: float) -> frozenset[str]:
        """Renew the leases of an owner."""
        check_lease(owner, now=now, lease=lease)
        return await self._write_in_time(partial(runs.renew, owner=owner, until=float(now + lease)))

    async def release(self, run_id: str, *, fence: int) -> None:
        """Let a run go."""
        await self._write(partial(runs.release, run_id=run_id, fence=fence))

    async def release_all(self, *, owner: str) -> frozenset[str]:
        """Let all runs of an owner go."""
        return await self._write(partial(runs.release_all, owner=owner))

    async def mark_rewound(self, run_id: str, *, why: str) -> None:
        """Mark a run as one that nobody may go on with."""
        await self._write(partial(runs.mark_rewound, run_id=run_id, why=why))

    async def restore(  # noqa: PLR0913 - as the contract has it
        self,
        run_id: str,
        *,
        owner: str,
        fence: int,
        now: float,
        lease: float,
        after: int,
        parts: int,
        told: Told,
        gone: str | None = None,
    ) -> int:
        """Keep anew what was lost."""
        check_lease(owner, now=now, lease=lease)
        notes = given_again(run_id, told, after=after)
        row = row_of(run_id, told.facts, told.correlations) if told.facts else None
        asked = runs.Lease(owner=owner, now=now, until=float(now + lease), gone=gone)
        return await self._write_in_time(
            partial(
                statements.restore,
                run_id=run_id,
                row=row,
                notes=notes,
                lease=asked,
                beyond=fence,
                after=after,
                parts=parts,
                busy=told.busy,
                heads=self._heads,
            )
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
        return await self._write(
            partial(
                statements.recover,
                run_id=run_id,
                row=row,
                after=after,
                busy=busy,
                heads=self._heads,
            )
        )

    async def _write_in_time(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Write what counts by the clock: only if that is still the one all count by."""

        def checked(connection: sqlite3.Connection) -> T:
            self.clock.check(connection)
            return work(connection)

        return await self._write(checked)

    @abstractmethod
    async def _as_acknowledged(self, page: Sequence[RunEntry]) -> tuple[RunEntry, ...]: ...

    @abstractmethod
    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T: ...

    @abstractmethod
    async def _write(
        self,
        work: Callable[[sqlite3.Connection], T],
        *,
        settled: Callable[[T], None] | None = None,
    ) -> T: ...
