"""Where runs and logs of a SQLite journal end, kept beside the -wal, so that a lost tail shows.

A flipped bit in the -wal looks to SQLite like the torn end of a crash: what was committed after it
is dropped without a word. So each commit that has kept facts is followed by a line for each of its
runs in a file of its own, `PATH-heads`: where the run ends, and the digest of all its facts (see
`chained`). A line counts only if its checksum fits, so a torn one harms nobody; it bears the
identity of the journal, so that a copy or a restored file is not measured by the lines of another.
Nothing waits for the disk: after a kill the lines are there, after a power cut there may be fewer.

Whoever opens the journal compares. What was acknowledged and is not there marks its run as rewound;
of a log it is only told, until it is as long again: nobody owns a log, and what was said in it may
be said again.
The -wal is merged into the file by the thread that writes, when nothing is asked of it, and by size
and by time while it is busy (`rest`). The lines stay then, and after a close: an older copy that is
put in the place of the file ends before them. Once they are many, the newest of each run are kept,
of the runs that were written last.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

import attrs

from ..errors import JournalError
from ..log import logger
from .rows import Row, chained
from .sqlite_file import PRIVATE, failed, sync_folder
from .sqlite_guard import Guard, beside
from .sqlite_runs import mark_lost, mark_rewound
from .sqlite_schema import IDENTITY, meta

HEADS: Final = "-heads"
"""What the name of the file ends in."""

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

_IDENTITY: Final = 16
"""Characters of the identity that each line bears."""

_log = logger(__name__)


@attrs.frozen(kw_only=True)
class Noted:
    """Where a run was said to end. `digest` is None where it is not known."""

    sequence: int
    digest: bytes | None = None
    exact: bool = False
    """Whether it ends there whatever was said before: it was recovered."""


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
        self._identity = _identity_of(connection, self._path)
        self._written = self._dirty_since = time.monotonic()
        lost, damaged = _measured(connection, self._path)
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
                found, _ = _heads_in(_rest_of(old), identity)
                settled = self._settled if merged else frozenset[str]()
                heads = {run_id: it for run_id, it in found.items() if run_id not in settled}
                new = os.open(draft, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, PRIVATE)
                try:
                    os.fchmod(new, PRIVATE)
                    lines = {key: line_of(identity, key, it) for key, it in heads.items()}
                    _write(new, b"".join(_newest(lines) if merged else lines.values()))
                    os.fsync(new)
                    os.replace(draft, self._file)  # noqa: PTH105 - as all that is done to it
                    _write(new, _rest_of(old))
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


_json: Final = lru_cache(maxsize=4_096)(json.dumps)


def line_of(identity: bytes, run_id: str, head: Noted) -> bytes:
    """Return a line; it begins with a line break, in case that the one before is torn."""
    digest = "" if head.digest is None else head.digest.hex()
    name = identity[:_IDENTITY].decode()
    text = f'["{name}",{_json(run_id)},{head.sequence},"{digest}",{int(head.exact)}]'.encode()
    return b"\n%08x %s" % (zlib.crc32(text), text)


def read_heads(path: Path, identity: bytes) -> tuple[dict[str, Noted], int]:
    """Return where each run was said to end last, and how many lines are damaged."""
    try:
        handle = os.open(beside(path, HEADS), os.O_RDONLY)
    except OSError:
        return {}, 0  # there is none, or it is somebody else's
    try:
        return _heads_in(_rest_of(handle), identity)
    finally:
        os.close(handle)


def _rest_of(handle: int) -> bytes:
    return b"".join(iter(lambda: os.read(handle, 1 << 20), b""))


def _heads_in(content: bytes, identity: bytes) -> tuple[dict[str, Noted], int]:
    """Return the heads, that of the run that was written last at the end, as `read_heads`."""
    heads: dict[str, Noted] = {}
    damaged = 0
    for line in filter(None, content.split(b"\n")):
        read = _read(line)
        if read is None:
            damaged += 1
            continue
        name, run_id, head = read
        if name != identity[:_IDENTITY].decode():
            continue  # of another journal, which lay here before
        known = heads.pop(run_id, None)
        holds = known is not None and not head.exact and known.sequence > head.sequence
        heads[run_id] = known if known is not None and holds else head
    return heads, damaged


def _read(line: bytes) -> tuple[str, str, Noted] | None:
    kept, _, text = line.partition(b" ")
    if kept != b"%08x" % zlib.crc32(text):
        return None
    try:
        name, run_id, sequence, digest, exact = json.loads(text)
        known = bytes.fromhex(digest) or None
        return name, run_id, Noted(sequence=sequence, digest=known, exact=bool(exact))
    except (ValueError, TypeError):
        return None


def _identity_of(connection: sqlite3.Connection, path: Path) -> bytes | None:
    """Return the identity that lines bear; where it is damaged, `check` says so."""
    with suppress(JournalError):
        return meta(connection, IDENTITY, where=str(path))
    return None


def lost_tails(connection: sqlite3.Connection, path: Path) -> dict[str, str]:
    """Return the runs that end before what was acknowledged, and how that shows."""
    lost, _ = _measured(connection, path)
    return lost


def _measured(connection: sqlite3.Connection, path: Path) -> tuple[dict[str, str], int]:
    """Return the lost tails, and how many lines are damaged.

    The heads are read before the file: who writes meanwhile has committed before he said so.
    """
    identity = _identity_of(connection, path)
    if identity is None:
        return {}, 0
    heads, damaged = read_heads(path.resolve(), identity)
    if damaged:
        _log.warning("%s: %d lines are damaged, and passed over", beside(path, HEADS), damaged)
    found = ((run_id, _lost(connection, run_id, head)) for run_id, head in heads.items())
    return {run_id: why for run_id, why in found if why is not None}, damaged


_OF_LOG: Final = "\udc10"
"""Before the name of a log where runs are named, too: no id of a run holds a lone surrogate."""


def log_key(log: str) -> str:
    """Return what a log is called among the runs whose heads are noted."""
    return _OF_LOG + log


def is_log(key: str) -> bool:
    """Whether this is what a log is called, and no run."""
    return key.startswith(_OF_LOG)


def log_name(key: str) -> str:
    """Return the name of a log that is called so."""
    return key.removeprefix(_OF_LOG)


def head_of_log(number: int, checksum: int) -> Noted:
    """Return what is noted of a log's last entry."""
    return Noted(sequence=number, digest=checksum.to_bytes(_ENTRY_DIGEST, "big"))


_ENTRY_DIGEST: Final = 4


def _lost_entries(connection: sqlite3.Connection, log: str, head: Noted) -> str | None:
    row = connection.execute("SELECT number, last FROM logs WHERE name = ?", (log,)).fetchone()
    if row is None:
        return f"it had acknowledged entry {head.sequence}, and all of it is lost"
    key, last = row
    if not isinstance(last, int):  # a damaged row says so itself
        return None
    if last < head.sequence:
        return f"it had acknowledged entry {head.sequence}, and ends with entry {last}"
    found = connection.execute(
        "SELECT checksum FROM entries WHERE log = ? AND number = ?", (key, head.sequence)
    ).fetchone()
    if found is not None and found[0] != int.from_bytes(head.digest or b"", "big"):
        return f"it holds another entry {head.sequence} than was acknowledged"
    return None


def _lost(connection: sqlite3.Connection, run_id: str, head: Noted) -> str | None:
    if is_log(run_id):
        return _lost_entries(connection, log_name(run_id), head)
    row = connection.execute(
        "SELECT number, sequence, digest, digested, rewound, forgotten FROM runs WHERE run_id = ?",
        (run_id,),
    ).fetchone()
    if row is None:
        return f"it had acknowledged fact {head.sequence}, and all of it is lost"
    number, sequence, digest, digested, rewound, forgotten = row
    settled = rewound is not None or forgotten is not None
    if settled or not isinstance(sequence, int):  # a damaged row says so itself
        return None
    if sequence < head.sequence:
        return f"it had acknowledged fact {head.sequence}, and ends with fact {sequence}"
    if head.digest is not None:
        if sequence > head.sequence or digested != sequence or digest != head.digest:
            digest = _digest_at(connection, number, head)
        if digest != head.digest:
            return f"it holds other facts than those acknowledged up to fact {head.sequence}"
    return None


def _digest_at(connection: sqlite3.Connection, number: int, head: Noted) -> bytes | None:
    """Chain the digest of all facts up to a head anew; seldom needed: after a crash in between."""
    found: bytes | None = None
    rows = connection.execute(
        "SELECT first, last, facts, checksum FROM appends WHERE run = ? AND last <= ?"
        " ORDER BY last",
        (number, head.sequence),
    )
    with closing(rows):
        for kept in rows:
            row = Row(*kept)
            begun = chained(None, row)
            begins = head.digest is not None and begun[:8] == head.digest[:8]
            found = begun if begins else found and chained(found, row)
    return found
