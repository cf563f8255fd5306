"""Appends of many runs in one statement: locked, judged, kept (D-31).

What is judged is a locked row's own columns: after a wait READ COMMITTED gives the newest version
of that row, and of no other. A statement that was lost on its way and arrives late is STALE, once
somebody has raised `settle` (D-41).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from ....views.status import Status
from ..contract import Busy, Summary
from ..given import Given
from ..rows import Row
from .doors import Connection
from .heads import Head
from .lanes import Body, Outcome
from .tables import MOST, PERIOD, Tables, bytes_of


class Verdict(StrEnum):
    """How an append is judged, in this order."""

    FORGOTTEN = "forgotten"
    REWOUND = "rewound"
    FENCED = "fenced"
    STALE = "stale"
    CONFLICT = "conflict"
    OK = "ok"


class Asked(NamedTuple):
    """An append as its lane is given it."""

    number: int
    run_id: str
    fence: int | None
    settle: int
    row: Row
    busy: Busy
    notes: Sequence[Given] = ()
    opens: int | None = None
    """The turn that it opens, where somebody is to be woken for it (D-72)."""


class Judged(NamedTuple):
    """What became of it, and what it was judged by: of one that was kept that is not told."""

    verdict: Verdict
    sequence: int = 0
    rewound: bytes | None = None
    forgotten: float | None = None


LARGE: Final = 100_000
"""Bytes of facts that are sent beside the rows of their group, where there are more."""
_KEPT: Final = Outcome(Judged(Verdict.OK))

SUMMED: Final[Mapping[str, str]] = {
    "busy": "boolean",
    "status": "text",
    "waiting": "bigint",
    "doubts": "bigint",
    "trouble": "bytea",
    "turn_id": "bytea",
    "asked_id": "bytea",
    "asked_tool": "bytea",
    "asked_since": "double precision",
}
"""What is kept of where a run stands, with the types."""


def summed(busy: Busy) -> Sequence[Any]:
    """Return what is kept of where a run stands, in the order of `SUMMED`."""
    if not isinstance(busy, Summary):
        return [busy, *[None] * (len(SUMMED) - 1)]
    asked = busy.asked
    return [
        busy.busy,
        str(busy.status),
        busy.waiting,
        busy.doubts,
        None if busy.trouble is None else busy.trouble.encode(errors="surrogatepass"),
        None if busy.turn_id is None else bytes_of(busy.turn_id),
        None if asked is None else bytes_of(asked.invocation_id),
        None if asked is None else bytes_of(asked.tool_name),
        None if asked is None else asked.since,
    ]


_KINDS: Final = tuple(dict.fromkeys(("bigint", "integer", *SUMMED.values())))
"""What arrays are of that appends with notes are sent in."""

SET_SUMMED: Final = (
    "status = j.status, waiting = j.waiting, doubts = j.doubts, trouble = j.trouble,"
    " turn_id = j.turn_id, asked_id = j.asked_id, asked_tool = j.asked_tool,"
    " asked_since = CASE WHEN r.asked_id = j.asked_id AND r.turn_id = j.turn_id"
    " AND r.asked_since < j.asked_since THEN r.asked_since ELSE j.asked_since END,"
    f" interrupted = j.status IS NOT DISTINCT FROM '{Status.INTERRUPTED}'"
)
"""How an UPDATE of runs `r` keeps it from `j`: a call that waited before has waited since then."""


def _row(it: Asked) -> Sequence[Any]:
    """Return an append as the type `asked` has its columns; facts that are large go beside it."""
    row, fence = it.row, it.fence
    first, last = min(row.first, MOST), min(row.last, MOST)  # what is beyond conflicts, too
    return (
        it.number, None if fence is None else min(fence, MOST), it.settle, first, last,
        None if _is_large(it) else row.facts, row.checksum, row.beside, row.began, row.changed,
        *summed(it.busy),
    )  # fmt: skip


def _is_large(it: Asked) -> bool:
    return len(it.row.facts) > LARGE


def _beside(works: Sequence[Asked]) -> Sequence[bytes | None]:
    """Return the facts that are large, each at the place of its append; nothing if none is."""
    if not any(map(_is_large, works)):
        return ()
    return [it.row.facts if _is_large(it) else None for it in works]


def appending(tables: Tables) -> Body:
    """Return what does a group of appends, each of another run.

    They are sent as one array of rows: of an array for each column the driver looks at each value
    whether it is a list. Facts that are large are taken from an array beside it when they are
    kept: a column is copied, and written to the server's disk, at each step of the statement. Only
    those that were not kept come back, and how many were.
    """
    statement = _statement(tables)

    async def body(connection: Connection, works: Sequence[Asked]) -> Sequence[Outcome]:
        rows: Sequence[Any] = await connection.fetch(statement, [*map(_row, works)], _beside(works))
        kept, others = 0, dict[int, Outcome]()
        for number, verdict, *more in map(tuple, rows):
            if verdict == Verdict.OK:
                kept = number
            else:
                others[number] = Outcome(
                    None if verdict is None else Judged(Verdict(verdict), *more)
                )
        if kept + len(others) != len(works):
            raise AssertionError(f"{kept} kept and {len(others)} not, of {len(works)}")
        return [others.get(it.number, _KEPT) for it in works]

    return body


async def look_types_up(connection: Connection, tables: Tables) -> None:
    """Have the driver ask for the types of appends, with notes or without, before the first."""
    arrays = [f"{kind}[]" for kind in (tables.asked, *_KINDS)]
    sizes = " + ".join(f"cardinality(${n}::{array})" for n, array in enumerate(arrays, 1))
    await connection.fetchval(f"SELECT {sizes}", *[()] * len(arrays))


def _statement(tables: Tables) -> str:
    return f"""
        WITH asked AS (
            SELECT * FROM unnest($1::{tables.asked}[]) WITH ORDINALITY
        ), locked AS (
            SELECT number, sequence, epoch, settle, owner, rewound, forgotten
            FROM {tables.runs} WHERE number = ANY (ARRAY(SELECT number FROM asked))
            ORDER BY number FOR NO KEY UPDATE
        ), judged AS (
            SELECT a.*, l.sequence AS ends, l.rewound, l.forgotten, CASE
                WHEN l.number IS NULL THEN NULL
                WHEN l.forgotten IS NOT NULL THEN 'forgotten'
                WHEN l.rewound IS NOT NULL THEN 'rewound'
                WHEN CASE WHEN a.fence IS NULL THEN l.owner IS NOT NULL
                    ELSE l.owner IS NULL OR l.epoch <> a.fence END THEN 'fenced'
                WHEN l.settle <> a.settle THEN 'stale'
                WHEN l.sequence <> a.first - 1 THEN 'conflict'
                ELSE 'ok' END AS verdict
            FROM asked a LEFT JOIN locked l ON l.number = a.number
        ), kept AS (
            INSERT INTO {tables.appends} (run, first, last, facts, checksum, beside)
            SELECT number, first, last, coalesce(facts, ($2::bytea[])[ordinality::int]), checksum,
                beside FROM judged WHERE verdict = 'ok'
        ), changed AS (
            UPDATE {tables.runs} r SET sequence = j.last, busy = j.busy, part = 0, shown = 0,
                began = coalesce(r.began, j.began), changed = j.changed, told = j.last,
                period = {PERIOD.format("j.changed")}, {SET_SUMMED}
            FROM judged j WHERE r.number = j.number AND j.verdict = 'ok'
        )
        SELECT number, verdict, ends, rewound, forgotten
        FROM judged WHERE verdict IS DISTINCT FROM 'ok'
        UNION ALL SELECT count(*), 'ok', NULL, NULL, NULL FROM judged WHERE verdict = 'ok'"""  # noqa: S608 - ours


async def insert_row(connection: Connection, tables: Tables, head: Head, row: Row) -> None:
    """Keep the facts of an append."""
    await connection.execute(
        f"INSERT INTO {tables.appends} (run, first, last, facts, checksum, beside)"  # noqa: S608 - ours
        " VALUES ($1, $2, $3, $4, $5, $6)",
        head.number, row.first, row.last, row.facts, row.checksum, row.beside,
    )  # fmt: skip
