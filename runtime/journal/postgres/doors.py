"""The two doors to the database that all parts of the journal go through.

A module of statements has plain functions, whose first argument is the connection:

    async def find_note(connection: Connection, tables: Tables, run_id: str, *, …) -> Noted | None:

and the part of the journal that offers them to callers derives from `Doors`:

    class PostgresLedgers(Doors):
        async def find_note(self, run_id: str, note_id: str) -> Noted | None:
            return await self._read(
                lambda it: find_note(it, self._tables, run_id, note_id=note_id), run=run_id
            )

Such a function commits, retries and catches nothing of the database's: the doors do. It may be
called again from its beginning, on another connection. What it raises of ours comes out as it is,
and whatever it wrote before is rolled back.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from ..contract import Journal
from .tables import Tables

if TYPE_CHECKING:
    import asyncpg

T = TypeVar("T")

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
"""What a statement is given."""
Ask: TypeAlias = Callable[[Connection], Awaitable[T]]
"""What is done on a connection."""


class Doors(Journal):
    """A part of a journal in PostgreSQL; the whole says where its doors lead."""

    _tables: Tables
    _where: str
    """Host, database and schema, for messages: never a password (D-55)."""

    @abstractmethod
    async def _read(
        self,
        ask: Ask[T],
        *,
        run: str | None = None,
        whole: bool = False,
        within: float | None = None,
    ) -> T:
        """Ask for what is kept; nothing is written.

        `run` is the run that it is about: what became of a write to it that is not known is found
        out before (D-41). Each statement sees what was committed before it; `whole`: all of them
        see the same moment, for two round trips more. `within` is how many seconds all of it may
        take where that is more than an answer may (`answer_within`).
        """

    @abstractmethod
    async def _write(
        self,
        work: Ask[T],
        *,
        run: str | None = None,
        settled: Callable[[T], None] | None = None,
        within: float | None = None,
    ) -> T:
        """Do a work in a transaction of its own, and return once it is settled (D-35).

        `settled` is told what it returned before this does, and even where it is cancelled.
        `run` is the run that it writes under: as for `_read`. It is done again where the server
        asks for that (D-32). A `JournalError` says whether nothing was kept, or that this is not
        known (D-40). Such a work locks runs in the order of their numbers, then owners (D-32).
        `within` is as for `_read`; the work is then done on a connection of its own, and no other
        waits behind it.
        """
