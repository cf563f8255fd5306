"""The tables of a SQLite journal, and what leads from each version of them to the next.

`sequence` in `runs` says where a run ends, so that rows lost from the end are missed too. `epoch`
is the fencing token of the run's owner: the column keeps its first name, so that no file has to be
migrated for a word.

A process of an older version may go on writing a file that a newer one has brought up to date
under it: it leaves the columns alone that it does not know. So a new column counts only for the
sequence that it names (`digested`, `told`), and a checksum that is NULL was left out by an older
process and says nothing.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from itertools import chain
from typing import Final, TypeAlias

import attrs

from .rows import checksum, damaged
from .sqlite_named import drop_named, place_named

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

_HARDENED: Final = (
    """CREATE TABLE meta (
        name TEXT PRIMARY KEY,
        value BLOB NOT NULL,
        checksum INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "ALTER TABLE runs ADD COLUMN head INTEGER",
    "ALTER TABLE runs ADD COLUMN digest BLOB",
    "ALTER TABLE runs ADD COLUMN digested INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN began REAL",
    "ALTER TABLE runs ADD COLUMN changed REAL",
    "ALTER TABLE runs ADD COLUMN status TEXT",
    "ALTER TABLE runs ADD COLUMN waiting INTEGER",
    "ALTER TABLE runs ADD COLUMN doubts INTEGER",
    "ALTER TABLE runs ADD COLUMN trouble TEXT",
    "ALTER TABLE runs ADD COLUMN told INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE runs ADD COLUMN rewound TEXT",
    "ALTER TABLE runs ADD COLUMN forgotten REAL",
    "ALTER TABLE posts ADD COLUMN checksum INTEGER",
    "ALTER TABLE posts ADD COLUMN receipt_checksum INTEGER",
    "ALTER TABLE posts ADD COLUMN problem TEXT",
    # Whoever knows `head` writes it with these columns; who does not, an older process, takes it
    # away, and so says that there is none. It runs in that process, too.
    """CREATE TRIGGER runs_written_by_older
        AFTER UPDATE OF sequence, busy, epoch, owner, owned_until ON runs
        WHEN NEW.head IS NOT NULL AND NEW.head = OLD.head
        BEGIN UPDATE runs SET head = NULL WHERE number = NEW.number; END""",
)


_LEDGER: Final = (
    """CREATE TABLE noted (
        number INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (number),
        sequence INTEGER NOT NULL,
        part INTEGER NOT NULL,
        at REAL NOT NULL,
        domain TEXT NOT NULL,
        id TEXT,
        named INTEGER NOT NULL DEFAULT 0,
        pruned INTEGER,
        checksum INTEGER NOT NULL,
        correlation BLOB,
        content BLOB NOT NULL,
        UNIQUE (run, sequence, part),
        UNIQUE (run, id)
    )""",
    place_named,
    drop_named,
    # An older process that has the file open goes on with its notes. Of those that are not its own
    # it is told that they are damaged: it would take an earlier conversation for the whole.
    """CREATE VIEW notes AS
        SELECT number, run, coalesce(id, '') AS name, content AS value,
            CASE named WHEN 1 THEN checksum ELSE -1 END AS checksum
        FROM noted WHERE pruned IS NULL""",
    """CREATE TRIGGER notes_written_by_older INSTEAD OF INSERT ON notes BEGIN
        INSERT INTO noted (run, sequence, part, at, domain, id, named, checksum, content)
        SELECT NEW.run, sequence,
            1 + coalesce((SELECT coalesce(pruned, part) FROM noted
                WHERE run = NEW.run AND noted.sequence = runs.sequence
                ORDER BY part DESC LIMIT 1), 0),
            (julianday('now') - 2440587.5) * 86400.0,
            CASE WHEN NEW.name GLOB 'said/*' OR NEW.name GLOB 'part/*'
                    OR NEW.name GLOB 'stopped/*' THEN 'message'
                WHEN NEW.name GLOB 'question/*' OR NEW.name GLOB 'reply/*' THEN 'approval'
                ELSE 'thread' END,
            NEW.name, 1, NEW.checksum, NEW.value
        FROM runs WHERE number = NEW.run; END""",
    """CREATE TRIGGER notes_removed_by_older INSTEAD OF DELETE ON notes BEGIN
        DELETE FROM noted WHERE number = OLD.number; END""",
    """CREATE TRIGGER noted_of_forgotten AFTER UPDATE OF forgotten ON runs
        WHEN NEW.forgotten IS NOT NULL BEGIN
        DELETE FROM noted WHERE run = NEW.number; END""",
    """CREATE TABLE workers (
        worker TEXT PRIMARY KEY,
        meaning TEXT NOT NULL,
        checksum INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "ALTER TABLE appends ADD COLUMN beside BLOB",
    "ALTER TABLE runs ADD COLUMN turn_id TEXT",
    "ALTER TABLE runs ADD COLUMN asked_id TEXT",
    "ALTER TABLE runs ADD COLUMN asked_tool TEXT",
    "ALTER TABLE runs ADD COLUMN asked_since REAL",
)


_LOGS: Final = (
    """CREATE TABLE logs (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        last INTEGER NOT NULL,
        checksum INTEGER NOT NULL
    )""",
    """CREATE TABLE entries (
        log INTEGER NOT NULL REFERENCES logs (number),
        number INTEGER NOT NULL,
        entry_id TEXT NOT NULL,
        at REAL NOT NULL,
        body BLOB NOT NULL,
        checksum INTEGER NOT NULL,
        PRIMARY KEY (log, number),
        UNIQUE (log, entry_id)
    )""",
)


def identify(connection: sqlite3.Connection) -> None:
    """Give the file a name of its own: a copy is told from it by that."""
    keep_meta(connection, IDENTITY, secrets.token_hex(16).encode())


Step: TypeAlias = str | Callable[[sqlite3.Connection], None]

MIGRATIONS: Final[tuple[tuple[Step, ...], ...]] = (
    _TABLES,
    _NOTES,
    (*_HARDENED, identify),
    _LEDGER,
    _LOGS,
)
"""The steps that lead from version n (PRAGMA user_version) to n + 1; 0 is an empty file."""


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
        for step in chain.from_iterable(MIGRATIONS[version_of(connection) :]):
            if isinstance(step, str):
                connection.execute(step)
            else:
                step(connection)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def show_as_newest(connection: sqlite3.Connection) -> bool:
    """Let an older file, which is only read, seem to have today's tables and columns, empty ones.

    They are of this connection alone: temporary names go before those of the file. Its notes are
    copied, as they are now. Says whether it is an older one.
    """
    if version_of(connection) >= len(MIGRATIONS):
        return False
    connection.execute("PRAGMA temp_store = MEMORY")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as newest:
        migrate(newest)
        tables = newest.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        for table, sql in tables:
            known = _columns(connection, table)
            missing = {
                name: default
                for name, default in _columns(newest, table).items()
                if name not in known
            }
            if not known:
                connection.execute(sql.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
            elif missing:
                added = ", ".join(f"{default or 'NULL'} AS {it}" for it, default in missing.items())
                connection.execute(
                    f"CREATE TEMP VIEW {table} AS SELECT *, {added} FROM main.{table}"  # noqa: S608 - ours
                )

    if _columns(connection, "notes"):
        place_named(connection)
    return True


def _columns(connection: sqlite3.Connection, table: str) -> dict[str, str | None]:
    """Return the columns of a table with their defaults; none where there is no such table."""
    return {row[1]: row[4] for row in connection.execute(f"PRAGMA main.table_info({table})")}


IDENTITY: Final = "identity"
"""In `meta`: what tells this file from each other one, also from one restored from its copy."""


def keep_meta(connection: sqlite3.Connection, name: str, value: bytes) -> None:
    """Keep what belongs to the file as a whole, instead of what had this name."""
    connection.execute(
        "INSERT OR REPLACE INTO meta (name, value, checksum) VALUES (?, ?, ?)",
        (name, value, checksum(value, name)),
    )


def meta(connection: sqlite3.Connection, name: str, *, where: str) -> bytes | None:
    """Return what is kept under a name, None where nothing is.

    Raises `JournalError` where it is damaged; `where` says which file it is.
    """
    row = connection.execute("SELECT value, checksum FROM meta WHERE name = ?", (name,)).fetchone()
    if row is None:
        return None
    if checksum(row[0], name) != row[1]:
        raise damaged(where, f"what it keeps as {name!r}", "the checksum does not fit")
    value: bytes = row[0]
    return value


def lacking(connection: sqlite3.Connection) -> list[str]:
    """Return the columns that statements need and that are not there: the schema is damaged."""
    return sorted(_declared().columns - _columns_of(connection))


def differing(connection: sqlite3.Connection) -> list[str]:
    """Return the tables, indices and triggers that are not declared as they were made."""
    found = _texts_of(connection)
    return [name for name, text in _declared().texts.items() if found.get(name) != text]


@attrs.frozen
class _Declared:
    texts: dict[str, str]
    columns: frozenset[str]


@cache
def _declared() -> _Declared:
    """Return what a new file has."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        migrate(fresh)
        return _Declared(_texts_of(fresh), _columns_of(fresh))


def _texts_of(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the text that declares each table, index and trigger, on one line."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {str(name): " ".join(str(text).split()) for name, text in rows}


def _columns_of(connection: sqlite3.Connection) -> frozenset[str]:
    rows = connection.execute(
        "SELECT sqlite_master.name, columns.name"
        " FROM sqlite_master, pragma_table_info(sqlite_master.name) AS columns"
        " WHERE sqlite_master.type = 'table'"
    )
    return frozenset(f"{table}.{column}" for table, column in rows)
