"""What a SQLite journal is asked about ledgers, handed to its threads."""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from . import sqlite_ledger as ledgers
from . import sqlite_notes as notes_
from . import sqlite_runs as runs
from .contract import PAGE, Appended, Journal, Note, Summary, check_limit
from .given import check_parts, check_worker, given_notes
from .ledger import START, Cursor, Domain, LedgerPage, Noted

T = TypeVar("T")

PORTION: Final = 2_000
"""Notes that are pruned in one transaction: others write in between."""


class SqliteLedgers(Journal):
    """The part of a SQLite journal that keeps and reads notes."""

    _where: str

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        """Keep notes."""
        given = given_notes(run_id, notes)
        return await self._write(partial(notes_.note, run_id=run_id, fence=fence, given=given))

    async def notes(
        self, run_id: str, *, domain: Domain | None = None, after: Cursor = START
    ) -> tuple[Noted, ...]:
        """Return notes in order."""
        return await self._read(
            partial(notes_.notes, run_id=run_id, domain=domain, after=after, where=self._where)
        )

    async def find_note(self, run_id: str, note_id: str) -> Noted | None:
        """Return the note of this id."""
        return await self._read(
            partial(notes_.find_note, run_id=run_id, note_id=note_id, where=self._where)
        )

    async def ledger(
        self, run_id: str, *, after: Cursor = START, limit: int = PAGE, manifests: bool = False
    ) -> LedgerPage:
        """Return the next entries."""
        check_limit(limit=limit)
        return await self._read(
            partial(
                ledgers.page,
                run_id=run_id,
                after=after,
                limit=limit,
                manifests=manifests,
                where=self._where,
            )
        )

    async def ends(self, run_ids: Sequence[str]) -> Mapping[str, Cursor]:
        """Return where ledgers end."""
        return await self._read(partial(ledgers.ends, run_ids=run_ids))

    async def prune(self, run_id: str, *, fence: int | None, now: float) -> int:
        """Remove old observations, in portions: each is whole or gone."""
        numbers = await self._write(partial(notes_.prunable, run_id=run_id, fence=fence, now=now))
        gone = 0
        for begin in range(0, len(numbers), PORTION):
            some = numbers[begin : begin + PORTION]
            gone += await self._write(
                partial(notes_.prune, run_id=run_id, fence=fence, numbers=some)
            )
        return gone

    async def skip(self, run_id: str, *, fence: int | None, parts: int) -> Appended:
        """Keep a gap."""
        check_parts(parts)
        return await self._write(partial(notes_.skip, run_id=run_id, fence=fence, parts=parts))

    async def outdo(self, run_id: str, *, fence: int) -> None:
        """Begin behind a token."""
        await self._write(partial(runs.outdo, run_id=run_id, fence=fence))

    async def put_worker(self, worker: str, meaning: str) -> None:
        """Keep what a worker stands for."""
        check_worker(worker, meaning)
        await self._write(partial(notes_.put_worker, worker=worker, meaning=meaning))

    async def worker(self, worker: str) -> str | None:
        """Return what a worker stands for."""
        return await self._read(partial(notes_.worker, worker=worker, where=self._where))

    async def tell(self, run_id: str, *, after: int, summary: Summary, changed: float) -> None:
        """Keep where a run stands, if nobody has said it."""
        await self._write(
            partial(runs.tell, run_id=run_id, after=after, summary=summary, changed=changed)
        )

    @abstractmethod
    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Have a work done in a transaction."""

    @abstractmethod
    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Have a work done that changes nothing."""
