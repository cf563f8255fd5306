"""Removing all that is kept of a run, but its row, which says that this happened."""

from __future__ import annotations

from ..contract import not_removed
from .doors import Connection
from .entries import entry
from .tables import Tables, key_of


async def forget(  # noqa: PLR0913 - what the caller has seen of the run
    connection: Connection,
    tables: Tables,
    run_id: str,
    *,
    fence: int,
    after: int,
    at: float,
    gone: str | None,
    where: str,
) -> None:
    """Remove a run; nobody can append or post meanwhile: the row is locked against both.

    What was kept leaves the files of the database when they are vacuumed.
    """
    number = await connection.fetchval(
        f"SELECT number FROM {tables.runs} WHERE key = $1 FOR UPDATE",  # noqa: S608 - ours
        key_of(run_id),
    )
    known = await entry(connection, tables, run_id, where=where)
    if known.forgotten is not None:
        return
    posts: int = await connection.fetchval(
        f"SELECT count(*) FROM {tables.posts}"  # noqa: S608 - ours
        " WHERE run = $1 AND receipt IS NULL AND problem IS NULL",
        number,
    )
    error = not_removed(known, fence=fence, after=after, gone=gone, posts=posts)
    if error is not None:
        raise error
    for table in (tables.appends, tables.snapshots, tables.notes, tables.posts):
        await connection.execute(f"DELETE FROM {table} WHERE run = $1", number)  # noqa: S608 - ours
    await connection.execute(
        f"UPDATE {tables.runs} SET forgotten = $2, trouble = NULL, owner = NULL,"  # noqa: S608 - ours
        " owned_until = NULL, part = 0, shown = 0, snapped = 0 WHERE number = $1",
        number,
        at,
    )
