"""The rows of runs in a SQLite journal: listed without folding anything, and emptied for good.

What an append said of its run counts only as long as no process of an older version has appended
since: `told` is the sequence that it is of.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, Final

import attrs

from ...models.codec import record_from_json, to_json
from ...models.errors import InvalidValue, NewerVersion
from ...models.run import Run
from ...views.status import Status
from ..errors import JournalError
from .contract import RunEntry, not_removed, run_differs
from .sqlite_rows import checksum, damaged
from .sqlite_runs import HEAD, Head, head_of, mark_rewound, row_of_run, why_lost

_ENTRY: Final = HEAD.replace(
    " FROM",
    ", run, checksum, began, changed, status, waiting, doubts, trouble, told,"
    " (SELECT sequence FROM snapshots WHERE run = number) FROM",
)
_HEAD: Final = len(attrs.fields(Head))


def entry(connection: sqlite3.Connection, run_id: str, *, where: str) -> RunEntry:
    """Return one run's entry.

    Raises `UnknownRun`, and `JournalError` where its configuration is damaged.
    """
    head, content, kept, *told = _split(row_of_run(connection, _ENTRY, run_id))
    return _entry(_configuration(content, kept, run_id, where), head, told, head.problem)


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


def _split(row: Any) -> Any:  # noqa: ANN401 - a row of _ENTRY
    return (Head(*row[:_HEAD]), *row[_HEAD:])


def _listed(row: Any, where: str) -> RunEntry:  # noqa: ANN401 - a row of _ENTRY
    """Return an entry in any case: one damaged row must not hide the others."""
    head, content, kept, *told = _split(row)
    try:
        run, problem = _configuration(content, kept, head.run_id, where), head.problem
    except JournalError as error:
        run, problem = Run(run_id=str(head.run_id) or "?"), str(error)
    return _entry(run, head, told, problem)


def _configuration(content: Any, kept: Any, run_id: str, where: str) -> Run:  # noqa: ANN401
    try:
        run = record_from_json(Run, content) if checksum(content, run_id) == kept else None
    except NewerVersion as error:
        raise JournalError(
            f"journal {where}: a newer turnlock declared run {run_id!r} ({error.cause}); leave it"
            " to that one: nothing is damaged"
        ) from error
    except InvalidValue as error:
        raise damaged(where, f"run {run_id!r}", str(error)) from error
    if run is None or run.run_id != run_id:
        raise damaged(where, f"run {run_id!r}", "the checksum does not fit")
    return run


def _entry(run: Run, head: Head, told: Sequence[Any], problem: str | None) -> RunEntry:
    began, changed, status, waiting, doubts, trouble, of, snapped = told
    known = head.usable
    if not known.sequence:
        status, waiting, doubts = Status.IDLE, 0, 0
    elif of != known.sequence:
        changed = status = waiting = doubts = trouble = None
    return RunEntry(
        run=run,
        sequence=known.sequence,
        busy=bool(known.busy),
        fence=known.fence,
        owner=known.owner,
        owned_until=known.owned_until,
        began=began,
        changed=changed,
        status=Status(status) if status in _STATUSES else None,
        waiting=waiting,
        doubts=doubts,
        trouble=None if trouble is None else str(trouble),
        snapped=snapped if isinstance(snapped, int) else 0,
        rewound=None if known.rewound is None else str(known.rewound),
        forgotten=known.forgotten,
        problem=problem,
    )


_STATUSES: Final = frozenset(Status)


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
    for table in ("appends", "snapshots", "notes", "posts")
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
