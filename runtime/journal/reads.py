"""What the SQLite journal reads; each function sees all that was kept before it was called."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

from ...engine.snapshot import Snapshot
from ...models.codec import read_delivery, record_from_json, upgraded
from ...models.errors import InvalidValue
from ...models.fact import Fact
from ...models.run import Run
from ...models.strict_json import parse
from ...models.values import Json, freeze
from ..errors import JournalError
from .contract import POSTS, Post, RunEntry
from .heads import head_of
from .rows import Row, checksum, facts_in, missing

PAGE_BYTES: Final = 16_000_000
"""Bytes of JSON after which a page of facts ends, whatever its limit."""

_ENTRY: Final = "SELECT run_id, run, checksum, sequence, busy, epoch, owner, owned_until FROM runs"


def entry(connection: sqlite3.Connection, run_id: str, *, where: str) -> RunEntry:
    """Return one run's entry."""
    number = head_of(connection, run_id).number
    return _entry(connection.execute(f"{_ENTRY} WHERE number = ?", (number,)).fetchone(), where)


def entries(
    connection: sqlite3.Connection, *, busy: bool | None, where: str
) -> tuple[RunEntry, ...]:
    """List the runs in the order in which they were declared."""
    rows = connection.execute(
        f"{_ENTRY} WHERE ?1 IS NULL OR busy = ?1 ORDER BY number",
        (busy,),
    )
    return tuple(_entry(row, where) for row in rows)


def _entry(row: Any, where: str) -> RunEntry:  # noqa: ANN401 - a row of _ENTRY
    run_id, content, kept, sequence, busy, fence, owner, owned_until = row
    try:
        run = record_from_json(Run, content) if checksum(content, run_id) == kept else None
    except InvalidValue as error:
        raise JournalError(_damaged(where, f"run {run_id!r}", str(error))) from error
    if run is None or run.run_id != run_id:
        raise JournalError(_damaged(where, f"run {run_id!r}", "the checksum does not fit"))
    return RunEntry(
        run=run,
        sequence=sequence,
        busy=bool(busy),
        fence=fence,
        owner=owner,
        owned_until=owned_until,
    )


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
            raise JournalError(_damaged(where, what, "the checksum does not fit"))
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
        raise JournalError(_damaged(where, f"post {number}", str(error))) from error
    return Post(number=number, run_id=run_id, delivery=delivery)


def check(connection: sqlite3.Connection, *, where: str) -> None:
    """Raise `JournalError` when SQLite finds its file damaged."""
    found = [row[0] for row in connection.execute("PRAGMA integrity_check(10)")]
    if found != ["ok"]:
        raise JournalError(_damaged(where, "the file", "; ".join(found)))


def answered(connection: sqlite3.Connection, number: int) -> bytes | None:
    """Return the answer to a post as JSON."""
    row = connection.execute("SELECT receipt FROM posts WHERE number = ?", (number,)).fetchone()
    return None if row is None else row[0]


def _damaged(where: str, what: str, cause: str) -> str:
    return (
        f"journal {where}: {what} is damaged ({cause}); keep the file and its -wal file as they"
        " are, and restore them from a copy"
    )
