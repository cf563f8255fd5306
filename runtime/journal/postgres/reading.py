"""What a recovery reads of many runs, in two statements: rows and snapshots, then facts (D-13)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ....engine.snapshot import Snapshot
from ....models.errors import CorruptJournal
from .. import pages
from ..contract import RunEntry, RunRead
from ..reading import FACTS, before_facts
from ..rows import RECORDS, Row, snapshot_in
from .doors import Connection
from .entries import entry_in, selecting
from .facts import facts_of
from .tables import Tables, key_of


async def read_runs(
    connection: Connection, tables: Tables, run_ids: Sequence[str], *, where: str
) -> Mapping[str, RunRead]:
    """Return what a recovery reads of these runs, of as many as fit into a page."""
    kept = await _standing(connection, tables, run_ids)
    heads: dict[int, tuple[RunEntry, Snapshot | None]] = {}
    for row in kept:
        entry = entry_in(row, where)
        if entry.problem is None:
            heads[row["number"]] = entry, _snapshot(row, entry.run.run_id)
    room = pages.PAGE_BYTES - max((row["bytes"] for row in kept), default=0)
    rows = await _facts(connection, tables, heads, room=room)
    found: dict[str, RunRead] = {}
    for number, (entry, snapshot) in heads.items():
        run_id, after = entry.run.run_id, before_facts(snapshot)
        left = entry.sequence - after  # others may have come meanwhile
        try:
            facts = facts_of(
                rows[number], run_id, after=after, limit=left, where=where, read=RECORDS
            )
        except CorruptJournal:
            continue  # who reads it by itself is told
        found[run_id] = RunRead(entry=entry, snapshot=snapshot, facts=facts)
    return found


async def _standing(
    connection: Connection, tables: Tables, run_ids: Sequence[str]
) -> Sequence[Any]:
    rows: Sequence[Any] = await connection.fetch(
        "SELECT * FROM (SELECT h.*, s.sequence AS snapshot_of, s.snapshot,"  # noqa: S608 - ours
        " s.checksum AS snapshot_checksum,"
        " sum(coalesce(octet_length(s.snapshot), 0)) OVER (ORDER BY h.number) AS bytes"
        f" FROM ({selecting(tables)} WHERE r.key = ANY ($1) AND r.forgotten IS NULL) h"
        f" LEFT JOIN {tables.snapshots} s ON s.run = h.number) k WHERE bytes <= $2",
        [key_of(run_id) for run_id in run_ids],
        pages.PAGE_BYTES,
    )
    return rows


def _snapshot(row: Any, run_id: str) -> Snapshot | None:  # noqa: ANN401 - a record
    if row["snapshot"] is None:
        return None
    return snapshot_in(row["snapshot"], row["snapshot_checksum"], row["snapshot_of"], run_id=run_id)


async def _facts(
    connection: Connection,
    tables: Tables,
    heads: Mapping[int, tuple[RunEntry, Snapshot | None]],
    *,
    room: int,
) -> Mapping[int, Sequence[Any]]:
    """Return the next rows of appends of each of these runs, together of so many bytes."""
    rows: Any = await connection.fetch(
        "SELECT run, first, last, facts, checksum, beside FROM ("  # noqa: S608 - ours
        "SELECT a.*, w.place,"
        " sum(octet_length(a.facts)) OVER (ORDER BY w.place, a.last) AS bytes"
        " FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS w(run, after, place)"
        f" CROSS JOIN LATERAL (SELECT * FROM {tables.appends} a"
        " WHERE a.run = w.run AND a.last > w.after ORDER BY a.last LIMIT $3) a"
        ") f WHERE bytes <= $4 ORDER BY place, last",
        list(heads),
        [before_facts(snapshot) for _, snapshot in heads.values()],
        FACTS,
        room,
    )
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for run, *row in map(tuple, rows):
        found[run].append(Row(*row))
    return found
