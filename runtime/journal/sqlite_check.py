"""A SQLite journal looked at as a whole: all that is not as it was written, not only the first."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias, cast

from ...models.errors import TurnlockError
from .checked import DAMAGED, FactsChecked, NotesChecked, post_checked, snapshot_checked
from .contract import Finding, findings_of
from .ledger import START
from .logs import finding
from .noted import NotedRow
from .rows import STRANGE, Row, chained, checksum
from .sqlite_entries import entries
from .sqlite_heads import is_log, log_name, lost_tails
from .sqlite_logs import check_logs
from .sqlite_notes import rows_after, worker
from .sqlite_runs import Head, head_of
from .sqlite_schema import MIGRATIONS, differing, version_of

FOUND: Final = 1_000
"""What SQLite itself finds is told up to so many."""

Step: TypeAlias = Callable[[sqlite3.Connection, str], Iterator[Finding]]


def check(connection: sqlite3.Connection, *, where: str) -> tuple[Finding, ...]:
    """Read all of the file; `where` says which it is, for messages."""
    found: list[Finding] = []
    for step in (
        _file,
        _schema,
        _meta,
        _rows,
        _tails,
        _facts,
        _snapshots,
        _notes,
        _workers,
        _posts,
        _logs,
    ):
        try:
            found += step(connection, where)
        except (sqlite3.Error, TurnlockError, *STRANGE) as error:
            what = step.__name__.removeprefix("_")
            found.append(_finding(None, what, f"cannot be read to its end: {error}"))
    return tuple(found)


def _finding(run_id: str | None, what: str, cause: str) -> Finding:
    return Finding(run_id=run_id, what=what, cause=cause)


def _file(connection: sqlite3.Connection, _: str) -> Iterator[Finding]:
    """Tell what SQLite says of its pages and indices, and rows of runs that are not there."""
    for (said,) in connection.execute(f"PRAGMA integrity_check({FOUND})"):
        if said != "ok":
            yield _finding(None, "file", str(said))
    for table, row, parent, _key in connection.execute("PRAGMA foreign_key_check"):
        yield _finding(None, "file", f"row {row} of {table} belongs to no row of {parent}")


def _schema(connection: sqlite3.Connection, _: str) -> Iterator[Finding]:
    """See whether the tables are declared as we declare them; an older file is only read here."""
    if version_of(connection) < len(MIGRATIONS):
        return
    for name in differing(connection):
        yield _finding(None, "schema", f"{name} is not declared as turnlock declares it")


def _meta(connection: sqlite3.Connection, _: str) -> Iterator[Finding]:
    for name, value, kept in connection.execute("SELECT name, value, checksum FROM meta"):
        if checksum(value, name) != kept:
            yield _finding(None, f"meta {name!r}", DAMAGED)


def _rows(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """Look at the rows of runs themselves, and the marks that they bear."""
    for entry in entries(
        connection, busy=None, kind=None, forgotten=True, after=None, limit=None, where=where
    ):
        yield from findings_of(entry)


def _tails(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """Tell what was acknowledged and is not there, and not marked yet."""
    for run_id, why in lost_tails(connection, Path(where)).items():
        if is_log(run_id):
            yield finding(log_name(run_id), None, why)
        else:
            yield _finding(run_id, "rewound", why)


def _runs(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT run_id FROM runs WHERE forgotten IS NULL ORDER BY number")
    return [run_id for (run_id,) in rows]


def _facts(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    for run_id in _runs(connection):
        yield from _facts_of(connection, head_of(connection, run_id), where)


def _facts_of(connection: sqlite3.Connection, head: Head, where: str) -> Iterator[Finding]:
    """Look at each append by itself: whether it follows, fits its checksum, and can be read."""
    checked, digest = FactsChecked(head.run_id, where), None
    for kept in connection.execute(
        "SELECT first, last, facts, checksum, beside FROM appends WHERE run = ? ORDER BY last",
        (head.number,),
    ):
        row = Row(*kept)
        yield from checked.next(row)
        digest = _digest(head, digest, row)
    if head.problem is None:
        yield from checked.of_end(head.sequence)
    if head.digested == checked.after and head.digest not in {None, digest}:
        yield _finding(head.run_id, "facts", "they are others than were kept: the digest differs")
    began, changed, status, told = connection.execute(
        "SELECT began, changed, status, told FROM runs WHERE number = ?", (head.number,)
    ).fetchone()
    yield from checked.of_row(
        head.sequence,
        began=began,
        changed=changed,
        status=status,
        told=told,
        digested=head.digested,
    )


def _digest(head: Head, before: bytes | None, row: Row) -> bytes | None:
    """Chain on, from where the kept digest begins."""
    content = cast("object", row.facts)  # damage may turn it into a text
    if not isinstance(head.digest, bytes) or not isinstance(content, bytes):
        return None
    begins = chained(None, row)
    return begins if begins[:8] == head.digest[:8] else before and chained(before, row)


def _snapshots(connection: sqlite3.Connection, _: str) -> Iterator[Finding]:
    for run_id, sequence, content, kept in connection.execute(
        "SELECT run_id, snapshots.sequence, snapshot, snapshots.checksum"
        " FROM snapshots JOIN runs ON runs.number = snapshots.run"
    ):
        yield from snapshot_checked(run_id, sequence=sequence, content=content, kept=kept)


def _notes(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """Look at each note and gap by itself, and whether any is missing between them."""
    for run_id in _runs(connection):
        head = head_of(connection, run_id)
        checked = NotesChecked(run_id, where, sequence=head.usable.sequence)
        for kept in rows_after(connection, head, START).fetchall():
            yield from checked.next(NotedRow(*kept))


def _workers(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    for (name,) in connection.execute("SELECT worker FROM workers").fetchall():
        try:
            worker(connection, worker=name, where=where)
        except TurnlockError:
            yield _finding(None, f"worker {name!r}", DAMAGED)


def _posts(connection: sqlite3.Connection, _: str) -> Iterator[Finding]:
    """Tell those set aside, those that will be, and answers that are damaged."""
    for number, run_id, delivery, kept, problem, receipt, receipt_kept in connection.execute(
        "SELECT posts.number, run_id, delivery, posts.checksum, problem, receipt, receipt_checksum"
        " FROM posts JOIN runs ON runs.number = posts.run"
    ):
        yield from post_checked(
            number,
            run_id,
            delivery=delivery,
            kept=kept,
            problem=problem,
            receipt=receipt,
            receipt_kept=receipt_kept,
        )


def _logs(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    yield from check_logs(connection, where)
