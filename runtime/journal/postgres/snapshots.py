"""Snapshots: at most one of each run, which spares the facts before it. `snapped` tells of it."""

from __future__ import annotations

from typing import Any

from ....engine.snapshot import Snapshot
from ..contract import Appended, run_differs
from ..rows import checksum, snapshot_in
from .doors import Connection
from .entries import entry
from .heads import Head, head_of, writable
from .tables import Tables


async def snapshot(connection: Connection, tables: Tables, run_id: str) -> Snapshot | None:
    """Return the kept snapshot, None where there is none or it is damaged."""
    return await _kept(connection, tables, await head_of(connection, tables, run_id))


async def _kept(connection: Connection, tables: Tables, head: Head) -> Snapshot | None:
    row: Any = await connection.fetchrow(
        f"SELECT snapshot, checksum, sequence FROM {tables.snapshots} WHERE run = $1",  # noqa: S608 - ours
        head.number,
    )
    return None if row is None else snapshot_in(*row, run_id=head.run_id)


async def keep_snapshot(  # noqa: PLR0913 - what is asked
    connection: Connection,
    tables: Tables,
    snapshot: Snapshot,
    content: bytes,
    *,
    fence: int | None,
    where: str,
) -> Appended:
    """Keep a snapshot; `content` is its JSON."""
    run = snapshot.run
    head = await writable(connection, tables, run.run_id)
    known = (await entry(connection, tables, run.run_id, where=where)).run
    if known != run:
        raise run_differs(run, known)
    if not head.admits(fence):
        return Appended.FENCED
    if snapshot.sequence > head.sequence:
        return Appended.CONFLICT
    if snapshot.sequence < head.snapped:
        older = await _kept(connection, tables, head)  # a damaged one is not in the way for ever
        if older is not None and snapshot.sequence < older.sequence:
            return Appended.CONFLICT
    await connection.execute(
        f"INSERT INTO {tables.snapshots} (run, sequence, snapshot, checksum)"  # noqa: S608 - ours
        " VALUES ($1, $2, $3, $4) ON CONFLICT (run) DO UPDATE SET sequence = excluded.sequence,"
        " snapshot = excluded.snapshot, checksum = excluded.checksum",
        head.number,
        snapshot.sequence,
        content,
        checksum(content, run.run_id),
    )
    await connection.execute(
        f"UPDATE {tables.runs} SET snapped = $2 WHERE number = $1",  # noqa: S608 - ours
        head.number,
        snapshot.sequence,
    )
    return Appended.OK
