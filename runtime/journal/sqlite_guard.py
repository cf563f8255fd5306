"""Whether the file at a journal's path is still the file that was opened.

SQLite holds on to what it has opened. When the file is removed, or another is put in its place, it
goes on: into a file that nobody will find, with no error, for ever. So its owner looks for itself,
in the writer's thread:

- before each transaction and after each commit, before anybody is told that it was kept: device
  and inode of the file, its -wal and its -shm, at their paths. With the next, 17 µs for both looks
  (measured); a commit takes 400.
- in each transaction: the identity that the file bears, which a restored one has anew.
- when the main file has changed, which happens at checkpoints only: whether it is ours still, read
  for itself, without the -wal (0.1 ms). Somebody may have copied another file over it, which keeps
  the inode, and SQLite would not notice before it has mixed the two.

For that there is a number in the file, which is one more in each -wal that is begun: so with its
-wal a file has the number that it has without, or the one after it. By that a -wal is told from
that of another file, or of a later state of a file that was put back without it (`check_wal`):
SQLite would merge any of them. What a checkpoint has merged half-way is not synced, and gone with
the power: so only a -wal that is begun anew, as its salts show, counts.

What was found stays: nothing is ever written again through this connection. It is also closed
without a checkpoint, which would go into the other file, and without removing the -wal at the path,
which may be the other's. Both are the task of the last connection; so there is another one, without
the right to write, that outlives it then (`close`).
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from ..errors import JournalError, JournalReplaced
from .rows import checksum
from .sqlite_schema import APPLICATION_ID, IDENTITY, keep_meta, meta

NUMBER: Final = "wal"
"""In `meta`: the number of the -wal, and the salts in its head, by which it is known."""
LOOKS: Final = 10
"""Times that a main file is looked at that somebody may be writing just then: a checkpoint."""
BETWEEN: Final = 0.02
"""Seconds between two such looks."""

_ENDS: Final = ("-wal", "-shm")

_Inode: TypeAlias = tuple[int, int] | None
"""Device and number; None where no file is."""
_Stamp: TypeAlias = tuple[int, int, int]
"""Size, time of the last change of the content, and of anything."""

_FIX: Final = (
    "nothing more is written or performed through it: what was put there is left alone. Stop this"
    " process; put the file back with its -wal, or restore a backup (turnlock restore), and start"
    " again"
)


@attrs.frozen
class _Mark:
    """By what a file is told from another, or from an earlier state of itself."""

    identity: bytes | None
    """None: an older version has made it, and it was not brought up to date."""
    number: int | None
    """Grows by one with each -wal that is begun; None: none was, or the page that holds it is torn,
    which happens when the power fails in a checkpoint."""
    salts: str
    """Of the -wal that the number was written in."""
    schema: int
    """Counts changes of the tables; in a copy that SQLite makes it is another."""
    appended: int | None
    """The number of the last append, which only grows as long as none is removed; None: unknown,
    for a process may have died in the middle of a checkpoint."""

    def belongs_to(self, whole: _Mark) -> bool:
        """Whether this can be the main file of what there is in all, with the -wal."""
        return (
            self.identity in {None, whole.identity}
            and self.schema <= whole.schema
            and (
                self.number is None
                or whole.number is None
                or self.number <= whole.number <= self.number + 1
            )
        )

    def follows(self, before: _Mark, *, whole: _Mark) -> bool:
        """Whether a checkpoint can have led from an earlier main file to this one."""
        return (
            self.belongs_to(whole)
            and (self.identity is not None or before.identity is None)
            and (self.number or 0) >= (before.number or 0)
            and self.schema >= before.schema
            and (self.appended is None or self.appended >= min(before.last, whole.last))
        )

    @property
    def last(self) -> int:
        """The number of the last append, 0 where it is not known."""
        return self.appended or 0


class Guard:
    """The file of one connection that writes, told from whatever comes to stand at its path."""

    def __init__(self, path: Path) -> None:
        """Know nothing of it yet."""
        self._where: Final = str(path)
        self._path: Final = path.absolute()
        real = path.resolve()
        self._names: tuple[str, ...] = (str(self._path), *(str(beside(real, end)) for end in _ENDS))
        self._inodes: Final[list[_Inode]] = [None, *(None for _ in _ENDS)]
        self._stamp: _Stamp | None = None
        self._looked: _Stamp | None = None
        """What the reader's thread has seen last."""
        self._keeper: sqlite3.Connection
        self._main: _Mark
        """The main file as it was found last."""
        self._identity: bytes | None = None
        self._salts = ""
        """Of the -wal that is known to hold its number."""
        self._watched = True
        """Whether the -wal may be begun anew: something was merged into the main file."""
        self._due = False
        """Whether the -wal holds no number yet."""
        self._written: str | None = None
        """The salts that this transaction has written with the number."""
        self.lost: JournalReplaced | None = None
        """What was found, once something was."""

    def opened(self, connection: sqlite3.Connection) -> None:
        """Take what was just opened for ours; opened again it must be what it was before."""
        real = self._path.resolve()
        self._names = (self._names[0], *(str(beside(real, end)) for end in _ENDS))
        self.check()
        whole = _mark_of(connection)
        if self._identity is not None and whole.identity != self._identity:
            raise self._found("it was replaced by another while it was closed for a fork")
        self._identity = whole.identity
        self._stamp = self._stamp_of_main()
        self._main = _mark_of_main(self._path) or whole  # a crash may have left half a checkpoint
        self._salts = whole.salts
        self._due = not whole.salts or self._salts_now() != whole.salts
        self._keeper = sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True)
        _mark_of(self._keeper)  # from its first read on it keeps hold of the file

    def begun(self, connection: sqlite3.Connection) -> None:
        """Look, inside a transaction, before anything is done in it. Raises `JournalReplaced`."""
        self.check()
        if meta(connection, IDENTITY, where=self._where) != self._identity:
            raise self._found("it was written over with the content of another")
        self._watched = self._look_at_main(connection) or self._watched
        self._written = None
        if self._due:
            self._number(connection)

    def committed(self) -> None:
        """Look after a commit, before anybody is told of it. Raises `JournalReplaced`."""
        self.check()
        if self._written is None and not self._watched and not self._due:
            return
        if self._written is not None:
            self._salts = self._written
        self._due = self._salts_now() != self._salts  # it was begun anew, maybe by this very commit
        self._watched = self._watched and not self._due

    def _number(self, connection: sqlite3.Connection) -> None:
        """Write the number of this -wal, unless another process has.

        As long as the main file has a lower one, this -wal has it already, though it may have been
        written with other salts: by whoever began it, when it had none yet.
        """
        whole, salts = _mark_of(connection), self._salts_now()
        if salts and whole.salts == salts:
            self._salts, self._due = salts, False
            return
        main, number = _mark_of_main(self._path), whole.number or 0
        if main is not None and number == (main.number or 0):
            number += 1
        keep_meta(connection, NUMBER, f"{number} {salts}".encode())
        self._written = salts

    def _salts_now(self) -> str:
        """Return the salts in the head of the -wal; none where it holds nothing."""
        try:
            handle = os.open(self._names[1], os.O_RDONLY)
        except OSError:
            return ""
        try:
            os.lseek(handle, 16, os.SEEK_SET)
            return os.read(handle, 8).hex()
        finally:
            os.close(handle)

    def check(self) -> None:
        """Look at the paths alone; from any thread. Raises `JournalReplaced`."""
        if self.lost is not None:
            raise self.lost
        for place, name in enumerate(self._names):
            inode, known = _inode_of(name), self._inodes[place]
            if inode == known:
                continue
            if known is not None:
                what = f"its {_ENDS[place - 1]} file" if place else "it"
                gone = "was removed" if inode is None else "was replaced by another file"
                raise self._found(f"{what} {gone}")
            self._inodes[place] = inode  # SQLite makes -wal and -shm when it first needs them

    def look(self) -> None:
        """Look without a transaction, in the reader's thread: at each poll. Raises as `check`."""
        self.check()
        stamp = self._stamp_of_main()
        if stamp != self._looked:
            main = _mark_of_main(self._path)
            if main is not None and main.identity not in {None, self._identity}:
                raise self._found("it was written over with the content of another")
            self._looked = stamp

    def close(self, connection: sqlite3.Connection) -> None:
        """Close the connection; where the file is another by now, without a trace in that."""
        last, first = connection, self._keeper
        if self.explains(connection) is not None:
            last, first = first, last
        self._names = self._names[:1]  # the last one takes -wal and -shm away
        self._inodes[1:] = [None for _ in _ENDS]
        first.close()
        last.close()

    def explains(self, connection: sqlite3.Connection) -> JournalReplaced | None:
        """Return what is the matter where SQLite failed because the file is another by now."""
        try:
            self.check()
            self._look_at_main(connection)
        except JournalReplaced as found:
            return found
        except sqlite3.Error:
            return None
        return None

    def _look_at_main(self, connection: sqlite3.Connection) -> bool:
        """Look at the main file for itself, if it has changed, and say whether it has."""
        stamp = self._stamp_of_main()
        if stamp == self._stamp:
            return False
        whole = _mark_of(connection)
        main = None
        for _ in range(LOOKS):
            main = _mark_of_main(self._path)
            if main is not None and main.follows(self._main, whole=whole):
                self._main, self._stamp = main, stamp
                return True
            if main is None:
                break  # it will not get better by waiting
            time.sleep(BETWEEN)
            stamp = self._stamp_of_main()
        page: int = connection.execute("PRAGMA page_size").fetchone()[0]
        before, now = (self._stamp or stamp)[0], stamp[0]
        cut_off = now < before and now % page  # SQLite takes whole pages away
        if cut_off or not _is_torn(self._path, main, identity=self._identity):
            raise self._found("it was written over with other content")
        self._stamp = stamp  # a checkpoint broke off, for want of room, say: the -wal has it all
        return True

    def _stamp_of_main(self) -> _Stamp:
        try:
            found = os.stat(self._names[0])  # noqa: PTH116 - as below
        except OSError:
            raise self._found("it was removed") from None
        return found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _found(self, cause: str) -> JournalReplaced:
        self.lost = JournalReplaced(
            f"journal {self._where}: it is not the file that was opened: {cause}; {_FIX}"
        )
        return self.lost


def beside(path: Path, end: str) -> Path:
    """Return the path of a file that belongs to the journal's file, by the end of its name."""
    return path.with_name(path.name + end)


def check_wal(path: Path, connection: sqlite3.Connection) -> None:
    """Raise `JournalError` for a -wal that belongs to another file, or to a later state of it.

    The connection must be one without the right to write: another merges the two when it is closed.
    """
    wal = beside(path.resolve(), "-wal")
    if not wal.exists() or not wal.stat().st_size:
        return
    whole, main = _mark_of(connection), None
    for _ in range(LOOKS):
        main = _mark_of_main(path.absolute())
        if main is None or main.belongs_to(whole):
            return
        time.sleep(BETWEEN)  # somebody may be in the middle of a checkpoint
        whole = _mark_of(connection)
    if _is_torn(path.absolute(), main, identity=whole.identity):
        return
    raise JournalError(
        f"journal {path}: its {wal.name} belongs to another file: this one was put here while that"
        f" was left. Stop whoever has them open; move {wal.name} and its -shm away if this file is"
        " to count, or put back the one that they belong to; nothing was changed"
    )


def _inode_of(name: str) -> _Inode:
    try:
        found = os.stat(name)  # noqa: PTH116 - a third of the time that Path.stat takes
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _mark_of_main(path: Path) -> _Mark | None:
    """Return the mark of the main file without its -wal; None where it makes no sense."""
    try:
        with opened_alone(path) as alone:
            return _mark_of(alone)
    except (sqlite3.Error, ValueError):
        return None


def _is_torn(path: Path, main: _Mark | None, *, identity: bytes | None) -> bool:
    """Whether a main file is ours, with half of a checkpoint in it: its -wal has all that counts.

    The power may have gone in the middle of one, or the room: then it is not whole without its
    -wal. A file of another identity is another file, whole or not.
    """
    if main is not None and main.identity not in {None, identity}:
        return False
    try:
        with opened_alone(path) as alone:
            if alone.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
                return False
            if main is None:
                return True
            return bool(alone.execute("PRAGMA quick_check(1)").fetchone() != ("ok",))
    except sqlite3.DatabaseError as error:
        return (error.sqlite_errorcode & 0xFF) == sqlite3.SQLITE_CORRUPT


@contextmanager
def opened_alone(path: Path) -> Generator[sqlite3.Connection]:
    """Open a main file as if there were no -wal, also one that is shorter than it says."""
    uri = f"{path.as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as alone:
        alone.execute("PRAGMA writable_schema = ON")  # what is read is not checked against its size
        yield alone


def _mark_of(connection: sqlite3.Connection) -> _Mark:
    schema = connection.execute("PRAGMA schema_version").fetchone()[0]
    found: dict[str, bytes] = {}
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
        rows = connection.execute(
            "SELECT name, value, checksum FROM meta WHERE name IN (?, ?)", (IDENTITY, NUMBER)
        )
        found = {name: value for name, value, kept in rows if checksum(value, name) == kept}
    try:
        appended = connection.execute("SELECT max(rowid) FROM appends").fetchone()[0] or 0
    except sqlite3.DatabaseError:
        appended = None
    number, _, salts = found.get(NUMBER, b"").decode("ascii").partition(" ")
    return _Mark(found.get(IDENTITY), int(number) if number else None, salts, schema, appended)
