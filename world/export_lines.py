"""The file of an export: JSON lines, each with a checksum that also covers those before it (W-72).

    {"sum": "…", "line": {"turnlock": "world", "version": 1, "world": "demo", "at": …}}
    {"sum": "…", "line": {"log": {"name": "demo", "last": 3}}}
    {"sum": "…", "line": {"entry": {"number": 1, "entry_id": "made", "at": …, "body": {…}}}}
    {"sum": "…", "line": {"run": {"run_id": "demo/plan/alice", …}}}
    {"sum": "…", "line": {"end": {"lines": 12}}}

The header comes first, then the world's log, then those of its chats, then the runs of its members,
then the end. Lines of a run are those of an archive: how it was declared, its facts and its notes.
So a line that is changed, missing, moved or not of this file is found at that line, and a file that
breaks off has no end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import attrs

from ..models.codec import read
from ..models.errors import InvalidValue, NewerVersion, TurnlockError, shown
from ..models.fact import Fact
from ..models.record import number as finite
from ..models.run import Run
from ..models.strict_json import parse
from ..models.values import Json, canonical, freeze
from ..runtime.archive import noted_of
from ..runtime.journal.contract import Entry
from ..runtime.journal.ledger import Noted
from ..wire.log import FactLine, LogReader
from .names import check_id

VERSION: Final = 1
"""Of the file; what is newer is refused."""
LINE_BYTES: Final = 64 * 1024 * 1024
"""Bytes of one line of an export, at most (section 13)."""
WHAT: Final = "world"
"""What the header says that the file is."""

_BEFORE, _BETWEEN, _AFTER = b'{"sum":"', b'","line":', b"}\n"
_HEX: Final = 64
_FRAME: Final = len(_BEFORE) + _HEX + len(_BETWEEN) + len(_AFTER)


class ExportError(TurnlockError):
    """An export that cannot be written, or that is not as one was written; nothing was kept."""


def broken(path: Path, line: int, cause: str) -> ExportError:
    """Return the error of a line of a file."""
    return ExportError(
        f"export {path}, line {line}: {cause}; it is no export, or it is damaged: nothing was"
        " imported; export the world again"
    )


class LineWriter:
    """Writes lines, each with the sum of all so far."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        """Begin before the first line."""
        self._write = write
        self.sum = ""
        self.count = 0

    def add(self, line: bytes) -> None:
        """Write one line, which is one JSON value, with or without its line feed."""
        inner = line.strip()
        if len(inner) + _FRAME > LINE_BYTES:
            raise ExportError(
                f"export, line {self.count + 1}: has {len(inner):,} bytes, and a line may have"
                f" {LINE_BYTES:,}: nothing was written; keep what is that large elsewhere"
            )
        self.sum = summed(self.sum, inner)
        self.count += 1
        self._write(b"".join((_BEFORE, self.sum.encode(), _BETWEEN, inner, _AFTER)))

    def say(self, value: Mapping[str, Json]) -> None:
        """Write one JSON object."""
        self.add(canonical(value).encode())

    def end(self) -> None:
        """Write that nothing follows."""
        self.say({"end": {"lines": self.count}})


def summed(before: str, line: bytes) -> str:
    """Return the sum of a line and of all before it."""
    return hashlib.sha256(before.encode() + line).hexdigest()


@attrs.frozen
class Header:
    """Whose export it is."""

    world: str


@attrs.frozen
class LogBegins:
    """What follows are the entries of a log, `last` of them."""

    log: str
    last: int


@attrs.frozen
class Logged:
    """An entry of a log."""

    log: str
    entry: Entry


@attrs.frozen
class Ran:
    """A run, whole."""

    run: Run
    facts: tuple[Fact, ...]
    notes: tuple[Noted, ...]


@attrs.frozen
class Ended:
    """The export is whole; `digest` is the sum of all its lines."""

    digest: str


Item: TypeAlias = Header | LogBegins | Logged | Ran | Ended
"""What an export holds, in the order of the file."""


def items_of(path: Path) -> Iterator[Item]:
    """Yield what an export holds, the end last. Raises `ExportError` at the line that is wrong."""
    reader = _Reader(path)
    try:
        with path.open("rb") as file:
            while line := file.readline(LINE_BYTES + 1):
                yield from reader.take(line)
    except OSError as error:
        why = error.strerror or str(error)
        raise ExportError(f"export {path}: {why}; name a file that can be read") from error
    if not reader.ended:
        raise broken(path, reader.line + 1, "it breaks off")


class _Reader:
    """An export as far as it was read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.line = 0
        self.ended = False
        self._sum = ""
        self._world: str | None = None
        self._log: LogBegins | None = None
        self._number = 0
        self._seen: set[str] = set()
        self._run: _RunLines | None = None

    def take(self, line: bytes) -> Iterator[Item]:
        """Take the next line."""
        self.line += 1
        inner = self._checked(line)
        try:
            yield from self._taken(inner)
        except ExportError:
            raise
        except (TurnlockError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise broken(self.path, self.line, str(error)) from error

    def _checked(self, line: bytes) -> bytes:
        """Return what stands in a line, once its sum is right."""
        if self.ended:
            raise broken(self.path, self.line, "it stands behind the end")
        if len(line) > LINE_BYTES:
            raise broken(self.path, self.line, f"it has more than {LINE_BYTES:,} bytes")
        between = len(_BEFORE) + _HEX
        begins = between + len(_BETWEEN)
        whole = (
            line.startswith(_BEFORE) and line[between:begins] == _BETWEEN and line.endswith(_AFTER)
        )
        if not whole:
            raise broken(self.path, self.line, "it is no whole line of an export")
        inner = line[begins : -len(_AFTER)]
        self._sum = summed(self._sum, inner)
        if line[len(_BEFORE) : between] != self._sum.encode():
            raise broken(self.path, self.line, "it is not as it was written, or not in its place")
        return inner

    def _taken(self, inner: bytes) -> Iterator[Item]:
        if self._world is None:
            self._world = _world_of(parse(inner))
            yield Header(self._world)
        elif inner.startswith(b'{"log":'):
            yield self._begun(parse(inner)["log"])
        elif inner.startswith(b'{"entry":'):
            yield self._entry(parse(inner)["entry"])
        elif inner.startswith(b'{"end":'):
            yield from self._run_ends()
            self._logs_end()
            if parse(inner) != {"end": {"lines": self.line - 1}}:
                raise broken(self.path, self.line, "it counts other lines than there are")
            self.ended = True
            yield Ended(self._sum)
        else:
            if inner.startswith(b'{"run":'):
                yield from self._run_ends()
                self._logs_end()
                self._run = _RunLines()
            if self._run is None:
                raise broken(self.path, self.line, "it stands before any run")
            self._run.take(inner)

    def _begun(self, said: Any) -> LogBegins:  # noqa: ANN401 - any JSON
        self._logs_end()
        name, last = said["name"], said["last"]
        if self._run is not None or type(name) is not str or name in self._seen:
            raise broken(self.path, self.line, "it begins a log where none can begin")
        if type(last) is not int or last < 0 or (not self._seen and name != self._world):
            raise broken(self.path, self.line, "it is not the log that should stand here")
        self._seen.add(name)
        self._log, self._number = LogBegins(name, last), 0
        return self._log

    def _entry(self, said: Any) -> Logged:  # noqa: ANN401 - any JSON
        log = self._log
        if log is None or self._run is not None or self._number >= log.last:
            raise broken(self.path, self.line, "it stands in no log")
        self._number += 1
        if said["number"] != self._number or type(said["number"]) is not int:
            raise broken(self.path, self.line, f"it is not entry {self._number} of {log.log}")
        if type(said["entry_id"]) is not str or not said["entry_id"]:
            raise broken(self.path, self.line, "its id is no text")
        entry = Entry(
            number=self._number,
            entry_id=said["entry_id"],
            at=finite(said["at"], place="at"),
            body=freeze(said["body"], place="body"),
        )
        return Logged(log.log, entry)

    def _logs_end(self) -> None:
        if self._log is not None and self._number < self._log.last:
            raise broken(self.path, self.line, f"entries of {self._log.log} are missing before it")
        if not self._seen and self._log is None and self.line > 2:  # noqa: PLR2004 - the first two
            raise broken(self.path, self.line, "the world's log is missing before it")

    def _run_ends(self) -> Iterator[Ran]:
        if self._run is not None:
            yield self._run.whole()
            self._run = None


class _RunLines:
    """The lines of one run, as an archive has them."""

    def __init__(self) -> None:
        self._reader = LogReader()
        self._run: Run | None = None
        self._facts: list[Fact] = []
        self._notes: list[Noted] = []

    def take(self, inner: bytes) -> None:
        for entry in self._reader.entries([inner + b"\n"]):
            fact = entry.record() if isinstance(entry, FactLine) else None
            run_id = None if self._run is None else self._run.run_id
            if not isinstance(fact, Fact) or fact.run_id != run_id:
                raise ValueError(f"it is no fact of run {run_id!r}")
            if fact.sequence != len(self._facts) + 1:
                raise ValueError(f"it is not fact {len(self._facts) + 1} of run {run_id!r}")
            self._facts.append(fact)
            return
        raw = self._reader.raw
        if self._run is None:
            self._run = read(Run, raw["run"], place="run")
        elif raw.keys() == {"note"} and raw["note"].get("run_id") == self._run.run_id:
            self._note(noted_of(raw["note"]))
        else:
            raise ValueError(f"it is no line of run {self._run.run_id!r}")

    def _note(self, noted: Noted) -> None:
        before = self._notes[-1].cursor if self._notes else None
        at = noted.cursor
        follows = before is None or before < at
        if not (follows and at.part and at.sequence == len(self._facts)):
            raise ValueError(f"a note does not stand at {at}")
        if self._facts and self._facts[-1].commit != at.sequence:
            raise ValueError(f"a note stands inside a commit, at {at}")
        self._notes.append(noted)

    def whole(self) -> Ran:
        if self._run is None:
            raise ValueError("it says of no run how it was declared")
        if self._facts and self._facts[-1].commit != len(self._facts):
            raise ValueError(f"run {self._run.run_id!r} ends inside a commit")
        return Ran(self._run, tuple(self._facts), tuple(self._notes))


def _world_of(said: object) -> str:
    """Return whose export a header says it is."""
    fields = cast("Mapping[str, Any]", said if isinstance(said, Mapping) else {})
    if fields.get("turnlock") != WHAT:
        raise InvalidValue(place="turnlock", cause="is no export of a world", fix="name one")
    version = fields.get("version")
    if type(version) is int and version > VERSION:
        raise NewerVersion(
            place="version",
            cause=f"is {version}, and this turnlock knows {VERSION}",
            fix="import it with a newer turnlock",
        )
    if type(version) is not int or version != VERSION:
        raise InvalidValue(place="version", cause=f"is {shown(version)}", fix=f"give {VERSION}")
    return check_id(fields.get("world"), place="world")
