"""``check``, ``backup``, ``restore`` and ``forget`` know of shared logs (W-11, W-12)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

from turnlock.runtime.journal.contract import LogEntry, open_journal
from turnlock.runtime.journal.sqlite import SqliteJournal

from .recordings import turnlock
from .test_retire import OVER
from .test_runs import submitted


def said(path: Path, count: int) -> None:
    """Append to a log whose name is to be shown with care."""

    async def story() -> None:
        async with await open_journal(path) as journal:
            for n in range(count):
                await journal.append_entry("w/\u202ec", f"say/{n}", {"n": n}, at=1.0)
            await journal.append_entry("w", "made", {}, at=1.0)

    asyncio.run(story())


def logs(path: Path) -> tuple[LogEntry, ...]:
    async def story() -> tuple[LogEntry, ...]:
        async with await open_journal(path, read_only=True) as journal:
            return await journal.logs()

    return asyncio.run(story())


def test_w_11_check_names_the_damaged_entry(tmp_path: Path) -> None:
    """And tells how many there are; a journal of logs alone is nothing wrong."""
    path = tmp_path / "world.db"
    said(path, 3)
    good = turnlock("check", "--db", str(path))
    assert (good.exit_code, good.output) == (0, "shared logs: 2, 4 entries\n")
    told = json.loads(turnlock("check", "--db", str(path), "--json").output)
    assert (told["conforms"], told["logs"], told["entries"]) == (True, 2, 4)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE entries SET at = 2.0 WHERE number = 2")

    bad = turnlock("check", "--db", str(path))

    assert bad.exit_code == 1
    assert bad.output.startswith("the journal: entry 2 of log 'w/\\u202ec': it is damaged")
    assert bad.output.endswith("shared logs: 2, 4 entries\nnot as it was kept: 1 found\n")


def test_w_12_a_copy_holds_the_logs_and_brings_them_back(tmp_path: Path) -> None:
    path, copy = tmp_path / "world.db", tmp_path / "copy.db"
    said(path, 3)
    done = turnlock("backup", "--db", str(path), "-o", str(copy))
    assert done.exit_code == 0
    assert "0 runs, 0 facts, 4 entries of shared logs, " in done.output
    said(path, 5)

    back = turnlock("restore", str(copy), "--db", str(path))

    assert back.exit_code == 0, back.output
    assert "0 runs, 4 entries of shared logs\n" in back.output
    assert logs(path) == (LogEntry("w", 1), LogEntry("w/\u202ec", 3))


def test_w_11_what_removes_runs_removes_no_entry(tmp_path: Path) -> None:
    """Whatever they are called, and however long ago they were over."""
    path = tmp_path / "world.db"
    said(path, 3)

    async def play() -> None:
        async with await SqliteJournal.open(path) as journal:
            await submitted(journal, "w", *OVER)

    asyncio.run(play())
    before = logs(path)

    done = turnlock("forget", "--db", str(path), "--yes", "w")

    assert done.exit_code == 0, done.output
    assert logs(path) == before
