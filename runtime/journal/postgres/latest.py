"""The list of runs for people: sorted by the server, which reads a few columns of each run (F-30).

No index is kept for it: one that changes with each append would cost every append more than this
list costs who looks at it.
"""

from __future__ import annotations

from typing import Any, Final

from ....views.status import Status
from ..contract import RunsPage
from ..latest import RESTS, WAITS, Place
from .doors import Connection
from .entries import entry_in, selecting
from .tables import Tables

_STANDS: Final = (
    "SELECT number, CASE WHEN sequence = 0 THEN '{idle}' WHEN told = sequence THEN status END"
    " AS status, coalesce(told = sequence AND sequence > 0 AND waiting > 0, false) AS waits,"
    " CASE WHEN told = sequence THEN asked_since END AS since,"
    " CASE WHEN told = sequence THEN changed END AS changed"
    " FROM {runs} WHERE forgotten IS NULL"
)
_PLACED: Final = (
    f"SELECT status, waits, CASE WHEN waits THEN {WAITS} ELSE {RESTS} END AS place,"  # noqa: S608 - ours
    " CASE WHEN waits THEN coalesce(since, 0) ELSE coalesce(-changed, 'infinity') END AS key,"
    " CASE WHEN waits THEN number ELSE -number END AS number FROM ({stands}) s"
)
"""Where runs stand, as `Place.of` says it."""
_MOST: Final = 2**63 - 1


async def latest(  # noqa: PLR0913 - what is asked
    connection: Connection,
    tables: Tables,
    *,
    status: Status | None,
    waiting: bool | None,
    before: Place | None,
    limit: int,
    where: str,
) -> RunsPage:
    """List runs for people, and one more than the page has: it says whether there is another."""
    stands = _STANDS.format(idle=Status.IDLE, runs=tables.runs)
    placed = _PLACED.format(stands=stands)
    waits: int = await connection.fetchval(f"SELECT count(*) FROM ({stands}) s WHERE waits")  # noqa: S608 - ours
    rows: Any = await connection.fetch(
        f"WITH placed AS ({placed}), page AS (SELECT * FROM placed"  # noqa: S608 - ours
        " WHERE ($1::text IS NULL OR status = $1) AND ($2::boolean IS NULL OR waits = $2)"
        " AND ($3::int IS NULL OR (place, key, number) > ($3, $4::float8, $5::bigint))"
        " ORDER BY place, key, number LIMIT $6)"
        f" SELECT page.place, page.key AS since, page.number AS place_number, of_run.*"
        f" FROM page JOIN ({selecting(tables)}) of_run ON of_run.number = abs(page.number)"
        " ORDER BY page.place, page.key, page.number",
        None if status is None else str(status),
        waiting,
        *_bounds(before),
        min(limit, _MOST - 1) + 1,
    )
    page = rows[:limit]
    return RunsPage(
        entries=[entry_in(row, where) for row in page],
        next=str(_place_in(page[-1])) if len(rows) > limit else None,
        waiting=waits,
    )


def _place_in(row: Any) -> Place:  # noqa: ANN401 - a record
    return Place(row["place"], row["since"], row["place_number"])


def _bounds(before: Place | None) -> tuple[int | None, float | None, int | None]:
    """Return a place as the server can compare it: whoever made one up may have said any number."""
    if before is None:
        return None, None, None
    return (
        max(WAITS - 1, min(before.group, RESTS + 1)),
        before.key,
        max(-_MOST, min(before.number, _MOST)),
    )
