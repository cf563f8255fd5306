"""Logs in a SQLite file: damage is told where it is, and what is done to the file spares them."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.models.errors import TurnlockError
from turnlock.runtime.errors import CorruptLog, JournalError, JournalReplaced
from turnlock.runtime.journal import log_rows, pages, sqlite_heads, sqlite_logs
from turnlock.runtime.journal.contract import (
    Entered,
    Entry,
    Finding,
    LogEntry,
    open_journal,
    restore_journal,
)
from turnlock.runtime.journal.logs import behind
from turnlock.runtime.journal.sqlite import SqliteJournal

from .older_files import written_by_older
from .stage import NOW, OTHER, RUN, facts, kept, owned

LOG = "w/c"
COUNT = 5


def play(path: Path, story: Callable[[SqliteJournal], Awaitable[Any]], **how: Any) -> Any:
    """Tell a story on the journal of this path, and return what it returns."""

    async def run() -> Any:
        async with await SqliteJournal.open(path, **how) as journal:
            return await story(journal)

    return asyncio.run(run())


def told(path: Path) -> Path:
    """Make a journal of two logs, and return its path."""

    async def story(journal: SqliteJournal) -> None:
        for n in range(1, COUNT + 1):
            await journal.append_entry(LOG, f"id/{n}", {"text": f"word {n}"}, at=NOW + n)
        await journal.append_entry("w", "made", {}, at=NOW)

    play(path, story)
    return path


def change(path: Path, *statements: str) -> None:
    """Change a file as damage would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


DAMAGES = {
    "a body": ("UPDATE entries SET body = replace(body, '3', '8') WHERE number = 3", 3),
    "a body that is none": ("UPDATE entries SET body = 7 WHERE number = 3", 3),
    "an id": ("UPDATE entries SET entry_id = 'id/9' WHERE number = 3", 3),
    "a time": ("UPDATE entries SET at = at + 0.5 WHERE number = 3", 3),
    "a time that is none": ("UPDATE entries SET at = 'soon' WHERE number = 3", 3),
    "a number": ("UPDATE entries SET number = 67 WHERE number = 3", 3),
    "a number that is none": ("UPDATE entries SET number = x'03' WHERE number = 3", 3),
    "its log": ("UPDATE entries SET log = 2 WHERE number = 3", 3),
    "a checksum": ("UPDATE entries SET checksum = 5 WHERE number = 3", 3),
    "a row": ("DELETE FROM entries WHERE number = 3", 3),
    "the first row": ("DELETE FROM entries WHERE number = 1 AND log = 1", 1),
    "the last row": ("DELETE FROM entries WHERE number = 5", 5),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_w_11_a_damaged_entry_is_named_and_hides_no_other(tmp_path: Path, damage: str) -> None:
    """By its log and number, wherever it is read; those before and behind it are read."""
    path = told(tmp_path / "journal.db")
    statement, number = DAMAGES[damage]
    change(path, statement)

    async def story(journal: SqliteJournal) -> None:
        whole = await journal.entries(LOG) if number > 1 else ()
        assert [it.number for it in whole] == [*range(1, number)]
        with pytest.raises(CorruptLog, match=f"^log 'w/c', entry {number}: .*{path}") as raised:
            await journal.entries(LOG, after=number - 1)
        assert (raised.value.log, raised.value.number) == (LOG, number)
        if damage != "a number":
            behind_it = await journal.entries(LOG, after=number) if number < COUNT else ()
            assert [it.number for it in behind_it] == [*range(number + 1, COUNT + 1)]
        found = [it.what for it in await journal.check()]
        assert f"entry {number} of log 'w/c'" in found
        assert [it.name for it in await journal.logs()] == ["w", LOG]

    play(path, story)
    play(path, story, read_only=True)


def test_every_damaged_entry_is_found(tmp_path: Path) -> None:
    """Of all logs, and all of them, beside what is damaged elsewhere."""
    path = told(tmp_path / "journal.db")
    change(
        path,
        "UPDATE entries SET at = 0.25 WHERE log = 1 AND number IN (1, 4)",
        "UPDATE entries SET body = CAST('[]' AS BLOB) WHERE log = 2",
        "DELETE FROM entries WHERE log = 1 AND number = 2",
        "UPDATE meta SET value = CAST('0' AS BLOB) WHERE name = 'identity'",
    )

    found = [it.what for it in play(path, lambda journal: journal.check())]

    for what in ("entry 1", "entry 2", "entry 4"):
        assert f"{what} of log 'w/c'" in found
    assert "entry 1 of log 'w'" in found
    assert "meta 'identity'" in found
    assert not any("entry 3" in it or "entry 5" in it for it in found)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE logs SET last = 69 WHERE number = 1",
        "UPDATE logs SET last = 3 WHERE number = 1",
        "UPDATE logs SET last = 'five' WHERE number = 1",
        "UPDATE logs SET checksum = 1 WHERE number = 1",
    ],
)
def test_a_log_whose_end_is_damaged_takes_no_entry(tmp_path: Path, damage: str) -> None:
    """A number would come again. What is there is read, and other logs go on."""
    path = told(tmp_path / "journal.db")
    change(path, damage)

    async def story(journal: SqliteJournal) -> None:
        world, chat = await journal.logs()
        assert (world, chat.name, chat.last) == (LogEntry("w", 1), LOG, COUNT)
        assert chat.problem is not None
        with pytest.raises(CorruptLog, match=r"^log 'w/c', entry 6: where it ends is damaged"):
            await journal.append_entry(LOG, "new", {}, at=NOW)
        assert len(await journal.entries(LOG)) == COUNT
        with pytest.raises(CorruptLog, match=r"^log 'w/c', entry 6: "):
            await journal.entries(LOG, after=COUNT)
        assert await journal.append_entry("w", "new", {}, at=NOW) == Entered(2, new=True)
        assert "log 'w/c'" in [it.what for it in await journal.check()]

    play(path, story)


def test_a_log_that_lost_its_end_takes_no_entry(tmp_path: Path) -> None:
    """Its checksum fits, and its last entry is not there."""
    path = told(tmp_path / "journal.db")
    change(path, "DELETE FROM entries WHERE number > 3")

    async def story(journal: SqliteJournal) -> None:
        with pytest.raises(CorruptLog, match=r"^log 'w/c', entry 4: it is missing"):
            await journal.append_entry(LOG, "new", {}, at=NOW)
        assert "entry 4 of log 'w/c'" in [it.what for it in await journal.check()]

    play(path, story)


def test_what_is_repeated_of_a_damaged_entry_is_no_answer(tmp_path: Path) -> None:
    """Whether it is equal is not known."""
    path = told(tmp_path / "journal.db")
    change(path, DAMAGES["a body"][0])

    async def story(journal: SqliteJournal) -> None:
        for asked in (
            journal.append_entry(LOG, "id/3", {"text": "word 3"}, at=NOW),
            journal.find_entry(LOG, "id/3"),
        ):
            with pytest.raises(CorruptLog, match=r"^log 'w/c', entry 3: it is damaged"):
                await asked

    play(path, story)


def test_without_its_checksum_a_damaged_entry_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: the check off, and somebody has said what he never said."""
    path = told(tmp_path / "journal.db")
    change(path, DAMAGES["a body"][0])
    monkeypatch.setattr(log_rows, "entry_sum", _as_kept(path))

    async def story(journal: SqliteJournal) -> None:
        assert (await journal.entries(LOG, after=2))[0].body == {"text": "word 8"}

    play(path, story)


def _as_kept(path: Path) -> Callable[..., int]:
    with closing(sqlite3.connect(path)) as connection:
        kept_ = dict(connection.execute("SELECT number, checksum FROM entries WHERE log = 1"))

    def as_kept(_body: object, _log: str, number: int, *_: object) -> int:
        return int(kept_[number])

    return as_kept


def test_w_11_no_flipped_bit_of_an_entry_is_handed_out_in_silence(tmp_path: Path) -> None:
    """What is not as it was kept is found by `check`, or told by an error."""
    path, damaged = told(tmp_path / "journal.db"), tmp_path / "damaged.db"

    async def all_of_it(journal: SqliteJournal) -> list[Any]:
        return [(it, await journal.entries(it.name)) for it in await journal.logs()]

    truth = play(path, all_of_it)
    content = path.read_bytes()
    draw = random.Random(7)
    with closing(sqlite3.connect(path)) as connection:
        pages = [
            page - 1
            for (page,) in connection.execute(
                "SELECT rootpage FROM sqlite_master WHERE tbl_name IN ('logs', 'entries')"
            )
        ]
    said = 0
    for _ in range(40):
        flipped = bytearray(content)
        page = draw.choice(pages) * 4_096
        used = [at for at in range(page, page + 4_096) if content[at]]
        flipped[draw.choice(used)] ^= 1 << draw.randrange(8)
        damaged.write_bytes(flipped)
        found: tuple[Finding, ...] = ()
        try:
            found = play(damaged, lambda journal: journal.check())
            same = play(damaged, all_of_it) == truth
        except TurnlockError:
            same, found = False, (Finding(run_id=None, what="error", cause=""),)
        assert same or found
        said += bool(found)
    assert said > 10


def test_w_11_files_of_older_versions_have_logs_from_now_on(tmp_path: Path) -> None:
    """Opened to be read it shows none, and stays as it is; opened to be written it is migrated."""
    path = tmp_path / "journal.db"
    written_by_older(path, [facts(2)], {"said/1": {"prompt": "go"}})
    before = path.read_bytes()

    async def read(journal: SqliteJournal) -> None:
        for _ in range(2):
            assert await journal.logs() == ()
        assert await journal.entries(LOG) == ()
        assert await journal.find_entry(LOG, "a") is None
        with pytest.raises(JournalError, match="opened to be read only"):
            await journal.append_entry(LOG, "a", {}, at=NOW)

    async def write(journal: SqliteJournal) -> None:
        assert await journal.append_entry(LOG, "a", {"n": 1}, at=NOW) == Entered(1, new=True)
        assert len(await journal.read(RUN.run_id)) == 2

    play(path, read, read_only=True)
    assert path.read_bytes() == before
    play(path, write)

    async def read_again(journal: SqliteJournal) -> None:
        assert await journal.entries(LOG) == (Entry(1, "a", NOW, {"n": 1}),)
        assert await journal.check() == ()

    play(path, read_again, read_only=True)


def test_logs_are_in_copies_and_come_back(tmp_path: Path) -> None:
    """What was said since the copy is not there, and its numbers come again, under other ids."""
    path, copy = told(tmp_path / "journal.db"), tmp_path / "copy.db"

    async def story(journal: SqliteJournal) -> None:
        assert (await journal.backup(copy)).findings == ()
        await journal.append_entry(LOG, "lost", {}, at=NOW)

    play(path, story)
    restored = asyncio.run(restore_journal(copy, path))
    assert restored.findings == ()

    async def after(journal: SqliteJournal) -> None:
        assert await journal.logs() == (LogEntry("w", 1), LogEntry(LOG, COUNT))
        assert await journal.append_entry(LOG, "other", {}, at=NOW) == Entered(6, new=True)
        assert await journal.append_entry(LOG, "lost", {}, at=NOW) == Entered(7, new=True)
        assert await journal.check() == ()

    play(path, after)


def test_a_damaged_entry_is_told_of_a_copy(tmp_path: Path) -> None:
    """It is as damaged in there."""
    path = told(tmp_path / "journal.db")
    change(path, DAMAGES["a body"][0])

    made = play(path, lambda journal: journal.backup(tmp_path / "copy.db"))

    assert [it.what for it in made.findings] == ["entry 3 of log 'w/c'"]


def test_entries_that_were_lost_with_the_wal_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Until the log is as long again; nobody is stopped. Without the heads nobody would know."""
    monkeypatch.setattr(sqlite_heads, "MERGE_IDLE", 1e9)
    monkeypatch.setattr(sqlite_heads, "MERGE_EVERY", 1e9)
    path, copy = tmp_path / "open.db", tmp_path / "journal.db"

    def save(*ends: str) -> None:
        for end in ends:
            shutil.copy(path.with_name(path.name + end), copy.with_name(copy.name + end))

    async def story(journal: SqliteJournal) -> None:
        await journal.append_entry("w", "made", {}, at=NOW)
        await journal.append_entry(LOG, "1", {}, at=NOW)
        save("", "-wal")
        await journal.append_entry(LOG, "2", {}, at=NOW)
        await journal.append_entry(LOG, "3", {}, at=NOW)
        await journal.append_entry("v", "made", {}, at=NOW)
        save("-heads")

    async def found(journal: SqliteJournal) -> dict[str, str]:
        return {it.what: it.cause for it in await journal.check()}

    async def say(journal: SqliteJournal, count: int) -> None:
        (_, last, problem) = (await journal.logs(LOG))[0]
        assert problem is None
        for n in range(count):
            await journal.append_entry(LOG, f"again/{last + n}", {}, at=NOW)

    play(path, story)
    lost = {
        "log 'w/c'": "it had acknowledged entry 3, and ends with entry 1",
        "log 'v'": "it had acknowledged entry 1, and all of it is lost",
    }
    assert play(copy, found, read_only=True) == lost
    assert play(copy, found) == lost
    told_of = [it.getMessage() for it in caplog.records]
    assert [it.split("journal.db: ")[1] for it in told_of] == [
        f"{what}: {why}" for what, why in lost.items()
    ]
    play(copy, partial(say, count=1))
    assert play(copy, found)["log 'w/c'"].endswith("entry 3, and ends with entry 2")
    play(copy, partial(say, count=1))
    assert [*play(copy, found)] == ["log 'v'"]
    copy.with_name("journal.db-heads").unlink()
    assert play(copy, found) == {}


def test_another_entry_than_was_acknowledged_is_told(tmp_path: Path) -> None:
    """An older copy was put in the place of the file, and gone on with elsewhere."""
    path, copy = told(tmp_path / "journal.db"), tmp_path / "copy.db"
    shutil.copy(path, copy)

    async def say(journal: SqliteJournal, text: str) -> None:
        await journal.append_entry(LOG, "new", text, at=NOW)

    play(path, partial(say, text="one"))
    play(copy, partial(say, text="other"))
    copy.replace(path)

    (found,) = play(path, lambda journal: journal.check())

    assert (found.what, found.cause) == (
        "log 'w/c'",
        "it holds another entry 6 than was acknowledged",
    )


def test_large_entries_make_smaller_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page fits into memory, and is never empty for that."""
    monkeypatch.setattr(pages, "PAGE_BYTES", 30)
    path = told(tmp_path / "journal.db")

    async def story(journal: SqliteJournal) -> None:
        sizes: list[int] = []
        while page := await journal.entries(LOG, after=sum(sizes)):
            sizes.append(len(page))
        assert sizes == [2, 2, 1]

    play(path, story)


def test_nothing_new_is_not_listed_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each prefix for itself, however many facts are kept; until any process appends an entry."""
    path = told(tmp_path / "journal.db")
    asked: list[str] = []
    listed = sqlite_logs.read_logs

    def counted(connection: sqlite3.Connection, prefix: str, where: str) -> Sequence[LogEntry]:
        asked.append(prefix)
        return listed(connection, prefix, where)

    monkeypatch.setattr(sqlite_logs, "read_logs", counted)

    async def story(journal: SqliteJournal) -> None:
        fence = await owned(journal, OTHER)
        for n in range(3):
            assert await journal.logs("w/") == (LogEntry(LOG, COUNT),)
            assert len(await journal.logs()) == 2
            await kept(journal, facts(1, after=n, run_id=OTHER.run_id), fence)
            await journal.append_entry(LOG, "id/1", {"text": "word 1"}, at=NOW)
        assert asked == ["w/", ""]
        async with await SqliteJournal.open(path) as other:
            await other.append_entry(LOG, "new", {}, at=NOW)
            await other.append_entry("w/b", "new", {}, at=NOW)
            await other.append_entry("v", "new", {}, at=NOW)
        assert await journal.logs("w/") == (LogEntry("w/b", 1), LogEntry(LOG, COUNT + 1))
        assert [it.name for it in await journal.logs()] == ["v", "w", "w/b", LOG]
        assert await journal.logs("w") == (LogEntry("w", 1), *await journal.logs("w/"))
        assert asked == ["w/", "", "w"]

    play(path, story)


def test_few_lists_are_remembered(tmp_path: Path) -> None:
    """Those that were asked for last."""
    listed = sqlite_logs.Listed()
    with closing(sqlite3.connect(told(tmp_path / "journal.db"))) as connection:
        for n in range(2 * sqlite_logs.LISTS):
            assert listed.logs(connection, f"v{n}", where="here") == ()
            assert listed.logs(connection, "w/", where="here") == (LogEntry(LOG, COUNT),)
    assert len(listed.answers) == sqlite_logs.LISTS
    assert "w/" in listed.answers


def test_a_reader_alone_sees_what_is_appended(tmp_path: Path) -> None:
    """Also where its file is read as it stands, and opened anew once it has changed."""
    path = told(tmp_path / "journal.db")

    async def story(journal: SqliteJournal) -> None:
        for n in range(COUNT + 1, COUNT + 4):
            async with await open_journal(path) as other:
                await other.append_entry(LOG, f"id/{n}", {}, at=NOW)
                assert await journal.logs("w/") == (LogEntry(LOG, n),)
            assert await journal.logs("w/") == (LogEntry(LOG, n),)

    play(path, story, read_only=True)


def test_another_file_in_its_place_is_told(tmp_path: Path) -> None:
    """Polling does not go on with what is remembered of the old one."""
    path, other = told(tmp_path / "journal.db"), told(tmp_path / "other.db")

    async def story(journal: SqliteJournal) -> None:
        assert len(await journal.logs()) == 2
        other.replace(path)
        with pytest.raises(JournalReplaced):
            await journal.logs()

    play(path, story)


@given(st.text(max_size=3), st.text(max_size=3))
def test_what_is_behind_a_prefix(prefix: str, more: str) -> None:
    """All that begin with it stand before that, and none else at or behind the prefix."""
    end = behind(prefix)
    name = prefix + more
    assert prefix <= name
    assert end is None or name < end
    if end is None:
        assert set(prefix) <= {"\U0010ffff"}
    elif prefix <= more < end:
        assert more.startswith(prefix)
