"""What the SQLite journal reads and writes; each function is given a connection, in its thread.

A read sees all that was kept before it was called. A write runs inside a transaction; one that
refuses has written nothing before (see `writing` in `sqlite`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import TypeVar

from ...engine.snapshot import Snapshot
from ...models.fact import Foldable
from . import pages
from .contract import Appended, Busy, run_differs
from .given import Given
from .refusals import not_restored
from .rows import Reader, Row, chained, checksum, facts_in, missing, snapshot_in
from .sqlite_entries import entry
from .sqlite_heads import Heads, Noted
from .sqlite_notes import keep_notes, not_kept, note
from .sqlite_runs import (
    Head,
    Lease,
    head_of,
    head_sum,
    readmit,
    regain,
    told_of,
    where_of,
    writable,
)

T = TypeVar("T", bound=Foldable)


def facts(  # noqa: PLR0913 - what is asked
    connection: sqlite3.Connection,
    run_id: str,
    *,
    after: int,
    limit: int,
    where: str,
    read: Reader[T],
) -> tuple[T, ...]:
    """Return the next facts, each as `read` makes it (see `facts_in`).

    Where the run ends is asked first: rows can only be added since. Where its row is damaged that
    is not known, and the facts end where there is none.
    """
    head = head_of(connection, run_id)
    found: list[T] = []
    size = 0
    rows = connection.execute(
        "SELECT first, last, facts, checksum FROM appends WHERE run = ? AND last > ? ORDER BY last",
        (head.number, after),
    )
    with closing(rows):
        for kept in rows:
            row = Row(*kept)
            found += facts_in(
                row,
                run_id,
                after=after + len(found),
                limit=limit - len(found),
                where=where,
                read=read,
            )
            size += len(row.facts)
            if len(found) >= limit or size >= pages.PAGE_BYTES:
                return tuple(found)
    if head.problem is None and after + len(found) < head.sequence:
        raise missing(after + len(found) + 1, where)
    return tuple(found)


def snapshot(connection: sqlite3.Connection, run_id: str) -> Snapshot | None:
    """Return the kept snapshot, None where there is none or it is damaged."""
    return _snapshot(connection, head_of(connection, run_id))


def _snapshot(connection: sqlite3.Connection, head: Head) -> Snapshot | None:
    row = connection.execute(
        "SELECT snapshot, checksum, sequence FROM snapshots WHERE run = ?", (head.number,)
    ).fetchone()
    return None if row is None else snapshot_in(*row, run_id=head.run_id)


def append(  # noqa: PLR0913 - what an append says, and where its end is noted
    connection: sqlite3.Connection,
    run_id: str,
    row: Row,
    *,
    fence: int | None,
    busy: Busy,
    heads: Heads,
    notes: Sequence[Given] = (),
) -> Appended:
    """Keep the facts of one append, and the notes that come with them."""
    head = writable(connection, run_id)
    if not head.admits(fence):
        return Appended.FENCED
    if head.sequence != row.first - 1:
        return Appended.CONFLICT
    if notes:
        fresh = not_kept(connection, head, notes)
        if fresh is None:
            return Appended.CONFLICT
        keep_notes(connection, head, fresh)
    kept = head_sum(run_id, row.last, int(bool(busy)), head.fence, head.owner, head.owned_until)
    digest = _inserted(connection, head, row)
    set_told, told = told_of(busy)
    connection.execute(
        "UPDATE runs SET sequence = :last, busy = :busy, head = :head, digest = :digest,"  # noqa: S608 - ours
        " digested = :last, began = CASE WHEN sequence THEN began ELSE :began END,"
        f" changed = :changed, told = :last, {set_told} WHERE number = :number",
        {
            "number": head.number,
            "last": row.last,
            "busy": bool(busy),
            "head": kept,
            "digest": digest,
            "began": row.began,
            "changed": row.changed,
            **told,
        },
    )
    heads.note(run_id, Noted(sequence=row.last, digest=digest))
    return Appended.OK


def _inserted(connection: sqlite3.Connection, head: Head, row: Row) -> bytes:
    """Keep the facts, and return the digest of all that were kept so far."""
    connection.execute(
        "INSERT INTO appends (run, first, last, facts, checksum, beside) VALUES (?, ?, ?, ?, ?, ?)",
        (head.number, row.first, row.last, row.facts, row.checksum, row.beside),
    )
    return chained(head.digest if head.digested == row.first - 1 else None, row)


def recover(  # noqa: PLR0913 - as of an append
    connection: sqlite3.Connection,
    run_id: str,
    row: Row | None,
    *,
    after: int,
    busy: Busy,
    heads: Heads,
) -> Appended:
    """Keep what was decided about a run that is rewound, or whose row is damaged, and free it."""
    head = head_of(connection, run_id)
    (ends,) = connection.execute(
        "SELECT coalesce(max(last), 0) FROM appends WHERE run = ?", (head.number,)
    ).fetchone()
    if ends != after:
        return Appended.CONFLICT
    digest = head.digest if head.digested == after else None
    if row is not None:
        ends, digest = row.last, _inserted(connection, head, row)
    readmit(connection, head, row, ends=ends, digest=digest, busy=busy)
    heads.note(run_id, Noted(sequence=ends, digest=digest, exact=True))
    return Appended.OK


def restore(  # noqa: PLR0913 - as of an append, and of a lease
    connection: sqlite3.Connection,
    run_id: str,
    row: Row | None,
    *,
    notes: Sequence[Given],
    lease: Lease,
    beyond: int,
    after: int,
    parts: int,
    busy: Busy,
    heads: Heads,
) -> int:
    """Keep anew what was lost of a run, for its owner, who gets a token above this one."""
    connection.execute("SAVEPOINT restore")
    try:
        fence = regain(connection, run_id, lease=lease, beyond=beyond)
        known = entry(connection, run_id, where=where_of(connection))
        answer = Appended.CONFLICT
        if (known.sequence, known.parts) == (after, parts):
            if row is None:
                answer = note(connection, run_id, fence=fence, given=notes)
            else:
                answer = append(
                    connection, run_id, row, fence=fence, busy=busy, heads=heads, notes=notes
                )
    except BaseException:
        connection.execute("ROLLBACK TO restore")
        raise
    if answer is not Appended.OK:
        connection.execute("ROLLBACK TO restore")
        raise not_restored(run_id, after=after, parts=parts)
    return fence


def keep_snapshot(
    connection: sqlite3.Connection,
    snapshot: Snapshot,
    content: bytes,
    *,
    fence: int | None,
    where: str,
) -> Appended:
    """Keep a snapshot; `content` is its JSON."""
    run = snapshot.run
    head = writable(connection, run.run_id)
    known = entry(connection, run.run_id, where=where).run
    if known != run:
        raise run_differs(run, known)
    if not head.admits(fence):
        return Appended.FENCED
    kept = connection.execute(
        "SELECT sequence FROM snapshots WHERE run = ?", (head.number,)
    ).fetchone()
    if snapshot.sequence > head.sequence:
        return Appended.CONFLICT
    if kept is not None and kept != (snapshot.sequence,):
        older = _snapshot(connection, head)  # a damaged one must not stand in the way for ever
        if older is not None and snapshot.sequence < older.sequence:
            return Appended.CONFLICT
    connection.execute(
        "INSERT OR REPLACE INTO snapshots (run, sequence, snapshot, checksum) VALUES (?, ?, ?, ?)",
        (head.number, snapshot.sequence, content, checksum(content, run.run_id)),
    )
    return Appended.OK
