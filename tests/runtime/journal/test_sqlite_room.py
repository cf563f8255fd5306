"""What was removed leaves a SQLite journal's file, too, in portions that hold nobody up."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from turnlock import Interrupt, Run
from turnlock.models.fact import Fact
from turnlock.models.facts import ToolExecutionSucceeded
from turnlock.models.record import changed
from turnlock.runtime.journal import sqlite_entries
from turnlock.runtime.journal import sqlite_room as room
from turnlock.runtime.journal.sqlite import SqliteJournal

from .stage import facts, kept, note, said

WRITTEN = Path(__file__).parents[2] / "data" / "journals" / "0.1" / "journal.db"
SIZE = 4_000_000
"""Bytes of the run that goes; the page is 4,096."""


def large(run_id: str) -> list[Fact]:
    """Facts of `SIZE` bytes."""
    count = 40
    return [
        ToolExecutionSucceeded(
            run_id=run_id,
            sequence=number,
            commit=number,
            at=1.0,
            turn_id="t",
            invocation_id="i",
            tool_name="read",
            agent_id=None,
            agent_name=None,
            result="x" * (SIZE // count),
        )
        for number in range(1, count + 1)
    ]


async def filled(path: Path) -> None:
    """A small run, a large one that is over, a small one behind it."""
    async with await SqliteJournal.open(path) as journal:
        for name in ("before", "large", "behind"):
            await journal.declare(Run(run_id=name))
            told = large(name) if name == "large" else facts(3, run_id=name)
            for fact in told:
                await kept(journal, [fact], None, busy=False)


async def emptied(path: Path, *, gives_back: bool = True) -> None:
    """Remove the large run, and give its room back, while the file stays open."""
    async with await SqliteJournal.open(path, create=False) as journal:
        ends = (await journal.entry("large")).sequence
        await journal.forget("large", fence=0, after=ends, at=1.0)
        await journal.compact()
        for name in ("before", "behind"):
            assert [it async for it in journal.facts(name)] == facts(3, run_id=name)
        await journal.check()
        assert (await asyncio.to_thread(_size, path) < SIZE / 10) is gives_back


def _size(path: Path) -> int:
    return path.stat().st_size


def test_the_file_gets_smaller(tmp_path: Path) -> None:
    """At once, and not when it is closed; its neighbours are whole."""
    path = tmp_path / "a.db"
    asyncio.run(filled(path))
    assert _size(path) > SIZE
    asyncio.run(emptied(path))
    assert _size(path) < SIZE / 10


def test_without_giving_back_it_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: what is free stays in the file."""

    def nothing(_: sqlite3.Connection) -> bool:
        return False

    monkeypatch.setattr(room, "give_back", nothing)
    path = tmp_path / "a.db"
    asyncio.run(filled(path))
    asyncio.run(emptied(path, gives_back=False))
    assert _size(path) > SIZE


def test_others_write_between_two_portions(tmp_path: Path) -> None:
    """Each is a transaction of a bounded size, and no owner waits for all of them."""
    path = tmp_path / "a.db"
    asyncio.run(filled(path))

    async def play() -> None:
        async with (
            await SqliteJournal.open(path) as journal,
            await SqliteJournal.open(path, busy_timeout=0.5) as other,
        ):
            ends = (await journal.entry("large")).sequence
            await journal.forget("large", fence=0, after=ends, at=1.0)
            with closing(sqlite3.connect(path)) as connection:
                free = connection.execute("PRAGMA freelist_count").fetchone()[0]
            assert free > 3 * room.PORTION
            done = asyncio.create_task(journal.compact())
            after = 3
            while not done.done():
                await kept(other, facts(1, after=after, run_id="behind"), None)
                after += 1
            await done
            assert after > 3

    asyncio.run(play())


def test_a_file_of_version_0_1_uses_its_room_again_and_gives_it_back_after_a_vacuum(
    tmp_path: Path,
) -> None:
    """Which nobody makes unasked: it holds everybody up for as long as the file is large."""
    path = Path(shutil.copy(WRITTEN, tmp_path / "a.db"))
    asyncio.run(filled(path))
    asyncio.run(emptied(path, gives_back=False))
    assert _size(path) > SIZE

    async def again() -> None:
        async with await SqliteJournal.open(path) as journal:
            await journal.declare(Run(run_id="again"))
            for fact in large("again"):
                await kept(journal, [fact], None, busy=False)

    asyncio.run(again())
    assert _size(path) < 1.2 * SIZE

    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("VACUUM")

    async def over() -> None:
        async with await SqliteJournal.open(path) as journal:
            await journal.forget("again", fence=0, after=40, at=1.0)
            await journal.compact()
            assert [it.run.run_id for it in await journal.runs()][-2:] == ["before", "behind"]

    asyncio.run(over())
    assert _size(path) < SIZE / 10


@pytest.mark.parametrize("wiping", ["FAST", "OFF"])
def test_nothing_of_what_was_removed_is_left_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wiping: str
) -> None:
    """Neither of a large fact nor of a small one, a note or a post; OFF is the control."""
    monkeypatch.setattr(sqlite_entries, "WIPING", f"PRAGMA secure_delete = {wiping}")
    path = tmp_path / "a.db"
    words = "correct horse battery staple"

    async def play() -> None:
        async with await SqliteJournal.open(path) as journal:
            for name in ("other", "gone"):
                await journal.declare(Run(run_id=name))
            for fact in large("gone")[:3]:
                told = changed(fact, result=words * (1 if fact.sequence == 2 else 9_000))
                await kept(journal, [told], None, busy=False)
                beside = facts(1, after=fact.sequence - 1, run_id="other")
                await kept(journal, beside, None, busy=False)
            await journal.note("gone", fence=None, notes=[said(words), note(words)])
            post = await journal.post("gone", Interrupt(turn_id="t", reason=words))
            await journal.answer("gone", post, {"reason": words})
            await asyncio.to_thread(_closed_once, path)
            assert words.encode() in await asyncio.to_thread(path.read_bytes)
            await journal.forget("gone", fence=0, after=3, at=1.0)
            await journal.compact()

    asyncio.run(play())
    assert (words.encode() in path.read_bytes()) is (wiping == "OFF")
    assert {it.name for it in tmp_path.iterdir()} == {"a.db", "a.db-heads"}
    assert words.encode() not in (tmp_path / "a.db-heads").read_bytes()


def _closed_once(path: Path) -> None:
    """Bring the -wal into the file."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
