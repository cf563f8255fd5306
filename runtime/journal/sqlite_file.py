"""The file of a SQLite journal: how it is made and opened, and what can be wrong with it.

What is not whole is never made anew. Its tables are in `sqlite_schema`, its rows in `rows`.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sqlite3
import stat
import time
from contextlib import closing
from glob import escape
from pathlib import Path
from typing import Final

from ...models.safe_text import harmless
from ..errors import JournalError, NoJournal
from ..log import logger
from . import sqlite_schema as schema
from .rows import STRANGE
from .sqlite_guard import BETWEEN, LOOKS, Guard, beside, check_wal
from .sqlite_runs import head_sum

PRIVATE: Final = 0o600
"""The mode of every file that we make: a journal holds arguments and results in clear text."""
OTHERS: Final = 0o077
"""What `PRIVATE` forbids."""

OWN_NAMES: Final = (".*.new", ".before-*")
"""Behind the name of a journal: as what it is made, and as what a restore keeps it. For a moment,
or after a crash until the next restore, the file has both; nobody opens it by that one meanwhile.
"""

_log: Final = logger(__name__)
_warned: Final[set[Path]] = set()


def open_writer(
    path: Path, *, create: bool, busy_timeout: float, guard: Guard
) -> sqlite3.Connection:
    """Open the file to write, make it where it is absent, bring it up to date, and guard it.

    Raises `JournalError` for whatever is no journal of ours.
    """
    try:
        check_place(path, create=create)
        if not path.exists():
            _make(path)
        check_names(path)
        with closing(_connect(path, mode="ro", busy_timeout=busy_timeout)) as looking:
            check_wal(path, looking)
        connection = _connect(path, mode="rw", busy_timeout=busy_timeout)
        try:
            check_file(path, connection)
            schema.migrate(connection)
            check_schema(path, connection)
            _set_up(path, connection)
            _warn_of_readers(path)
            guard.opened(connection)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise failed(str(path), error) from error
    except STRANGE as error:  # SQLite's message repeats the garbage that it has met
        raise strange(str(path), error) from error
    except OSError as error:
        raise refused(path, "opened", error) from error
    return connection


def open_reader(path: Path, *, busy_timeout: float) -> sqlite3.Connection:
    """Open a file that a writer has opened before, to read."""
    try:
        connection = _connect(path, mode="rw", busy_timeout=busy_timeout)
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        raise failed(str(path), error) from error
    return connection


def path_of(place: str) -> Path:
    """Return the file that `PATH`, `/ABSOLUTE` or `///ABSOLUTE` names. Raises `NoJournal`."""
    path = place
    if place.startswith("//"):
        host, slash, rest = place.removeprefix("//").partition("/")
        path = slash + rest
        if host or not rest:
            raise NoJournal(
                f"journal sqlite:{place}: a file is no host's; give sqlite:PATH or"
                " sqlite:///ABSOLUTE/PATH"
            )
    if not path:
        raise NoJournal("journal sqlite: names no file; give sqlite:PATH")
    return Path(path)


def check_place(path: Path, *, create: bool) -> None:
    """Raise `NoJournal` where none is, and none can be made."""

    def wrong(cause: str, fix: str) -> NoJournal:
        return NoJournal(f"journal {path}: {cause}; {fix}")

    if path.is_dir():
        raise wrong("it is a folder", "give the path of a file in it")
    if not path.parent.is_dir():
        raise wrong("its folder does not exist", "make the folder, or correct the path")
    if not path.exists():
        if not create:
            raise wrong("there is no such file", "correct the path")
        if beside(path, "-wal").exists():
            raise wrong(
                "it is gone, but its -wal file is there",
                "put both back where they were: what was written last stands in the -wal file",
            )
    elif path.stat().st_size == 0:
        raise wrong(
            "the file is empty: it was cut off, or is no journal",
            "restore it from a copy, or remove it to begin a new one",
        )


def check_names(path: Path) -> None:
    """Raise `JournalError` for a file with a second name (a hard link), which may be open by it.

    SQLite finds the -wal by the name: with two it keeps two, sees no lock of the other, and merges
    both into one file. Names that we give do not count (`OWN_NAMES`).
    """
    real, names = path.resolve(), 0
    for _ in range(LOOKS):
        names = path.stat().st_nlink
        if names > 1:
            ours = (
                other for end in OWN_NAMES for other in real.parent.glob(escape(real.name) + end)
            )
            names -= sum(_is_one_file(path, other) for other in ours)
        if names <= 1:
            return
        time.sleep(BETWEEN)  # the name that it was made by was taken away just now
    raise JournalError(
        f"journal {path}: the file has {names} names (hard links), and SQLite would keep a -wal for"
        " each and mix them up. Find the others (find FOLDER -samefile PATH), remove those without"
        " a -wal, and open it by the one that is left; nothing was changed"
    )


def _is_one_file(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # it has gone meanwhile
        return False


def _make(path: Path) -> None:
    """Make a new journal under another name first: under its own it is whole from the beginning.

    So a crash meanwhile leaves no half-made file that would have to be told from a damaged one.
    """
    draft = beside(path, f".{secrets.token_hex(4)}.new")
    try:
        make_private(draft)
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before the first page
            connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
            connection.execute("PRAGMA journal_mode = WAL")
            schema.migrate(connection)
        finally:
            connection.close()
        try:
            path.hardlink_to(draft)
        except FileExistsError:  # another process was quicker: its file is as good
            return
        sync_folder(path.parent)
    finally:
        for end in ("", "-wal", "-shm"):
            beside(draft, end).unlink(missing_ok=True)


def make_private(path: Path) -> None:
    """Make an empty file that nobody else may read, at no moment, whatever the umask.

    SQLite gives the -wal and the -shm the mode of their file. Raises `FileExistsError`.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        if os.name == "posix":
            os.fchmod(handle, PRIVATE)  # a umask may have taken it from ourselves
    finally:
        os.close(handle)


def _warn_of_readers(path: Path) -> None:
    """Say once of a file that others may read it. It is left so: somebody may have meant it."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if os.name == "posix" and mode & OTHERS and path not in _warned:
        _warned.add(path)
        _log.warning(
            "journal %s: others may open it (mode %04o), and it holds what tools were given and"
            " what they returned; chmod 600 it, its -wal and its -shm, unless that is meant",
            path,
            mode,
        )


def sync_folder(folder: Path) -> None:
    """Make the file's name as durable as its content; only POSIX can, and needs to."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _connect(path: Path, *, mode: str, busy_timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",  # never makes a file
        uri=True,
        timeout=busy_timeout,
        isolation_level=None,
    )
    acquaint(connection)
    return connection


def acquaint(connection: sqlite3.Connection) -> None:
    """Have a connection know what our statements ask of it."""
    connection.create_function("head_sum", 6, head_sum, deterministic=True)
    connection.text_factory = _text


def _text(content: bytes) -> str:
    """Read a text; one that is none any more fails a checksum, not the statement."""
    return content.decode("utf-8", "backslashreplace")


def check_file(path: Path, connection: sqlite3.Connection) -> None:
    """Look whose file it is before anything is changed in it."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    if found != schema.APPLICATION_ID or not tables:
        raise NoJournal(
            f"journal {path}: it is a database of another program (application_id {found:#x},"
            f" {tables} tables); give the path of a journal, or of a file that does not exist"
        )
    version = schema.version_of(connection)
    if version > len(schema.MIGRATIONS):
        raise NoJournal(
            f"journal {path}: a newer turnlock wrote it (version {version}, this one knows"
            f" {len(schema.MIGRATIONS)}); use that one"
        )


def check_schema(path: Path, connection: sqlite3.Connection) -> None:
    """See that what statements need is there: a damaged schema is told before it is used.

    Raises `JournalError`. An older file that is only read has what was declared then.
    """
    if schema.version_of(connection) < len(schema.MIGRATIONS):
        return
    lacking = schema.lacking(connection)
    if lacking:
        raise JournalError(
            f"journal {path}: its schema is damaged ({', '.join(lacking)} missing); keep the"
            " file and its -wal file as they are, and restore them from a copy"
        )


def _set_up(path: Path, connection: sqlite3.Connection) -> None:
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise JournalError(
            f"journal {path}: this file system cannot hold it (journal mode {mode}, not WAL); put"
            " it on a local disk"
        )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS: elsewhere it means nothing
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("PRAGMA user_version = 0")  # whoever may not write is told now
    connection.execute("ROLLBACK")


def refused(path: Path, what: str, error: OSError) -> JournalError:
    """Return the error for a file that the system did not let be made, opened or written."""
    fix = "give this user the right to write its folder, or another path"
    if error.errno == errno.ENOSPC:
        fix = "free space there, then try again"
    return JournalError(f"journal {path}: it cannot be {what} ({error.strerror or error}); {fix}")


_PRIMARY: Final = 0xFF
"""The bits of an error code that name its kind; those above say more exactly where."""

_SCARCE: Final = 65_536
"""Bytes: where fewer are left, an error of the disk is for want of room."""

_TOLD: Final = {
    sqlite3.SQLITE_FULL: ("the disk is full", "free space there: it goes on by itself"),
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
    if code == sqlite3.SQLITE_CANTOPEN and not _may_read(path):
        cause, fix = (
            "it cannot be read by this user",
            "give it the right, or ask as the file's owner",
        )
    if is_full(path, error):
        folder, free = _room(path)
        cause, fix = _TOLD[sqlite3.SQLITE_FULL]
        cause += f": {free:,} bytes are left at {folder}"
    doubt = "" if settled else "; whether the last write was kept is not known: read it again"
    kind = NoJournal if code == sqlite3.SQLITE_NOTADB else JournalError
    return kind(f"journal {path}: {cause} ({error}); {fix}{doubt}")


def _may_read(path: str) -> bool:
    """Whether this user may read a file that is there."""
    effective = os.access in os.supports_effective_ids
    return not Path(path).exists() or os.access(path, os.R_OK, effective_ids=effective)


def is_full(path: str, error: sqlite3.Error) -> bool:
    """Say whether it is for want of room; where SQLite needs more for its -shm it says less."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY
    return code == sqlite3.SQLITE_FULL or (
        code == sqlite3.SQLITE_IOERR and _room(path)[1] < _SCARCE
    )


def _room(path: str) -> tuple[Path, int]:
    """Return the folder of a file, and the bytes that are left there."""
    folder = Path(path).absolute().parent
    try:
        return folder, shutil.disk_usage(folder).free
    except OSError:
        return folder, _SCARCE


def strange(path: str, error: Exception) -> JournalError:
    """Return the error to raise for what is met in a file that no journal has written."""
    damage = JournalError(
        f"journal {path}: it holds what was never written there ({harmless(repr(error))}); keep it"
        " and its -wal file as they are, and restore them from a copy"
    )
    damage.__cause__ = error
    return damage
