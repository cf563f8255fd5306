"""Files of older versions, written as those wrote them."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from turnlock.models.codec import to_json
from turnlock.models.fact import Fact
from turnlock.models.values import Json, canonical
from turnlock.runtime.journal.rows import checksum, row_of
from turnlock.runtime.journal.sqlite_schema import APPLICATION_ID, MIGRATIONS

from .stage import RUN

VERSION: Final = 3
"""The last version whose notes had names alone."""


def written_by_older(
    path: Path, batches: Sequence[Sequence[Fact]], notes: Mapping[str, Json] | None = None
) -> None:
    """Make a file of version 3 with one run, its facts by the append, and its notes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA journal_mode = WAL")
        for steps in MIGRATIONS[:VERSION]:
            for step in steps:
                if isinstance(step, str):
                    connection.execute(step)
                else:
                    step(connection)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        content = to_json(RUN)
        connection.execute(
            "INSERT INTO runs (run_id, run, checksum) VALUES (?, ?, ?)",
            (RUN.run_id, content, checksum(content, RUN.run_id)),
        )
        for batch in batches:
            append_as_older(connection, batch)
        for name, value in (notes or {}).items():
            note_as_older(connection, name, value)


def append_as_older(connection: sqlite3.Connection, batch: Sequence[Fact]) -> None:
    """Append as a process of version 3 does."""
    row = row_of(RUN.run_id, batch)
    connection.execute(
        "INSERT INTO appends (run, first, last, facts, checksum) VALUES (1, ?, ?, ?, ?)",
        (row.first, row.last, row.facts, row.checksum),
    )
    connection.execute("UPDATE runs SET sequence = ?, busy = 1 WHERE number = 1", (row.last,))


def note_as_older(connection: sqlite3.Connection, name: str, value: Json) -> bool:
    """Keep a note as a process of version 3 does; False is its CONFLICT."""
    content = canonical(value).encode()
    connection.execute(
        "INSERT OR IGNORE INTO notes (run, name, value, checksum) VALUES (1, ?, ?, ?)",
        (name, content, checksum(content, RUN.run_id, name)),
    )
    kept = connection.execute(
        "SELECT value FROM notes WHERE run = 1 AND name = ?", (name,)
    ).fetchone()
    return bool(kept[0] == content)


def notes_as_older(connection: sqlite3.Connection) -> dict[str, bytes | None]:
    """Read the notes as a process of version 3 does; None where it takes one for damaged."""
    rows = connection.execute(
        "SELECT name, value, checksum FROM notes WHERE run = 1 ORDER BY number"
    )
    return {
        name: content if checksum(content, RUN.run_id, name) == kept else None
        for name, content, kept in rows
    }
