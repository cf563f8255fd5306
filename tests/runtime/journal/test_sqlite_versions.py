"""A file as each version has written it: whatever comes, this one can still be read."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.journal.sqlite_schema import IDENTITY, MIGRATIONS, meta

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


def told_of(path: Path, question: str) -> list[Any]:
    """What a file says, asked behind the journal's back."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(question).fetchall()


def test_each_file_has_an_identity_of_its_own(tmp_path: Path) -> None:
    """A new one, and one brought up to date; what is damaged is told."""
    paths = [tmp_path / "new.db", tmp_path / "other.db", tmp_path / "old.db"]
    with closing(sqlite3.connect(paths[-1])) as connection:
        connection.executescript(VERSION_1)

    async def touch(path: Path) -> None:
        async with await SqliteJournal.open(path):
            pass

    for path in paths:
        asyncio.run(touch(path))
        asyncio.run(touch(path))
    identities: list[bytes | None] = []
    for path in paths:
        with closing(sqlite3.connect(path)) as connection:
            identities.append(meta(connection, IDENTITY, where="here"))
            assert meta(connection, "clock/none", where="here") is None
            connection.execute("UPDATE meta SET value = CAST('0' AS BLOB)")
            with pytest.raises(JournalError, match=r"journal here: .*'identity' is damaged"):
                meta(connection, IDENTITY, where="here")
    assert len(set(identities)) == len(paths)
    assert None not in identities
    assert [told_of(path, "PRAGMA auto_vacuum")[0][0] for path in paths] == [2, 2, 0]


def test_what_an_older_process_writes_bears_no_checksum(tmp_path: Path) -> None:
    """It leaves `head` alone, which fits no more: so it is taken away, in that process, too."""
    path = tmp_path / "journal.db"
    with closing(sqlite3.connect(path)) as older:
        older.executescript(VERSION_1)

        async def newer() -> None:
            async with await SqliteJournal.open(path):
                pass

        asyncio.run(newer())
        older.execute("UPDATE runs SET head = 7")
        older.execute("UPDATE runs SET head = 8, sequence = 3")
        assert older.execute("SELECT head FROM runs").fetchone() == (8,)
        older.execute("UPDATE runs SET owned_until = 5.0 WHERE owner = 'host:1'")
        assert older.execute("SELECT head FROM runs").fetchone() == (None,)
