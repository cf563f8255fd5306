"""A SQLite journal that is only read: it waits for nobody, needs no rights, and leaves nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from turnlock.runtime import JournalError, JournalReplaced, NoJournal, SqliteJournal, open_journal
from turnlock.runtime.journal.sqlite_reading import ReadOnly

from .somebody import somebody
from .stage import OTHER, RUN, everything, facts, kept, owned
from .test_written_before import WRITTEN


def remember(path: Path, count: int = 3) -> None:
    """Make a journal of one run, and close it."""

    async def story() -> None:
        async with await SqliteJournal.open(path) as journal:
            await kept(journal, facts(count), await owned(journal))

    asyncio.run(story())


def crash(path: Path) -> None:
    """Write one fact more, and die: it stands in the -wal alone."""
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        return

    async def story() -> None:
        journal = await SqliteJournal.open(path)
        await kept(journal, facts(1, after=3), await owned(journal))
        os._exit(0)

    asyncio.run(story())


def read(path: Path) -> int:
    """Read everything as whoever only reads does, and count the facts."""

    async def story() -> int:
        async with await SqliteJournal.open(path, read_only=True, busy_timeout=0.05) as journal:
            assert [entry.run for entry in await journal.runs()] == [RUN]
            await journal.snapshot(RUN.run_id)
            await journal.notes(RUN.run_id)
            await journal.posts([RUN.run_id])
            await journal.check()
            return len(await everything(journal))

    return asyncio.run(story())


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.iterdir())
    }


@contextmanager
def unwritable() -> Generator[Path]:
    """A folder that may be made ready by us, and read by whoever is then in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        remember(path)
        yield path
        Path(folder).chmod(0o700)


def close_off(path: Path) -> None:
    for file in path.parent.iterdir():
        file.chmod(0o444)
    path.parent.chmod(0o555)


def test_nothing_is_changed_and_nothing_is_left(tmp_path: Path) -> None:
    """No -wal, no -shm, not one byte; and whoever would write is told."""
    path = tmp_path / "journal.db"
    remember(path)
    before = content(tmp_path)

    async def writes() -> None:
        async with await open_journal(path, read_only=True) as journal:
            with pytest.raises(JournalError, match="opened to be read only"):
                await journal.declare(OTHER)

    assert read(path) == 3
    asyncio.run(writes())
    assert content(tmp_path) == before


def test_nothing_is_made(tmp_path: Path) -> None:
    async def story(url: str) -> None:
        await open_journal(url, read_only=True)

    for url in (str(tmp_path / "journal.db"), "memory:"):
        with pytest.raises(NoJournal):
            asyncio.run(story(url))
    assert not content(tmp_path)


@pytest.mark.parametrize("lock", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_write_lock_is_not_waited_for(tmp_path: Path, lock: str) -> None:
    """Control: who opens it to write waits for the lock, and is told that it is held."""
    path = tmp_path / "journal.db"
    remember(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(f"BEGIN {lock}")
        other.execute("UPDATE runs SET busy = 1 - busy")
        assert read(path) == 3

        with pytest.raises(JournalError, match="another process holds its lock"):
            asyncio.run(SqliteJournal.open(path, busy_timeout=0.01))


def test_where_nothing_may_be_written_it_is_read(tmp_path: Path) -> None:
    """File and folder are read-only. Control: opened to write, it fails."""
    with unwritable() as path:
        close_off(path)
        with somebody():
            assert read(path) == 3
            with pytest.raises(JournalError, match=r"cannot be (written|opened)"):
                asyncio.run(SqliteJournal.open(path))


@pytest.mark.parametrize("shared_memory", [True, False])
def test_a_wal_that_nobody_may_recover_is_read(shared_memory: bool) -> None:
    """What the last process kept before it died counts, with its -shm and without."""
    with unwritable() as path:
        crash(path)
        wal, shm = path.with_name("journal.db-wal"), path.with_name("journal.db-shm")
        assert wal.stat().st_size
        if not shared_memory:
            shm.unlink()
        close_off(path)
        before = content(path.parent)
        with somebody():
            assert read(path) == 4
        assert content(path.parent) == before


def test_a_file_that_may_not_be_read_is_told() -> None:
    with unwritable() as path:
        path.parent.chmod(0o755)
        path.chmod(0o000)
        with somebody(), pytest.raises(JournalError, match=r"cannot be (opened|read)") as caught:
            read(path)
        assert not isinstance(caught.value, NoJournal)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_folder_that_may_not_be_entered_is_told(read_only: bool) -> None:
    async def story(path: Path) -> None:
        await SqliteJournal.open(path, read_only=read_only)

    with unwritable() as path:
        path.parent.chmod(0o000)
        with somebody(), pytest.raises(JournalError, match=r"cannot be (opened|read)"):
            asyncio.run(story(path))
        path.parent.chmod(0o700)


def test_a_file_of_version_0_1_is_read_as_it_is(tmp_path: Path) -> None:
    """Nothing is migrated; control: opened to write, it is."""
    path = Path(shutil.copy(WRITTEN / "journal.db", tmp_path))
    before = content(tmp_path)

    async def story(*, read_only: bool) -> list[object]:
        async with await SqliteJournal.open(path, read_only=read_only) as journal:
            return [
                await journal.runs(),
                await everything(journal, "story"),
                await journal.snapshot("story"),
                await journal.notes("story"),
                await journal.posts(["story"]),
            ]

    found = asyncio.run(story(read_only=True))
    assert content(tmp_path) == before
    assert asyncio.run(story(read_only=False)) == found
    assert content(tmp_path) != before


async def _begins_quiet(path: Path) -> list[int]:
    """Open it where nobody writes, then write: count the facts that are seen, before and after."""
    async with await SqliteJournal.open(path, read_only=True) as reader:
        seen = [len(await everything(reader))]
        async with await SqliteJournal.open(path) as journal:
            await kept(journal, facts(1, after=3), await owned(journal))
            seen.append(len(await everything(reader)))
            await kept(journal, facts(1, after=4), 2)
            seen.append(len(await everything(reader)))
        seen.append(len(await everything(reader)))
        return seen


def test_what_is_written_meanwhile_is_seen(tmp_path: Path) -> None:
    """The main file alone is read as long as nobody writes, and no longer."""
    path = tmp_path / "journal.db"
    remember(path)

    assert asyncio.run(_begins_quiet(path)) == [3, 4, 5, 5]


def _never(_: ReadOnly) -> bool:
    return False


def test_control_without_the_look_it_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.db"
    remember(path)
    monkeypatch.setattr(ReadOnly, "_has_changed", _never)

    assert asyncio.run(_begins_quiet(path)) != [3, 4, 5, 5]


def test_a_file_that_is_taken_away_is_told(tmp_path: Path) -> None:
    """And read again when it is back: nothing was held to it."""
    path = tmp_path / "journal.db"
    remember(path)

    async def story() -> None:
        async with await SqliteJournal.open(path, read_only=True) as journal:
            path.rename(tmp_path / "elsewhere")
            with pytest.raises(JournalReplaced, match="it was removed; put it back"):
                await journal.runs()
            (tmp_path / "elsewhere").rename(path)
            assert len(await journal.runs()) == 1

    asyncio.run(story())
