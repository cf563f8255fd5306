"""Facts as they are read: in pages that fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from ....models.fact import Foldable
from .. import pages
from ..rows import Reader, Row, facts_in, missing
from .doors import Connection
from .heads import Head, head_of
from .tables import Tables

T = TypeVar("T", bound=Foldable)


async def rows_after(
    connection: Connection, tables: Tables, head: Head, *, after: int, limit: int
) -> Sequence[Any]:
    """Return the rows of appends that hold the next facts, as `Row` has its fields.

    Those of a page: the first in any case, and the others as long as they fit into a page.
    """
    rows: Sequence[Any] = await connection.fetch(
        "SELECT first, last, facts, checksum, beside FROM ("  # noqa: S608 - ours
        "SELECT first, last, facts, checksum, beside,"
        " sum(octet_length(facts)) OVER (ORDER BY last) - octet_length(facts) AS before"
        f" FROM {tables.appends} WHERE run = $1 AND last > $2 ORDER BY last LIMIT $3) a"
        " WHERE first <= $2 + $3 AND before < $4 ORDER BY last",
        head.number,
        after,
        limit,
        pages.PAGE_BYTES,
    )
    return rows


async def facts(  # noqa: PLR0913 - what is asked
    connection: Connection,
    tables: Tables,
    run_id: str,
    *,
    after: int,
    limit: int,
    where: str,
    read: Reader[T],
) -> tuple[T, ...]:
    """Return the next facts, each as `read` makes it (see `facts_in`).

    Where the run ends is asked first: rows can only be added since.
    """
    head = await head_of(connection, tables, run_id)
    if after >= head.sequence:
        return ()
    kept = await rows_after(connection, tables, head, after=after, limit=limit)
    rows = [Row(*it) for it in kept]
    found = facts_of(rows, run_id, after=after, limit=limit, where=where, read=read)
    if not found:
        raise missing(after + 1, where)
    return tuple(found)


def facts_of(  # noqa: PLR0913 - what is asked
    rows: Iterable[Row],
    run_id: str,
    *,
    after: int,
    limit: int,
    where: str,
    read: Reader[T],
) -> list[T]:
    """Return the facts behind `after` of rows that follow one another, at most `limit`.

    Each is as `read` makes it; raises as `facts_in` does.
    """
    found: list[T] = []
    for row in rows:
        if len(found) >= limit:
            break
        found += facts_in(
            row,
            run_id,
            after=after + len(found),
            limit=limit - len(found),
            where=where,
            read=read,
        )
    return found
