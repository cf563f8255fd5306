"""Opening a SQLite journal: what is no journal, or not whole, is told and left as it is."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal import sqlite_file, sqlite_schema
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.sqlite import SqliteJournal

from .somebody import somebody
from .stage import RUN, everything, facts, kept, owned

TOO_NEW = 99
KNOWN = len(sqlite_schema.MIGRATIONS)


def remember(path: Path, count: int = 3) -> None:
    """Make a journal of one run at this path, and close it."""

    async def story() -> None:
        async with await SqliteJournal.open(path) as journal:
            await kept(journal, facts(count, commit=count), await owned(journal))

    asyncio.run(story())


def opened(path: Path, *, create: bool = True) -> list[str]:
    """Open and read everything; return the ids of the runs."""

    async def story() -> list[str]:
        async with await SqliteJournal.open(path, create=create, busy_timeout=0.05) as journal:
            runs = [entry.run.run_id for entry in await journal.runs()]
            for run_id in runs:
                await everything(journal, run_id)
            return runs

    return asyncio.run(story())


def _text(path: Path) -> None:
    path.write_text("{}\n" * 2_000)


def _foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (run_id TEXT)")


def _newer(path: Path) -> None:
    remember(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {TOO_NEW}")


def _only_wal(path: Path) -> None:
    path.with_name(path.name + "-wal").write_bytes(b"last facts")


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder": (Path.mkdir, "it is a folder"),
    "empty": (Path.touch, "the file is empty"),
    "a text": (_text, "no SQLite database"),
    "of another program": (_foreign, r"of another program \(application_id 0x0, 1 tables\)"),
    "newer": (
        _newer,
        rf"a newer turnlock wrote it \(version {TOO_NEW}, this one knows {KNOWN}\)",
    ),
    "without its file": (_only_wal, "its -wal file is there"),
}
"""What stands at the path, and what is said about it."""


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_journal_is_told_and_left_alone(tmp_path: Path, what: str) -> None:
    """The message names the path, the cause and the fix; not one byte changes."""
    make, message = WRONG[what]
    path = tmp_path / "some journal?.db"
    make(path)
    before = _content(tmp_path)

    with pytest.raises(JournalError, match=message) as caught:
        opened(path)

    assert str(path) in str(caught.value)
    assert _content(tmp_path) == before


def test_a_journal_needs_its_folder(tmp_path: Path) -> None:
    """Folders are not made: the path may be mistyped."""
    with pytest.raises(JournalError, match="its folder does not exist"):
        opened(tmp_path / "absent" / "journal.db")

    assert _content(tmp_path) == {}


def test_a_journal_is_made_only_where_one_is_wanted(tmp_path: Path) -> None:
    """Whoever only wants to look makes no file by a mistyped name."""
    with pytest.raises(JournalError, match="no such file"):
        opened(tmp_path / "journal.db", create=False)
    assert _content(tmp_path) == {}

    assert opened(tmp_path / "journal.db") == []
    assert opened(tmp_path / "journal.db", create=False) == []
    assert [*_content(tmp_path)] == ["journal.db"]


@pytest.mark.parametrize("name", ["a b?c#d%41.db", "é\U0001f600.db", ":memory:", "file:x.db"])
def test_any_name_is_a_name(tmp_path: Path, name: str) -> None:
    """Nothing in a path means anything to us."""
    remember(tmp_path / name)

    assert opened(tmp_path / name) == [RUN.run_id]
    assert [*_content(tmp_path)] == [name, f"{name}-heads"]


def test_many_may_make_it_at_once(tmp_path: Path) -> None:
    """One file comes of it, and all have it open."""

    async def story() -> None:
        journals = await asyncio.gather(
            *(SqliteJournal.open(tmp_path / "journal.db") for _ in range(8))
        )
        await kept(journals[0], facts(2), await owned(journals[0]))
        for journal in journals:
            assert await everything(journal) == facts(2)
            await journal.close()

    asyncio.run(story())
    assert [*_content(tmp_path)] == ["journal.db", "journal.db-heads"]


def test_a_file_with_two_names_is_opened_by_neither(tmp_path: Path) -> None:
    """By each name SQLite keeps another -wal: two owners would write one file to pieces."""
    path, other = tmp_path / "journal.db", tmp_path / "other.db"
    remember(path)
    other.hardlink_to(path)
    before = _content(tmp_path)
    for name in (path, other):
        with pytest.raises(JournalError, match=r"has 2 names .*find FOLDER"):
            opened(name)
    assert _content(tmp_path) == before

    other.unlink()
    assert opened(path) == [RUN.run_id]


def test_without_the_look_at_names_what_was_written_last_is_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: by the other name the -wal of a crashed owner is not found."""

    def look_at_none(_: Path) -> None:
        pass

    monkeypatch.setattr(sqlite_file, "check_names", look_at_none)
    path, other = tmp_path / "journal.db", tmp_path / "other.db"

    async def story() -> None:
        made = tmp_path / "made.db"
        async with await SqliteJournal.open(made) as journal:
            await owned(journal)
            for end in ("", "-wal"):  # as a crash leaves it
                shutil.copy(f"{made}{end}", f"{path}{end}")

    asyncio.run(story())
    other.hardlink_to(path)
    assert opened(other) == []
    assert opened(path) == [RUN.run_id]


@pytest.mark.parametrize("end", [".0a1b2c3d.new", ".before-20261122T152858Z"])
def test_a_name_that_a_crash_of_ours_left_is_no_second_name(tmp_path: Path, end: str) -> None:
    """A journal is made, and kept by a restore, under another name; by that it is not opened."""
    path = tmp_path / "a [b]*.db"
    remember(path)
    left = path.with_name(path.name + end)
    left.hardlink_to(path)

    assert opened(path) == [RUN.run_id]
    with pytest.raises(JournalError, match="has 2 names"):
        opened(left)


def test_a_file_that_may_not_be_written_is_told() -> None:
    """At once, and not at the first append."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        remember(path)
        path.chmod(0o444)
        Path(folder).chmod(0o777)
        with somebody(), pytest.raises(JournalError, match="it cannot be written"):
            opened(path)


def test_a_file_that_may_not_be_read_is_told() -> None:
    """Journals are made 0600, so that is what another user meets: the right to write is no fix."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        remember(path)
        Path(folder).chmod(0o755)
        for read_only in (True, False):
            with somebody(), pytest.raises(JournalError, match="it cannot be read by this user"):
                asyncio.run(SqliteJournal.open(path, create=False, read_only=read_only))


def test_a_folder_that_may_not_be_written_is_told() -> None:
    """A new file cannot be made there: the fix is named, and no file that we make for a moment."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        path = Path(folder) / "journal.db"
        with somebody(), pytest.raises(JournalError) as told:
            opened(path)
        assert str(told.value) == (
            f"journal {path}: it cannot be opened (Permission denied); give this user the right to"
            " write its folder, or another path"
        )
        Path(folder).chmod(0o755)


def test_a_disk_without_room_is_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights are no fix for it."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sqlite_file, "make_private", full)
    with pytest.raises(JournalError, match=r"No space left on device\); free space there"):
        opened(tmp_path / "journal.db")


def test_a_cancelled_opening_leaves_nothing_open(tmp_path: Path) -> None:
    """Whoever is cancelled while opening has no thread left, and no lock."""

    async def story() -> None:
        task = asyncio.create_task(SqliteJournal.open(tmp_path / "journal.db"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    assert opened(tmp_path / "journal.db") == []
    assert [*_content(tmp_path)] == ["journal.db"]


def test_an_older_file_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration keeps what was there; one that fails half-way leaves the file as it was."""
    path = tmp_path / "journal.db"
    remember(path)
    step = "ALTER TABLE runs ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue'"
    broken = (*sqlite_schema.MIGRATIONS, (step, "CREATE TABLE runs (again)"))
    for migrations in (broken, (*sqlite_schema.MIGRATIONS, (step,))):
        monkeypatch.setattr(sqlite_schema, "MIGRATIONS", migrations)
        if migrations is broken:
            before = _content(tmp_path)
            with pytest.raises(JournalError, match="already exists"):
                opened(path)
            assert _version(path) == (KNOWN, None)
            assert _content(tmp_path) == before

    assert opened(path) == [RUN.run_id]
    assert _version(path) == (KNOWN + 1, "blue")

    async def goes_on() -> Appended:
        async with await SqliteJournal.open(path) as journal:
            return await journal.append(
                RUN.run_id, fence=1, after=3, facts=facts(1, after=3), busy=True
            )

    assert asyncio.run(goes_on()) is Appended.OK


def _version(path: Path) -> tuple[int, str | None]:
    with closing(sqlite3.connect(path)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        columns = [row[1] for row in connection.execute("PRAGMA table_info(runs)")]
        colour = None
        if "colour" in columns:
            colour = connection.execute("SELECT colour FROM runs").fetchone()[0]
    return version, colour


def _content(folder: Path) -> dict[str, bytes | None]:
    return {
        path.name: path.read_bytes() if path.is_file() else None
        for path in sorted(folder.iterdir())
    }
