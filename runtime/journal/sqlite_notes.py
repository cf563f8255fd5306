"""The notes of a SQLite journal: kept, found, and pruned.

A row of `noted` is a note, or a gap: what was pruned from its part on, `pruned` being the last. One
that is `named` holds the value that an older version kept under its name, with the checksum that
the older one made; what it is as a note is said when it is read (see `named`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final, cast

import attrs

from ...models.errors import InvalidValue
from ...models.strict_json import parse
from ...models.values import freeze
from . import ledger
from .contract import Appended
from .given import Given
from .ledger import LASTING, Cursor, Domain, LedgerEntry, Note, Noted
from .named import note_of
from .pruning import Spared, turn_of
from .refusals import another_worker
from .rows import checksum, damaged, trusted_fact
from .sqlite_runs import Head, head_of, is_text, where_of, writable

_LAST: Final = (
    "(SELECT coalesce(pruned, part) FROM noted"
    " WHERE run = runs.number AND noted.sequence = runs.sequence{} ORDER BY part DESC LIMIT 1)"
)
PARTS: Final = _LAST.format("")
"""Of a row of `runs`: how many notes were kept after its last fact."""
SHOWN: Final = _LAST.format(f" AND domain != '{Domain.SESSION}'")
"""The last of them that is shown."""

NOTED: Final = (
    "SELECT sequence, part, at, domain, id, named, pruned, checksum, correlation, content"
    " FROM noted WHERE run = ?"
)
"""What a `Row` is made of."""


@attrs.frozen
class NotedRow:
    """A row of `noted`; the order is that of `NOTED`."""

    sequence: int
    part: int
    at: float
    domain: str
    id: str | None
    named: int
    pruned: int | None
    kept: int
    correlation: bytes | None
    content: bytes

    @property
    def cursor(self) -> Cursor:
        """Where it stands, a gap where it begins."""
        return Cursor(self.sequence, self.part)

    def sum_of(self, run_id: str) -> int:
        """Return the checksum that it must have."""
        if self.named:
            return checksum(self.content, run_id, self.id)
        return checksum(
            self.content, run_id, self.sequence, self.part, self.at, self.domain, self.id,
            self.pruned, self.correlation,
        )  # fmt: skip

    def checked(self, run_id: str, where: str) -> NotedRow:
        """Return it. Raises `JournalError` where it is not as it was written."""
        if self.sum_of(run_id) != self.kept:
            raise damaged(where, self.named_for(run_id), "the checksum does not fit")
        return self

    def named_for(self, run_id: str) -> str:
        """Return it as a message calls it."""
        return f"the note {self.id or str(self.cursor)!r} of run {run_id!r}"

    def note(self, run_id: str, where: str) -> Note:
        """Return the note. Raises `JournalError` for one that cannot be read."""
        try:
            return self._note()
        except (InvalidValue, LookupError, TypeError, ValueError) as error:
            raise damaged(where, self.named_for(run_id), str(error)) from error

    def _note(self) -> Note:
        value: Any = freeze(parse(self.content), place="note")
        if self.named:
            return note_of(self.id or "", value, at=self.at)
        about = None if self.correlation is None else parse(self.correlation)
        return Note(
            domain=value["domain"],
            kind=value["kind"],
            body=value["body"],
            at=self.at,
            id=self.id,
            correlation=None if about is None else freeze(about, place="correlation"),
        )

    def entry(self, run_id: str, where: str) -> LedgerEntry:
        """Return it as an entry; its bytes are the ones that were kept, unless it is `named`."""
        if self.named:
            note = self.note(run_id, where)
            return LedgerEntry(self.cursor, self.at, note.content(), None, note.domain)
        domain = Domain(self.domain)
        return LedgerEntry(self.cursor, self.at, self.content, self.correlation, domain)


def note(
    connection: sqlite3.Connection,
    run_id: str,
    *,
    fence: int | None,
    given: Sequence[Given],
) -> Appended:
    """Keep notes after the last fact."""
    head = writable(connection, run_id)
    if not head.admits(fence):
        return Appended.FENCED
    if any(it.after not in {None, head.sequence} for it in given):
        return Appended.CONFLICT
    fresh = not_kept(connection, head, given)
    if fresh is None:
        return Appended.CONFLICT
    keep_notes(connection, head, fresh)
    return Appended.OK


def not_kept(
    connection: sqlite3.Connection, head: Head, given: Sequence[Given]
) -> list[Given] | None:
    """Return those of the notes that are not kept yet; None where an id has other content."""
    fresh: list[Given] = []
    names: dict[str, bytes] = {}
    for it in given:
        name = it.note.id
        if name is None:
            fresh.append(it)
            continue
        known = names.get(name) or _content(connection, head, name)
        if known is None:
            fresh.append(it)
            names[name] = it.content
        elif known != it.content:
            return None
    return fresh


def _content(connection: sqlite3.Connection, head: Head, name: str) -> bytes | None:
    """Return the content of the note of this id, as `Note.content` says it."""
    row = connection.execute(f"{NOTED} AND id = ?", (head.number, name)).fetchone()
    if row is None:
        return None
    where = where_of(connection)
    found = NotedRow(*row).checked(head.run_id, where)
    return found.note(head.run_id, where).content() if found.named else found.content


def keep_notes(connection: sqlite3.Connection, head: Head, given: Sequence[Given]) -> None:
    """Keep notes, each after its fact, or after the last."""
    ends: dict[int, int] = {}
    for it in given:
        sequence = head.sequence if it.after is None else it.after
        if sequence not in ends:
            ends[sequence] = _last_part(connection, head, sequence)
        ends[sequence] += 1
        note = it.note
        _insert(
            connection,
            head,
            NotedRow(
                sequence, ends[sequence], note.at, str(note.domain), note.id, 0, None, 0,
                it.correlation, it.content,
            ),
        )  # fmt: skip


def _insert(connection: sqlite3.Connection, head: Head, row: NotedRow) -> None:
    connection.execute(
        "INSERT INTO noted (run, sequence, part, at, domain, id, named, pruned, checksum,"
        " correlation, content) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            head.number, row.sequence, row.part, row.at, row.domain, row.id, row.named,
            row.pruned, row.sum_of(head.run_id), row.correlation, row.content,
        ),
    )  # fmt: skip


def _last_part(connection: sqlite3.Connection, head: Head, sequence: int) -> int:
    row = connection.execute(
        "SELECT coalesce(pruned, part) FROM noted WHERE run = ? AND sequence = ?"
        " ORDER BY part DESC LIMIT 1",
        (head.number, sequence),
    ).fetchone()
    return 0 if row is None else int(row[0])


def notes(
    connection: sqlite3.Connection,
    run_id: str,
    *,
    domain: Domain | None,
    after: Cursor,
    where: str,
) -> tuple[Noted, ...]:
    """Return the notes of a run, in order."""
    rows = rows_after(connection, head_of(connection, run_id), after, pruned=False, domain=domain)
    with closing(rows):
        return tuple([_noted(row, run_id, where) for row in rows])


def rows_after(  # noqa: PLR0913 - what is asked
    connection: sqlite3.Connection,
    head: Head,
    after: Cursor,
    *,
    pruned: bool = True,
    domain: Domain | None = None,
    but: Domain | None = None,
) -> sqlite3.Cursor:
    """Return the rows behind a cursor, in order; of one domain, or of all but one."""
    return connection.execute(
        f"{NOTED} AND (sequence, part) > (?, ?)"
        " AND (? OR pruned IS NULL) AND coalesce(domain = ?, 1) AND coalesce(domain != ?, 1)"
        " ORDER BY sequence, part",
        (head.number, after.sequence, after.part, pruned, domain, but),
    )


def _noted(row: Any, run_id: str, where: str) -> Noted:  # noqa: ANN401 - a column
    kept = NotedRow(*row).checked(run_id, where)
    return Noted(cursor=kept.cursor, note=kept.note(run_id, where))


def find_note(
    connection: sqlite3.Connection, run_id: str, *, note_id: str, where: str
) -> Noted | None:
    """Return the note of this id."""
    number = head_of(connection, run_id).number
    if not is_text(note_id):
        return None
    row = connection.execute(f"{NOTED} AND id = ?", (number, note_id)).fetchone()
    return None if row is None else _noted(row, run_id, where)


_OBSERVED: Final = "pruned IS NULL AND id IS NULL AND domain NOT IN ({})".format(
    ", ".join(f"'{domain}'" for domain in sorted(LASTING))
)


def prunable(
    connection: sqlite3.Connection, run_id: str, *, fence: int | None, now: float
) -> list[int]:
    """Return the rows of the observations that may go, the oldest first."""
    head = writable(connection, run_id)
    if not head.admits(fence):
        return []
    observed = connection.execute(
        f"SELECT number, sequence, at, correlation FROM noted WHERE run = ? AND {_OBSERVED}"  # noqa: S608 - ours
        " ORDER BY sequence, part",
        (head.number,),
    ).fetchall()
    beyond = len(observed) - ledger.OBSERVATIONS
    oldest = now - ledger.OBSERVED_FOR
    gone = [
        (number, sequence, about)
        for place, (number, sequence, at, about) in enumerate(observed)
        if place < beyond or at < oldest
    ]
    if not gone:
        return []
    spared = Spared.by(_turn_facts(connection, head), latest=_latest_turn(connection, head))
    return [number for number, sequence, about in gone if not spared.has(sequence, _turn_in(about))]


def _latest_turn(connection: sqlite3.Connection, head: Head) -> str | None:
    """Return the turn of another runtime that was told of last."""
    rows = connection.execute(
        "SELECT correlation FROM noted WHERE run = ? AND correlation IS NOT NULL"
        " ORDER BY sequence DESC, part DESC",
        (head.number,),
    )
    with closing(rows):
        about = (_turn_in(correlation) for (correlation,) in rows)
        return next((it for it in about if it is not None), None)


def _turn_in(correlation: bytes | None) -> str | None:
    """Return the turn that a correlation names; None where it is damaged: the row says so."""
    if correlation is None:
        return None
    try:
        about: Any = parse(correlation)
    except (InvalidValue, ValueError):
        return None
    return turn_of(cast("dict[str, Any]", about)) if isinstance(about, dict) else None


def _turn_facts(connection: sqlite3.Connection, head: Head) -> Iterator[Any]:
    """Yield the facts of turns, the latest first."""
    rows = connection.execute(
        "SELECT facts FROM appends WHERE run = ? AND instr(facts, CAST('\"TURN_' AS BLOB))"
        " ORDER BY last DESC",
        (head.number,),
    )
    with closing(rows):
        for (lines,) in rows:
            yield from (
                trusted_fact(line) for line in reversed(lines.split(b"\n")) if b'"TURN_' in line
            )


def prune(
    connection: sqlite3.Connection, run_id: str, *, fence: int | None, numbers: Sequence[int]
) -> int:
    """Remove these rows, and leave gaps in their places; return how many are gone."""
    head = writable(connection, run_id)
    if not head.admits(fence):
        return 0
    gone = 0
    for number in numbers:
        row = connection.execute(
            f"SELECT sequence, part FROM noted WHERE number = ? AND {_OBSERVED}",  # noqa: S608 - ours
            (number,),
        ).fetchone()
        if row is not None:
            _leave_gap(connection, head, Cursor(*row))
            gone += 1
    return gone


def _leave_gap(connection: sqlite3.Connection, head: Head, cursor: Cursor) -> None:
    """Put a gap in the place of a note; one that it touches goes on in it."""
    key = (head.number, cursor.sequence)
    before = connection.execute(
        "SELECT part, pruned FROM noted WHERE run = ? AND sequence = ? AND part < ?"
        " ORDER BY part DESC LIMIT 1",
        (*key, cursor.part),
    ).fetchone()
    behind = connection.execute(
        "SELECT pruned FROM noted WHERE run = ? AND sequence = ? AND part = ?",
        (*key, cursor.part + 1),
    ).fetchone()
    first = before[0] if before is not None and before[1] is not None else cursor.part
    last = behind[0] if behind is not None and behind[0] is not None else cursor.part
    connection.execute(
        "DELETE FROM noted WHERE run = ? AND sequence = ? AND part BETWEEN ? AND ?",
        (*key, first, last),
    )
    _insert(
        connection, head, NotedRow(cursor.sequence, first, 0.0, "", None, 0, last, 0, None, b"")
    )


def put_worker(connection: sqlite3.Connection, *, worker: str, meaning: str) -> None:
    """Keep what a worker stands for."""
    connection.execute(
        "INSERT OR IGNORE INTO workers (worker, meaning, checksum) VALUES (?, ?, ?)",
        (worker, meaning, checksum(meaning.encode(), worker)),
    )
    kept = connection.execute("SELECT meaning FROM workers WHERE worker = ?", (worker,)).fetchone()
    if kept[0] != meaning:
        raise another_worker(worker)


def worker(connection: sqlite3.Connection, *, worker: str, where: str) -> str | None:
    """Return what a worker stands for."""
    if not is_text(worker):
        return None
    row = connection.execute(
        "SELECT meaning, checksum FROM workers WHERE worker = ?", (worker,)
    ).fetchone()
    if row is None:
        return None
    meaning: str = row[0]
    if checksum(meaning.encode(), worker) != row[1]:
        raise damaged(where, f"what worker {worker!r} stands for", "the checksum does not fit")
    return meaning
