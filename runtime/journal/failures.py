"""What SQLite can complain about, told with its cause, its place and its fix."""

from __future__ import annotations

import sqlite3
from typing import Final

from ..errors import JournalError

_PRIMARY: Final = 0xFF
"""The bits of an error code that name its kind; those above say more exactly where."""

_TOLD: Final = {
    sqlite3.SQLITE_FULL: ("the disk is full", "free space, then try again"),
    sqlite3.SQLITE_BUSY: (
        "another process holds its lock",
        "let that process end what it does, then try again",
    ),
    sqlite3.SQLITE_READONLY: (
        "it cannot be written",
        "give this user the right to write the file and its folder",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened",
        "see that the folder exists and this user may write there",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "the file is damaged",
        "keep it and its -wal file as they are, and restore them from a copy",
    ),
    sqlite3.SQLITE_NOTADB: (
        "the file is no SQLite database, or its beginning is damaged",
        "give the path of a journal, or restore it from a copy",
    ),
    sqlite3.SQLITE_IOERR: (
        "the disk failed",
        "see to the disk, and copy the file with its -wal before anything else",
    ),
    sqlite3.SQLITE_TOOBIG: ("a value is too large for SQLite", "append less at once"),
    sqlite3.SQLITE_NOMEM: ("memory is short", "ask for less at once"),
}


def failed(path: str, error: sqlite3.Error, *, settled: bool = True) -> JournalError:
    """Return the error to raise for one of SQLite's; `settled` says that nothing was kept."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY
    cause, fix = _TOLD.get(code, ("SQLite refused", "see what it says"))
    doubt = "" if settled else "; whether the last write was kept is not known: read it again"
    return JournalError(f"journal {path}: {cause} ({error}); {fix}{doubt}")
