"""Backups of a SQLite journal, made while it is written, and put back: nobody acts on the old."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from turnlock import Tick
from turnlock.runtime import (
    JournalError,
    JournalOwned,
    JournalReplaced,
    JournalRewound,
    MemoryJournal,
    NoJournal,
    SqliteJournal,
    open_journal,
    restore_journal,
)
from turnlock.runtime.journal import sqlite_backup
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.sqlite_file import sync_folder

from .stage import OTHER, RUN, everything, facts, kept, owned
from .test_sqlite_private import umask
from .test_sqlite_reading import crash, remember

FOREVER = 1e12


async def _written(path: Path) -> None:
    """A journal of a busy run with three facts, a post that waits, and an idle run."""
    async with await SqliteJournal.open(path) as journal:
        await kept(journal, facts(3), await owned(journal))
        await journal.post(RUN.run_id, Tick())
        await journal.declare(OTHER)


def names(folder: Path) -> list[str]:
    """But for the heads, which stay beside each that was written."""
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith("-heads"))


def test_a_backup_is_whole_while_others_write(tmp_path: Path) -> None:
    """It is of one moment, private, of another identity, and holds up nobody."""
    path, copy = tmp_path / "journal.db", tmp_path / "copy.db"

    async def story() -> None:
        async with await SqliteJournal.open(path) as journal:
            fence = await owned(journal)
            await kept(journal, facts(100), fence)
            with umask(0), closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")  # somebody writes, and does not end
                made = await journal.backup(copy)
                other.execute("ROLLBACK")
            await kept(journal, facts(1, after=100), fence)
            assert (made.runs, made.facts, made.findings) == (1, 100, ())
            async with await open_journal(copy, read_only=True) as found:
                assert await everything(found) == facts(100)

    asyncio.run(story())
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert names(tmp_path) == ["copy.db", "journal.db"]
    assert identity(copy) != identity(path)


def identity(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        found: bytes = connection.execute(
            "SELECT value FROM meta WHERE name = 'identity'"
        ).fetchone()[0]
        return found


def test_what_is_only_in_the_wal_is_in_the_backup(tmp_path: Path) -> None:
    path, copy = tmp_path / "journal.db", tmp_path / "copy.db"
    remember(path)
    crash(path)

    async def story() -> int:
        async with await open_journal(path, read_only=True) as journal:
            return (await journal.backup(copy)).facts

    assert asyncio.run(story()) == 4


def test_a_file_that_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    """And the journal itself never."""
    path, copy = tmp_path / "journal.db", tmp_path / "copy.db"
    remember(path)
    copy.write_text("somebody's")

    async def story() -> None:
        async with await SqliteJournal.open(path) as journal:
            with pytest.raises(NoJournal, match="there is a file already"):
                await journal.backup(copy)
            assert copy.read_text() == "somebody's"
            await journal.backup(copy, force=True)
            with pytest.raises(NoJournal, match="it is the journal itself"):
                await journal.backup(path, force=True)
            with pytest.raises(NoJournal, match="its folder does not exist"):
                await journal.backup(tmp_path / "nowhere" / "copy.db")

    asyncio.run(story())
    assert names(tmp_path) == ["copy.db", "journal.db"]


def test_a_copy_that_is_not_whole_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read back before it has its name."""
    path, copy = tmp_path / "journal.db", tmp_path / "copy.db"
    remember(path, count=200)
    copied = sqlite_backup._copy

    def torn(source: Path, draft: Path) -> None:
        copied(source, draft)
        content = bytearray(draft.read_bytes())
        half = len(content) // 2
        content[half:] = bytes(len(content) - half)
        draft.write_bytes(content)

    monkeypatch.setattr(sqlite_backup, "_copy", torn)

    async def story() -> None:
        async with await SqliteJournal.open(path) as journal:
            with pytest.raises(JournalError, match="damaged"):
                await journal.backup(copy)

    asyncio.run(story())
    assert names(tmp_path) == ["journal.db"]


def test_a_journal_that_offers_none_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with MemoryJournal() as journal:
            with pytest.raises(JournalError, match="this journal offers none"):
                await journal.backup(tmp_path / "copy.db")
        with pytest.raises(JournalError, match="it offers no restore"):
            await restore_journal(tmp_path / "copy.db", "memory:")

    asyncio.run(story())


def test_a_restored_journal_fences_everybody_and_waits_for_a_person(tmp_path: Path) -> None:
    """Who has the old file open stops; an old fencing token writes nothing in the new one either.

    Control: the copy itself, put there by hand, takes the old owner's facts.
    """
    path, copy = tmp_path / "journal.db", tmp_path / "copy.db"

    async def story() -> None:
        await _written(path)
        stale = await SqliteJournal.open(path)
        await stale.backup(copy)
        fence = await owned(stale)
        await kept(stale, facts(2, after=3), fence)

        restored = await restore_journal(copy, path)
        assert (restored.runs, restored.rewound) == (2, (RUN.run_id,))
        with pytest.raises(JournalReplaced, match="replaced by another file"):
            await stale.append(RUN.run_id, fence=fence, after=5, facts=facts(1, after=5), busy=True)
        await stale.close()

        async with await SqliteJournal.open(path) as journal:
            assert await everything(journal) == facts(3)
            assert await journal.posts([RUN.run_id]) == ()  # nobody knows whether it was judged
            entry = await journal.entry(RUN.run_id)
            assert (entry.owner, entry.rewound is not None) == (None, True)
            assert entry.fence > fence
            with pytest.raises(JournalRewound, match="what happened to this run since the backup"):
                await journal.own(RUN.run_id, owner="eve", now=FOREVER, lease=1.0)
            idle = await journal.entry(OTHER.run_id)
            assert idle.rewound is None
            assert idle.fence > fence

        assert restored.kept is not None
        async with await open_journal(restored.kept, read_only=True) as old:
            assert await everything(old) == facts(5)

        async with await open_journal(copy) as control:
            answer = await control.append(
                RUN.run_id, fence=1, after=3, facts=facts(1, after=3), busy=True
            )
            assert answer is Appended.OK

    asyncio.run(story())


def test_a_living_owner_is_named_and_left_alone(tmp_path: Path) -> None:
    """Its lease is in force: nothing changes. Control: with the lease over it is restored."""
    path, copy = tmp_path / "journal.db", tmp_path / "copy.db"

    async def story() -> None:
        await _written(path)
        async with await SqliteJournal.open(path) as journal:
            await journal.backup(copy)
            now = journal.clock.now()
            await journal.own(OTHER.run_id, owner="grace", now=now, lease=60.0)
            with pytest.raises(JournalOwned, match="grace performs run 'run-2'"):
                await restore_journal(copy, path)
            assert names(tmp_path) == ["copy.db", "journal.db", "journal.db-shm", "journal.db-wal"]
            await journal.own(OTHER.run_id, owner="grace", now=now - 100, lease=60.0)
        await restore_journal(copy, path)

    asyncio.run(story())


def test_a_damaged_journal_is_restored_but_not_under_whoever_has_it_open(tmp_path: Path) -> None:
    """Nobody can read who owns its runs; Linux shows who has it open."""
    path, copy = tmp_path / "journal.db", tmp_path / "copy.db"

    async def begun() -> SqliteJournal:
        await _written(path)
        journal = await SqliteJournal.open(path)
        await journal.backup(copy)
        await journal.runs()
        return journal

    async def story() -> None:
        journal = await begun()
        os.truncate(path, 100)
        with pytest.raises(JournalOwned, match=f"process {os.getpid()} has it open"):
            await restore_journal(copy, path)
        await journal.close()
        restored = await restore_journal(copy, path)
        assert restored.kept is not None
        assert restored.kept.stat().st_size == 100
        async with await SqliteJournal.open(path) as back:
            assert await everything(back) == facts(3)

    asyncio.run(story())


def test_a_journal_that_is_gone_is_restored(tmp_path: Path) -> None:
    """Nothing is there, or a -wal without its file: that is kept, too."""
    path, copy = tmp_path / "journal.db", tmp_path / "copy.db"
    remember(path)
    asyncio.run(_backed_up(path, copy))
    path.unlink()
    path.with_name("journal.db-wal").write_bytes(b"what was written last")

    restored = asyncio.run(restore_journal(copy, path))

    assert restored.kept is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (wal,) = tmp_path.glob("journal.db.before-*-wal")
    assert wal.read_bytes() == b"what was written last"
    assert identity(path) != identity(copy)


class Stop(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("step", range(1, 7))
def test_a_crash_in_a_restore_leaves_the_old_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """At each step of the change of names, with a -wal that was left by a crash before.

    What is there then is the old journal, whole; or the new one; or the new one beside the old
    -wal, which is refused and never merged. Done again, the restore comes to its end.
    """
    path, copy = tmp_path / "journal.db", tmp_path / "copy.db"
    remember(path)
    asyncio.run(_backed_up(path, copy))
    crash(path)
    assert path.with_name("journal.db-wal").stat().st_size
    done = 0

    def stopping(call: object) -> object:
        def stopped(*given: object, **named: object) -> object:
            nonlocal done
            done += 1
            if done == step:
                raise Stop
            return call(*given, **named)  # type: ignore[operator]

        return stopped

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", stopping(os.link))
        patched.setattr(Path, "replace", stopping(Path.replace))
        patched.setattr(sqlite_backup, "sync_folder", stopping(sync_folder))
        try:
            sqlite_backup.put_back(copy, path)
        except Stop:
            pass
        else:
            assert done < step

    async def found() -> int:
        async with await SqliteJournal.open(path, read_only=True) as journal:
            return len(await everything(journal))

    try:
        assert asyncio.run(found()) in {3, 4}
    except JournalError as error:
        assert "belongs to another file" in str(error)  # noqa: PT017 - one of three ends
    sqlite_backup.put_back(copy, path)
    assert asyncio.run(found()) == 3
    assert not any(name.endswith(".new") for name in names(tmp_path))


async def _backed_up(path: Path, copy: Path) -> None:
    async with await SqliteJournal.open(path) as journal:
        await journal.backup(copy)


def test_a_database_of_another_program_is_not_replaced(tmp_path: Path) -> None:
    """Control: a text, which may once have been a journal, is."""
    copy, other = tmp_path / "copy.db", tmp_path / "other.db"
    remember(copy)
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t (x)")
    with pytest.raises(NoJournal, match="a database of another program"):
        asyncio.run(restore_journal(copy, other))
    other.write_text("no journal\n" * 100)
    assert asyncio.run(restore_journal(copy, other)).kept is not None


def test_what_is_no_backup_is_told_and_nothing_changes(tmp_path: Path) -> None:
    path, other = tmp_path / "journal.db", tmp_path / "other"
    remember(path)
    before = path.read_bytes()
    other.write_text("no journal\n" * 100)
    for backup in (other, tmp_path / "nothing", path):
        with pytest.raises(NoJournal):
            asyncio.run(restore_journal(backup, path))
    assert path.read_bytes() == before
    assert names(tmp_path) == ["journal.db", "other"]
