"""What the SQLite journal reads and writes; each function is given a connection, in its thread.

A read sees all that was kept before it was called. A write runs inside a transaction; one that
refuses has written nothing before (see `writing` in `sqlite`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Final

import attrs

from ...engine.snapshot import Snapshot
from ...models.codec import read_delivery, record_from_json, to_json, upgraded
from ...models.errors import InvalidValue
from ...models.fact import Fact
from ...models.run import Run
from ...models.strict_json import parse
from ...models.values import Json, freeze
from ..errors import JournalError
from .contract import (
    ANSWERS,
    POSTS,
    POSTS_WAITING,
    Appended,
    Busy,
    Post,
    owned,
    run_differs,
    run_forgotten,
    too_many_posts,
)
from .sqlite_entries import damaged, entry, row_of_run, told_of
from .sqlite_rows import Row, checksum, facts_in, missing

PAGE_BYTES: Final = 16_000_000
"""Bytes of JSON after which a page of facts ends, whatever its limit."""


def facts(
    connection: sqlite3.Connection, run_id: str, *, after: int, limit: int, where: str
) -> tuple[Fact, ...]:
    """Return the next facts. Where the run ends is asked first: rows can only be added since."""
    head = head_of(connection, run_id)
    found: list[Fact] = []
    size = 0
    rows = connection.execute(
        "SELECT first, last, facts, checksum FROM appends WHERE run = ? AND last > ? ORDER BY last",
        (head.number, after),
    )
    with closing(rows):
        for kept in rows:
            row = Row(*kept)
            found += facts_in(
                row, run_id, after=after + len(found), limit=limit - len(found), where=where
            )
            size += len(row.facts)
            if len(found) >= limit or size >= PAGE_BYTES:
                return tuple(found)
    if after + len(found) < head.sequence:
        raise missing(after + len(found) + 1, where)
    return tuple(found)


def snapshot(connection: sqlite3.Connection, run_id: str) -> Snapshot | None:
    """Return the kept snapshot, None where there is none or it is damaged."""
    number = head_of(connection, run_id).number
    row = connection.execute(
        "SELECT snapshot, checksum FROM snapshots WHERE run = ?", (number,)
    ).fetchone()
    if row is None or checksum(row[0], run_id) != row[1]:
        return None
    try:
        return record_from_json(Snapshot, row[0])
    except InvalidValue:  # of a newer version: the facts are there
        return None


def notes(connection: sqlite3.Connection, run_id: str, *, where: str) -> dict[str, Json]:
    """Return all notes of a run in the order in which they were kept."""
    rows = connection.execute(
        "SELECT name, value, checksum FROM notes WHERE run = ? ORDER BY number",
        (head_of(connection, run_id).number,),
    )
    found: dict[str, Json] = {}
    for name, content, kept in rows:
        if checksum(content, run_id, name) != kept:
            what = f"the note {name!r} of run {run_id!r}"
            raise JournalError(damaged(where, what, "the checksum does not fit"))
        found[name] = freeze(parse(content), place=name)
    return found


def posts(
    connection: sqlite3.Connection, run_ids: Sequence[str], *, after: int, where: str
) -> tuple[Post, ...]:
    """Return posts that wait. What waits is in an index of its own, and mostly nothing is.

    So asking costs 0.07 ms there and back (measured), however many runs it is for.
    """
    rows = connection.execute(
        "SELECT posts.number, run_id, delivery FROM posts JOIN runs ON runs.number = posts.run"
        " WHERE receipt IS NULL AND posts.number > ? ORDER BY posts.number",
        (after,),
    )
    found: list[Post] = []
    wanted: frozenset[str] = frozenset()
    with closing(rows):
        for number, run_id, delivery in rows:
            wanted = wanted or frozenset(run_ids)
            if run_id in wanted:
                found.append(_post(number, run_id, delivery, where))
            if len(found) == POSTS:
                break
    return tuple(found)


def _post(number: int, run_id: str, content: bytes, where: str) -> Post:
    try:
        delivery = read_delivery(upgraded(parse(content)))
    except InvalidValue as error:
        raise JournalError(damaged(where, f"post {number}", str(error))) from error
    return Post(number=number, run_id=run_id, delivery=delivery)


def check(connection: sqlite3.Connection, *, where: str) -> None:
    """Raise `JournalError` when SQLite finds its file damaged."""
    found = [row[0] for row in connection.execute("PRAGMA integrity_check(10)")]
    if found != ["ok"]:
        raise JournalError(damaged(where, "the file", "; ".join(found)))


def answered(connection: sqlite3.Connection, number: int) -> bytes | None:
    """Return the answer to a post as JSON."""
    row = connection.execute("SELECT receipt FROM posts WHERE number = ?", (number,)).fetchone()
    return None if row is None else row[0]


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
        head_of(connection, run.run_id)  # it was not removed
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
    head = head_of(connection, run_id, even_forgotten=True)
    if head.is_owned(fence):
        connection.execute(
            "UPDATE runs SET owner = NULL, owned_until = NULL WHERE number = ?", (head.number,)
        )


def append(
    connection: sqlite3.Connection, run_id: str, row: Row, *, fence: int | None, busy: Busy
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
        "UPDATE runs SET sequence = :last, busy = :busy,"
        " began = CASE WHEN sequence THEN began ELSE :began END,"
        " changed = :changed, status = :status, waiting = :waiting, doubts = :doubts, told = :last"
        " WHERE number = :number",
        {
            "number": head.number,
            "last": row.last,
            "busy": bool(busy),
            "began": row.began,
            "changed": row.changed,
            **told_of(busy),
        },
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


@attrs.frozen
class Head:
    """The row of a run, as far as most of what is asked needs it."""

    number: int
    sequence: int
    fence: int
    owner: str | None
    owned_until: float | None

    def is_owned(self, fence: int) -> bool:
        """Say whether this is the fence of an owner who has not let go."""
        return self.owner is not None and fence == self.fence

    def admits(self, fence: int | None) -> bool:
        """Say whether this may be written: by its owner; by whoever owns nothing if nobody does."""
        return self.owner is None if fence is None else self.is_owned(fence)


def head_of(connection: sqlite3.Connection, run_id: str, *, even_forgotten: bool = False) -> Head:
    """Return the row of a run. Raises `UnknownRun`, and `RunForgotten` for one that was removed."""
    *head, forgotten = row_of_run(
        connection,
        "SELECT number, sequence, epoch, owner, owned_until, forgotten FROM runs",
        run_id,
    )
    if forgotten is not None and not even_forgotten:
        raise run_forgotten(run_id, at=forgotten)
    return Head(*head)
