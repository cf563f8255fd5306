"""What a person has decided about a run that stands still is kept, and the run is free again."""

from __future__ import annotations

from typing import Any

from ..contract import Appended, Busy, Summary
from ..rows import Row
from .appends import SET_SUMMED, SUMMED, insert_row, summed
from .doors import Connection
from .heads import head_of
from .tables import PERIOD, Tables


async def recover(  # noqa: PLR0913 - as of an append
    connection: Connection,
    tables: Tables,
    run_id: str,
    row: Row | None,
    *,
    after: int,
    busy: Busy,
) -> Appended:
    """Keep what was decided, take the mark off, and fence whoever owned or wrote the run.

    What was sent before and arrives late is stale afterwards, too.
    """
    head = await head_of(connection, tables, run_id, locked=True)
    ends = await connection.fetchval(
        f"SELECT coalesce(max(last), 0) FROM {tables.appends} WHERE run = $1",  # noqa: S608 - ours
        head.number,
    )
    if ends != after:
        return Appended.CONFLICT
    if row is not None:
        ends = row.last
        await insert_row(connection, tables, head, row)
    columns = ", ".join(
        f"${n}::{kind} AS {name}" for n, (name, kind) in enumerate(SUMMED.items(), 6)
    )
    told: Any = summed(busy)
    await connection.execute(
        f"UPDATE {tables.runs} r SET rewound = NULL, part = CASE r.sequence WHEN $2 THEN part"  # noqa: S608 - ours
        " ELSE 0 END, shown = CASE r.sequence WHEN $2 THEN shown ELSE 0 END, sequence = $2,"
        " busy = j.busy, epoch = r.epoch + 1, settle = r.settle + 1, owner = NULL,"
        " owned_until = NULL, began = coalesce(r.began, $3), changed = coalesce($4, r.changed),"
        " told = $5, period = CASE WHEN $5::bigint = 0 THEN 0 WHEN $4::float8 IS NULL THEN r.period"
        f" ELSE {PERIOD.format('$4')} END, {SET_SUMMED}"
        f" FROM (SELECT {columns}) j WHERE r.number = $1",
        head.number,
        ends,
        None if row is None else row.began,
        None if row is None else row.changed,
        ends if isinstance(busy, Summary) else 0,
        *told,
    )
    return Appended.OK
