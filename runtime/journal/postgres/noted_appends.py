"""Appends that bring notes, of many runs in one transaction: facts and notes, or nothing (D-16).

What a note's id has already is known only once its run is locked, so this takes statements one
after the other; facts alone need one (see `appends`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..noted import NotedRow
from .appends import (
    SET_SUMMED,
    SUMMED,
    Asked,
    Judged,
    Verdict,
    summed,
)
from .doors import Connection
from .heads import HEAD, Head, head_in
from .lanes import Body, Outcome
from .notes import Beside, ends_of, insert, rows_of
from .tables import PERIOD, Tables, bytes_of


def appending_noted(tables: Tables, *, where: str) -> Body:
    """Return what does a group of appends with notes, each of another run."""

    async def body(connection: Connection, works: Sequence[Asked]) -> Sequence[Outcome]:
        heads = await _locked(connection, tables, [it.number for it in works])
        judged = {it.number: _judged(heads[it.number], it) for it in works if it.number in heads}
        fit = [it for it in works if it.number in judged and _is_ok(judged[it.number])]
        beside = [_beside(heads[it.number], it) for it in fit]
        rows = await rows_of(connection, tables, beside, where=where)
        for it, some in zip(fit, rows, strict=True):
            if some is None:  # an id has other content
                judged[it.number] = judged[it.number]._replace(verdict=Verdict.CONFLICT)
        kept = [(it, some) for it, some in zip(fit, rows, strict=True) if some is not None]
        await _keep(connection, tables, kept)
        return [Outcome(judged.get(it.number)) for it in works]

    return body


async def _locked(
    connection: Connection, tables: Tables, numbers: Sequence[int]
) -> Mapping[int, Head]:
    rows: Any = await connection.fetch(
        f"SELECT {HEAD} FROM {tables.runs} WHERE number = ANY ($1)"  # noqa: S608 - ours
        " ORDER BY number FOR NO KEY UPDATE",
        numbers,
    )
    return {row["number"]: head_in(row) for row in rows}


def _judged(head: Head, it: Asked) -> Judged:
    """Judge as the statement of `appends` does, in the same order."""
    if head.forgotten is not None:
        verdict = Verdict.FORGOTTEN
    elif head.rewound is not None:
        verdict = Verdict.REWOUND
    elif not head.admits(it.fence):
        verdict = Verdict.FENCED
    elif head.settle != it.settle:
        verdict = Verdict.STALE
    elif head.sequence != it.row.first - 1:
        verdict = Verdict.CONFLICT
    else:
        verdict = Verdict.OK
    why = None if head.rewound is None else bytes_of(head.rewound)
    return Judged(verdict, head.sequence, why, head.forgotten)


def _is_ok(judged: Judged) -> bool:
    return judged.verdict is Verdict.OK


def _beside(head: Head, it: Asked) -> Beside:
    return Beside(
        number=head.number,
        run_id=head.run_id,
        sequence=head.sequence,
        part=head.part,
        given=it.notes,
    )


async def _keep(
    connection: Connection, tables: Tables, kept: Sequence[tuple[Asked, Sequence[NotedRow]]]
) -> None:
    if not kept:
        return
    rows = [it.row for it, _ in kept]
    numbers = [it.number for it, _ in kept]
    await connection.execute(
        f"INSERT INTO {tables.appends} (run, first, last, facts, checksum, beside)"  # noqa: S608 - ours
        " SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[],"
        " $5::bigint[], $6::bytea[])",
        numbers,
        [row.first for row in rows],
        [row.last for row in rows],
        [row.facts for row in rows],
        [row.checksum for row in rows],
        [row.beside for row in rows],
    )
    await insert(
        connection, tables, [(it.number, it.run_id, row) for it, some in kept for row in some]
    )
    ends = [ends_of(some, sequence=it.row.last) for it, some in kept]
    told = zip(*(summed(it.busy) for it, _ in kept), strict=True)
    arrays = ", ".join(f"${n}::{kind}[]" for n, kind in enumerate(SUMMED.values(), 7))
    await connection.execute(
        f"UPDATE {tables.runs} r SET sequence = j.last, busy = j.busy, part = j.part,"  # noqa: S608 - ours
        " shown = j.shown, began = coalesce(r.began, j.began), changed = j.changed, told = j.last,"
        f" period = {PERIOD.format('j.changed')}, {SET_SUMMED} FROM unnest($1::bigint[],"
        f" $2::bigint[], $3::int[], $4::int[], $5::float8[], $6::float8[], {arrays})"
        f" AS j(number, last, part, shown, began, changed, {', '.join(SUMMED)})"
        " WHERE r.number = j.number",
        numbers,
        [row.last for row in rows],
        [part for part, _ in ends],
        [shown for _, shown in ends],
        [row.began for row in rows],
        [row.changed for row in rows],
        *told,
    )
