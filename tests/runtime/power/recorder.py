"""Tells a `Disk` what SQLite and the journal do to the files of a folder, which they really do.

SQLite is that of apsw, because it lets Python stand between SQLite and the files; the journal's own
code runs over it unchanged: what it opens by `sqlite3.connect` is put over apsw here. What Python
does by `os` itself (names, syncing the folder) is told too. What is written in any other way is not
seen, and `recorded` complains of it: at the end the files must be what was told of them.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (apsw's stubs speak of collections.abc.Buffer, which Python 3.11 has not)

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final
from unittest import mock

import apsw
import attrs

from .disk import Disk, Named, NamesSynced, Resized, Synced, Written, undisturbed

_NUMBERS: Final = count(1)
_SYNCS_ITS_NAME: Final = (
    apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
)
"""Files of which SQLite, having made them, syncs the folder with their first sync."""


@contextmanager
def recorded(
    folder: Path, *, synchronous: str | None = None, checkpoint: int | None = None
) -> Generator[Disk]:
    """Record what is done in a folder. `synchronous` instead of what the journal asks for; and
    a checkpoint after so many pages."""
    disk = Disk()
    for path in sorted(folder.iterdir()):
        disk.holds(path.name, path.read_bytes())
    name = f"recorder-{next(_NUMBERS)}"
    system = _System(name, folder=folder, disk=disk)
    asked: dict[str, object] = {"wal_autocheckpoint": checkpoint, "synchronous": synchronous}
    connect = partial(_connect, vfs=name, forced={k: v for k, v in asked.items() if v is not None})
    with ExitStack() as stack:
        stack.callback(system.unregister)
        stack.enter_context(mock.patch.object(sqlite3, "connect", connect))
        for each in _OsCalls(folder, disk).patches():
            stack.enter_context(each)
        yield disk
    there = {path.name: path.read_bytes() for path in folder.iterdir()}
    told = undisturbed(disk.changes)
    unseen = [each for each in there.keys() | told.keys() if there.get(each) != told.get(each)]
    assert not [each for each in unseen if not each.endswith("-shm")], unseen


class _System(apsw.VFS):
    """The files of the operating system, and who is told of what is done to them."""

    def __init__(self, name: str, *, folder: Path, disk: Disk) -> None:
        super().__init__(name, "")
        self._folder = folder
        self._disk = disk

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None or Path(path).parent != self._folder:
            return apsw.VFSFile("", name, flags)
        return _File(name, flags, disk=self._disk, place=Path(path).name)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        self._disk.note(Named(Path(filename).name, None))
        if syncdir:
            self._disk.note(NamesSynced())


class _File(apsw.VFSFile):
    def __init__(
        self, name: str | apsw.URIFilename | None, flags: list[int], *, disk: Disk, place: str
    ) -> None:
        asked = flags[0]
        super().__init__("", name, flags)
        self._disk = disk
        self._file = disk.made(place)
        made = asked & apsw.SQLITE_OPEN_CREATE and asked & _SYNCS_ITS_NAME
        self._unnamed = bool(made)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        self._disk.note(Written(self._file, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self._disk.note(Resized(self._file, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self._disk.note(Synced(self._file))
        if self._unnamed:
            self._unnamed = False
            self._disk.note(NamesSynced())


class _OsCalls:
    """What Python does by `os` in the folder."""

    def __init__(self, folder: Path, disk: Disk) -> None:
        self._folder = folder
        self._disk = disk

    def patches(self) -> Iterator[Any]:
        for name in ("link", "unlink", "remove", "rename", "replace", "open", "write", "fsync"):
            if name in {"rename", "replace"}:
                seen = partial(self._renamed, getattr(os, name))
            elif name in {"unlink", "remove"}:
                seen = partial(self._removed, getattr(os, name))
            else:
                seen = partial(getattr(self, f"_{name}"), getattr(os, name))
            yield mock.patch.object(os, name, seen)

    def _here(self, path: Any) -> str | None:
        """The name of a path in the folder."""
        if isinstance(path, int):
            return None
        place = Path(os.fsdecode(path))
        return place.name if place.parent == self._folder else None

    def _link(self, link: Any, source: Any, target: Any, **more: Any) -> None:
        link(source, target, **more)
        known, name = self._here(source), self._here(target)
        if known is not None and name is not None:
            self._disk.note(Named(name, self._disk.names[known]))

    def _removed(self, remove: Any, path: Any, **more: Any) -> None:
        remove(path, **more)
        name = self._here(path)
        if name in self._disk.names:
            self._disk.note(Named(name, None))

    def _renamed(self, rename: Any, source: Any, target: Any, **more: Any) -> None:
        rename(source, target, **more)
        known, name = self._here(source), self._here(target)
        if known is not None and name is not None:
            self._disk.note(Named(name, self._disk.names[known]))
            self._disk.note(Named(known, None))

    def _open(self, open_file: Any, path: Any, flags: int, *more: Any, **named: Any) -> int:
        handle: int = open_file(path, flags, *more, **named)
        name = self._here(path)
        if name is not None and not name.endswith("-shm"):
            file = self._disk.made(name)
            if flags & os.O_TRUNC:
                self._disk.note(Resized(file, 0))
        return handle

    def _write(self, write: Any, handle: int, data: Any) -> int:
        name = self._of(handle)
        if name is None:
            return int(write(handle, data))
        written = int(write(handle, data))
        end = os.lseek(handle, 0, os.SEEK_CUR)
        file = self._disk.names[name]
        self._disk.note(Written(file, end - written, bytes(data[:written])))
        return written

    def _fsync(self, fsync: Any, handle: int) -> None:
        fsync(handle)
        if _same(os.fstat(handle), self._folder.stat()):
            self._disk.note(NamesSynced())
        elif name := self._of(handle):
            self._disk.note(Synced(self._disk.names[name]))

    def _of(self, handle: int) -> str | None:
        """The name of an open file, where it is one of the folder's."""
        opened = os.fstat(handle)
        for name in tuple(self._disk.names):
            try:
                if _same(opened, (self._folder / name).stat()):
                    return name
            except FileNotFoundError:  # removed meanwhile
                continue
        return None


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _connect(
    place: object,
    *,
    vfs: str,
    forced: Mapping[str, object],
    timeout: float = 5.0,
    uri: bool = False,
    **_given: Any,
) -> _Connection:
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_URI if uri else apsw.SQLITE_OPEN_CREATE)
    with _told_as_sqlite3():
        connection = apsw.Connection(str(place), flags=flags, vfs=vfs)
        connection.set_busy_timeout(int(timeout * 1000))
    made = _Connection(connection, forced)
    for pragma, value in forced.items():
        made.execute(f"PRAGMA {pragma} = {value}")
    return made


@attrs.define
class _Connection:
    """As much of `sqlite3.Connection` as the journal uses, over apsw."""

    inner: apsw.Connection
    forced: Mapping[str, object]
    text_factory: object = str
    """For texts that are none; here is no damage."""

    @property
    def in_transaction(self) -> bool:
        return self.inner.in_transaction

    @property
    def total_changes(self) -> int:
        return self.inner.total_changes()

    def execute(self, statement: str, bindings: Sequence[Any] | Mapping[str, Any] = ()) -> _Cursor:
        word, _, rest = statement.partition(" ")
        pragma = rest.partition("=")[0].strip() if word == "PRAGMA" else ""
        if pragma in self.forced:
            statement = f"PRAGMA {pragma} = {self.forced[pragma]}"
        before = self.inner.total_changes()
        with _told_as_sqlite3():
            cursor = self.inner.cursor()
            cursor.execute(statement, bindings)
        changed = self.inner.total_changes() - before
        return _Cursor(cursor, changed, self.inner.last_insert_rowid())

    def create_function(
        self, name: str, count: int, function: Callable[..., Any], *, deterministic: bool = False
    ) -> None:
        self.inner.create_scalar_function(name, function, count, deterministic=deterministic)

    def close(self) -> None:
        """Close as SQLite does, to which a lock that the last one did not get is no failure."""
        with suppress(apsw.IOError):
            self.inner.close()


@attrs.frozen
class _Cursor:
    inner: apsw.Cursor
    rowcount: int
    lastrowid: int

    def fetchone(self) -> Any:
        with _told_as_sqlite3():
            return self.inner.fetchone()

    def fetchall(self) -> list[Any]:
        with _told_as_sqlite3():
            return self.inner.fetchall()

    def __iter__(self) -> Iterator[Any]:
        with _told_as_sqlite3():
            yield from self.inner

    def close(self) -> None:
        self.inner.close()


@contextmanager
def _told_as_sqlite3() -> Generator[None]:
    try:
        yield
    except apsw.Error as error:
        told = sqlite3.OperationalError(str(error))
        told.sqlite_errorcode = getattr(error, "extendedresult", sqlite3.SQLITE_ERROR)
        raise told from error
