"""Transactions of the SQLite journal: many in one, each with its own outcome, or none at all."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from turnlock import Run
from turnlock.models.deliveries import Tick
from turnlock.models.errors import UnknownRun
from turnlock.models.facts import TurnInterrupting
from turnlock.runtime.errors import Closed, JournalError, JournalOwned
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.journal.sqlite_worker import Worker, reading

from .stage import LEASE, NOW, OTHER, RUN, everything, facts, kept, owned

Told = Callable[[SqliteJournal], Awaitable[None]]


def play(path: Path, story: Told, *, busy_timeout: float = 0.05) -> None:
    """Tell a story on the journal of this path."""

    async def run() -> None:
        async with await SqliteJournal.open(path, busy_timeout=busy_timeout) as journal:
            await story(journal)

    asyncio.run(run())


def writer_of(journal: Any) -> Worker:
    """The thread that writes."""
    writer: Worker = journal._writer
    return writer


async def outcomes(*asked: Awaitable[Any]) -> list[Any]:
    """What each of these returns or raises, asked for in one tick."""
    return list(await asyncio.gather(*asked, return_exceptions=True))


def test_what_arrives_in_a_tick_is_one_transaction(tmp_path: Path) -> None:
    """A hundred runs that append at once wait for the disk once."""

    async def story(journal: SqliteJournal) -> None:
        runs = [Run(run_id=f"run-{number}") for number in range(100)]
        fences = [await owned(journal, run) for run in runs]
        said: list[str] = []
        await writer_of(journal).do(lambda connection: connection.set_trace_callback(said.append))

        await asyncio.gather(
            *(
                kept(journal, facts(2, run_id=run.run_id), fence)
                for run, fence in zip(runs, fences, strict=True)
            )
        )

        assert said.count("COMMIT") == 2  # that of the callback itself, and that of all appends
        assert sum("INSERT INTO appends" in statement for statement in said) == 100

    play(tmp_path / "journal.db", story)


def test_each_of_a_group_has_its_own_outcome(tmp_path: Path) -> None:
    """What one is refused does not touch what the others get."""

    async def story(journal: SqliteJournal) -> None:
        first, second = await owned(journal), await owned(journal, OTHER, owner="bob")
        ours, theirs = RUN.run_id, OTHER.run_id

        answers = await outcomes(
            journal.append(ours, fence=first, after=0, facts=facts(2), busy=True),
            journal.append(ours, fence=first, after=0, facts=facts(2), busy=True),
            journal.append(ours, fence=9, after=2, facts=facts(1, after=2), busy=True),
            journal.append("no", fence=1, after=0, facts=facts(1, run_id="no"), busy=True),
            journal.own(theirs, owner="cleo", now=NOW, lease=LEASE),
            journal.append(
                theirs, fence=second, after=0, facts=facts(1, run_id=theirs), busy=False
            ),
            journal.append(ours, fence=first, after=2, facts=facts(1, after=2), busy=False),
        )

        assert answers[:3] == [Appended.OK, Appended.CONFLICT, Appended.FENCED]
        assert [type(answer) for answer in answers[3:5]] == [UnknownRun, JournalOwned]
        assert answers[5:] == [Appended.OK, Appended.OK]
        assert await everything(journal) == facts(3)
        assert await everything(journal, theirs) == facts(1, run_id=theirs)

    play(tmp_path / "journal.db", story)


def test_a_mistake_of_one_caller_spares_the_others(tmp_path: Path) -> None:
    """Even one that nobody thought of, after it has written something."""

    def mistaken(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE runs SET sequence = 77")
        raise ZeroDivisionError

    async def story(journal: SqliteJournal) -> None:
        fence = await owned(journal)

        answers = await outcomes(
            writer_of(journal).do(mistaken),
            journal.append(RUN.run_id, fence=fence, after=0, facts=facts(2), busy=True),
            writer_of(journal).do(mistaken),
        )

        assert [type(answers[0]), type(answers[2])] == [ZeroDivisionError, ZeroDivisionError]
        assert answers[1] is Appended.OK
        assert (await journal.entry(RUN.run_id)).sequence == 2

    play(tmp_path / "journal.db", story)


def test_a_full_disk_keeps_nothing_of_a_group(tmp_path: Path) -> None:
    """All are told, with the cause; when there is space again it goes on."""

    def pages(count: int) -> Callable[[sqlite3.Connection], object]:
        return lambda connection: connection.execute(f"PRAGMA max_page_count = {count}").fetchone()

    async def story(journal: SqliteJournal) -> None:
        first, second = await owned(journal), await owned(journal, OTHER)
        await kept(journal, facts(1), first)
        large = TurnInterrupting(
            run_id=RUN.run_id,
            sequence=2,
            commit=2,
            at=0.0,
            turn_id="turn-1",
            grace_until=1.0,
            reason="x" * 100_000,
        )
        await writer_of(journal).do(pages(1))  # as few as there are

        answers = await outcomes(
            journal.append(
                OTHER.run_id, fence=second, after=0, facts=facts(1, run_id="run-2"), busy=True
            ),
            journal.append(RUN.run_id, fence=first, after=1, facts=[large], busy=True),
        )

        assert [type(answer) for answer in answers] == [JournalError, JournalError]
        assert "the disk is full" in str(answers[1])
        assert str(tmp_path) in str(answers[1])
        assert "not known" not in str(answers[1])
        assert await everything(journal) == facts(1)
        assert await everything(journal, OTHER.run_id) == []
        await writer_of(journal).do(pages(1_000_000))
        await kept(journal, [large], first)

    play(tmp_path / "journal.db", story)


def test_a_lock_held_too_long_is_told(tmp_path: Path) -> None:
    """Nothing was kept, readers never waited, and afterwards it goes on."""
    path = tmp_path / "journal.db"

    async def story(journal: SqliteJournal) -> None:
        fence = await owned(journal)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(JournalError, match="another process holds its lock"):
                await kept(journal, facts(1), fence)
            assert await everything(journal) == []
            other.execute("ROLLBACK")

        await kept(journal, facts(1), fence)

    play(path, story)


def test_a_short_lock_is_waited_for(tmp_path: Path) -> None:
    """Up to `busy_timeout`: other processes write, too. Real time, about a tenth of a second."""
    path = tmp_path / "journal.db"

    async def story(journal: SqliteJournal) -> None:
        fence = await owned(journal)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            begun = asyncio.create_task(kept(journal, facts(1), fence))
            assert await everything(journal) == []
            await asyncio.sleep(0.05)
            assert not begun.done()
            other.execute("ROLLBACK")
            await begun

    play(path, story, busy_timeout=5.0)


@pytest.mark.parametrize("worker", ["_writer", "_reader"])
def test_a_thread_that_dies_tells_everybody_why(tmp_path: Path, worker: str) -> None:
    """Those who wait and those who come later; closing works all the same."""

    def dies(_: sqlite3.Connection) -> None:
        raise SystemExit("a thread's end")

    async def story(journal: SqliteJournal) -> None:
        dead: Worker = getattr(journal, worker)
        answers = await outcomes(dead.do(dies), dead.do(lambda _: None))
        with pytest.raises(JournalError, match="a thread's end"):
            await dead.do(lambda _: None)

        assert [type(answer) for answer in answers] == [JournalError, JournalError]
        assert all(isinstance(answer.__cause__, SystemExit) for answer in answers)
        if worker == "_writer":
            await asyncio.wait_for(_refused(journal), 5)

    async def _refused(journal: SqliteJournal) -> None:
        assert await journal.runs() == ()
        with pytest.raises(JournalError, match="its thread has ended"):
            await journal.declare(RUN)

    play(tmp_path / "journal.db", story)


@pytest.mark.parametrize("worker", ["_writer", "_reader"])
def test_a_mistake_of_one_caller_fails_alone(tmp_path: Path, worker: str) -> None:
    """Whatever its work raises: what is asked beside it and later is done."""

    def mistaken(_: sqlite3.Connection) -> None:
        raise AttributeError("a mistake")

    async def story(journal: SqliteJournal) -> None:
        asked: Worker = getattr(journal, worker)
        first, second = await outcomes(asked.do(mistaken), asked.do(lambda _: 2))
        assert (type(first), second) == (AttributeError, 2)
        assert await asked.do(lambda _: 3) == 3

    play(tmp_path / "journal.db", story)


@pytest.mark.parametrize("name", [b"r", None, 5])
def test_a_run_with_a_name_that_is_no_text_is_not_known(tmp_path: Path, name: Any) -> None:
    async def story(journal: SqliteJournal) -> None:
        for asked in (journal.entry, journal.read, journal.snapshot):
            with pytest.raises(UnknownRun):
                await asked(name)
        assert await journal.runs() == ()

    play(tmp_path / "journal.db", story)


def test_who_cannot_close_its_connection_keeps_nobody_waiting(tmp_path: Path) -> None:
    """The thread ends all the same, and says why."""

    def fails(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("unable to close due to unfinalized statements")

    async def story() -> None:
        path = tmp_path / "journal.db"
        worker = Worker(
            "a worker",
            connect=lambda: sqlite3.connect(path),
            perform=reading("a file"),
            disconnect=fails,
        )
        await worker.connected()
        await asyncio.wait_for(worker.close(), 5)
        with pytest.raises(JournalError, match="unfinalized"):
            await worker.do(lambda _: None)

    asyncio.run(story())


def test_two_processes_share_a_file(tmp_path: Path) -> None:
    """One owns and writes; another reads, posts, is kept out, and takes over in the end."""
    path = tmp_path / "journal.db"

    async def story(journal: SqliteJournal) -> None:
        async with await SqliteJournal.open(path, create=False) as other:
            fence = await owned(journal, owner="host-7:4242")
            await kept(journal, facts(3), fence)
            assert await everything(other) == facts(3)
            assert await journal.posts([RUN.run_id]) == ()

            number = await other.post(RUN.run_id, Tick())
            (post,) = await journal.posts([RUN.run_id])
            await journal.answer(RUN.run_id, post.number, {"accepted": True})
            assert await other.answered(RUN.run_id, number) == {"accepted": True}

            with pytest.raises(JournalOwned, match="host-7:4242"):
                await other.own(RUN.run_id, owner="host-8:1", now=NOW, lease=LEASE)
            taken = await other.own(RUN.run_id, owner="host-8:1", now=NOW + LEASE, lease=LEASE)
            answer = await journal.append(
                RUN.run_id, fence=fence, after=3, facts=facts(1, after=3), busy=True
            )
            assert answer is Appended.FENCED
            await kept(other, facts(1, after=3), taken)
            assert await everything(journal) == facts(4)

    play(path, story)


def test_closing_while_appends_are_cancelled_ends(tmp_path: Path) -> None:
    """Nothing hangs, and the file holds whole appends."""

    async def story(journal: SqliteJournal) -> None:
        fence = await owned(journal)
        tasks = [
            asyncio.create_task(kept(journal, facts(2, after=2 * number), fence))
            for number in range(10)
        ]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
            task.cancel()
        await asyncio.wait_for(journal.close(), 5)
        await asyncio.wait(tasks)
        with pytest.raises(Closed):
            await journal.runs()
        async with await SqliteJournal.open(journal.path) as again:
            assert await everything(again) == facts(20)

    play(tmp_path / "journal.db", story)
