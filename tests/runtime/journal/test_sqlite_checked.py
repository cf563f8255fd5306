"""What is damaged beside the facts: found by `check`, all of it, and in nobody's way meanwhile."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from turnlock import Decide
from turnlock.models.codec import to_json
from turnlock.models.errors import TurnlockError
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal import sqlite_runs
from turnlock.runtime.journal.contract import PROBLEM, Appended, Finding
from turnlock.runtime.journal.rows import checksum
from turnlock.runtime.journal.sqlite import SqliteJournal

from .stage import LEASE, NOW, OTHER, RUN, everything, facts, kept, owned, said, told_run

LATER = NOW + 2 * LEASE
APPROVE = Decide(turn_id="turn-1", invocation_id="a", approved=True)


def play(path: Path, story: Callable[[SqliteJournal], Awaitable[Any]]) -> Any:
    """Tell a story on the journal of this path, and return what it returns."""

    async def run() -> Any:
        async with await SqliteJournal.open(path) as journal:
            return await story(journal)

    return asyncio.run(run())


def told(path: Path) -> None:
    """Make a journal of two runs with facts, a snapshot, a note and posts."""

    async def story(journal: SqliteJournal) -> None:
        fence, other = await owned(journal), await owned(journal, OTHER)
        made, kernel = told_run()
        await kept(journal, made[:4], fence)
        await kept(journal, made[4:], fence)
        await journal.keep_snapshot(kernel.snapshot(), fence=fence)
        await journal.note(RUN.run_id, fence=fence, notes=[said(1, id="said")])
        await journal.put_worker("w/1", "host:7")
        await kept(journal, facts(2, run_id=OTHER.run_id), other)
        for run in (RUN, OTHER):
            for _ in range(2):
                await journal.post(run.run_id, APPROVE)
        await journal.answer(RUN.run_id, 2, {"accepted": True, "facts": []})

    play(path, story)


def change(path: Path, *statements: str) -> None:
    """Change a file as damage would: behind the back of checksums and triggers."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER runs_written_by_older")
        for statement in statements:
            connection.execute(statement)
        (trigger,) = [it for it in _declared() if "runs_written_by_older" in it]
        connection.execute(trigger)
        connection.commit()


def _declared() -> list[str]:
    from turnlock.runtime.journal.sqlite_schema import MIGRATIONS  # noqa: PLC0415 - one use

    return [step for steps in MIGRATIONS for step in steps if isinstance(step, str)]


def found_in(path: Path) -> tuple[Finding, ...]:
    found: tuple[Finding, ...] = play(path, lambda journal: journal.check())
    return found


DAMAGES = {
    "facts": ("UPDATE appends SET facts = replace(facts, '9', '8') WHERE run = 1", "fact 1"),
    "other facts": ("", "facts"),
    "a row": ("DELETE FROM appends WHERE run = 1 AND first = 1", "fact 1"),
    "the last row": ("DELETE FROM appends WHERE run = 1 AND first = 5", "fact 5"),
    "where it ends": ("UPDATE runs SET sequence = sequence + 64 WHERE number = 1", "row"),
    "its owner": ("UPDATE runs SET owner = 'adb' WHERE number = 1", "row"),
    "its lease": ("UPDATE runs SET owned_until = 'soon' WHERE number = 1", "row"),
    "its fence": ("UPDATE runs SET epoch = epoch + 256 WHERE number = 1", "row"),
    "when it began": ("UPDATE runs SET began = began + 64 WHERE number = 1", "row"),
    "when it changed": ("UPDATE runs SET changed = NULL WHERE number = 2", "row"),
    "its configuration": ("UPDATE runs SET run = replace(run, 'Ada', 'Ida')", "row"),
    "the digest": ("UPDATE runs SET digest = zeroblob(24) WHERE number = 1", "facts"),
    "a snapshot": ("UPDATE snapshots SET snapshot = replace(snapshot, '9', '8')", "snapshot"),
    "where a snapshot is": ("UPDATE snapshots SET sequence = sequence - 1", "snapshot"),
    "a note": ("UPDATE noted SET content = replace(content, '1', '2')", "note 'said'"),
    "the name of a note": ("UPDATE noted SET id = 'sayd'", "note 'sayd'"),
    "a post": ("UPDATE posts SET delivery = replace(delivery, 'turn-1', 'turn-2')", "post 1"),
    "whose a post is": ("UPDATE posts SET run = 2 WHERE number = 1", "post 1"),
    "an answer": ("UPDATE posts SET receipt = CAST('{}' AS BLOB) WHERE number = 2", "answer"),
    "the identity": ("UPDATE meta SET value = CAST('0' AS BLOB)", "meta 'identity'"),
    "a run's row": ("DELETE FROM runs WHERE number = 2", "file"),
    "an index": ("PRAGMA writable_schema = ON", "file"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_whatever_is_damaged_is_found(tmp_path: Path, damage: str) -> None:
    """By its place; what is whole is not found."""
    path = tmp_path / "journal.db"
    told(path)
    assert found_in(path) == ()
    statement, what = DAMAGES[damage]
    more: list[str] = []
    if damage == "other facts":  # the checksum fits: someone has replaced the row
        lines = b"\n".join(map(to_json, facts(2, run_id=OTHER.run_id)))
        lines = lines.replace(b"turn-1", b"turn-9")
        summed = checksum(lines, OTHER.run_id, 1, 2)
        new = f"facts = x'{lines.hex()}', checksum = {summed}"
        statement = "UPDATE appends SET " + new + " WHERE run = 2"  # noqa: S608 - of ours
    if damage == "an index":
        more = ["UPDATE sqlite_master SET rootpage = 3 WHERE name = 'posts_waiting'"]
    change(path, statement, *more)

    found = found_in(path)

    assert found, damage
    assert any(one.what.startswith(what) for one in found), found


def test_all_that_is_damaged_is_found_at_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    told(path)
    together = ("facts", "its owner", "a snapshot", "a note", "a post", "the identity")
    change(path, *(DAMAGES[name][0] for name in together))

    found = [one.what for one in found_in(path)]

    for name in together:
        assert any(what.startswith(DAMAGES[name][1]) for what in found), (name, found)


@pytest.mark.parametrize("damage", ["its owner", "its lease", "its fence", "where it ends"])
def test_a_damaged_row_is_left_alone_and_stops_no_other(tmp_path: Path, damage: str) -> None:
    """It is listed with its problem, and neither owned nor written; its facts can be read."""
    path = tmp_path / "journal.db"
    told(path)
    change(path, DAMAGES[damage][0])

    async def story(journal: SqliteJournal) -> None:
        first, second = await journal.runs()
        assert first.run == RUN
        assert first.problem is not None
        assert (second.run, second.problem) == (OTHER, None)
        with pytest.raises(JournalError, match="run 'run-1' is damaged"):
            await journal.own(RUN.run_id, owner="bob", now=LATER, lease=LEASE)
        with pytest.raises(JournalError, match="run 'run-1' is damaged"):
            await journal.append(RUN.run_id, fence=1, after=9, facts=facts(1, after=9), busy=False)
        assert await everything(journal) == told_run()[0]
        assert await journal.own(OTHER.run_id, owner="bob", now=LATER, lease=LEASE) == 2
        assert await journal.renew(owner="ada", now=LATER, lease=LEASE) == frozenset()

    play(path, story)


def test_without_its_checksum_a_damaged_row_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: the check off, and a lease that never was keeps everybody out."""
    path = tmp_path / "journal.db"
    told(path)
    change(path, "UPDATE runs SET owned_until = 9e9 WHERE number = 1")
    monkeypatch.setattr(sqlite_runs.Head, "problem", None)

    async def story(journal: SqliteJournal) -> None:
        assert [entry.problem for entry in await journal.runs()] == [None, None]
        with pytest.raises(JournalError, match="ada owns it"):
            await journal.own(RUN.run_id, owner="bob", now=LATER, lease=LEASE)

    play(path, story)


def test_what_an_older_process_wrote_is_not_damage(tmp_path: Path) -> None:
    """It knows no checksum but those of facts, snapshots, notes and configurations."""
    path = tmp_path / "journal.db"
    told(path)
    line = facts(1, after=9)
    content = to_json(line[0])
    with closing(sqlite3.connect(path)) as older:
        older.execute("UPDATE runs SET epoch = epoch + 1, owner = 'old', owned_until = 5000.0")
        older.execute(
            "INSERT INTO appends (run, first, last, facts, checksum) VALUES (1, 10, 10, ?, ?)",
            (content, checksum(content, RUN.run_id, 10, 10)),
        )
        older.execute("UPDATE runs SET sequence = 10, busy = 0 WHERE number = 1")
        older.execute("INSERT INTO posts (run, delivery) VALUES (1, ?)", (to_json(APPROVE),))
        older.execute("UPDATE posts SET receipt = CAST('{}' AS BLOB) WHERE number = 1")
        older.commit()

    async def story(journal: SqliteJournal) -> None:
        assert await journal.check() == ()
        assert [entry.problem for entry in await journal.runs()] == [None, None]
        assert await journal.own(RUN.run_id, owner="new", now=LATER, lease=LEASE, gone="old") == 3
        await kept(journal, facts(1, after=10), 3)
        assert await journal.check() == ()

    play(path, story)


@pytest.mark.parametrize(
    ("posted", "why"),
    [
        ('{"type": "dec', "cannot be read"),
        ('{"version": 99, "type": "tick"}', "version: 99 is not a version"),
        ('{"version": 2, "type": "teleport"}', "teleport"),
        ('{"version": 2, "type": "tick", "colour": "red"}', "colour"),
    ],
)
def test_a_post_that_nobody_can_read_is_set_aside(
    tmp_path: Path, posted: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It stands in nobody's way, its poster is told, and it is shown; the log tells it once."""
    path = tmp_path / "journal.db"
    told(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "UPDATE posts SET delivery = ?, checksum = NULL WHERE number = 1", (posted.encode(),)
        )
        connection.commit()

    async def story(journal: SqliteJournal) -> None:
        for _ in range(2):
            posts = await journal.posts([RUN.run_id, OTHER.run_id])
            assert [post.number for post in posts] == [3, 4]
        answer = await journal.answered(RUN.run_id, 1)
        assert answer is not None
        assert answer["accepted"] is False
        assert why in answer[PROBLEM]
        await journal.answer(RUN.run_id, 1, {"accepted": True})
        assert await journal.answered(RUN.run_id, 1) == answer
        (found,) = await journal.check()
        assert (found.run_id, found.what) == (RUN.run_id, "post 1")
        assert why in found.cause

    play(path, story)
    (line,) = [record.getMessage() for record in caplog.records]
    assert "post 1 for run 'run-1' is set aside" in line


def test_a_damaged_answer_is_told_to_its_poster(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    told(path)
    change(path, DAMAGES["an answer"][0])

    async def story(journal: SqliteJournal) -> None:
        with pytest.raises(JournalError, match="the answer to post 2 is damaged"):
            await journal.answered(RUN.run_id, 2)

    play(path, story)


def test_a_snapshot_that_says_too_much_is_none_and_is_replaced(tmp_path: Path) -> None:
    """Else none could be kept any more."""
    path = tmp_path / "journal.db"
    told(path)
    change(path, "UPDATE snapshots SET sequence = 4000")

    async def story(journal: SqliteJournal) -> None:
        assert await journal.snapshot(RUN.run_id) is None
        snapshot = told_run()[1].snapshot()
        assert await journal.keep_snapshot(snapshot, fence=1) is Appended.OK
        assert await journal.snapshot(RUN.run_id) == snapshot

    play(path, story)


def test_a_text_that_is_none_any_more_hides_no_other_run(tmp_path: Path) -> None:
    """Not even the id of a run."""
    path = tmp_path / "journal.db"
    told(path)
    change(path, "UPDATE runs SET run_id = CAST(x'72ff6e' AS TEXT) WHERE number = 1")

    async def story(journal: SqliteJournal) -> None:
        first, second = await journal.runs()
        assert first.problem is not None
        assert first.run.run_id == r"r\xffn"
        assert (second.run, second.problem) == (OTHER, None)

    play(path, story)


GARBAGE = {
    "no SQL": "sql = 'CREATE TABLE ru ns ((('",
    "bytes": "sql = CAST(x'fffe00ff' AS TEXT)",
    "nothing": "sql = NULL",
    "another table": "sql = 'CREATE TABLE runs (number INTEGER PRIMARY KEY)'",
    "another page": "rootpage = 77777",
    "another name": "name = CAST(x'ff' AS TEXT), tbl_name = CAST(x'ff' AS TEXT)",
    "another type": "type = 'tabel'",
}


@pytest.mark.parametrize("table", ["runs", "appends", "posts", "meta"])
@pytest.mark.parametrize("garbage", GARBAGE)
def test_a_damaged_schema_is_told(tmp_path: Path, garbage: str, table: str) -> None:
    """At once where statements would fail, else by `check`; never as a traceback of SQLite's."""
    path = tmp_path / "journal.db"
    told(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        damage = "UPDATE sqlite_master SET " + GARBAGE[garbage]  # noqa: S608 - of ours
        connection.execute(f"{damage} WHERE name = ?", (table,))
        connection.commit()
    found: tuple[Finding, ...] = ()

    with suppress(JournalError):
        found = found_in(path)
        assert found
    if not found:
        with pytest.raises(JournalError, match=f"{path}.*restore"):
            found_in(path)


def test_runs_are_named_in_what_is_found(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    told(path)
    change(path, DAMAGES["a note"][0])
    (found,) = found_in(path)
    assert (found.run_id, found.what) == (RUN.run_id, "note 'said'")


FLIPS = 60


async def all_of_it(journal: SqliteJournal) -> list[Any]:
    """What a journal hands out of the runs that it tells nothing bad of."""
    found: list[Any] = []
    for entry in await journal.runs():
        run_id = entry.run.run_id
        if entry.problem is None:
            notes, posts = await journal.notes(run_id), await journal.posts([run_id])
            kept_ = await everything(journal, run_id), await journal.snapshot(run_id)
            # What an append has told of its run may be gone: then whoever lists it folds it.
            listed = attrs.evolve(
                entry, changed=None, status=None, waiting=None, doubts=None, trouble=None
            )
            found.append((listed, kept_, notes, posts))
    return [*found, await journal.answered(RUN.run_id, 2)]


def test_no_flipped_bit_is_handed_out_in_silence(tmp_path: Path) -> None:
    """Of owners, notes, posts, answers and snapshots as of facts: what is not as it was kept is
    found by `check`, or told by an error that names the file or the run."""
    path, damaged = tmp_path / "journal.db", tmp_path / "damaged.db"
    told(path)
    truth = play(path, all_of_it)
    content = path.read_bytes()
    draw = random.Random(5)
    pages = [at for at in range(0, len(content), 4_096) if any(content[at : at + 4_096])]
    said = 0
    for _ in range(FLIPS):
        flipped = bytearray(content)
        page = draw.choice(pages)
        used = [at for at in range(page, page + 4_096) if content[at]]  # most is empty
        flipped[draw.choice(used)] ^= 1 << draw.randrange(8)
        damaged.write_bytes(flipped)
        try:
            found = found_in(damaged)
            same = play(damaged, all_of_it) == truth
        except TurnlockError as error:
            found, same = (Finding(run_id=None, what="error", cause=str(error)),), False
        assert same or found
        said += bool(found)
    assert said > FLIPS // 3
