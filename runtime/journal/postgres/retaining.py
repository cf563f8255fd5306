"""The part of the journal that lists runs for people, and removes them."""

from __future__ import annotations

import os
from typing import Final

from ....models.record import number
from ....views.status import Status
from ...errors import JournalError
from ..contract import Backup, RunsPage, check_limit
from ..latest import place_read
from . import forgetting
from . import latest as latest_
from .doors import Doors

LISTED_WITHIN: Final = 60.0
"""Seconds that a list for people may take: some look at all runs, however many there are."""
REMOVED_WITHIN: Final = 600.0
"""Seconds that removing a run may take, however much was kept of it."""


class PostgresRetention(Doors):
    """The part of a journal in PostgreSQL that lists runs for people, and removes them."""

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
        start = None if before is None else place_read(before)
        return await self._read(
            lambda it: latest_.latest(
                it,
                self._tables,
                status=status,
                waiting=waiting,
                before=start,
                limit=limit,
                where=self._where,
            ),
            within=LISTED_WITHIN,
        )

    async def forget(
        self, run_id: str, *, fence: int, after: int, at: float, gone: str | None = None
    ) -> None:
        """Remove a run."""
        moment = number(at, place="at")
        await self._write(
            lambda it: forgetting.forget(
                it,
                self._tables,
                run_id,
                fence=fence,
                after=after,
                at=moment,
                gone=gone,
                where=self._where,
            ),
            run=run_id,
            within=REMOVED_WITHIN,
        )

    async def backup(self, path: str | os.PathLike[str], *, force: bool = False) -> Backup:
        """Say how a database is backed up: the server knows better."""
        raise JournalError(
            f"backup {os.fspath(path)}: journal {self._where} is backed up by PostgreSQL's own"
            f" means (force is {force}): base backups and WAL archiving, or pg_dump --schema"
            f" {self._tables.schema}; see docs/postgres.md"
        )
