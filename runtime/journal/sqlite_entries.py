"""The rows of runs in a SQLite journal: listed without folding anything, and emptied for good.

What an append said of its run counts only as long as no process of an older version has appended
since: `told` is the sequence that it is of.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, Final

import attrs

from ...models.codec import to_json
from ...models.run import Run
from ...views.status import Status
from .contract import RunEntry, RunsPage, not_removed, run_differs
from .latest import Place
from .ledger import Cursor
from .rows import LastAppend, checksum, configuration, run_listed
from .sqlite_notes import PARTS, SHOWN
from .sqlite_runs import HEAD, Head, head_of, mark_rewound, row_of_run, why_lost

_TOLD: Final = (
    "began", "changed", "status", "waiting", "doubts", "trouble", "turn_id", "asked_id",
    "asked_tool", "asked_since",
)  # fmt: skip
_ENTRY: Final = HEAD.replace(
    " FROM",
    f", run, checksum, {', '.join(_TOLD)}, told, {PARTS}, {SHOWN},"  # noqa: S608 - ours
    " (SELECT sequence FROM snapshots WHERE run = runs.number) FROM",
)
_HEAD: Final = len(attrs.fields(Head))


def entry(connection: sqlite3.Connection, run_id: str, *, where: str) -> RunEntry:
    """Return one run's entry.

    Raises `UnknownRun`, and `JournalError` where its configuration is damaged.
    """
    head, content, kept, *told = _split(row_of_run(connection, _ENTRY, run_id))
    return _entry(configuration(content, kept, run_id, where), head, told, head.problem)


def entries(  # noqa: PLR0913 - what picks a page
    connection: sqlite3.Connection,
    *,
    busy: bool | None,
    kind: str | None,
    forgotten: bool,
    after: str | None,
    limit: int | None,
    where: str,
) -> tuple[RunEntry, ...]:
    """List the next runs in the order in which they were declared, damaged ones, too."""
    behind = 0
    if after is not None:
        (behind,) = row_of_run(connection, "SELECT number FROM runs", after)
    rows = connection.execute(
        f"{_ENTRY} WHERE number > :behind AND (:busy IS NULL OR busy = :busy)"
        " AND (:forgotten OR forgotten IS NULL) ORDER BY number",
        {"behind": behind, "busy": busy, "forgotten": forgotten},
    )
    with closing(rows):
        found: Iterator[RunEntry] = (_listed(row, where) for row in rows)
        if kind is not None:  # it stands in the run's JSON alone
            found = (it for it in found if it.run.kind == kind)
        return tuple(islice(found, limit))


def free(  # noqa: PLR0913 - what is asked
    connection: sqlite3.Connection,
    *,
    now: float,
    gone: Callable[[str], bool],
    kind: str | None,
    after: str | None,
    limit: int,
    where: str,
) -> tuple[RunEntry, ...]:
    """List the next busy runs that nobody owns, whose lease is over, or whose owner is gone."""
    behind = 0
    if after is not None:
        (behind,) = row_of_run(connection, "SELECT number FROM runs", after)
    with closing(
        connection.execute(
            "SELECT DISTINCT owner FROM runs WHERE busy AND owner IS NOT NULL AND owned_until > ?",
            (now,),
        )
    ) as rows:
        dead = [owner for (owner,) in rows if isinstance(owner, str) and gone(owner)]
    marks = ", ".join("?" * len(dead))
    rows = connection.execute(
        f"{_ENTRY} WHERE number > ? AND busy AND forgotten IS NULL AND (owner IS NULL"
        f" OR owned_until IS NULL OR owned_until <= ? OR owner IN ({marks})) ORDER BY number",
        (behind, now, *dead),
    )
    with closing(rows):
        found: Iterator[RunEntry] = (_listed(row, where) for row in rows)
        if kind is not None:
            found = (it for it in found if it.run.kind == kind)
        return tuple(islice(found, limit))


def _split(row: Any) -> Any:  # noqa: ANN401 - a row of _ENTRY
    return (Head(*row[:_HEAD]), *row[_HEAD:])


def _listed(row: Any, where: str) -> RunEntry:  # noqa: ANN401 - a row of _ENTRY
    """Return an entry in any case: one damaged row must not hide the others."""
    head, content, kept, *told = _split(row)
    run, problem = run_listed(content, kept, head.run_id, where)
    return _entry(run, head, told, problem or head.problem)


def _entry(run: Run, head: Head, columns: Sequence[Any], problem: str | None) -> RunEntry:
    *told, of, parts, shown, snapped = columns
    known = head.usable
    return RunEntry(
        run=run,
        sequence=known.sequence,
        busy=bool(known.busy),
        fence=known.fence,
        owner=known.owner,
        owned_until=known.owned_until,
        **LastAppend(of=of, **dict(zip(_TOLD, told, strict=True))).shown(known.sequence),
        parts=parts if isinstance(parts, int) else 0,
        shown=Cursor(known.sequence, shown if isinstance(shown, int) else 0),
        snapped=snapped if isinstance(snapped, int) else 0,
        rewound=None if known.rewound is None else str(known.rewound),
        forgotten=known.forgotten,
        problem=problem,
    )


_STANDING: Final = (
    "SELECT number, CASE sequence WHEN 0 THEN :idle WHEN told THEN status END,"
    " CASE sequence WHEN 0 THEN 0 WHEN told THEN waiting END,"
    " CASE sequence WHEN told THEN asked_since END, CASE sequence WHEN told THEN changed END"
    " FROM runs WHERE forgotten IS NULL"
)
"""Where runs stand in the list for people."""


def latest(  # noqa: PLR0913 - what is asked
    connection: sqlite3.Connection,
    *,
    status: Status | None,
    waiting: bool | None,
    before: Place | None,
    limit: int,
    where: str,
) -> RunsPage:
    """List runs for people: where each stands is told by a few columns, the page is read whole."""
    rows = connection.execute(_STANDING, {"idle": Status.IDLE})
    places: list[Place] = []
    count = 0
    with closing(rows):
        for number, kept, waits, since, changed in rows:
            place = Place.of(
                waits=isinstance(waits, int) and waits > 0,
                since=since if isinstance(since, float) else None,
                changed=changed if isinstance(changed, float) else None,
                number=number,
            )
            count += place.waits
            if waiting in {None, place.waits} and status in {None, kept}:
                places.append(place)
    places.sort()
    begin = 0 if before is None else bisect_right(places, before)
    page = places[begin : begin + limit]
    more = begin + limit < len(places)
    found = _numbered(connection, [abs(place.number) for place in page], where)
    return RunsPage(
        entries=[found[abs(place.number)] for place in page],
        next=str(page[-1]) if more else None,
        waiting=count,
    )


_ASKED: Final = 500
"""Runs that one statement asks for."""


def _numbered(
    connection: sqlite3.Connection, numbers: Sequence[int], where: str
) -> dict[int, RunEntry]:
    """Return entries by the numbers of their rows."""
    found: dict[int, RunEntry] = {}
    for begin in range(0, len(numbers), _ASKED):
        some = numbers[begin : begin + _ASKED]
        marks = ", ".join("?" * len(some))
        with closing(connection.execute(f"{_ENTRY} WHERE number IN ({marks})", some)) as rows:
            found.update((row[0], _listed(row, where)) for row in rows)
    return found


def declare(connection: sqlite3.Connection, run: Run, *, where: str) -> None:
    """Make a run known, or compare it with what is known."""
    content = to_json(run)
    added = connection.execute(
        "INSERT OR IGNORE INTO runs (run_id, run, checksum) VALUES (?, ?, ?)",
        (run.run_id, content, checksum(content, run.run_id)),
    ).rowcount
    if not added:
        head_of(connection, run.run_id)  # it was not removed
        known = entry(connection, run.run_id, where=where).run
        if known != run:
            raise run_differs(run, known)
    elif (why := why_lost(connection, run.run_id, where=where)) is not None:
        mark_rewound(connection, run.run_id, why=why)


WIPING: Final = "PRAGMA secure_delete = FAST"
"""Nothing of what is removed stays between the rows that do; whole pages are given back."""

_REMOVALS: Final = tuple(
    f"DELETE FROM {table} WHERE run = ?"  # noqa: S608 - of ours
    for table in ("appends", "snapshots", "noted", "posts")
)


def forget(  # noqa: PLR0913 - what the caller has seen of the run
    connection: sqlite3.Connection,
    run_id: str,
    *,
    fence: int,
    after: int,
    at: float,
    gone: str | None,
    where: str,
) -> None:
    """Remove all of a run but its row, which says that this happened."""
    known = entry(connection, run_id, where=where)
    if known.forgotten is not None:
        return
    (number,) = row_of_run(connection, "SELECT number FROM runs", run_id)
    posts = connection.execute(
        "SELECT count(*) FROM posts WHERE run = ? AND receipt IS NULL AND problem IS NULL",
        (number,),
    ).fetchone()[0]
    error = not_removed(known, fence=fence, after=after, gone=gone, posts=posts)
    if error is not None:
        raise error
    connection.execute(WIPING)
    for removal in _REMOVALS:
        connection.execute(removal, (number,))
    connection.execute(
        "UPDATE runs SET forgotten = ?, trouble = NULL, owner = NULL, owned_until = NULL,"
        " head = head_sum(run_id, sequence, busy, epoch, NULL, NULL) WHERE number = ?",
        (at, number),
    )
