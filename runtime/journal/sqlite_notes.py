"""The notes of a SQLite journal: kept, found, and pruned. What a row of them is, `noted` says."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

from ...models.fact import Fact
from . import noted
from .contract import Appended
from .given import Given
from .ledger import LASTING, Cursor, Domain, Gap, Noted
from .noted import NotedRow, ids_of, placed
from .pruning import Spared, joined, old_of, turn_facts, turn_in
from .refusals import another_worker
from .rows import checksum, damaged
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
"""What a `NotedRow` is made of."""


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
    known: dict[str, bytes] = {}
    for name in ids_of(given):
        row = connection.execute(f"{NOTED} AND id = ?", (head.number, name)).fetchone()
        if row is not None:
            known[name] = NotedRow(*row).told(head.run_id, where_of(connection))
    return noted.not_kept(given, known)


def keep_notes(connection: sqlite3.Connection, head: Head, given: Sequence[Given]) -> None:
    """Keep notes, each after its fact, or after the last."""
    part = _last_part(connection, head, head.sequence)
    for row in placed(given, sequence=head.sequence, part=part):
        _insert(connection, head, row)


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
        return tuple([NotedRow(*row).noted(run_id, where) for row in rows])


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


def find_note(
    connection: sqlite3.Connection, run_id: str, *, note_id: str, where: str
) -> Noted | None:
    """Return the note of this id."""
    number = head_of(connection, run_id).number
    if not is_text(note_id):
        return None
    row = connection.execute(f"{NOTED} AND id = ?", (number, note_id)).fetchone()
    return None if row is None else NotedRow(*row).noted(run_id, where)


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
    gone = old_of(
        [((number, sequence, about), at) for number, sequence, at, about in observed], now=now
    )
    if not gone:
        return []
    spared = Spared.by(_turn_facts(connection, head), latest=_latest_turn(connection, head))
    return [number for number, sequence, about in gone if not spared.has(sequence, turn_in(about))]


def _latest_turn(connection: sqlite3.Connection, head: Head) -> str | None:
    """Return the turn of another runtime that was told of last."""
    rows = connection.execute(
        "SELECT correlation FROM noted WHERE run = ? AND correlation IS NOT NULL"
        " ORDER BY sequence DESC, part DESC",
        (head.number,),
    )
    with closing(rows):
        about = (turn_in(correlation) for (correlation,) in rows)
        return next((it for it in about if it is not None), None)


def _turn_facts(connection: sqlite3.Connection, head: Head) -> Iterator[Fact]:
    """Yield the facts of turns, the latest first."""
    rows = connection.execute(
        "SELECT facts FROM appends WHERE run = ? AND instr(facts, CAST('\"TURN_' AS BLOB))"
        " ORDER BY last DESC",
        (head.number,),
    )
    with closing(rows):
        for (lines,) in rows:
            yield from turn_facts(lines)


def prune(
    connection: sqlite3.Connection, run_id: str, *, fence: int | None, numbers: Sequence[int]
) -> int:
    """Remove these rows, and leave gaps in their places; return how many are gone."""
    head = writable(connection, run_id)
    if not head.admits(fence):
        return 0
    gone: list[Gap] = []
    touching: list[Gap] = []
    for number in numbers:
        row = connection.execute(
            f"SELECT sequence, part FROM noted WHERE number = ? AND {_OBSERVED}",  # noqa: S608 - ours
            (number,),
        ).fetchone()
        if row is not None:
            gone.append(Gap(first=Cursor(*row), last=Cursor(*row)))
            touching += _touching(connection, head, Cursor(*row))
    _keep_gaps(connection, head, [*gone, *touching])
    return len(gone)


def skip(connection: sqlite3.Connection, run_id: str, *, fence: int | None, parts: int) -> Appended:
    """Keep a gap behind the last entry."""
    head = writable(connection, run_id)
    if not head.admits(fence):
        return Appended.FENCED
    part = _last_part(connection, head, head.sequence)
    first, last = Cursor(head.sequence, part + 1), Cursor(head.sequence, part + parts)
    _keep_gaps(connection, head, [Gap(first=first, last=last), *_touching(connection, head, first)])
    return Appended.OK


def _keep_gaps(connection: sqlite3.Connection, head: Head, gaps: Sequence[Gap]) -> None:
    """Keep gaps instead of what stands there, those that touch as one."""
    for gap in joined(gaps):
        connection.execute(
            "DELETE FROM noted WHERE run = ? AND sequence = ? AND part BETWEEN ? AND ?",
            (head.number, gap.first.sequence, gap.first.part, gap.last.part),
        )
        _insert(connection, head, NotedRow.of_gap(gap))


def _touching(connection: sqlite3.Connection, head: Head, cursor: Cursor) -> Iterator[Gap]:
    """Yield the gaps right before and behind a note: what goes between them joins them."""
    before = (f"{NOTED} AND sequence = ? AND part < ? ORDER BY part DESC LIMIT 1", cursor.part)
    behind = (f"{NOTED} AND sequence = ? AND part = ?", cursor.part + 1)
    for select, part in (before, behind):
        kept = connection.execute(select, (head.number, cursor.sequence, part)).fetchone()
        row = None if kept is None else NotedRow(*kept)
        if row is not None and row.pruned is not None:
            yield row.gap()


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
