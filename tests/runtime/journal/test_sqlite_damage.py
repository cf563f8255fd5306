"""Damage to a SQLite journal's file: found, told with its place, and nothing made up for it."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from turnlock.models.errors import CorruptJournal, TurnlockError
from turnlock.models.fact import Fact
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.sqlite import SqliteJournal

from .stage import RUN, everything, facts, kept, owned, told_run
from .test_sqlite_opening import remember

FLIPS = 150
CUT_OFF = re.compile("damaged|empty|no SQLite|another program")
FRAME_HEADER = 24
SIZES = (0, 1, 99, 100, 512, 4_095, 4_096, 8_192, -4_096)
"""Where a file is cut off; negative counts from its end."""


def read_all(path: Path) -> list[Fact]:
    """Open the file, and read all facts of the run."""

    async def story() -> list[Fact]:
        async with await SqliteJournal.open(path, create=False) as journal:
            assert (await journal.entry(RUN.run_id)).run == RUN
            return await everything(journal)

    return asyncio.run(story())


def told_journal(path: Path) -> list[Fact]:
    """Make a journal of many small appends and one of several pages; return its facts."""
    told, _ = told_run()
    many = [*told, *facts(60, after=len(told), commit=2)]

    async def story() -> None:
        async with await SqliteJournal.open(path) as journal:
            fence = await owned(journal)
            await kept(journal, told, fence)
            for start in range(len(told), len(many) - 40, 2):
                await kept(journal, many[start : start + 2], fence)
            await kept(journal, many[-40:], fence)

    asyncio.run(story())
    return many


def test_a_flipped_bit_is_found_or_harms_nothing(tmp_path: Path) -> None:
    """Wherever it is: what can be read is what was written, or there is an error that says why."""
    path, damaged = tmp_path / "journal.db", tmp_path / "damaged.db"
    told = told_journal(path)
    content = path.read_bytes()
    draw = random.Random(7)
    found = 0
    for _ in range(FLIPS):
        at, bit = draw.randrange(len(content)), draw.randrange(8)
        flipped = bytearray(content)
        flipped[at] ^= 1 << bit
        damaged.write_bytes(flipped)
        message = ""
        try:
            assert read_all(damaged) == told, (at, bit)
        except TurnlockError as error:
            message = str(error)
        assert not message or str(damaged) in message or RUN.run_id in message, (at, bit)
        found += bool(message)

    assert found > FLIPS // 15  # most of so small a file is empty pages


def test_a_flipped_bit_in_a_fact_is_found_when_it_is_read(tmp_path: Path) -> None:
    """JSON that is still JSON is found by its checksum; the message names file, fact and fix."""
    path = tmp_path / "journal.db"
    remember(path)
    content = path.read_bytes()
    assert content.count(b'"turn-2"') == 1
    path.write_bytes(content.replace(b'"turn-2"', b'"turn-6"'))

    with pytest.raises(CorruptJournal, match=r"fact 1: .*checksum.*restore it") as caught:
        read_all(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_lost_rows_are_missed(tmp_path: Path, lost: int) -> None:
    """At the beginning, in the middle and at the end."""
    path = tmp_path / "journal.db"

    async def story() -> None:
        async with await SqliteJournal.open(path) as journal:
            fence = await owned(journal)
            for after in (0, 2, 4):
                await kept(journal, facts(2, after=after), fence)

    asyncio.run(story())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM appends WHERE first = ?", (2 * lost + 1,))
        connection.commit()

    with pytest.raises(CorruptJournal, match=f"fact {2 * lost + 1}: it is missing") as caught:
        read_all(path)
    assert str(path) in str(caught.value)


def test_a_row_in_anothers_place_is_found(tmp_path: Path) -> None:
    """The checksum covers what a row is stored under, too."""
    path = tmp_path / "journal.db"
    remember(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE runs SET run_id = 'run-9'")
        connection.commit()

    async def story() -> None:
        async with await SqliteJournal.open(path) as journal:
            with pytest.raises(CorruptJournal, match="checksum"):
                await everything(journal, "run-9")
            (listed,) = await journal.runs()
            assert "run 'run-9' is damaged" in (listed.problem or "")
            with pytest.raises(JournalError, match="run 'run-9' is damaged"):
                await journal.entry("run-9")

    asyncio.run(story())


def test_a_file_that_lacks_its_last_byte_is_read_rightly_or_not_at_all(tmp_path: Path) -> None:
    """SQLite takes what is missing of a page for zeros, which may even be right."""
    path = tmp_path / "journal.db"
    told = told_journal(path)
    for missing in (1, 2, 8, 64, 512):
        path.write_bytes(path.read_bytes()[:-missing])
        with suppress(TurnlockError):
            assert read_all(path) == told, missing


@pytest.mark.parametrize("size", SIZES)
def test_a_file_cut_off_is_never_begun_anew(tmp_path: Path, size: int) -> None:
    """Not even one of no bytes at all; and it stays as it is for whoever wants to repair it."""
    path = tmp_path / "journal.db"
    told_journal(path)
    content = path.read_bytes()
    cut = content[:size]
    path.write_bytes(cut)

    with pytest.raises(JournalError, match=CUT_OFF) as caught:
        read_all(path)

    assert str(path) in str(caught.value)
    assert path.read_bytes() == cut


def test_a_torn_end_loses_the_last_append_at_most(tmp_path: Path) -> None:
    """A write-ahead log cut anywhere in its last transaction: all before it is there."""
    path, torn = tmp_path / "journal.db", tmp_path / "torn.db"
    wal, whole_wal = tmp_path / "journal.db-wal", tmp_path / "whole-wal"
    torn_wal, torn_shm = tmp_path / "torn.db-wal", tmp_path / "torn.db-shm"
    sizes: list[int] = []

    async def story() -> None:
        async with await SqliteJournal.open(path) as journal:
            fence = await owned(journal)
            for after in range(3):
                await kept(journal, facts(1, after=after), fence)
                shutil.copy(path, torn)
                shutil.copy(wal, whole_wal)
                sizes.append(whole_wal.stat().st_size)

    asyncio.run(story())
    whole = whole_wal.read_bytes()
    cuts = [
        *range(sizes[1], sizes[1] + FRAME_HEADER + 1),
        *range(sizes[1], len(whole), 211),
        *range(len(whole) - FRAME_HEADER, len(whole)),
    ]
    base = torn.read_bytes()
    for cut in cuts:
        torn.write_bytes(base)
        torn_wal.write_bytes(whole[:cut])
        torn_shm.unlink(missing_ok=True)
        assert read_all(torn) == facts(2), cut
    torn_wal.write_bytes(whole)
    torn.write_bytes(base)
    assert read_all(torn) == facts(3)


def test_a_damaged_snapshot_is_none(tmp_path: Path) -> None:
    """The facts are there, so recovery goes the longer way."""
    path = tmp_path / "journal.db"

    async def story() -> None:
        async with await SqliteJournal.open(path) as journal:
            fence = await owned(journal)
            told, kernel = told_run()
            await kept(journal, told, fence)
            await journal.keep_snapshot(kernel.snapshot(), fence=fence)
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("UPDATE snapshots SET snapshot = replace(snapshot, '9', '8')")
                connection.commit()
            assert await journal.snapshot(RUN.run_id) is None
            assert await everything(journal) == told

    asyncio.run(story())
