"""Posts: what others left for the owners of runs, and the answers.

Numbers are given before they commit: a larger one may be there before a smaller one, so whoever
looks begins at the first, and `after` is for the pages within one look (D-38).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..contract import ANSWERS, POSTS, POSTS_WAITING, Finding, Post, too_many_posts
from ..posting import Unreadable, aside, read_post, receipt_in
from ..refusals import rewound, run_forgotten, unknown_run
from ..rows import checksum
from .doors import Connection
from .heads import head_of
from .tables import Tables, key_of, text_of

FORGETTING: Final = 100
"""Of so many posts the answer to one looks for others that may be forgotten."""
PORTION: Final = 1_000
"""Answers that it forgets at most."""


async def post(connection: Connection, tables: Tables, run_id: str, delivery: bytes) -> int:
    """Leave a delivery. What waits is counted by the statement that adds to it (D-38).

    The run's row is locked against being removed alone: appends are not waited for.
    """
    row: Any = await connection.fetchrow(
        "WITH r AS ("  # noqa: S608 - ours
        f"SELECT number, rewound, forgotten FROM {tables.runs} WHERE key = $1 FOR KEY SHARE"
        "), w AS (SELECT count(*) AS waiting FROM (SELECT FROM r"
        f" JOIN {tables.posts} p ON p.run = r.number AND p.receipt IS NULL LIMIT $4) many"
        f"), made AS (INSERT INTO {tables.posts} (run, delivery, checksum)"
        " SELECT r.number, $2, $3 FROM r, w"
        " WHERE r.forgotten IS NULL AND r.rewound IS NULL AND w.waiting < $4 RETURNING number)"
        " SELECT r.rewound, r.forgotten, made.number FROM r LEFT JOIN made ON true",
        key_of(run_id),
        delivery,
        checksum(delivery, run_id),
        POSTS_WAITING,
    )
    if row is None:
        raise unknown_run(run_id)
    if row["forgotten"] is not None:
        raise run_forgotten(run_id, at=row["forgotten"])
    if row["rewound"] is not None:
        raise rewound(run_id, why=text_of(row["rewound"]))
    number: int | None = row["number"]
    if number is None:
        raise too_many_posts(run_id, most=POSTS_WAITING)
    return number


async def _forget_answers(connection: Connection, tables: Tables, *, until: int) -> None:
    """Remove old answers, but for those that somebody else removes just now."""
    await connection.execute(
        f"DELETE FROM {tables.posts} WHERE number IN (SELECT number FROM {tables.posts}"  # noqa: S608 - ours
        " WHERE number <= $1 AND receipt IS NOT NULL ORDER BY number LIMIT $2"
        " FOR UPDATE SKIP LOCKED)",
        until,
        PORTION,
    )


async def posts(
    connection: Connection, tables: Tables, run_ids: Sequence[str], *, after: int
) -> tuple[tuple[Post, ...], tuple[Unreadable, ...]]:
    """Return posts that wait, and those that cannot be read: they fill no page.

    What waits is in an index of its own, and mostly little does: it is looked at first, so that it
    matters little how many runs are asked for.
    """
    found: list[Post] = []
    unreadable: list[Unreadable] = []
    keys = [key_of(run_id) for run_id in dict.fromkeys(run_ids)]
    while keys and len(found) < POSTS:
        rows: Any = await connection.fetch(
            f"WITH waiting AS MATERIALIZED (SELECT number, run FROM {tables.posts}"  # noqa: S608 - ours
            " WHERE receipt IS NULL AND number > $2), page AS (SELECT w.number, r.run_id"
            f" FROM waiting w JOIN {tables.runs} r ON r.number = w.run"
            " WHERE r.key = ANY ($1) ORDER BY w.number LIMIT $3)"
            " SELECT p.number, page.run_id, p.delivery, p.checksum"
            f" FROM page JOIN {tables.posts} p USING (number) ORDER BY p.number",
            keys,
            after,
            POSTS - len(found),
        )
        for number, run_id, delivery, kept in map(tuple, rows):
            it = read_post(number, text_of(run_id), delivery, kept)
            if isinstance(it, Post):
                found.append(it)
            else:
                unreadable.append(it)
            after = number
        if not rows:
            break
    return tuple(found), tuple(unreadable)


async def set_aside(
    connection: Connection, tables: Tables, unreadable: Sequence[Unreadable]
) -> None:
    """Answer posts with their problem, unless somebody who can read them has."""
    told = [(it.number, it.problem.encode(errors="replace"), it.receipt()) for it in unreadable]
    await connection.execute(
        f"UPDATE {tables.posts} p"  # noqa: S608 - ours
        " SET problem = u.problem, receipt = u.receipt, receipt_checksum = u.checksum"
        " FROM unnest($1::bigint[], $2::bytea[], $3::bytea[], $4::bigint[])"
        " AS u(number, problem, receipt, checksum)"
        " WHERE p.number = u.number AND p.receipt IS NULL",
        [number for number, _, _ in told],
        [problem for _, problem, _ in told],
        [receipt for _, _, receipt in told],
        [checksum(receipt, number) for number, _, receipt in told],
    )


async def put_aside(connection: Connection, tables: Tables, run_id: str) -> tuple[Finding, ...]:
    """Return the posts of a run that were set aside, or will be."""
    head = await head_of(connection, tables, run_id, even_forgotten=True)
    rows: Any = await connection.fetch(
        f"SELECT number, problem, delivery, checksum FROM {tables.posts}"  # noqa: S608 - ours
        " WHERE run = $1 AND (problem IS NOT NULL OR receipt IS NULL) ORDER BY number",
        head.number,
    )
    told = (
        aside(number, run_id, delivery, kept, problem=None if problem is None else text_of(problem))
        for number, problem, delivery, kept in map(tuple, rows)
    )
    return tuple(it for it in told if it is not None)


_OF_RUN: Final = "number = $1 AND run = (SELECT number FROM {} WHERE key = $2)"
"""A post's number means something only with its run (D-82)."""


def _of_run(tables: Tables) -> str:
    return _OF_RUN.format(tables.runs)


async def answer(
    connection: Connection, tables: Tables, run_id: str, *, number: int, receipt: bytes
) -> None:
    """Answer a post, if nobody has."""
    await connection.execute(
        f"UPDATE {tables.posts} SET receipt = $3, receipt_checksum = $4"  # noqa: S608 - ours
        f" WHERE {_of_run(tables)} AND receipt IS NULL",
        number,
        key_of(run_id),
        receipt,
        checksum(receipt, number),
    )
    if number % FORGETTING == 0:  # not who posts: whoever only decides may remove nothing (D-58)
        await _forget_answers(connection, tables, until=number - ANSWERS)


async def answered(
    connection: Connection, tables: Tables, run_id: str, *, number: int, where: str
) -> bytes | None:
    """Return the answer to a post as JSON. Raises `JournalError` for a damaged one."""
    row: Any = await connection.fetchrow(
        f"SELECT receipt, receipt_checksum FROM {tables.posts} WHERE {_of_run(tables)}",  # noqa: S608 - ours
        number,
        key_of(run_id),
    )
    return None if row is None else receipt_in(*row, number=number, where=where)


async def posted(connection: Connection, tables: Tables, run_id: str, *, number: int) -> bool:
    """Say whether this is a post for this run."""
    found = await connection.fetchval(
        f"SELECT number FROM {tables.posts} WHERE {_of_run(tables)}",  # noqa: S608 - ours
        number,
        key_of(run_id),
    )
    return found is not None
