"""The tables of the SQLite journal, and how a file of an older version becomes one of this.

One row of `appends` holds the facts of one append as lines of JSON: a row for each fact took 1.7
times as long to write in batches of 100 (measured: 6.8 and 4.0 µs a fact, with the disk).
`sequence` in `runs` says where a run ends, so that rows lost from the end are missed too. `epoch`
is the fencing token of the run's owner: the column keeps its first name, so that the version before
can read the file. `checksum` is CRC-32 (see `rows`); the flags of a run, which change with every
lease, have none.
"""

from __future__ import annotations

import sqlite3
from typing import Final

APPLICATION_ID: Final = 0x74726E6C
"""Stands in the header of each journal ("trnl"); ``file`` and we tell by it whose file it is."""

_TABLES: Final = (
    """CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        run_id TEXT NOT NULL UNIQUE,
        run BLOB NOT NULL,
        checksum INTEGER NOT NULL,
        sequence INTEGER NOT NULL DEFAULT 0,
        busy INTEGER NOT NULL DEFAULT 0,
        epoch INTEGER NOT NULL DEFAULT 0,
        owner TEXT,
        owned_until REAL
    )""",
    "CREATE INDEX runs_of_owner ON runs (owner) WHERE owner IS NOT NULL",
    """CREATE TABLE appends (
        run INTEGER NOT NULL REFERENCES runs (number),
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        facts BLOB NOT NULL,
        checksum INTEGER NOT NULL,
        UNIQUE (run, last)
    )""",
    """CREATE TABLE snapshots (
        run INTEGER PRIMARY KEY REFERENCES runs (number),
        sequence INTEGER NOT NULL,
        snapshot BLOB NOT NULL,
        checksum INTEGER NOT NULL
    )""",
    """CREATE TABLE posts (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        run INTEGER NOT NULL REFERENCES runs (number),
        delivery BLOB NOT NULL,
        receipt BLOB
    )""",
    "CREATE INDEX posts_waiting ON posts (run) WHERE receipt IS NULL",
)

_NOTES: Final = (
    """CREATE TABLE notes (
        number INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (number),
        name TEXT NOT NULL,
        value BLOB NOT NULL,
        checksum INTEGER NOT NULL,
        UNIQUE (run, name)
    )""",
)

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (_TABLES, _NOTES)
"""The statements that lead from version n (PRAGMA user_version) to n + 1; 0 is an empty file."""


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of the file's tables."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def migrate(connection: sqlite3.Connection) -> None:
    """Bring an older file up to date: wholly, or it stays as it was."""
    if version_of(connection) >= len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been quicker, so the version is asked for again.
        for statements in MIGRATIONS[version_of(connection) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
