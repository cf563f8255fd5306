"""The part of the journal that knows runs: whose they are, and how they are listed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Final

from ....models.run import Run
from ...errors import JournalError
from ...log import logger
from ..contract import (
    FREE,
    RUNS,
    RunEntry,
    RunRead,
    Summary,
    Told,
    check_lease,
    check_limit,
)
from ..owning import nobody
from . import entries, owning, reading
from .cleaning import EVERY, clean_owners
from .database import Database
from .doors import Doors
from .known import Known
from .lanes import Kind
from .owning import Lease, LetGo, Taken
from .restoring import restore

_log: Final = logger(__name__)


class PostgresRuns(Doors):
    """The rows of runs."""

    _database: Database
    _cleaned: float = -math.inf
    """When owners were cleaned last."""

    @cached_property
    def _declaring(self) -> Kind:
        return Kind(entries.declaring(self._tables, where=self._where))

    @cached_property
    def _owning(self) -> Kind:
        return Kind(owning.owning(self._tables))

    @cached_property
    def _releasing(self) -> Kind:
        return Kind(owning.releasing(self._tables))

    async def declare(self, run: Run) -> None:
        """Make a run known. Appends follow: their connection is made meanwhile."""
        self._database.expect_appends()
        asked = entries.Declared.of(run)
        await self._database.do(self._declaring, asked, size=len(asked.content))

    async def own(
        self, run_id: str, *, owner: str, now: float, lease: float, gone: str | None = None
    ) -> int:
        """Take a run. Appends follow: their connection is made meanwhile."""
        check_lease(owner, now=now, lease=lease)
        self._database.expect_appends()
        asked = Lease(run_id=run_id, owner=owner, now=now, until=float(now + lease), gone=gone)
        taken: Taken = await self._database.do(self._owning, asked, run=run_id)
        self._database.learn(run_id, Known(taken.number, taken.settle))
        return taken.fence

    async def renew(self, *, owner: str, now: float, lease: float) -> frozenset[str]:
        """Renew the leases of an owner."""
        check_lease(owner, now=now, lease=lease)
        until = float(now + lease)
        renewed = await self._write(
            lambda it: owning.renew(it, self._tables, owner=owner, until=until)
        )
        await self._clean(now)
        return renewed

    async def _clean(self, now: float) -> None:
        """Remove owners that are gone for long, once in a while; it matters to nobody who fails."""
        if now < self._cleaned + EVERY:
            return
        self._cleaned = now
        try:
            await self._write(lambda it: clean_owners(it, self._tables, now=now))
        except JournalError as error:
            _log.info("journal %s: owners that are gone stay for now: %s", self._where, error)

    async def release(self, run_id: str, *, fence: int) -> None:
        """Let a run go."""
        await self._database.do(self._releasing, LetGo(run_id, fence), run=run_id)

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

    async def read_runs(self, run_ids: Sequence[str]) -> Mapping[str, RunRead]:
        """Return what a recovery reads of these runs."""
        await self._database.settle(run_ids)
        return await self._read(
            lambda it: reading.read_runs(it, self._tables, run_ids, where=self._where)
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

    async def restore(  # noqa: PLR0913 - what a lease and an append are made of
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
        """Keep anew what was acknowledged, and take the run."""
        check_lease(owner, now=now, lease=lease)
        asked = Lease(run_id=run_id, owner=owner, now=now, until=float(now + lease), gone=gone)
        taken = await self._write(
            lambda it: restore(
                it,
                self._tables,
                asked,
                fence=fence,
                after=after,
                parts=parts,
                told=told,
                where=self._where,
            ),
            run=run_id,
        )
        self._database.learn(run_id, Known(taken.number, taken.settle))
        return taken.fence

    async def free(
        self,
        *,
        now: float,
        gone: Callable[[str], bool] = nobody,
        kind: str | None = None,
        after: str | None = None,
        limit: int = FREE,
    ) -> tuple[RunEntry, ...]:
        """List the next busy runs that may be taken."""
        check_limit(limit=limit)
        owners = await self._read(lambda it: owning.owners(it, self._tables, now=now))
        dead = [owner for owner in owners if gone(owner)]
        return await self._read(
            lambda it: entries.free(
                it,
                self._tables,
                now=now,
                dead=dead,
                kind=kind,
                after=after,
                limit=limit,
                where=self._where,
            )
        )

    async def release_all(self, *, owner: str) -> frozenset[str]:
        """Let go of every run of an owner."""
        return await self._write(lambda it: owning.release_all(it, self._tables, owner=owner))
