"""The room of a SQLite journal's file: what was removed leaves free pages, and they are given back.

A file that we made gives pages back in portions, each a transaction of its own, so that others
write in between. One of version 0.1 has no such order: its free pages stay in it, and are used
again, until somebody makes a VACUUM (docs/operations.md).
"""

from __future__ import annotations

import sqlite3
from typing import Final

PORTION: Final = 256
"""Pages of 4 kB that are given back in one transaction: some milliseconds."""


def give_back(connection: sqlite3.Connection) -> bool:
    """Give a portion back to the file system; say whether there may be more."""
    before = _free(connection)
    for _ in range(min(before, PORTION)):  # one by one: the module sqlite3 stops behind the first
        connection.execute("PRAGMA incremental_vacuum(1)")
    return 0 < _free(connection) < before


def merge(connection: sqlite3.Connection) -> None:
    """Bring the -wal into the file, which is cut by that; as far as nobody reads or writes it."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _free(connection: sqlite3.Connection) -> int:
    count: int = connection.execute("PRAGMA freelist_count").fetchone()[0]
    return count
