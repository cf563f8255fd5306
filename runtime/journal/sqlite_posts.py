"""Posts in a SQLite journal: what others left for the owners of runs, and the answers.

A post that nobody here can read – damaged, or of a newer version – is set aside: it is answered
with its problem, so that its poster waits no longer, and stands in nobody's way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

import attrs
import msgspec

from ...models.codec import read_delivery, upgraded
from ...models.errors import InvalidValue
from ...models.safe_text import harmless
from ...models.strict_json import parse
from .contract import (
    ANSWERS,
    POSTS,
    POSTS_WAITING,
    PROBLEM,
    Finding,
    Post,
    too_many_posts,
)
from .rows import checksum, damaged
from .sqlite_runs import head_of, writable

_PROBLEM_SHOWN: Final = 500
"""Characters of a problem that are kept."""


@attrs.frozen(kw_only=True)
class Unreadable:
    """A post that waits, and that nobody here can read."""

    number: int
    run_id: str
    problem: str


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


def read_post(number: int, run_id: str, content: Any, kept: int | None) -> Post | Unreadable:  # noqa: ANN401 - a column
    """Return a post, or what is wrong with it; without a checksum an older process wrote it."""
    if kept is not None and checksum(content, run_id) != kept:
        problem = "it is damaged: the checksum does not fit"
    else:
        try:
            delivery = read_delivery(upgraded(parse(content)))
        except (InvalidValue, TypeError) as error:  # not even bytes
            problem = harmless(f"it cannot be read: {error}", limit=_PROBLEM_SHOWN)
        else:
            return Post(number=number, run_id=run_id, delivery=delivery)
    return Unreadable(number=number, run_id=run_id, problem=problem)


def set_aside(connection: sqlite3.Connection, unreadable: Sequence[Unreadable]) -> None:
    """Answer posts with their problem, unless somebody who can read them has."""
    for it in unreadable:
        receipt = msgspec.json.encode({"accepted": False, PROBLEM: it.problem, "facts": []})
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
    found: list[Finding] = []
    for post_number, kept_problem, delivery, kept in rows:
        read = read_post(post_number, run_id, delivery, kept)
        problem = kept_problem or (read.problem if isinstance(read, Unreadable) else None)
        if problem is not None:
            cause = f"it was set aside: {problem}"
            found.append(Finding(run_id=run_id, what=f"post {post_number}", cause=cause))
    return tuple(found)


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


def answer(connection: sqlite3.Connection, number: int, receipt: bytes) -> None:
    """Answer a post, if nobody has."""
    connection.execute(
        "UPDATE posts SET receipt = ?, receipt_checksum = ? WHERE number = ? AND receipt IS NULL",
        (receipt, checksum(receipt, number), number),
    )


def answered(connection: sqlite3.Connection, number: int, *, where: str) -> bytes | None:
    """Return the answer to a post as JSON. Raises `JournalError` for a damaged one."""
    row = connection.execute(
        "SELECT receipt, receipt_checksum FROM posts WHERE number = ?", (number,)
    ).fetchone()
    if row is None:
        return None
    receipt: bytes | None = row[0]
    if receipt is not None and row[1] is not None and checksum(receipt, number) != row[1]:
        raise damaged(where, f"the answer to post {number}", "the checksum does not fit")
    return receipt


def posted(connection: sqlite3.Connection, *, number: int) -> str | None:
    """Return the run that a post is for, None where it is forgotten."""
    row = connection.execute(
        "SELECT run_id FROM posts JOIN runs ON runs.number = posts.run WHERE posts.number = ?",
        (number,),
    ).fetchone()
    return None if row is None else str(row[0])
