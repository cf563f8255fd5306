"""Notes by name, as files of older versions have them, given their places in the ledger (S-61).

Such a note is kept as it was, with its checksum; only where it stands is new, and what it is as a
note of today is said when it is read (see `named`). A message stands before the turn that it asks
for is opened, or after the continuation of the turn that it answers is taken; what nobody can place
stands before the next that can be, or at the end.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, Final, cast

import attrs
import msgspec

from ...models.sealed import is_sealed
from .ledger import Domain
from .named import is_said, note_of

_OPENED: Final = "TURN_OPENED"
_TAKEN: Final = "CONTINUATION_TAKEN"
_decode: Final = msgspec.json.Decoder().decode
_STRANGE: Final = (msgspec.MsgspecError, LookupError, TypeError, ValueError, RecursionError)
"""What is met in what is damaged: it is kept as it is, and told when it is read."""


@attrs.frozen
class _Place:
    """After which fact a note stands, and when that was."""

    sequence: int
    at: float


@attrs.frozen
class _Turns:
    """Where the turns of a run were opened, and their continuations taken."""

    opened: Mapping[str, _Place]
    taken: Mapping[str, _Place]
    end: _Place


@attrs.frozen
class _Named:
    """A note by its name, and what counts for its place."""

    number: int
    name: str
    domain: Domain
    speaks: bool
    """Whether it is an answer of a model, or a part of one."""
    calls: bool

    @property
    def is_part(self) -> bool:
        """Whether it is a part of an answer that was still spoken."""
        return self.name.startswith("part/")


def place_named(connection: sqlite3.Connection) -> None:
    """Copy the notes of a file of an older version into `noted`."""
    runs = connection.execute(
        "SELECT number, sequence FROM runs WHERE number IN (SELECT run FROM main.notes)"
    ).fetchall()
    for run, sequence in runs:
        named = list(_named(connection, run))
        turns = _turns(connection, run, sequence)
        parts: dict[int, int] = {}
        for it, place in _placed(named, turns):
            parts[place.sequence] = parts.get(place.sequence, 0) + 1
            connection.execute(
                "INSERT INTO noted (run, sequence, part, at, domain, id, named, checksum, content)"
                " SELECT run, ?, ?, ?, ?, name, 1, checksum, value FROM main.notes"
                " WHERE number = ?",
                (place.sequence, parts[place.sequence], place.at, str(it.domain), it.number),
            )


def drop_named(connection: sqlite3.Connection) -> None:
    """Remove what was copied, and leave nothing of it in free pages."""
    (before,) = connection.execute("PRAGMA secure_delete").fetchone()
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("DROP TABLE main.notes")
    connection.execute(f"PRAGMA secure_delete = {int(before)}")


def _named(connection: sqlite3.Connection, run: int) -> Iterator[_Named]:
    rows = connection.execute(
        "SELECT number, name, value FROM main.notes WHERE run = ? ORDER BY number", (run,)
    )
    with closing(rows):
        for number, name, content in rows:
            yield _named_of(number, str(name), content)


def _named_of(number: int, name: str, content: Any) -> _Named:  # noqa: ANN401 - a column
    value: Any = None
    domain = Domain.MESSAGE if is_said(name) else Domain.THREAD
    with suppress(*_STRANGE):
        value = _decode(content)
        domain = note_of(name, value, at=0.0).domain
    sealed = is_sealed(value)  # it has calls: their arguments are why
    told = cast("dict[str, Any]", value) if isinstance(value, dict) and is_said(name) else {}
    speaks = sealed or told.get("role") == "assistant"
    return _Named(number, name, domain, speaks, sealed or bool(told.get("calls")))


def _turns(connection: sqlite3.Connection, run: int, sequence: Any) -> _Turns:  # noqa: ANN401 - a column
    opened: dict[str, _Place] = {}
    taken: dict[str, _Place] = {}
    for fact, begins in _facts(connection, run):
        with suppress(*_STRANGE):
            if fact["type"] == _OPENED:
                opened.setdefault(fact["turn_id"], _Place(begins - 1, float(fact["at"])))
            elif fact["type"] == _TAKEN:
                taken.setdefault(fact["turn_id"], _Place(fact["commit"], float(fact["at"])))
    ends = sequence if isinstance(sequence, int) and sequence > 0 else 0
    return _Turns(opened, taken, _Place(ends, _latest(connection, run)))


def _facts(connection: sqlite3.Connection, run: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the facts of the appends that matter, and where the commit of each begins."""
    rows = connection.execute(
        "SELECT facts FROM appends WHERE run = ? AND (instr(facts, CAST(? AS BLOB))"
        " OR instr(facts, CAST(? AS BLOB))) ORDER BY last",
        (run, f'"{_OPENED}"', f'"{_TAKEN}"'),
    )
    with closing(rows):
        for (lines,) in rows:
            begins = commit = 0
            with suppress(*_STRANGE, AttributeError):
                for line in lines.split(b"\n"):
                    fact = _decode(line)
                    if fact["commit"] != commit:
                        begins, commit = fact["sequence"], fact["commit"]
                    yield fact, begins


def _latest(connection: sqlite3.Connection, run: int) -> float:
    row = connection.execute(
        "SELECT facts FROM appends WHERE run = ? ORDER BY last DESC LIMIT 1", (run,)
    ).fetchone()
    with suppress(*_STRANGE, AttributeError):
        return float(_decode(row[0].rpartition(b"\n")[2])["at"])
    return 0.0


def _placed(named: Sequence[_Named], turns: _Turns) -> Iterator[tuple[_Named, _Place]]:
    """Yield notes in their order, each with its place, which never goes back."""
    floor = _Place(0, 0.0)
    waiting: list[_Named] = []
    epoch, begun, answering = 0, False, ""
    for it in named:
        waiting.append(it)
        place = None
        if it.domain is Domain.THREAD and it is waiting[0]:
            place = floor
        elif it.speaks and (it.calls or it.is_part):
            epoch += not begun
            begun = it.is_part
            answering = f"t{epoch}"
            place = turns.opened.get(answering)
        elif it.speaks:
            place = turns.taken.get(answering)
            begun, answering = False, ""
        elif it.name.startswith("said/"):
            begun, answering = False, ""
        if place is not None:
            floor = place if place.sequence >= floor.sequence else floor
            yield from ((one, floor) for one in waiting)
            waiting.clear()
    last = turns.end if turns.end.sequence >= floor.sequence else floor
    yield from ((one, last) for one in waiting)
