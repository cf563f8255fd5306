"""What the SQLite journal writes; each function runs inside a transaction of its worker.

One that refuses has written nothing before (see `transactions`).
"""

from __future__ import annotations

import sqlite3

import attrs

from ...engine.snapshot import Snapshot
from ...models.codec import to_json
from ...models.run import Run
from .contract import ANSWERS, POSTS_WAITING, Appended
from .heads import head_of
from .reads import entry
from .refusals import owned, run_differs, too_many_posts
from .rows import Row, checksum


@attrs.frozen(kw_only=True)
class Lease:
    """What somebody asks for who wants a run; `gone` is an owner whose lease does not count."""

    owner: str
    now: float
    until: float
    gone: str | None


def declare(connection: sqlite3.Connection, run: Run, *, where: str) -> None:
    """Make a run known, or compare it with what is known."""
    content = to_json(run)
    added = connection.execute(
        "INSERT OR IGNORE INTO runs (run_id, run, checksum) VALUES (?, ?, ?)",
        (run.run_id, content, checksum(content, run.run_id)),
    ).rowcount
    if not added:
        known = entry(connection, run.run_id, where=where).run
        if known != run:
            raise run_differs(run, known)


def own(connection: sqlite3.Connection, run_id: str, *, lease: Lease) -> int:
    """Take a run, unless another's lease is in force."""
    head = head_of(connection, run_id)
    if (
        head.owner is not None
        and head.owned_until is not None
        and head.owner not in {lease.owner, lease.gone}
        and lease.now < head.owned_until
    ):
        raise owned(run_id, owner=head.owner, until=head.owned_until)
    connection.execute(
        "UPDATE runs SET epoch = ?, owner = ?, owned_until = ? WHERE number = ?",
        (head.fence + 1, lease.owner, lease.until, head.number),
    )
    return head.fence + 1


def renew(connection: sqlite3.Connection, *, owner: str, until: float) -> frozenset[str]:
    """Renew all leases of an owner."""
    connection.execute("UPDATE runs SET owned_until = ? WHERE owner = ?", (until, owner))
    rows = connection.execute("SELECT run_id FROM runs WHERE owner = ?", (owner,))
    return frozenset(run_id for (run_id,) in rows)


def release(connection: sqlite3.Connection, run_id: str, *, fence: int) -> None:
    """Let a run go."""
    head = head_of(connection, run_id)
    if head.is_owned(fence):
        connection.execute(
            "UPDATE runs SET owner = NULL, owned_until = NULL WHERE number = ?", (head.number,)
        )


def append(
    connection: sqlite3.Connection, run_id: str, row: Row, *, fence: int | None, busy: bool
) -> Appended:
    """Keep the facts of one append."""
    head = head_of(connection, run_id)
    if not head.admits(fence):
        return Appended.FENCED
    if head.sequence != row.first - 1:
        return Appended.CONFLICT
    connection.execute(
        "INSERT INTO appends (run, first, last, facts, checksum) VALUES (?, ?, ?, ?, ?)",
        (head.number, row.first, row.last, row.facts, row.checksum),
    )
    connection.execute(
        "UPDATE runs SET sequence = ?, busy = ? WHERE number = ?", (row.last, busy, head.number)
    )
    return Appended.OK


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
    head = head_of(connection, run.run_id)
    known = entry(connection, run.run_id, where=where).run
    if known != run:
        raise run_differs(run, known)
    if not head.admits(fence):
        return Appended.FENCED
    kept = connection.execute(
        "SELECT sequence FROM snapshots WHERE run = ?", (head.number,)
    ).fetchone()
    oldest = 0 if kept is None else kept[0]
    if not oldest <= snapshot.sequence <= head.sequence:
        return Appended.CONFLICT
    connection.execute(
        "INSERT OR REPLACE INTO snapshots (run, sequence, snapshot, checksum) VALUES (?, ?, ?, ?)",
        (head.number, snapshot.sequence, content, checksum(content, run.run_id)),
    )
    return Appended.OK


def note(
    connection: sqlite3.Connection, run_id: str, *, fence: int | None, name: str, content: bytes
) -> Appended:
    """Keep a note; `content` is the canonical JSON of its value."""
    head = head_of(connection, run_id)
    if not head.admits(fence):
        return Appended.FENCED
    connection.execute(
        "INSERT OR IGNORE INTO notes (run, name, value, checksum) VALUES (?, ?, ?, ?)",
        (head.number, name, content, checksum(content, run_id, name)),
    )
    kept = connection.execute(
        "SELECT value FROM notes WHERE run = ? AND name = ?", (head.number, name)
    ).fetchone()
    return Appended.OK if kept[0] == content else Appended.CONFLICT


def post(connection: sqlite3.Connection, run_id: str, delivery: bytes) -> int:
    """Leave a delivery, and forget answers that nobody has fetched for long."""
    number = head_of(connection, run_id).number
    waiting = connection.execute(
        "SELECT count(*) FROM posts WHERE run = ? AND receipt IS NULL", (number,)
    ).fetchone()[0]
    if waiting >= POSTS_WAITING:
        raise too_many_posts(run_id)
    cursor = connection.execute(
        "INSERT INTO posts (run, delivery) VALUES (?, ?)", (number, delivery)
    )
    posted = cursor.lastrowid
    if posted is None:  # typeshed's: an INSERT has one
        raise AssertionError(posted)
    connection.execute(
        "DELETE FROM posts WHERE number <= ? AND receipt IS NOT NULL", (posted - ANSWERS,)
    )
    return posted


def answer(connection: sqlite3.Connection, number: int, receipt: bytes) -> None:
    """Answer a post, if nobody has."""
    connection.execute(
        "UPDATE posts SET receipt = ? WHERE number = ? AND receipt IS NULL", (receipt, number)
    )
