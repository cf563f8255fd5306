"""A file as each version has written it: whatever comes, this one can still be read."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.journal.sqlite_file import MIGRATIONS

from .stage import RUN, everything, facts

# Written once, and not to be changed: files like this one exist.
VERSION_1 = """
PRAGMA application_id = 1953656428;
PRAGMA user_version = 1;
CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        run_id TEXT NOT NULL UNIQUE,
        run BLOB NOT NULL,
        checksum INTEGER NOT NULL,
        sequence INTEGER NOT NULL DEFAULT 0,
        busy INTEGER NOT NULL DEFAULT 0,
        epoch INTEGER NOT NULL DEFAULT 0,
        owner TEXT,
        owned_until REAL
    );
CREATE INDEX runs_of_owner ON runs (owner) WHERE owner IS NOT NULL;
CREATE TABLE appends (
        run INTEGER NOT NULL REFERENCES runs (number),
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        facts BLOB NOT NULL,
        checksum INTEGER NOT NULL,
        UNIQUE (run, last)
    );
CREATE TABLE snapshots (
        run INTEGER PRIMARY KEY REFERENCES runs (number),
        sequence INTEGER NOT NULL,
        snapshot BLOB NOT NULL,
        checksum INTEGER NOT NULL
    );
CREATE TABLE posts (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        run INTEGER NOT NULL REFERENCES runs (number),
        delivery BLOB NOT NULL,
        receipt BLOB
    );
CREATE INDEX posts_waiting ON posts (run) WHERE receipt IS NULL;
INSERT INTO runs VALUES (1, 'run-1', CAST(
    '{"version":1,"run_id":"run-1","agent_id":"agent-1","agent_name":"Ada"}' AS BLOB
), 4248921619, 2, 1, 3, 'host:1', 1030.0);
INSERT INTO appends VALUES (1, 1, 2, CAST(
    '{"version":1,"type":"TURN_SEALED","run_id":"run-1","sequence":1,"commit":2,"at":1.0,'
    || '"turn_id":"turn-1"}' || char(10)
    || '{"version":1,"type":"TURN_SEALED","run_id":"run-1","sequence":2,"commit":2,"at":2.0,'
    || '"turn_id":"turn-2"}' AS BLOB
), 3201154590);
"""


def test_a_file_of_version_1_is_read_and_written(tmp_path: Path) -> None:
    """Its run, its owner and its facts are there, and it goes on as a file of today."""
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(VERSION_1)

    async def story() -> None:
        async with await SqliteJournal.open(path) as journal:
            (entry,) = await journal.runs(busy=True)
            assert (entry.run, entry.sequence, entry.fence) == (RUN, 2, 3)
            assert (entry.owner, entry.owned_until) == ("host:1", 1_030.0)
            assert await everything(journal) == facts(2, commit=2)
            more = facts(1, after=2)
            answer = await journal.append(RUN.run_id, fence=3, after=2, facts=more, busy=False)
            assert answer is Appended.OK
            assert await everything(journal) == [*facts(2, commit=2), *more]

    asyncio.run(story())
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
