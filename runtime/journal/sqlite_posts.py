"""Posts in a SQLite journal: what others left for the owners of runs, and the answers."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

from .contract import (
    ANSWERS,
    POSTS,
    POSTS_WAITING,
    Finding,
    Post,
    too_many_posts,
)
from .posting import Unreadable, aside, read_post, receipt_in
from .rows import checksum
from .sqlite_runs import head_of, is_text, writable


def posts(
    connection: sqlite3.Connection, run_ids: Sequence[str], *, after: int
) -> tuple[tuple[Post, ...], tuple[Unreadable, ...]]:
    """Return posts that wait, and those that cannot be read.

    What waits is in an index of its own, and mostly nothing is: so asking costs 0.07 ms there and
    back (measured), however many runs it is for.
    """
    rows = connection.execute(
        "SELECT posts.number, run_id, delivery, posts.checksum"
        " FROM posts JOIN runs ON runs.number = posts.run"
        " WHERE receipt IS NULL AND posts.number > ? ORDER BY posts.number",
        (after,),
    )
    found: list[Post] = []
    unreadable: list[Unreadable] = []
    wanted: frozenset[str] = frozenset()
    with closing(rows):
        for number, run_id, delivery, kept in rows:
            wanted = wanted or frozenset(run_ids)
            if run_id in wanted:
                post = read_post(number, run_id, delivery, kept)
                if isinstance(post, Post):
                    found.append(post)
                else:
                    unreadable.append(post)
            if len(found) == POSTS:
                break
    return tuple(found), tuple(unreadable)


def set_aside(connection: sqlite3.Connection, unreadable: Sequence[Unreadable]) -> None:
    """Answer posts with their problem, unless somebody who can read them has."""
    for it in unreadable:
        receipt = it.receipt()
        connection.execute(
            "UPDATE posts SET problem = ?, receipt = ?, receipt_checksum = ?"
            " WHERE number = ? AND receipt IS NULL",
            (it.problem, receipt, checksum(receipt, it.number), it.number),
        )


def put_aside(connection: sqlite3.Connection, run_id: str) -> tuple[Finding, ...]:
    """Return the posts of a run that were set aside, or will be."""
    number = head_of(connection, run_id, even_forgotten=True).number
    rows = connection.execute(
        "SELECT number, problem, delivery, checksum FROM posts"
        " WHERE run = ? AND (problem IS NOT NULL OR receipt IS NULL) ORDER BY number",
        (number,),
    )
    told = (
        aside(post_number, run_id, delivery, kept, problem=problem)
        for post_number, problem, delivery, kept in rows
    )
    return tuple(it for it in told if it is not None)


def post(connection: sqlite3.Connection, run_id: str, delivery: bytes) -> int:
    """Leave a delivery, and forget answers that nobody has fetched for long."""
    number = writable(connection, run_id).number
    waiting = connection.execute(
        "SELECT count(*) FROM posts WHERE run = ? AND receipt IS NULL", (number,)
    ).fetchone()[0]
    if waiting >= POSTS_WAITING:
        raise too_many_posts(run_id, most=POSTS_WAITING)
    cursor = connection.execute(
        "INSERT INTO posts (run, delivery, checksum) VALUES (?, ?, ?)",
        (number, delivery, checksum(delivery, run_id)),
    )
    posted = cursor.lastrowid
    if posted is None:  # typeshed's: an INSERT has one
        raise AssertionError(posted)
    connection.execute(
        "DELETE FROM posts WHERE number <= ? AND receipt IS NOT NULL", (posted - ANSWERS,)
    )
    return posted


_OF_RUN: Final = " WHERE number = ? AND run = (SELECT number FROM runs WHERE run_id = ?)"
"""A number means something only with its run (D-82)."""


def answer(connection: sqlite3.Connection, run_id: str, number: int, receipt: bytes) -> None:
    """Answer a post, if nobody has."""
    if is_text(run_id):
        connection.execute(
            f"UPDATE posts SET receipt = ?, receipt_checksum = ?{_OF_RUN} AND receipt IS NULL",  # noqa: S608 - ours
            (receipt, checksum(receipt, number), number, run_id),
        )


def answered(
    connection: sqlite3.Connection, run_id: str, number: int, *, where: str
) -> bytes | None:
    """Return the answer to a post as JSON. Raises `JournalError` for a damaged one."""
    row = _of_run(connection, "receipt, receipt_checksum", run_id, number)
    return None if row is None else receipt_in(row[0], row[1], number=number, where=where)


def posted(connection: sqlite3.Connection, run_id: str, number: int) -> bool:
    """Say whether this is a post for this run."""
    return _of_run(connection, "number", run_id, number) is not None


def _of_run(connection: sqlite3.Connection, what: str, run_id: str, number: int) -> Any:  # noqa: ANN401 - a row
    if not is_text(run_id):
        return None
    return connection.execute(f"SELECT {what} FROM posts{_OF_RUN}", (number, run_id)).fetchone()  # noqa: S608 - ours
