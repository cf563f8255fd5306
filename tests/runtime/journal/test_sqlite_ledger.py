"""The ledger of the SQLite journal: damage is told, faults take all or nothing."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from turnlock.models.errors import CorruptJournal
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal import sqlite_ledgers
from turnlock.runtime.journal.contract import Appended, Finding, restore_journal
from turnlock.runtime.journal.ledger import Cursor, Domain, Gap
from turnlock.runtime.journal.sqlite import SqliteJournal

from .ledger_pruned import LATER
from .ledger_read import in_pages
from .stage import RUN, everything, facts, kept, note, owned, said

TOLD: Final = b'{"thread_id":"t1"}'


def play(path: Path, story: Callable[[SqliteJournal], Awaitable[Any]], **how: Any) -> Any:
    async def told() -> Any:
        async with await SqliteJournal.open(path, **how) as journal:
            return await story(journal)

    return asyncio.run(told())


async def _filled(journal: SqliteJournal) -> None:
    fence = await owned(journal)
    await kept(journal, facts(1), fence)
    answer = await journal.append(
        RUN.run_id,
        fence=fence,
        after=1,
        facts=facts(3, after=1),
        busy=True,
        notes=[note("first", after=1), note("gone", after=2), said("hello", id="said/1")],
        correlations=[TOLD, None, None],
    )
    assert answer is Appended.OK
    await journal.note(RUN.run_id, fence=fence, notes=[note("new", at=LATER)])
    await journal.put_worker("w/1", "host:7")
    assert await journal.prune(RUN.run_id, fence=fence, now=LATER) == 2
    await journal.release(RUN.run_id, fence=fence)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with facts, notes, gaps and a worker."""
    made = tmp_path / "journal.db"
    play(made, _filled)
    return made


def change(path: Path, statement: str) -> None:
    """Change a file as damage would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute(statement).rowcount


def found_in(path: Path) -> tuple[Finding, ...]:
    found: tuple[Finding, ...] = play(path, lambda journal: journal.check())
    return found


DAMAGES: Final = {
    "its content": ("content = replace(content, 'hello', 'hallo') WHERE id = 'said/1'", "'said/1'"),
    "its id": ("id = 'said/2' WHERE id = 'said/1'", "'said/2'"),
    "when it was": ("at = at + 1 WHERE id = 'said/1'", "'said/1'"),
    "its domain": ("domain = 'item' WHERE id = 'said/1'", "'said/1'"),
    "a gap": ("pruned = pruned + 1 WHERE sequence = 1", "'1.1'"),
    "what is a gap": ("pruned = NULL WHERE sequence = 1", "'1.1'"),
    "where it stands": ("part = 9 WHERE id = 'said/1'", "'said/1'"),
    "its kind of content": ("content = 'text' WHERE id = 'said/1'", "'said/1'"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_note_is_told(path: Path, damage: str) -> None:
    """By the check, and by whoever reads it; nothing else of the run is in doubt."""
    assert found_in(path) == ()
    statement, what = DAMAGES[damage]
    change(path, "UPDATE noted SET " + statement)  # noqa: S608 - of ours

    assert what in {it.what.removeprefix("note ") for it in found_in(path)}

    async def read(journal: SqliteJournal) -> None:
        with pytest.raises(JournalError, match="the checksum does not fit"):
            await in_pages(journal, 100)
        assert await everything(journal) == facts(4)

    play(path, read)


def test_a_note_that_is_missing_is_told(path: Path) -> None:
    """Parts have no gaps but those that say so."""
    change(path, "DELETE FROM noted WHERE id = 'said/1'")
    (found,) = found_in(path)
    assert found.cause == "a note before it is missing"


BESIDE: Final = {
    "a time": "beside = CAST(zeroblob(6) || substr(beside, 7) AS BLOB) WHERE first = 2",
    "the end": "beside = substr(beside, 1, length(beside) - 1) WHERE first = 2",
    "all of it": "beside = zeroblob(4) WHERE first = 2",
}


@pytest.mark.parametrize("damage", BESIDE)
def test_what_is_damaged_beside_facts_is_told(path: Path, damage: str) -> None:
    """The facts themselves are whole, and read; without anything beside them they are, too."""
    change(path, "UPDATE appends SET " + BESIDE[damage])  # noqa: S608 - of ours

    assert [it.what for it in found_in(path)] == ["fact 2"]

    async def read(journal: SqliteJournal) -> None:
        with pytest.raises(CorruptJournal, match="beside its row"):
            await in_pages(journal, 100)
        assert await everything(journal) == facts(4)

    play(path, read)
    change(path, "UPDATE appends SET beside = NULL")
    assert found_in(path) == ()
    entries, _ = play(path, lambda journal: in_pages(journal, 2))
    assert [it.at for it in entries if not it.is_note] == [1.0, 2.0, 3.0, 4.0]


def test_a_damaged_worker_is_told(path: Path) -> None:
    """Proof of death must not be read off another process."""
    change(path, "UPDATE workers SET meaning = 'host:8'")
    assert [it.what for it in found_in(path)] == ["worker 'w/1'"]

    async def read(journal: SqliteJournal) -> None:
        with pytest.raises(JournalError, match="the checksum does not fit"):
            await journal.worker("w/1")

    play(path, read)


def test_a_file_that_is_only_read_tells_its_ledger(path: Path) -> None:
    """All of it; whatever would write is refused."""

    async def read(journal: SqliteJournal) -> Any:
        page = await journal.ledger(RUN.run_id)
        listed = await journal.latest()
        return page, listed, await journal.ends([RUN.run_id]), await journal.worker("w/1")

    before = path.read_bytes()
    assert play(path, read, read_only=True) == play(path, read)
    assert path.read_bytes() == before or play(path, read)

    async def refused(journal: SqliteJournal) -> None:
        for write in (
            journal.note(RUN.run_id, fence=None, notes=[note()]),
            journal.prune(RUN.run_id, fence=None, now=LATER),
            journal.put_worker("w/2", "x"),
        ):
            with pytest.raises(JournalError, match="read only"):
                await write

    play(path, refused, read_only=True)


def test_a_copy_has_the_whole_ledger(path: Path, tmp_path: Path) -> None:
    """Notes, gaps, correlations and workers are backed up and restored."""
    copy, back = tmp_path / "copy.db", tmp_path / "back.db"

    async def read(journal: SqliteJournal) -> Any:
        return await in_pages(journal, 2), await journal.worker("w/1")

    before = play(path, read)
    assert [it.correlation for it in before[0][0]].count(TOLD) == 1
    play(path, lambda journal: journal.backup(copy))
    asyncio.run(restore_journal(copy, str(back)))

    assert play(back, read) == before
    assert [it.what for it in found_in(back)] == ["rewound"]


def test_nothing_of_a_removed_run_is_left(path: Path) -> None:
    """Its notes go with it."""

    async def forgotten(journal: SqliteJournal) -> None:
        entry = await journal.entry(RUN.run_id)
        fence = entry.fence
        recovered = await journal.recover(RUN.run_id, after=4, facts=(), busy=False)
        assert recovered is Appended.OK
        fence = (await journal.entry(RUN.run_id)).fence
        await journal.forget(RUN.run_id, fence=fence, after=4, at=1.0)

    play(path, forgotten)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM noted").fetchone() == (0,)


FAILS: Final = {
    "a note": "BEFORE INSERT ON noted WHEN CAST(NEW.content AS TEXT) LIKE '%bad%'",
    "the facts": "BEFORE INSERT ON appends WHEN NEW.first = 5",
    "the row of the run": "BEFORE UPDATE OF sequence ON runs WHEN NEW.sequence = 6",
}


@pytest.mark.parametrize("fails", FAILS)
def test_s_61_facts_and_notes_are_kept_together_or_not_at_all(path: Path, fails: str) -> None:
    """Whatever fails on the way, nothing of the append is there, and it can be done again."""
    change_text = f"CREATE TRIGGER fails {FAILS[fails]} BEGIN SELECT RAISE(ABORT, 'no'); END"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(change_text)

    async def append(journal: SqliteJournal) -> Appended:
        return await journal.append(
            RUN.run_id,
            fence=None,
            after=4,
            facts=facts(2, after=4),
            busy=True,
            notes=[note("good", after=5), note("bad", id="x")],
        )

    async def fail(journal: SqliteJournal) -> Any:
        before = await in_pages(journal, 100)
        with pytest.raises(JournalError):
            await append(journal)
        assert await in_pages(journal, 100) == before
        assert await journal.find_note(RUN.run_id, "x") is None

    play(path, fail)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER fails")
    assert play(path, append) is Appended.OK
    assert play(path, lambda it: it.ends([RUN.run_id])) == {RUN.run_id: Cursor(6, 1)}
    assert found_in(path) == ()


def test_s_64_what_is_killed_while_pruning_is_whole_or_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A portion fails: those before it are gone, it and the rest are there until the next time."""
    path = tmp_path / "journal.db"
    monkeypatch.setattr(sqlite_ledgers, "PORTION", 3)

    async def fill(journal: SqliteJournal) -> None:
        await journal.declare(RUN)
        await journal.note(RUN.run_id, fence=None, notes=[note(it) for it in range(8)])

    play(path, fill)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "CREATE TRIGGER killed BEFORE DELETE ON noted WHEN OLD.part = 5"
            " BEGIN SELECT RAISE(ABORT, 'killed'); END"
        )

    async def prune(journal: SqliteJournal) -> int:
        return await journal.prune(RUN.run_id, fence=None, now=LATER)

    async def killed(journal: SqliteJournal) -> None:
        with pytest.raises(JournalError, match="killed"):
            await prune(journal)

    play(path, killed)
    entries, gaps = play(path, lambda journal: in_pages(journal, 2))
    assert [it.cursor.part for it in entries] == [4, 5, 6, 7, 8]
    assert gaps == [Gap(first=Cursor(0, 1), last=Cursor(0, 3))]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER killed")
    assert play(path, prune) == 5
    assert found_in(path) == ()
    page = play(path, lambda journal: journal.ledger(RUN.run_id))
    assert ([*page.entries], [*page.gaps]) == ([], [Gap(first=Cursor(0, 1), last=Cursor(0, 8))])


def test_the_ledger_of_a_damaged_run_ends_where_its_facts_do(path: Path) -> None:
    """Where its row cannot be read nobody knows where it ends, and the rest is told."""
    change(path, "UPDATE runs SET sequence = 'x'")
    entries, _ = play(path, lambda journal: in_pages(journal, 2))
    assert [str(it.cursor) for it in entries] == ["1", "2", "3", "4", "4.1", "4.2"]
    change(path, "DELETE FROM appends WHERE first = 2")

    async def listed(journal: SqliteJournal) -> Any:
        page = await journal.latest()
        return [it.problem is not None for it in page.entries]

    assert play(path, listed) == [True]


def test_s_66_what_a_cursor_means_stays(path: Path) -> None:
    """However often the file is opened, closed and written."""

    async def story(journal: SqliteJournal) -> Any:
        entries, gaps = await in_pages(journal, 2)
        await journal.note(RUN.run_id, fence=None, notes=[note("more", Domain.PLAN)])
        return [(str(it.cursor), it.content) for it in entries], gaps

    told = [play(path, story) for _ in range(4)]
    for before, after in pairwise(told):
        assert after[0][: len(before[0])] == before[0]
        assert after[1] == before[1]


def test_s_62_a_file_keeps_notes_of_every_domain(tmp_path: Path) -> None:
    """And says of each which it is, without its content being read; manifests are left out."""
    path = tmp_path / "journal.db"

    async def fill(journal: SqliteJournal) -> None:
        await journal.declare(RUN)
        notes = [note(str(it), it) for it in Domain]
        assert await journal.note(RUN.run_id, fence=None, notes=notes) is Appended.OK

    play(path, fill)
    page = play(path, lambda journal: journal.ledger(RUN.run_id), read_only=True)
    assert [it.domain for it in page.entries] == [it for it in Domain if it is not Domain.SESSION]
    assert found_in(path) == ()
