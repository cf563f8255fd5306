"""D-72: facts and wake-up in one transaction; here the waker is a row in a table.

What DBOS makes of it is in tests/examples/dbos.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import attrs
import pytest

from turnlock import Acknowledge, Call, Claim, Fact, InvalidValue, Kernel, OpenTurn, Report, Run
from turnlock.models.deliveries import Delivery
from turnlock.runtime.errors import JournalError, NoJournal
from turnlock.runtime.journal.contract import Appended, Note
from turnlock.runtime.journal.ledger import Domain
from turnlock.runtime.journal.postgres.journal import PostgresJournal

from ....postgres.servers import journal_url, url

HOSTILE = ("r", "a\0b", "ⓐ'\"\\", "x" * 5_000, "-- \n; $1 %s {}", "\u202eabc")


@attrs.define
class Woken:
    """A journal, a table beside its own that wakers read, and a connection to look at it."""

    schema: str
    there: str
    connection: asyncpg.Connection[asyncpg.Record]

    @property
    def on_busy(self) -> str:
        return (
            f'INSERT INTO "{self.schema}".woken (run, key, epoch)'  # noqa: S608 - ours
            " SELECT run_id, run_key, turn_epoch FROM busy"
        )

    async def rows(self) -> list[tuple[Any, ...]]:
        """Who was woken, in the order of the runs."""
        rows = await self.connection.fetch(
            f'SELECT run, key, epoch FROM "{self.schema}".woken ORDER BY run, epoch'  # noqa: S608
        )
        return [(json.loads(run), key, epoch) for run, key, epoch in map(tuple, rows)]

    async def put(self, run_id: str, epoch: int) -> None:
        """Wake somebody, in a transaction of its own."""
        await self.connection.execute(
            f'INSERT INTO "{self.schema}".woken VALUES ($1, $2, $3)',  # noqa: S608 - ours
            json.dumps(run_id),
            "somebody",
            epoch,
        )

    async def epochs(self) -> list[int]:
        return [epoch for _, _, epoch in await self.rows()]

    def journal(self) -> Awaitable[PostgresJournal]:
        """The journal, in which a turn that opens is told to them."""
        return PostgresJournal.open(self.there, on_busy=self.on_busy)


@asynccontextmanager
async def wakers(folder: Path, constraint: str = "") -> AsyncGenerator[Woken]:
    """A table for those who are woken, whose pairs of run and epoch are as constrained."""
    there = journal_url(folder)
    schema = there.split("schema=")[1].split("&")[0]
    journal = await PostgresJournal.open(there)  # makes the schema
    await journal.close()
    connection = await asyncpg.connect(url())
    await connection.execute(
        f'CREATE TABLE "{schema}".woken (run text, key text, epoch bigint{constraint})'
    )
    try:
        yield Woken(schema, there, connection)
    finally:
        await connection.close()


@attrs.define
class Writer:
    """One who writes a run that nobody owns."""

    journal: PostgresJournal
    kernel: Kernel

    @classmethod
    async def of(cls, journal: PostgresJournal, run_id: str = "r") -> Writer:
        run = Run(run_id=run_id)
        await journal.declare(run)
        return cls(journal, Kernel(run))

    async def append(
        self, *deliveries: Delivery, fence: int | None = None, notes: Sequence[Note] = ()
    ) -> Appended:
        """Have deliveries judged, and keep all their facts in one append."""
        after = self.kernel.sequence
        facts: list[Fact] = []
        for delivery in deliveries:
            facts += self.kernel.receive(delivery, 1.0).facts
        return await self.journal.append(
            self.kernel.run.run_id,
            fence=fence,
            after=after,
            facts=facts,
            busy=self.kernel.busy,
            notes=notes,
        )


def opens(number: int = 1) -> OpenTurn:
    call = Call(invocation_id="a", tool_name="act", arguments={}, requires_approval=False)
    return OpenTurn(turn_id=f"t{number}", calls=(call,))


def runs(number: int = 1) -> tuple[Delivery, ...]:
    """Its call runs, and the turn is settled: its continuation is owed."""
    turn_id = f"t{number}"
    return (
        Claim(turn_id=turn_id, invocation_id="a", attempt=1, worker="w"),
        Report(turn_id=turn_id, invocation_id="a", attempt=1, result="done"),
    )


def ends(number: int = 1) -> tuple[Delivery, ...]:
    return *runs(number), Acknowledge(turn_id=f"t{number}")


def test_d_72_a_turn_that_opens_wakes_once(tmp_path: Path) -> None:
    """What else happens in it wakes nobody, nor does one that is over when it is kept."""

    async def play() -> None:
        async with wakers(tmp_path) as woken, await woken.journal() as journal:
            writer = await Writer.of(journal)
            await writer.append(opens(1))
            assert await woken.epochs() == [1]
            await writer.append(*ends(1))
            await writer.append(opens(2), *ends(2))
            assert await woken.epochs() == [1]
            await writer.append(opens(3))
            assert await woken.epochs() == [1, 3]

    asyncio.run(play())


def test_d_72_a_turn_that_opens_while_another_is_owed_wakes_too(tmp_path: Path) -> None:
    """As the callback of an agent opens it: the run has been busy all the time."""

    async def play() -> None:
        async with wakers(tmp_path) as woken, await woken.journal() as journal:
            writer = await Writer.of(journal)
            await writer.append(opens(1))
            await writer.append(*runs(1))
            await writer.append(opens(2))
            await writer.append(Acknowledge(turn_id="t1"))
            assert await woken.epochs() == [1, 2]

    asyncio.run(play())


def test_d_72_any_id_of_a_run_comes_through(tmp_path: Path) -> None:
    """As JSON, and by its key, with many in one group."""

    async def play() -> None:
        async with wakers(tmp_path) as woken, await woken.journal() as journal:
            writers = [await Writer.of(journal, run_id) for run_id in HOSTILE]
            await asyncio.gather(*(writer.append(opens()) for writer in writers))
            assert sorted(await woken.rows()) == sorted(
                (run_id, hashlib.sha256(run_id.encode()).hexdigest(), 1) for run_id in HOSTILE
            )

    asyncio.run(play())


def test_d_72_what_is_refused_wakes_nobody(tmp_path: Path) -> None:
    """Fenced, in conflict; of two who open the same turn at once one wakes."""

    async def play() -> None:
        async with (
            wakers(tmp_path) as woken,
            await woken.journal() as journal,
            await woken.journal() as other,
        ):
            one, two = await Writer.of(journal), await Writer.of(other)
            assert await one.append(opens(), fence=7) is Appended.FENCED
            assert await woken.epochs() == []
            one = await Writer.of(journal)
            answers = await asyncio.gather(one.append(opens()), two.append(opens()))
            assert sorted(answers) == [Appended.CONFLICT, Appended.OK]
            assert await woken.epochs() == [1]

    asyncio.run(play())


def test_d_72_rolled_back_nobody_is_woken_and_nothing_is_kept(tmp_path: Path) -> None:
    """The COMMIT fails: a constraint that is looked at only then. The runs beside it are kept.

    The control is a waker that is told in a transaction of its own: it is woken for nothing.
    """
    deferred = ", UNIQUE (run) DEFERRABLE INITIALLY DEFERRED"

    async def play() -> None:
        async with wakers(tmp_path, deferred) as woken, await woken.journal() as journal:
            writer, beside = await Writer.of(journal), await Writer.of(journal, "beside")
            await woken.put("r", 0)
            failed, kept = await asyncio.gather(
                writer.append(opens()), beside.append(opens()), return_exceptions=True
            )
            assert isinstance(failed, JournalError)
            assert "nothing was written" in str(failed)
            assert kept is Appended.OK
            assert await journal.read("r") == ()
            assert [(run, epoch) for run, _, epoch in await woken.rows()] == [
                ("beside", 1),
                ("r", 0),
            ]

            stale = Writer(journal, Kernel(Run(run_id="beside")))
            await woken.put("stale", 1)  # the control
            assert await stale.append(opens()) is Appended.CONFLICT
            assert len(await woken.rows()) == 3

    asyncio.run(play())


def test_d_72_a_statement_that_fails_says_so_and_nothing_is_kept(tmp_path: Path) -> None:
    """Others that are appended at the same moment are (D-34)."""

    async def play() -> None:
        constraint = ", CHECK (run <> '\"bad\"')"
        async with wakers(tmp_path, constraint) as woken, await woken.journal() as journal:
            bad, good = await Writer.of(journal, "bad"), await Writer.of(journal, "good")
            failed, kept = await asyncio.gather(
                bad.append(opens()), good.append(opens()), return_exceptions=True
            )
            assert isinstance(failed, JournalError)
            assert str(failed).startswith("on_busy: nothing was written: ")
            assert kept is Appended.OK
            assert await journal.read("bad") == ()
            assert [run for run, _, _ in await woken.rows()] == ["good"]

    asyncio.run(play())


def test_d_72_a_turn_that_opens_with_notes_wakes(tmp_path: Path) -> None:
    """As an agent's does: what the model said is kept beside the calls."""

    async def play() -> None:
        async with wakers(tmp_path) as woken, await woken.journal() as journal:
            writer = await Writer.of(journal)
            note = Note(domain=Domain.SESSION, kind="said", at=1.0, body={"text": "I look."})
            assert await writer.append(opens(), notes=[note]) is Appended.OK
            assert await woken.epochs() == [1]
            writer = await Writer.of(journal)
            assert await writer.append(opens(), notes=[note]) is Appended.CONFLICT
            assert await woken.epochs() == [1]

    asyncio.run(play())


@pytest.mark.parametrize(
    ("on_busy", "cause"),
    [
        ("SELECT nothing.enqueue(run_id) FROM busy", "3F000"),
        ("SELECT run FROM busy", "42703"),
        ("SELECT run_id FROM busy; SELECT 1", "42601"),
        ("", "42601"),
    ],
)
def test_a_statement_that_cannot_be_done_is_told_when_the_journal_is_opened(
    tmp_path: Path, on_busy: str, cause: str
) -> None:
    async def play() -> None:
        with pytest.raises(InvalidValue, match=f"(?s)^on_busy: .*{cause}.*reads the table busy"):
            await PostgresJournal.open(journal_url(tmp_path), on_busy=on_busy)

    asyncio.run(play())


def test_no_url_says_what_is_done(tmp_path: Path) -> None:
    """It is code: whoever may choose where a journal is may not choose what is done there."""

    async def play() -> None:
        with pytest.raises((NoJournal, JournalError)):
            await PostgresJournal.open(f"{journal_url(tmp_path)}&on_busy=SELECT+1")

    asyncio.run(play())
