"""A SQLite journal looked at as a whole: all that is not as it was written, not only the first."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias, cast

from ...engine.snapshot import Snapshot
from ...models.codec import record_from_json
from ...models.errors import CorruptJournal, InvalidValue, TurnlockError
from ...views.status import Status
from .contract import Finding, Post, findings_of
from .ledger import START, Cursor
from .logs import finding
from .rows import STRANGE, Row, chained, checksum, facts_in, lines_in, missing
from .sqlite_entries import entries
from .sqlite_heads import is_log, log_name, lost_tails
from .sqlite_logs import check_logs
from .sqlite_notes import NotedRow, rows_after, worker
from .sqlite_posts import read_post
from .sqlite_runs import Head, head_of
from .sqlite_schema import MIGRATIONS, differing, version_of

FOUND: Final = 1_000
"""What SQLite itself finds is told up to so many."""
_OTHER_TIME: Final = "when it happened is told otherwise beside its row"
_DAMAGED: Final = "it is damaged: the checksum does not fit"

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
            yield _finding(None, f"meta {name!r}", _DAMAGED)


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
    after, digest = 0, None
    times: list[float] = []
    for kept in connection.execute(
        "SELECT first, last, facts, checksum, beside FROM appends WHERE run = ? ORDER BY last",
        (head.number,),
    ):
        row = Row(*kept)
        try:
            facts = facts_in(row, head.run_id, after=after, limit=row.last, where=where)
            times = [(times or [facts[0].at])[0], facts[-1].at]
            for fact, line in zip(
                facts, lines_in(row, head.run_id, after=after, where=where), strict=True
            ):
                if line.at != fact.at:
                    yield _finding(head.run_id, f"fact {fact.sequence}", _OTHER_TIME)
        except CorruptJournal as error:
            yield _finding(head.run_id, f"fact {error.sequence}", error.cause)
        except (TurnlockError, *STRANGE) as error:
            yield _finding(head.run_id, f"fact {after + 1}", str(error))
        digest = _digest(head, digest, row)
        after = row.last
    if head.problem is None and after < head.sequence:
        gone = missing(after + 1, where)
        yield _finding(head.run_id, f"fact {gone.sequence}", gone.cause)
    if head.digested == after and head.digest not in {None, digest}:
        yield _finding(head.run_id, "facts", "they are others than were kept: the digest differs")
    if times and after == head.sequence:
        yield from _listed(connection, head, times)


def _listed(
    connection: sqlite3.Connection, head: Head, times: Sequence[float]
) -> Iterator[Finding]:
    """Hold what a list shows against the facts, as far as nothing has to be folded for it."""
    began, changed, status, told = connection.execute(
        "SELECT began, changed, status, told FROM runs WHERE number = ?", (head.number,)
    ).fetchone()
    at = began in {None, times[0]} and (told != head.sequence or changed == times[1])
    if not at:
        yield _finding(head.run_id, "row", "when it began or changed is not when its facts say")
    known = status is None or status in frozenset(Status)
    ends = (isinstance(it, int) and 0 <= it <= head.sequence for it in (told, head.digested))
    if not (known and all(ends)):
        yield _finding(head.run_id, "row", "what its row tells of it is damaged")


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
        if checksum(content, run_id) != kept:
            yield _finding(run_id, "snapshot", _DAMAGED)
            continue
        try:
            found = record_from_json(Snapshot, content)
        except InvalidValue as error:
            yield _finding(run_id, "snapshot", f"it cannot be read: {error}")
        else:
            if found.sequence != sequence:
                yield _finding(run_id, "snapshot", f"it is of {found.sequence}, not {sequence}")


def _notes(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    """Look at each note and gap by itself, and whether any is missing between them."""
    for run_id in _runs(connection):
        head = head_of(connection, run_id)
        ends = Cursor()
        for kept in rows_after(connection, head, START).fetchall():
            row = NotedRow(*kept)
            what = f"note {row.id or str(row.cursor)!r}"
            if row.sum_of(run_id) != row.kept:
                yield _finding(run_id, what, _DAMAGED)
            elif row.pruned is None:
                try:
                    row.entry(run_id, where)
                except TurnlockError as error:
                    yield _finding(run_id, what, str(error))
            follows = ends.part + 1 if row.sequence == ends.sequence else 1
            if row.part != follows or row.sequence > head.usable.sequence:
                yield _finding(run_id, what, "a note before it is missing")
            ends = Cursor(row.sequence, row.part if row.pruned is None else row.pruned)


def _workers(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    for (name,) in connection.execute("SELECT worker FROM workers").fetchall():
        try:
            worker(connection, worker=name, where=where)
        except TurnlockError:
            yield _finding(None, f"worker {name!r}", _DAMAGED)


def _posts(connection: sqlite3.Connection, _: str) -> Iterator[Finding]:
    """Tell those set aside, those that will be, and answers that are damaged."""
    for number, run_id, delivery, kept, problem, receipt, receipt_kept in connection.execute(
        "SELECT posts.number, run_id, delivery, posts.checksum, problem, receipt, receipt_checksum"
        " FROM posts JOIN runs ON runs.number = posts.run"
    ):
        what = f"post {number}"
        if problem is not None:
            yield _finding(run_id, what, f"it was set aside: {problem}")
        elif not isinstance(read := read_post(number, run_id, delivery, kept), Post):
            yield _finding(run_id, what, read.problem)
        if receipt_kept is not None and checksum(receipt, number) != receipt_kept:
            yield _finding(run_id, f"answer to {what}", _DAMAGED)


def _logs(connection: sqlite3.Connection, where: str) -> Iterator[Finding]:
    yield from check_logs(connection, where)
