"""Copies of a SQLite journal, made while it is written, and put back.

A copy is made by SQLite itself, in one read transaction, which keeps nobody from writing. It is
made under another name, readable by nobody else, read back and compared, synced, and only then has
its own name. It bears an identity of its own, so that it is told from its original wherever it is
put.

A restored journal ends before what the old one acknowledged. So each fencing token is beyond any
that was ever given out, nobody owns a run, what waited in the mailbox is set aside, and a run that
had something under way is `rewound`: what happened to it since the backup is known to nobody here.

The order of a restore: at each moment the path leads to a file, either the old one with its -wal,
or the new one. Between the two the new one has the old -wal beside it for an instant. Who opens it
then, or after a crash there, is told that the -wal belongs to another file (see `sqlite_guard`).
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from ...models.errors import TurnlockError
from ..errors import JournalError, NoJournal
from .backups import Backup, Restored
from .entries import Finding
from .posting import Unreadable
from .rows import STRANGE
from .sqlite_check import check
from .sqlite_file import (
    acquaint,
    check_file,
    check_place,
    failed,
    make_private,
    refused,
    sync_folder,
)
from .sqlite_guard import beside, opened_alone
from .sqlite_heads import HEADS
from .sqlite_posts import set_aside
from .sqlite_reading import ReadOnly
from .sqlite_runs import FENCES_SKIPPED
from .sqlite_schema import identify, keep_meta, meta, migrate

T = TypeVar("T")

MADE: Final = "backup"
"""In `meta` of a backup: when it was made, in text."""
_BUSY_TIMEOUT: Final = 5.0
_ENDS: Final = ("-wal", "-shm", HEADS)
_SHARED: Final = "1073741826"
"""Where the bytes begin that each connection to a SQLite file keeps locked, by its file format."""


def write_backup(source: Path, target: Path, *, force: bool) -> Backup:
    """Copy a journal as it is now; over a file that is there only by `force`.

    Raises `JournalError`, and then nothing is where nothing was.
    """
    with _told(target), _draft(target, partial(_check_target, source, force=force)) as draft:
        _copy(source, draft)
        with closing(_connected(draft)) as copy, _transaction(copy):
            _name_anew(copy, made=f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")
        made = _verified(draft, target)
        _sync(draft)
        _name(draft, target, force=force)
    return made


def put_back(backup: Path, path: Path) -> Restored:
    """Put a backup in the place of a journal that nobody performs; what was there is kept.

    Raises `JournalError`, and then nothing has changed.
    """
    with _told(path), _draft(path, partial(_check_places, backup)) as draft:
        _copy(backup, draft)
        made = _verified(draft, path)
        with closing(_connected(draft)) as copy:
            migrate(copy)
            with _transaction(copy):
                rewound = _fence_everybody(copy, backup)
                _name_anew(copy)
        _sync(draft)
        kept = _swap(draft, path)
    return Restored(
        path=path,
        kept=kept,
        runs=made.runs,
        rewound=rewound,
        findings=made.findings,
        entries=made.entries,
    )


def openers(path: Path) -> tuple[int, ...]:
    """Return the processes that have a SQLite file open, as far as Linux shows their locks."""
    try:
        inode = path.stat().st_ino
        locks = Path("/proc/locks").read_text("ascii").splitlines()
    except OSError:
        return ()
    found = (line.replace("-> ", "").split() for line in locks)
    return tuple(
        int(lock[4])
        for lock in found
        if lock[1] == "POSIX" and lock[5].endswith(f":{inode}") and lock[6] == _SHARED
    )


def _name_anew(copy: sqlite3.Connection, *, made: str | None = None) -> None:
    """Give a copy an identity of its own; one of an older version has none, and needs none."""
    if copy.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
        identify(copy)
        if made is not None:
            keep_meta(copy, MADE, made.encode())


def _check_places(backup: Path, path: Path) -> None:
    check_place(backup, create=False)
    if path.is_dir() or not path.parent.is_dir():
        check_place(path, create=True)
    if path.exists() and path.samefile(backup):
        raise NoJournal(f"journal {path}: it is the backup itself; give another --db")
    if path.exists() and path.stat().st_size:
        with suppress(sqlite3.Error), opened_alone(path.absolute()) as alone:
            check_file(path, alone)  # what is damaged is replaced, what is another program's is not


def _check_target(source: Path, target: Path, *, force: bool) -> None:
    def wrong(cause: str, fix: str) -> NoJournal:
        return NoJournal(f"backup {target}: {cause}; {fix}")

    if target.is_dir():
        raise wrong("it is a folder", "give the path of a file in it")
    if not target.parent.is_dir():
        raise wrong("its folder does not exist", "make the folder, or correct the path")
    if target.exists() and target.samefile(source):
        raise wrong("it is the journal itself", "give another path")
    if os.path.lexists(target) and not force:
        raise wrong("there is a file already", "give another path, or --force to replace it")


def _copy(source: Path, draft: Path) -> None:
    """Copy what a journal holds."""

    def copied(connection: sqlite3.Connection) -> None:
        with closing(_connected(draft)) as copy:
            connection.backup(copy)

    _read(source, copied)


def _fence_everybody(copy: sqlite3.Connection, backup: Path) -> tuple[str, ...]:
    """Fence off whoever owned a run, and mark those that may have gone on since."""
    made = meta(copy, MADE, where=str(backup))
    since = f"the backup of {made.decode()}" if made else f"{backup.name} was copied"
    copy.execute(
        "UPDATE runs SET epoch = epoch + :skipped, owner = NULL, owned_until = NULL,"
        " head = head_sum(run_id, sequence, busy, epoch + :skipped, NULL, NULL)"
        " WHERE typeof(epoch) = 'integer' AND (head IS NULL"
        " OR head = head_sum(run_id, sequence, busy, epoch, owner, owned_until))",
        {"skipped": FENCES_SKIPPED},
    )
    why = f"the journal was restored: what happened to this run since {since} is not known"
    copy.execute(
        "UPDATE runs SET rewound = ? WHERE busy AND rewound IS NULL AND forgotten IS NULL", (why,)
    )
    waiting = copy.execute(
        "SELECT posts.number, run_id FROM posts JOIN runs ON runs.number = posts.run"
        " WHERE receipt IS NULL"
    ).fetchall()
    problem = f"the journal was restored: whether it was judged since {since} is not known"
    set_aside(
        copy,
        [Unreadable(number=number, run_id=run_id, problem=problem) for number, run_id in waiting],
    )
    found = copy.execute("SELECT run_id FROM runs WHERE rewound IS NOT NULL ORDER BY number")
    return tuple(run_id for (run_id,) in found)


def _verified(draft: Path, target: Path) -> Backup:
    """Read all of a copy, against its checksums; say what it holds.

    A copy that SQLite finds damaged is none. What else is damaged was so in the original, and says
    so wherever it is read.
    """
    found: tuple[Finding, ...] = _read(draft, partial(check, where=str(target)))
    findings = tuple(it for it in found if it.what != "rewound")  # it says so, and is no damage
    broken = [it.cause for it in findings if it.what == "file"]
    if broken:
        raise JournalError(
            f"journal {target}: the copy is damaged ({broken[0]}), so it was not kept; is the"
            " original (turnlock check --db)? keep that and its -wal file as they are"
        )
    runs, facts, entries = _read(draft, _counted)
    return Backup(
        path=target,
        runs=runs,
        facts=facts,
        size=draft.stat().st_size,
        findings=findings,
        entries=entries,
    )


def _counted(connection: sqlite3.Connection) -> tuple[int, int, int]:
    runs, facts = connection.execute(
        "SELECT count(*), coalesce(sum(sequence), 0) FROM runs WHERE forgotten IS NULL"
    ).fetchone()
    (entries,) = connection.execute("SELECT count(*) FROM entries").fetchone()
    return runs, facts, entries


def _read(source: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """Read a journal as one moment has it, whoever writes meanwhile."""
    reader = ReadOnly(source, busy_timeout=_BUSY_TIMEOUT)
    try:
        (outcome,) = reader.perform(reader.connect(), [work])
    finally:
        reader.close()
    if outcome.error is not None:
        raise outcome.error
    found: T = outcome.value
    return found


def _swap(draft: Path, path: Path) -> Path | None:
    """Put the draft in the place of what is there, which is kept under another name."""
    real = path.resolve()
    kept = _free_name(real)
    was_there = real.exists()
    if was_there:
        os.link(real, kept)  # the file has two names until it has lost the first
        draft.replace(real)
    for end in _ENDS:
        if beside(real, end).exists():
            beside(real, end).replace(beside(kept, end))
    if not was_there:
        os.link(draft, real)
    sync_folder(real.parent)
    return kept if was_there else None


def _free_name(path: Path) -> Path:
    """Return a name for the file that was there; its -wal goes by the same."""
    moment = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    ends = (f".before-{moment}", *(f".before-{moment}-{n}" for n in range(2, 1_000)))
    return next(it for it in (beside(path, end) for end in ends) if not it.exists())


def _name(draft: Path, target: Path, *, force: bool) -> None:
    """Give the draft its name; over a file that came meanwhile only by `force`."""
    if force:
        draft.replace(target)
    else:
        os.link(draft, target)
    sync_folder(target.parent)


def _sync(draft: Path) -> None:
    handle = os.open(draft, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _draft(target: Path, check_it: Callable[[Path], None]) -> Generator[Path]:
    """Make a private file beside the target; in the end it is gone unless it was renamed."""
    check_it(target)
    draft = beside(target.resolve(), f".{secrets.token_hex(4)}.new")
    try:
        make_private(draft)
        yield draft
    finally:
        for end in ("", *_ENDS):
            beside(draft, end).unlink(missing_ok=True)


def _connected(draft: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(draft, isolation_level=None)
    acquaint(connection)
    return connection


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _told(target: Path) -> Generator[None]:
    """Raise what goes wrong with the copy as `JournalError`."""
    try:
        yield
    except TurnlockError:
        raise
    except sqlite3.Error as error:
        raise failed(str(target), error) from error
    except FileExistsError as error:
        raise NoJournal(
            f"backup {target}: there is a file already; give another path, or --force"
        ) from error
    except OSError as error:
        raise refused(target, "written", error) from error
    except STRANGE as error:
        raise JournalError(f"journal {target}: it cannot be written ({error})") from error
