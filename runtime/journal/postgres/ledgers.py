"""The part of the journal that keeps and reads notes, snapshots, and what workers stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from ....engine.snapshot import Snapshot
from ....models.codec import to_json
from ..contract import PAGE, Appended, Note, check_limit
from ..given import check_parts, check_worker, given_notes
from ..ledger import START, Cursor, Domain, LedgerPage, Noted
from . import ledger as ledgers
from . import notes as notes_
from . import owning, snapshots, workers
from .database import Database
from .doors import Doors
from .lanes import Kind
from .together import OfRun, under_runs

PORTION: Final = 2_000
"""Notes that are pruned in one transaction: others write in between."""


class PostgresLedgers(Doors):
    """Notes, snapshots and workers."""

    _database: Database

    @cached_property
    def _under_runs(self) -> Kind:
        return under_runs(self._tables)

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        """Keep notes."""
        given = given_notes(run_id, notes)
        asked = OfRun(
            run_id,
            lambda it: notes_.note(
                it, self._tables, run_id, fence=fence, given=given, where=self._where
            ),
        )
        size = sum(len(it.content) for it in given)
        kept: Appended = await self._database.do(self._under_runs, asked, run=run_id, size=size)
        return kept

    async def notes(
        self, run_id: str, *, domain: Domain | None = None, after: Cursor = START
    ) -> tuple[Noted, ...]:
        """Return notes in order."""
        return await self._read(
            lambda it: notes_.notes(
                it, self._tables, run_id, domain=domain, after=after, where=self._where
            ),
            run=run_id,
        )

    async def find_note(self, run_id: str, note_id: str) -> Noted | None:
        """Return the note of this id."""
        return await self._read(
            lambda it: notes_.find_note(
                it, self._tables, run_id, note_id=note_id, where=self._where
            ),
            run=run_id,
        )

    async def ledger(
        self, run_id: str, *, after: Cursor = START, limit: int = PAGE, manifests: bool = False
    ) -> LedgerPage:
        """Return the next entries."""
        check_limit(limit=limit)
        return await self._read(
            lambda it: ledgers.page(
                it,
                self._tables,
                run_id,
                after=after,
                limit=limit,
                manifests=manifests,
                where=self._where,
            ),
            run=run_id,
        )

    async def ends(self, run_ids: Sequence[str]) -> Mapping[str, Cursor]:
        """Return where ledgers end."""
        return await self._read(lambda it: ledgers.ends(it, self._tables, run_ids=run_ids))

    async def prune(self, run_id: str, *, fence: int | None, now: float) -> int:
        """Remove old observations, in portions: each is whole or gone."""
        cursors = await self._write(
            lambda it: notes_.prunable(it, self._tables, run_id, fence=fence, now=now), run=run_id
        )
        gone = 0
        for begin in range(0, len(cursors), PORTION):
            gone += await self._prune(run_id, fence, cursors[begin : begin + PORTION])
        return gone

    async def _prune(self, run_id: str, fence: int | None, some: Sequence[Cursor]) -> int:
        return await self._write(
            lambda it: notes_.prune(it, self._tables, run_id, fence=fence, cursors=some),
            run=run_id,
        )

    async def skip(self, run_id: str, *, fence: int | None, parts: int) -> Appended:
        """Keep a gap."""
        check_parts(parts)
        return await self._write(
            lambda it: notes_.skip(it, self._tables, run_id, fence=fence, parts=parts), run=run_id
        )

    async def outdo(self, run_id: str, *, fence: int) -> None:
        """Begin behind a token."""
        await self._write(
            lambda it: owning.outdo(it, self._tables, run_id, fence=fence), run=run_id
        )

    async def keep_snapshot(self, snapshot: Snapshot, *, fence: int | None) -> Appended:
        """Keep a snapshot."""
        run_id, content = snapshot.run.run_id, to_json(snapshot)
        asked = OfRun(
            run_id,
            lambda it: snapshots.keep_snapshot(
                it, self._tables, snapshot, content, fence=fence, where=self._where
            ),
        )
        kept: Appended = await self._database.do(
            self._under_runs, asked, run=run_id, size=len(content)
        )
        return kept

    async def snapshot(self, run_id: str) -> Snapshot | None:
        """Return the kept snapshot."""
        return await self._read(lambda it: snapshots.snapshot(it, self._tables, run_id), run=run_id)

    async def put_worker(self, worker: str, meaning: str) -> None:
        """Keep what a worker stands for."""
        check_worker(worker, meaning)
        await self._write(
            lambda it: workers.put_worker(it, self._tables, worker=worker, meaning=meaning)
        )

    async def worker(self, worker: str) -> str | None:
        """Return what a worker stands for."""
        return await self._read(
            lambda it: workers.worker(it, self._tables, worker=worker, where=self._where)
        )
