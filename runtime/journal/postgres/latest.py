"""The list of runs for people: found in three indexes, in the order in which it is shown (F-30).

Those that wait have an index of their own, in their order. The others go by their latest fact: an
index of it would be written by each append, which then leaves its page (D-21). So there is one of
`period`, ten minutes in which many facts of a run happen, and the runs of one are sorted; and one
of those alone that are `interrupted`, which an append seldom changes.

Of period 0 are runs without a fact, and those that a version before has written: all others have
changed since. What such a version writes beside us stays in its period until the next append: such
a run stands lower than it should, and once all the same; and who asks for those that are
interrupted is not told of it until then.
"""

from __future__ import annotations

import math
from typing import Any, Final

from ....views.status import Status
from ..contract import RunsPage
from ..latest import RESTS, WAITS, Place
from .doors import Connection
from .entries import entry_in, selecting
from .tables import MOST, NEWEST, Tables

_WAITS: Final = "waiting > 0 AND forgotten IS NULL AND told = sequence AND sequence > 0"
_RESTS: Final = (
    "forgotten IS NULL AND (waiting > 0 AND told = sequence AND sequence > 0) IS NOT TRUE"
)
_SINCE: Final = "coalesce(asked_since, 0)"
_CHANGED: Final = "coalesce(CASE WHEN told = sequence THEN -changed END, 'infinity')"
_FOUND_BY: Final = {
    status: "interrupted" if status is Status.INTERRUPTED else "busy"
    for status in Status
    if status is not Status.IDLE
}
"""What has an index, and says of a run that it may stand so: it does not matter how many runs there
are besides. For what is idle all is gone through, latest first, until the page is full."""


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
    waits: int = await connection.fetchval(f"SELECT count(*) FROM {tables.runs} WHERE {_WAITS}")  # noqa: S608 - ours
    rows: Any = await connection.fetch(
        f"WITH page AS ({_page(tables, status, waiting)} ORDER BY place, key, number LIMIT $1)"  # noqa: S608 - ours
        " SELECT page.place, page.key AS since, page.number AS place_number, of_run.*"
        f" FROM page JOIN ({selecting(tables)}) of_run ON of_run.number = abs(page.number)"
        " ORDER BY page.place, page.key, page.number",
        min(limit, MOST - 1) + 1,
        *_bounds(before),
    )
    page = rows[:limit]
    return RunsPage(
        entries=[entry_in(row, where) for row in page],
        next=str(_place_in(page[-1])) if len(rows) > limit else None,
        waiting=waits,
    )


def _page(tables: Tables, status: Status | None, waiting: bool | None) -> str:  # noqa: FBT001 - as asked
    """Return what selects the next places, as `Place.of` says them, of each group."""
    told = _of(status)
    waits = (
        f"(SELECT {WAITS}::bigint AS place, {_SINCE} AS key, number FROM {tables.runs}"  # noqa: S608 - ours
        f" WHERE {_WAITS}{told} AND {waiting is not False} AND ({_SINCE}, number) > ($2, $3)"
        f" ORDER BY {_SINCE}, number LIMIT $1)"
    )
    rests = (
        f"(SELECT {RESTS + NEWEST} - period, {_CHANGED}, -number FROM {tables.runs}"  # noqa: S608 - ours
        f" WHERE {_RESTS}{told} AND {waiting is not True} AND period <= $4::int"
        f" AND (period < $4::int OR ({_CHANGED}, -number) > ($5, $6))"
        f" ORDER BY period DESC, {_CHANGED}, -number LIMIT $1)"
    )
    return f"{waits} UNION ALL {rests}"


def _of(status: Status | None) -> str:
    """Return the condition for those that stand so."""
    if status is None:
        return ""
    if status is Status.IDLE:
        return f" AND (sequence = 0 OR told = sequence AND status = '{status}')"
    return f" AND sequence > 0 AND told = sequence AND status = '{status}' AND {_FOUND_BY[status]}"


def _place_in(row: Any) -> Place:  # noqa: ANN401 - a record
    return Place(row["place"], row["since"], row["place_number"])


def _bounds(before: Place | None) -> tuple[float, int, int, float, int]:
    """Return behind what the page begins, among those that wait and among the others.

    The server can compare it: whoever made a place up may have said any number.
    """
    first = -math.inf, -MOST
    if before is None or before.group < WAITS:
        return (*first, NEWEST, *first)
    there = before.key, max(-MOST, min(before.number, MOST))
    if before.group == WAITS:
        return (*there, NEWEST, *first)
    return (math.inf, MOST, max(-1, NEWEST + RESTS - before.group), *there)
