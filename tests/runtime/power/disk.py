"""A disk as a power loss leaves it: what was done to one folder's files, and what may be left.

What was synced is there. Of what was done to a file since, each sector holds one of the contents
that it has had meanwhile, independently of the others: so writes are lost, torn and reordered. The
file is as long as it has been at some moment; where it grew and its data did not arrive, there are
zeros or rubbish. Names are kept in the order in which they were given and taken, up to some moment,
as the log of a file system does; syncing a file says nothing about its name.

That is harsher than most file systems are, and as harsh as POSIX allows, except for the names.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from threading import Lock
from typing import Final, TypeAlias

import attrs

SECTORS: Final = (512, 4096)
"""Bytes that a disk writes wholly or not at all."""


@attrs.frozen
class Written:
    """Bytes written to a file."""

    file: int
    offset: int
    data: bytes


@attrs.frozen
class Resized:
    """A file made longer or shorter."""

    file: int
    size: int


@attrs.frozen
class Synced:
    """All that was written to a file is on the disk."""

    file: int


@attrs.frozen
class Named:
    """A name given to a file, or taken off whatever bore it (None)."""

    name: str
    file: int | None


@attrs.frozen
class NamesSynced:
    """The folder is on the disk."""


Change: TypeAlias = Written | Resized | Synced | Named | NamesSynced


class Disk:
    """All that was done to the files of a folder, in order; threads may tell at once."""

    def __init__(self) -> None:
        self.changes: Final[list[Change]] = []
        self.names: Final[dict[str, int]] = {}
        self._files = 0
        self._lock: Final = Lock()

    @property
    def now(self) -> int:
        """The moment: how much was done until now."""
        return len(self.changes)

    def note(self, change: Change) -> None:
        """Tell what was done."""
        with self._lock:
            self.changes.append(change)
            if isinstance(change, Named):
                self.names.pop(change.name, None)
                if change.file is not None:
                    self.names[change.name] = change.file

    def made(self, name: str) -> int:
        """Return the file of this name, a new one where there is none."""
        if name not in self.names:
            self._files += 1
            self.note(Named(name, self._files))
        return self.names[name]

    def holds(self, name: str, content: bytes) -> None:
        """Have a file there from the beginning."""
        file = self.made(name)
        for change in (Written(file, 0, content), Synced(file), NamesSynced()):
            self.note(change)


class _Fate(Enum):
    """What becomes of what was done to one file since it was synced."""

    LOST = auto()
    KEPT = auto()
    CUT_OFF = auto()
    """The first of it is kept, the last of those torn."""
    SCATTERED = auto()
    """Each sector holds any of what it has held."""


@attrs.define
class _File:
    """A file: what is on the disk for sure, and what was done to it since."""

    content: bytearray = attrs.field(factory=bytearray)
    since: list[Written | Resized] = attrs.field(factory=list[Written | Resized])

    def sync(self) -> None:
        for change in self.since:
            _apply(self.content, change)
        self.since.clear()

    def left(self, draw: random.Random) -> bytes:
        """Return what a power loss leaves of it."""
        content = bytearray(self.content)
        fate = draw.choice(tuple(_Fate))
        if fate is _Fate.SCATTERED:
            return self._scattered(draw)
        if fate is not _Fate.LOST:
            for change in self.since[: self._kept(fate, draw)]:
                _apply(content, change)
        if fate is _Fate.CUT_OFF and self.since:
            _apply(content, _torn(self.since[-1], draw))
        return bytes(content)

    def _kept(self, fate: _Fate, draw: random.Random) -> int:
        if fate is _Fate.KEPT or not self.since:
            return len(self.since)
        kept = draw.randrange(len(self.since))
        del self.since[kept + 1 :]
        return kept

    def _scattered(self, draw: random.Random) -> bytes:
        sector = draw.choice(SECTORS)
        now = bytearray(self.content)
        sizes = [len(now)]
        versions: dict[int, list[bytes]] = {}
        for change in self.since:
            before, after = len(now), now
            _apply(after, change)
            first, last = _touched(change, before)
            for number in range(first // sector, -(-last // sector)):
                place = slice(number * sector, (number + 1) * sector)
                versions.setdefault(number, [bytes(self.content[place])]).append(bytes(now[place]))
            sizes.append(len(now))
        size = draw.choice(sizes)
        content = bytearray(self.content[:size])
        rubbish = draw.random() < 0.5
        content += draw.randbytes(size - len(content)) if rubbish else bytes(size - len(content))
        for number, known in sorted(versions.items()):
            version = draw.choice(known)
            start = number * sector
            content[start : start + len(version)] = version
        return bytes(content[:size])


def _touched(change: Written | Resized, before: int) -> tuple[int, int]:
    if isinstance(change, Resized):
        return min(before, change.size), max(before, change.size)
    return min(before, change.offset), change.offset + len(change.data)


def _torn(change: Written | Resized, draw: random.Random) -> Written | Resized:
    if isinstance(change, Resized):
        return change
    return attrs.evolve(
        change, data=change.data[: draw.randrange(0, len(change.data) + 1, SECTORS[0])]
    )


def _apply(content: bytearray, change: Written | Resized) -> None:
    end = change.size if isinstance(change, Resized) else change.offset + len(change.data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if isinstance(change, Resized):
        del content[end:]
    else:
        content[change.offset : end] = change.data


Files: TypeAlias = dict[str, bytes]
"""What stands in a folder, by name."""


def cuts(
    changes: Iterable[Change], moments: Sequence[int], seed: object
) -> Iterator[tuple[int, Files]]:
    """Cut the power at each of these moments, and return what is left each time."""
    draw = random.Random(repr(seed))
    folder = _Folder()
    wanted = sorted(moments, reverse=True)
    for moment, change in enumerate(changes):
        while wanted and wanted[-1] == moment:
            yield wanted.pop(), folder.left(draw)
        folder.apply(change)
    for moment in reversed(wanted):
        yield moment, folder.left(draw)


def undisturbed(changes: Iterable[Change]) -> Files:
    """Return what is there when nothing is cut: the control of whoever told."""
    folder = _Folder()
    for change in changes:
        folder.apply(change)
    for file in folder.files.values():
        file.sync()
    return {
        name: bytes(folder.files[file].content)
        for name, file in folder.names_after(len(folder.naming)).items()
    }


class _Folder:
    def __init__(self) -> None:
        self.files: Final[dict[int, _File]] = {}
        self.names: dict[str, int] = {}
        self.naming: Final[list[Named]] = []
        """What was done to names since they were synced."""

    def apply(self, change: Change) -> None:
        if isinstance(change, Named):
            self.naming.append(change)
            if change.file is not None:
                self.files.setdefault(change.file, _File())
        elif isinstance(change, NamesSynced):
            self.names = self.names_after(len(self.naming))
            self.naming.clear()
        elif isinstance(change, Synced):
            self.files[change.file].sync()
        else:
            self.files[change.file].since.append(change)

    def names_after(self, count: int) -> dict[str, int]:
        names = dict(self.names)
        for change in self.naming[:count]:
            names.pop(change.name, None)
            if change.file is not None:
                names[change.name] = change.file
        return names

    def left(self, draw: random.Random) -> Files:
        names = self.names_after(draw.randint(0, len(self.naming)))
        found: dict[int, bytes] = {}
        for file in sorted(set(names.values())):
            kept = self.files[file]
            found[file] = _File(kept.content, list(kept.since)).left(draw)
        return {name: found[file] for name, file in names.items()}
