"""The ledger of a SQLite journal: facts and notes read in one order, as the bytes that were kept.

All of a page is of one moment: it is read in one transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager

from .ledger import Cursor, Domain, LedgerEntry, LedgerPage
from .noted import NotedRow
from .pages import Told, page_of
from .rows import entries_in, missing
from .sqlite_notes import NOTED, PARTS, SHOWN, rows_after
from .sqlite_runs import Head, head_of, is_text

_ASKED: int = 500
"""Runs that one statement asks for."""


def page(  # noqa: PLR0913 - what is asked
    connection: sqlite3.Connection,
    run_id: str,
    *,
    after: Cursor,
    limit: int,
    manifests: bool,
    where: str,
) -> LedgerPage:
    """Return the next entries of a run."""
    with _one_moment(connection):
        head = head_of(connection, run_id)
        return _page(connection, head, after, limit=limit, manifests=manifests, where=where)


def _page(  # noqa: PLR0913 - what is asked
    connection: sqlite3.Connection,
    head: Head,
    after: Cursor,
    *,
    limit: int,
    manifests: bool,
    where: str,
) -> LedgerPage:
    (parts,) = connection.execute(
        f"SELECT {PARTS if manifests else SHOWN} FROM runs WHERE number = ?",  # noqa: S608 - ours
        (head.number,),
    ).fetchone()
    ends = Cursor(head.usable.sequence, parts or 0)
    with (
        closing(_facts(connection, head, after.sequence, where)) as facts,
        closing(_notes(connection, head, after, where, manifests=manifests)) as notes,
    ):
        return page_of(facts, notes, head=ends, limit=limit)


def _facts(
    connection: sqlite3.Connection, head: Head, after: int, where: str
) -> Generator[Sequence[LedgerEntry]]:
    """Yield the facts behind a sequence, those of an append together."""
    last = after
    rows = connection.execute(
        "SELECT first, last, facts, checksum, beside FROM appends WHERE run = ? AND last > ?"
        " ORDER BY last",
        (head.number, after),
    )
    with closing(rows):
        for kept in rows:
            entries = entries_in(kept, head.run_id, after=last, where=where)
            yield entries
            last = entries[-1].cursor.sequence
    if head.problem is None and last < head.sequence:
        raise missing(last + 1, where)


def _notes(
    connection: sqlite3.Connection, head: Head, after: Cursor, where: str, *, manifests: bool
) -> Generator[Told]:
    if after.part:
        row = connection.execute(
            f"{NOTED} AND sequence = ? AND part <= ? ORDER BY part DESC LIMIT 1",
            (head.number, after.sequence, after.part),
        ).fetchone()
        gap = None if row is None else NotedRow(*row)
        if gap is not None and gap.pruned is not None and gap.pruned > after.part:
            yield gap.gap(first=after.part + 1)
    but = None if manifests else Domain.SESSION
    rows = rows_after(connection, head, after, but=but)
    with closing(rows):
        for kept in rows:
            row = NotedRow(*kept).checked(head.run_id, where)
            yield row.gap() if row.pruned is not None else row.entry(head.run_id, where)


def ends(connection: sqlite3.Connection, *, run_ids: Sequence[str]) -> Mapping[str, Cursor]:
    """Return where ledgers end."""
    found: dict[str, Cursor] = {}
    asked = [run_id for run_id in dict.fromkeys(run_ids) if is_text(run_id)]
    for begin in range(0, len(asked), _ASKED):
        some = asked[begin : begin + _ASKED]
        rows = connection.execute(
            f"SELECT run_id, sequence, {SHOWN} FROM runs"  # noqa: S608 - ours
            f" WHERE forgotten IS NULL AND run_id IN ({', '.join('?' * len(some))})",
            some,
        )
        found.update(
            (run_id, Cursor(sequence, part or 0))
            for run_id, sequence, part in rows
            if isinstance(sequence, int)
        )
    return found


@contextmanager
def _one_moment(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")
