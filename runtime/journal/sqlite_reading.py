"""A SQLite journal that is only read: nothing is made, migrated or locked, and nothing is left.

Who writes keeps nobody from reading (WAL). How the file is opened depends on what lies there:

- without a -wal, or with an empty one, nothing is written at the moment: the main file is all there
  is. It is read as it stands (`immutable`), also where neither file nor folder may be written.
  Whether it is still so is looked at before and after each read, which is else made again.
- with a -wal it is opened like any database, without the right to write.
- with a -wal where SQLite may not make the -shm that it needs, nobody else can have the file open
  either: file and -wal are copied into a folder of our own, and read there.

A file of an older version is shown with the columns and tables that it lacks, all of them empty.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

import attrs

from ..errors import JournalError, JournalReplaced
from . import sqlite_schema as schema
from .rows import STRANGE
from .sqlite_file import (
    acquaint,
    check_file,
    check_place,
    check_schema,
    failed,
    strange,
)
from .sqlite_guard import beside, check_wal
from .sqlite_worker import Outcome, Work, reading

TRIES: Final = 5
"""Times that a read is made anew because the file was written meanwhile."""

_Stamp: TypeAlias = tuple[int, int, int, int]
"""Device, inode, size and time of the last change."""

_UNMADE: Final = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}


@attrs.frozen
class _State:
    """What there is on the disk: of the -wal only one that holds something."""

    main: _Stamp
    wal: _Stamp | None


class ReadOnly:
    """The connection of a journal that is only read; a thread's own, see `Worker`."""

    def __init__(self, path: Path, *, busy_timeout: float) -> None:
        """Open nothing yet."""
        self._path: Final = path
        self._real: Final = path.resolve()
        self._busy_timeout = busy_timeout
        self._read: Final = reading(str(path))
        self._connection: sqlite3.Connection | None = None
        self._state: _State | None = None
        """What must not have changed for what was read to count; None: SQLite sees to that."""
        self._copy: TemporaryDirectory[str] | None = None
        self._shown: int | None = None
        """Of an older file, which is shown as one of today: what it counted changes up to then."""

    def connect(self) -> sqlite3.Connection:
        """Open the file. Raises `JournalError`, and `NoJournal` where there is none."""
        try:
            check_place(self._path, create=False)
            return self._current()
        except sqlite3.Error as error:
            raise failed(str(self._path), error) from error
        except STRANGE as error:
            raise strange(str(self._path), error) from error
        except OSError as error:
            raise _unreadable(self._path, error) from error

    def perform(self, _given: sqlite3.Connection, works: Sequence[Work]) -> Sequence[Outcome]:
        """Do each work for itself, on the file as it is now."""
        error: JournalError
        try:
            for _ in range(TRIES):
                outcomes = self._read(self._current(), works)
                if not self._has_changed():
                    return outcomes
            error = JournalError(f"journal {self._path}: it is written all the time; try again")
        except sqlite3.Error as why:
            error = failed(str(self._path), why)
        except STRANGE as why:
            error = strange(str(self._path), why)
        except FileNotFoundError:
            error = JournalReplaced(f"journal {self._path}: it was removed; put it back")
        except OSError as why:
            error = _unreadable(self._path, why)
        except JournalError as why:
            error = why
        return [Outcome(error=error) for _ in works]

    def close(self) -> None:
        """Let the file go."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def _current(self) -> sqlite3.Connection:
        """Return a connection to the file as it is now."""
        known = self._connection
        if known is not None and not self._has_changed() and self._shows(known):
            return known
        self.close()
        try:
            return self._opened()
        except BaseException:
            self.close()
            raise

    def _shows(self, known: sqlite3.Connection) -> bool:
        """Whether what it shows of an older file is what is in it."""
        return self._shown is None or self._shown == _changes(known)

    def _opened(self) -> sqlite3.Connection:
        state = self._found()
        self._state = state if state.wal is None else None
        try:
            return self._look("immutable=1" if state.wal is None else "mode=ro")
        except sqlite3.OperationalError as error:
            if state.wal is None or (error.sqlite_errorcode & 0xFF) not in _UNMADE:
                raise
        return self._look("mode=rw", path=self._copied())

    def _look(self, how: str, *, path: Path | None = None) -> sqlite3.Connection:
        """Connect, see whether it is a journal of ours, and have it look like one of today."""
        connection = self._connection = sqlite3.connect(
            f"{(path or self._real).as_uri()}?{how}",
            uri=True,
            timeout=self._busy_timeout,
            isolation_level=None,
        )
        acquaint(connection)
        check_file(self._path, connection)
        if self._state is None:
            check_wal(self._path, connection)
        check_schema(self._path, connection)
        older = schema.show_as_newest(connection)
        self._shown = _changes(connection) if older else None
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _copied(self) -> Path:
        self.close()
        self._copy = TemporaryDirectory(prefix="turnlock-")
        copy = Path(self._copy.name, "journal.db")
        for _ in range(TRIES):
            self._state = self._found()
            for end in ("", "-wal"):
                shutil.copyfile(beside(self._real, end), beside(copy, end))
            if not self._has_changed():
                break
        return copy

    def _has_changed(self) -> bool:
        return self._state is not None and self._found() != self._state

    def _found(self) -> _State:
        main = self._real.stat()
        try:
            wal = beside(self._real, "-wal").stat()
        except FileNotFoundError:
            wal = None
        return _State(_stamp(main), None if wal is None or not wal.st_size else _stamp(wal))


def _changes(connection: sqlite3.Connection) -> int:
    """Return a number that is another once somebody else has written the file."""
    number: int = connection.execute("PRAGMA main.data_version").fetchone()[0]
    return number


def _stamp(found: os.stat_result) -> _Stamp:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _unreadable(path: Path, error: OSError) -> JournalError:
    return JournalError(
        f"journal {path}: it cannot be read ({error.strerror}); give this user the right to read"
        " the file, its -wal and their folder"
    )
