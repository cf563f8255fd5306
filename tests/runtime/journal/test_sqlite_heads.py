"""The lost tail: what SQLite drops at a flipped bit of the -wal is noticed; its runs stop."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from turnlock import Run
from turnlock.models.codec import to_json
from turnlock.models.errors import TurnlockError
from turnlock.models.fact import Fact
from turnlock.runtime.errors import JournalError, JournalRewound
from turnlock.runtime.journal import sqlite_heads
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.rows import checksum
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.journal.sqlite_schema import IDENTITY, keep_meta

from .stage import OTHER, RUN, everything, facts, kept, owned

RUNS = (RUN, OTHER, Run(run_id='third "run" \u202e'))
ROUNDS = 4
FLIPS_A_CLASS = 3
HEADER = 32
FRAME_HEADER = 24
PAGE = 4_096
CLASSES = {
    "header of the file": (0, HEADER),
    "page of a frame": (HEADER, 4),
    "size in a frame": (HEADER + 4, 4),
    "salt of a frame": (HEADER + 8, 8),
    "checksum of a frame": (HEADER + 16, 8),
    "content": (HEADER + FRAME_HEADER, PAGE),
}
"""Where a bit is flipped: an offset, and how many bytes from there."""


@pytest.fixture(autouse=True)
def _unmerged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is merged unless a test says so."""
    monkeypatch.setattr(sqlite_heads, "MERGE_IDLE", 1e9)
    monkeypatch.setattr(sqlite_heads, "MERGE_EVERY", 1e9)


def play(path: Path, story: Callable[[SqliteJournal], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with await SqliteJournal.open(path) as journal:
            return await story(journal)

    return asyncio.run(run())


def killed(folder: Path) -> Path:
    """The files of a journal of several runs, as a kill leaves them."""
    path, copy = folder / "open.db", folder / "journal.db"

    async def story(journal: SqliteJournal) -> None:
        fences = {run.run_id: await owned(journal, run) for run in RUNS}
        for round_ in range(ROUNDS):
            for run in RUNS:
                new = facts(2, after=2 * round_, run_id=run.run_id)
                await kept(journal, new, fences[run.run_id])
        for end in ("", "-wal", "-heads"):
            shutil.copy(beside(path, end), beside(copy, end))

    play(path, story)
    return copy


def beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def acknowledged() -> dict[str, list[Fact]]:
    return {run.run_id: facts(2 * ROUNDS, run_id=run.run_id) for run in RUNS}


async def silently_lost(journal: SqliteJournal) -> list[str]:
    """The runs that lack something, and of which nothing says so."""
    lost: list[str] = []
    for run in RUNS:
        try:
            await journal.declare(run)
            entry = await journal.entry(run.run_id)
            if entry.rewound is None and entry.problem is None:
                found = await everything(journal, run.run_id)
                lost += [] if found == acknowledged()[run.run_id] else [run.run_id]
        except TurnlockError:
            continue
    return lost


def flipped(path: Path, place: Path, *, at: int, bit: int) -> None:
    """Make a copy with one bit of its -wal flipped."""
    for end in ("", "-wal", "-heads", "-shm"):
        beside(place, end).unlink(missing_ok=True)
        if beside(path, end).exists():
            shutil.copy(beside(path, end), beside(place, end))
    wal = beside(place, "-wal")
    content = bytearray(wal.read_bytes())
    content[at] ^= 1 << bit
    wal.write_bytes(content)


def flips(wal: bytes) -> list[tuple[str, int, int]]:
    """Some of each class, the same ones each time."""
    draw = random.Random(11)
    frames = (len(wal) - HEADER) // (FRAME_HEADER + PAGE)
    chosen: list[tuple[str, int, int]] = []
    for name, (offset, size) in CLASSES.items():
        for _ in range(FLIPS_A_CLASS):
            frame = 0 if offset < HEADER else draw.randrange(frames)
            at = offset + frame * (FRAME_HEADER + PAGE) + draw.randrange(size)
            chosen.append((name, at, draw.randrange(8)))
    return chosen


def lost_in(path: Path, place: Path) -> tuple[int, int]:
    """How many flips lose something in silence, and how many are noticed."""

    async def story(journal: SqliteJournal) -> tuple[list[str], list[str]]:
        return await silently_lost(journal), await _rewound(journal)

    silent = said = 0
    for _, at, bit in flips(beside(path, "-wal").read_bytes()):
        flipped(path, place, at=at, bit=bit)
        try:
            lost, marked = play(place, story)
        except JournalError:
            said += 1
        else:
            silent += bool(lost)
            said += bool(marked)
    return silent, said


async def _rewound(journal: SqliteJournal) -> list[str]:
    return [entry.run.run_id for entry in await journal.runs() if entry.rewound]


def test_no_flipped_bit_of_the_wal_loses_anything_in_silence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Wherever it is: all that was acknowledged is there, or the runs are marked, or it is told."""
    silent, said = lost_in(killed(tmp_path), tmp_path / "damaged.db")

    assert silent == 0
    assert said > len(CLASSES) * FLIPS_A_CLASS // 2
    assert "had acknowledged fact 8" in caplog.text


def test_without_the_heads_tails_are_lost_in_silence(tmp_path: Path) -> None:
    """The negative control: what SQLite does alone."""
    path = killed(tmp_path)
    beside(path, "-heads").unlink()

    silent, _ = lost_in(path, tmp_path / "damaged.db")

    assert silent > len(CLASSES) * FLIPS_A_CLASS // 2


@pytest.mark.parametrize("lines", [None, 1, 5])
def test_a_kill_alone_loses_nothing_and_marks_nothing(tmp_path: Path, lines: int | None) -> None:
    """Also if it came between a commit and its line, or a power cut took some of the lines."""
    path = killed(tmp_path)
    heads = beside(path, "-heads")
    if lines is not None:
        heads.write_bytes(b"\n".join(heads.read_bytes().split(b"\n")[:-lines]))

    async def story(journal: SqliteJournal) -> None:
        for run in RUNS:
            assert (await journal.entry(run.run_id)).rewound is None
            assert await everything(journal, run.run_id) == acknowledged()[run.run_id]
        assert await journal.check() == ()

    play(path, story)


def cut_off(path: Path, *, frames: int) -> None:
    """Take frames from the end of the -wal."""
    wal = beside(path, "-wal")
    content = wal.read_bytes()
    wal.write_bytes(content[: len(content) - frames * (FRAME_HEADER + PAGE)])


def test_a_rewound_run_is_marked_and_said_until_it_is_recovered(tmp_path: Path) -> None:
    """`check` says it before anybody has opened the file to write; afterwards it stays recovered,
    though the lines still say otherwise."""
    path = killed(tmp_path)
    cut_off(path, frames=1)
    lines = beside(path, "-heads").read_bytes()

    async def look() -> None:
        async with await SqliteJournal.open(path, read_only=True) as journal:
            (found,) = await journal.check()
            assert (found.run_id, found.what) == (RUNS[-1].run_id, "rewound")
            assert (await journal.entry(RUNS[-1].run_id)).rewound == found.cause

    asyncio.run(look())

    async def story(journal: SqliteJournal) -> None:
        run_id = RUNS[-1].run_id
        entry = await journal.entry(run_id)
        assert entry.rewound == "it had acknowledged fact 8, and ends with fact 6"
        with pytest.raises(JournalRewound):
            await journal.own(run_id, owner="bob", now=9e9, lease=1.0)
        assert await journal.own(RUN.run_id, owner="bob", now=9e9, lease=1.0) == 2
        recovered = await journal.recover(
            run_id, after=6, facts=facts(1, after=6, run_id=run_id), busy=True
        )
        assert recovered is Appended.OK
        new = beside(path, "-heads").read_bytes()
        beside(path, "-heads").write_bytes(lines + new)  # as if they had not been removed

    play(path, story)
    beside(path, "-heads").write_bytes(b"")

    async def later(journal: SqliteJournal) -> None:
        assert await _rewound(journal) == []

    play(path, later)


def test_the_line_of_a_recovery_counts_whatever_was_said_before(tmp_path: Path) -> None:
    identity = b"0123456789abcdef"
    path = tmp_path / "journal.db"
    lines = [
        sqlite_heads.line_of(identity, "r", it)
        for it in (
            sqlite_heads.Noted(sequence=9, digest=b"1"),
            sqlite_heads.Noted(sequence=8, digest=b"0"),
            sqlite_heads.Noted(sequence=5, digest=b"2", exact=True),
        )
    ]
    for count, expected in ((2, 9), (3, 5)):
        beside(path, "-heads").write_bytes(b"".join(lines[:count]))
        heads, damaged = sqlite_heads.read_heads(path, identity)
        assert (heads["r"].sequence, damaged) == (expected, 0)
    assert sqlite_heads.read_heads(path, b"another identity") == ({}, 0)


def test_damaged_lines_are_passed_over_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither garbage nor a torn end is believed, and the lines beside them are."""
    path = killed(tmp_path)
    cut_off(path, frames=1)
    heads = beside(path, "-heads")
    content = heads.read_bytes().replace(b"6,", b"7,", 1)
    heads.write_bytes(b"\xff\x00garbage\n" + content + b'\n12345678 ["torn')

    assert play(path, _rewound) == [RUNS[-1].run_id]
    assert "3 lines are damaged" in caplog.text


def test_the_heads_of_another_file_measure_nothing(tmp_path: Path) -> None:
    """A restored one has an identity of its own."""
    path = killed(tmp_path)
    cut_off(path, frames=1)
    lines = beside(path, "-heads").read_bytes()
    beside(path, "-heads").unlink()
    play(path, _rewound)
    with closing(sqlite3.connect(path)) as connection:
        keep_meta(connection, IDENTITY, b"f" * 32)
        connection.commit()
    beside(path, "-heads").write_bytes(lines)

    assert play(path, _rewound) == []


def test_a_run_that_is_lost_wholly_cannot_be_begun_anew(tmp_path: Path) -> None:
    """Else it would do again what it did."""
    path = killed(tmp_path)
    cut_off(path, frames=10_000)

    async def story(journal: SqliteJournal) -> None:
        assert await journal.runs() == ()
        await journal.declare(RUN)
        assert "all of it is lost" in ((await journal.entry(RUN.run_id)).rewound or "")
        with pytest.raises(JournalRewound, match="had acknowledged fact 8"):
            await journal.own(RUN.run_id, owner="ada", now=0.0, lease=1.0)

    play(path, story)


@pytest.mark.parametrize("damaged", [False, True])
def test_an_older_process_may_write_on(tmp_path: Path, damaged: bool) -> None:
    """It leaves no lines; that it went on where a tail was lost shows by the digest."""
    path = killed(tmp_path)
    lines = beside(path, "-heads").read_bytes()
    if damaged:
        cut_off(path, frames=1)
    run_id = RUNS[-1].run_id
    ends = 6 if damaged else 8
    with closing(sqlite3.connect(path)) as older:
        for sequence in range(ends + 1, ends + 5):
            (fact,) = facts(1, after=sequence - 1, run_id=run_id)
            content = to_json(fact).replace(b"turn-", b"tour-")
            older.execute(
                "INSERT INTO appends (run, first, last, facts, checksum)"
                " SELECT number, ?, ?, ?, ? FROM runs WHERE run_id = ?",
                (
                    *(sequence, sequence, content),
                    *(checksum(content, run_id, sequence, sequence), run_id),
                ),
            )
        older.execute("UPDATE runs SET sequence = ? WHERE run_id = ?", (ends + 4, run_id))
        older.commit()
    beside(path, "-heads").write_bytes(lines)

    assert play(path, _rewound) == ([run_id] if damaged else [])


def test_what_was_not_committed_leaves_no_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def story(journal: SqliteJournal) -> None:
        fence = await owned(journal)
        await kept(journal, facts(1), fence)
        before = beside(path, "-heads").read_bytes()
        mistaken = asyncio.gather(
            journal.append(RUN.run_id, fence=9, after=1, facts=facts(1, after=1), busy=True),
            journal.append(RUN.run_id, fence=fence, after=7, facts=facts(1, after=7), busy=True),
        )
        assert list(await mistaken) == [Appended.FENCED, Appended.CONFLICT]
        assert beside(path, "-heads").read_bytes() == before

    play(path, story)


def test_a_file_that_cannot_be_written_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once."""

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def story(journal: SqliteJournal) -> None:
        fence = await owned(journal)
        monkeypatch.setattr(os, "write", full)
        try:
            for after in range(3):
                await kept(journal, facts(1, after=after), fence)
        finally:
            monkeypatch.undo()
        assert len(await everything(journal)) == 3

    play(tmp_path / "journal.db", story)
    assert caplog.text.count("a lost end of the journal would not be noticed") == 1


def test_lines_go_on_in_a_new_file_where_another_process_has_removed_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"

    async def story(journal: SqliteJournal) -> None:
        fence = await owned(journal)
        await kept(journal, facts(1), fence)
        beside(path, "-heads").unlink()
        await kept(journal, facts(1, after=1), fence)
        assert beside(path, "-heads").read_bytes().count(b"\n") == 1

    play(path, story)


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what another thread does, for ten seconds at most."""
    end = time.monotonic() + 10
    while not holds() and time.monotonic() < end:  # noqa: ASYNC110 - of a thread
        await asyncio.sleep(0.01)
    assert holds()


@pytest.mark.parametrize("bound", ["MERGE_IDLE", "MERGE_EVERY", "MERGE_BYTES"])
def test_the_wal_is_merged_and_the_heads_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """When nothing is asked, by time, and by size; so what a flipped bit can lose stays short."""
    monkeypatch.setattr(sqlite_heads, bound, 0)
    path = tmp_path / "journal.db"

    async def story(journal: SqliteJournal) -> None:
        fence = await owned(journal)
        await kept(journal, facts(3), fence)
        await until(lambda: beside(path, "-wal").stat().st_size == 0)
        assert beside(path, "-heads").exists()
        await kept(journal, facts(1, after=3), fence)
        assert len(await everything(journal)) == 4

    play(path, story)
    assert sorted(it.name for it in tmp_path.iterdir()) == ["journal.db", "journal.db-heads"]
    assert play(path, _rewound) == []


def test_the_wal_is_merged_as_soon_as_a_reader_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again and again meanwhile, and holds up neither him nor those who write."""
    monkeypatch.setattr(sqlite_heads, "MERGE_IDLE", 0.0)
    monkeypatch.setattr(sqlite_heads, "MERGE_PAUSE", 0.01)
    path = tmp_path / "journal.db"

    async def story(journal: SqliteJournal) -> None:
        fence = await owned(journal)
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM appends").fetchone()
            for after in range(10):
                await kept(journal, facts(1, after=after), fence)
            await asyncio.sleep(0.1)
            assert reader.execute("SELECT count(*) FROM appends").fetchone() == (0,)
            assert beside(path, "-heads").exists()
            reader.execute("ROLLBACK")
            await until(lambda: beside(path, "-wal").stat().st_size == 0)

    play(path, story)


def test_the_lines_stay_few_where_nothing_can_be_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The last of each run is kept, and counts as it did; who is in the way is told of, once."""
    for bound, value in (("MERGE_IDLE", 0.0), ("MERGE_PAUSE", 0.0), ("MERGE_WAIT", 0.0)):
        monkeypatch.setattr(sqlite_heads, bound, value)
    monkeypatch.setattr(sqlite_heads, "HEADS_BYTES", 1_000)
    path, copy = tmp_path / "open.db", tmp_path / "journal.db"

    async def story(journal: SqliteJournal) -> None:
        fence, other = await owned(journal), await owned(journal, OTHER)
        await kept(journal, facts(1, run_id=OTHER.run_id), other)
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM appends").fetchone()
            await kept(journal, facts(1), fence)
            # Before, the journal's own reading may be in the way of a merge, for a moment.
            monkeypatch.setattr(sqlite_heads, "WARN_BYTES", 1_000)
            for after in range(1, 40):
                await kept(journal, facts(1, after=after), fence)
            await until(lambda: beside(path, "-heads").stat().st_size < 1_000)  # of 4,000
            for end in ("", "-wal", "-heads"):
                shutil.copy(beside(path, end), beside(copy, end))
            reader.execute("ROLLBACK")

    play(path, story)
    assert caplog.text.count("somebody reads it without an end") == 1
    cut_off(copy, frames=1)
    assert play(copy, _rewound) == [RUN.run_id]
