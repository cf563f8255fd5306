"""Where runs and logs of a SQLite journal end, kept beside the -wal, so that a lost tail shows.

A flipped bit in the -wal looks to SQLite like the torn end of a crash: what was committed after it
is dropped without a word. So each commit that has kept facts is followed by a line for each of its
runs in a file of its own, `PATH-heads` (see `sqlite_head_lines`). Nothing waits for the disk: after
a kill the lines are there, after a power cut there may be fewer.

Whoever opens the journal compares (`sqlite_lost_tails`). What was acknowledged and is not there
marks its run as rewound; of a log it is only told, until it is as long again: nobody owns a log,
and what was said in it may be said again.
The -wal is merged into the file by the thread that writes, when nothing is asked of it, and by size
and by time while it is busy (`rest`). The lines stay then, and after a close: an older copy that is
put in the place of the file ends before them. Once they are many, the newest of each run are kept,
of the runs that were written last.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..log import logger
from .sqlite_file import PRIVATE, failed, sync_folder
from .sqlite_guard import Guard, beside
from .sqlite_head_lines import (
    HEADS,
    Noted,
    heads_in,
    identity_of,
    is_log,
    line_of,
    log_name,
    rest_of,
)
from .sqlite_lost_tails import measured
from .sqlite_runs import mark_lost, mark_rewound

MERGE_IDLE: Final = 0.5
"""Seconds without a write after which the -wal is merged into the file."""
MERGE_EVERY: Final = 5.0
"""Seconds after which it is merged however much is written."""
MERGE_BYTES: Final = 16_000_000
"""Bytes of the -wal from which on it is merged at once; SQLite begins by itself at 4 MB, and never
cuts the file while there is always somebody who reads."""
WARN_BYTES: Final = 64_000_000
"""Bytes of the -wal from which on a reader that is in the way is told of, once."""
HEADS_BYTES: Final = 4_000_000
"""Bytes of lines from which on only the last of each run is kept, where nothing can be merged."""
KEPT_BYTES: Final = 500_000
"""Bytes of lines from which on, after a merge, only the last of the runs written last are kept, in
half as many bytes, and of the logs in a quarter."""
KEPT_RUNS: Final = 1_000
"""Of how many runs at most, and of how many logs."""
MERGE_PAUSE: Final = 1.0
"""Seconds until it is tried again where somebody's reading was in the way."""
MERGE_WAIT: Final = 0.025
"""Seconds for which readers are waited for, during which nobody writes."""

_log = logger(__name__)


class Heads:
    """The heads of one journal, as its writing thread keeps them."""

    def __init__(self, path: Path, *, guard: Guard | None = None) -> None:
        """Prepare; nothing is read or written before `begin`.

        Where the `guard` finds another file at the path, nothing there is touched; without one
        nothing is ever written.
        """
        self._guard: Final = guard
        self._path: Final = path.resolve()
        self._file: Final = beside(self._path, HEADS)
        self._identity: bytes | None = None
        self._noted: dict[str, Noted] = {}
        self._handle: int | None = None
        self._complained = False
        self._warned = False
        self._dirty_since: float | None = None
        self._written = 0.0
        self._not_before = 0.0
        self._settled: frozenset[str] = frozenset()
        """Runs that were marked, whose lines have said what they had to."""
        self._damaged = False
        """Whether lines were damaged."""

    def begin(self, connection: sqlite3.Connection) -> None:
        """Mark the runs of which something is lost that was acknowledged, and say so.

        Raises `JournalError`, and has closed the connection then.
        """
        try:
            self._begin(connection)
        except BaseException as error:
            self.close(connection)
            if isinstance(error, sqlite3.Error):
                raise failed(str(self._path), error) from error
            raise

    def _begin(self, connection: sqlite3.Connection) -> None:
        self._identity = identity_of(connection, self._path)
        self._written = self._dirty_since = time.monotonic()
        lost, damaged = measured(connection, self._path)
        self._damaged = damaged > 0
        if not lost:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            known = {run_id for (run_id,) in connection.execute("SELECT run_id FROM runs")}
            for run_id, why in lost.items():
                if is_log(run_id):
                    _log.error("journal %s: log %r: %s", self._path, log_name(run_id), why)
                    continue
                _log.error("journal %s: run %r: %s", self._path, run_id, why)
                mark = mark_rewound if run_id in known else mark_lost
                mark(connection, run_id, why=why)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._settled = frozenset(it for it in lost if not is_log(it))
        self.merge(connection)

    def note(self, run_id: str, head: Noted) -> None:
        """Note where a run ends once the transaction that is open is committed."""
        self._noted[run_id] = head

    def dropped(self) -> None:
        """Forget what was noted: the transaction was rolled back."""
        self._noted.clear()

    def kept(self) -> None:
        """Write what was noted: it is committed. A file that cannot be written stops nobody."""
        self._written = time.monotonic()
        if self._dirty_since is None:
            self._dirty_since = self._written
        if not self._noted or self._identity is None:
            return
        recovered = any(it.exact for it in self._noted.values())
        text = b"".join(line_of(self._identity, run_id, it) for run_id, it in self._noted.items())
        self._noted.clear()
        try:
            self._append(text)
            if recovered and self._handle is not None:
                os.fsync(self._handle)  # what it takes back may be on the disk already
            self._complained = False
        except OSError as error:
            self._close()
            if not self._complained:
                self._complained = True
                _log.warning(
                    "%s cannot be written (%s): a lost end of the journal would not be noticed",
                    self._file,
                    error,
                )

    def rest(self, connection: sqlite3.Connection) -> float | None:
        """Merge the -wal if it is time for that; return the seconds after which to ask again."""
        if self._dirty_since is None:
            return None
        now = time.monotonic()
        due = min(self._written + MERGE_IDLE, self._dirty_since + MERGE_EVERY)
        if _size(beside(self._path, "-wal")) >= MERGE_BYTES:
            due = now
        due = max(due, self._not_before)
        if now < due:
            return due - now
        if self.merge(connection):
            self._dirty_since = None
            self._warned = False
            return None
        self._not_before = now + MERGE_PAUSE
        wal = _size(beside(self._path, "-wal"))
        if wal >= WARN_BYTES and not self._warned:
            self._warned = True
            _log.warning("%s-wal has %d bytes: somebody reads it without an end", self._path, wal)
        if _size(self._file) >= HEADS_BYTES:
            with suppress(sqlite3.Error, OSError):
                self._shorten(connection)
        return MERGE_PAUSE

    def close(self, connection: sqlite3.Connection) -> None:
        """Merge what there is, and let the file and the connection go."""
        try:
            if self._dirty_since is not None:
                self.merge(connection)
            self._close()
        finally:
            if self._guard is None:
                connection.close()
            else:
                self._guard.close(connection)

    def _append(self, text: bytes) -> None:
        """Append in one write: others do, too. Opened anew where it was replaced meanwhile."""
        while True:
            if self._handle is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                self._handle = os.open(self._file, flags, PRIVATE)
                os.fchmod(self._handle, PRIVATE)  # whatever the umask
            _write(self._handle, text)
            if os.fstat(self._handle).st_nlink:
                return
            self._close()

    def _close(self) -> None:
        if self._handle is not None:
            handle, self._handle = self._handle, None
            with suppress(OSError):
                os.close(handle)

    def merge(self, connection: sqlite3.Connection) -> bool:
        """Merge the -wal into the file, and cut it; say whether that was done.

        Whoever reads is hardly waited for. Then all that the lines speak of is in the file, and
        where they are many, or not needed any more, few are kept.
        """
        if self._guard is None or self._guard.explains(connection) is not None:
            return False
        try:
            (usual,) = connection.execute("PRAGMA busy_timeout").fetchone()
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * MERGE_WAIT)}")
            try:
                busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                if busy:
                    return False
                if self._settled or self._damaged or _size(self._file) >= KEPT_BYTES:
                    with suppress(sqlite3.Error, OSError):
                        self._shorten(connection, merged=True)
            finally:
                connection.execute(f"PRAGMA busy_timeout = {usual}")
        except sqlite3.Error:
            return False
        return True

    def _shorten(self, connection: sqlite3.Connection, *, merged: bool = False) -> None:
        """Keep only the last line of each run, if all is `merged` of those written last.

        Under the lock for writing, so one process at a time. Who writes a line to the old file
        before that loses its name has it written to the new one; who does later sees it himself.
        """
        identity = self._identity
        if identity is None:
            return
        draft = beside(self._path, f"{HEADS}.new")
        connection.execute("BEGIN IMMEDIATE")
        try:
            if merged and _size(beside(self._path, "-wal")):
                return  # somebody has written meanwhile
            old = os.open(self._file, os.O_RDONLY)
            try:
                found, _ = heads_in(rest_of(old), identity)
                settled = self._settled if merged else frozenset[str]()
                heads = {run_id: it for run_id, it in found.items() if run_id not in settled}
                new = os.open(draft, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, PRIVATE)
                try:
                    os.fchmod(new, PRIVATE)
                    lines = {key: line_of(identity, key, it) for key, it in heads.items()}
                    _write(new, b"".join(_newest(lines) if merged else lines.values()))
                    os.fsync(new)
                    os.replace(draft, self._file)  # noqa: PTH105 - as all that is done to it
                    _write(new, rest_of(old))
                    sync_folder(self._path.parent)
                finally:
                    os.close(new)
            finally:
                os.close(old)
        except FileNotFoundError:
            return  # there is none
        finally:
            with suppress(OSError):
                os.unlink(draft)  # noqa: PTH108 - there only if something failed
            connection.execute("ROLLBACK")
        if merged:
            self._settled, self._damaged = frozenset(), False


def _newest(lines: Mapping[str, bytes]) -> list[bytes]:
    """Return as many of the last lines as are kept after a merge; logs take no room from runs."""
    runs = [line for key, line in lines.items() if not is_log(key)]
    logs = [line for key, line in lines.items() if is_log(key)]
    return [*_last(runs, KEPT_BYTES // 2), *_last(logs, KEPT_BYTES // 4)]


def _last(lines: Sequence[bytes], most: float) -> list[bytes]:
    newest: list[bytes] = []
    size = 0
    for line in reversed(lines[-KEPT_RUNS:]):
        size += len(line)
        if size > most:
            break
        newest.append(line)
    return newest[::-1]


def _write(handle: int, text: bytes) -> None:
    """Write all of it at once. Raises `OSError`; then a part of it may stand there, torn."""
    if os.write(handle, text) != len(text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return 0
