"""The rows of runs in a SQLite journal: listed without folding anything, and emptied for good.

What an append said of its run counts only as long as no process of an older version has appended
since: `told` is the sequence that it is of.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Any, Final

from ...models.codec import record_from_json
from ...models.errors import InvalidValue
from ...models.run import Run
from ...views.status import Status
from ..errors import JournalError
from .contract import Busy, RunEntry, Summary, not_removed, unknown_run
from .sqlite_rows import checksum

_ENTRY: Final = (
    "SELECT run_id, run, checksum, sequence, busy, epoch, owner, owned_until,"
    " began, changed, status, waiting, doubts, told, rewound, forgotten FROM runs"
)


def entry(connection: sqlite3.Connection, run_id: str, *, where: str) -> RunEntry:
    """Return one run's entry. Raises `UnknownRun`."""
    return _entry(row_of_run(connection, _ENTRY, run_id), where)


def entries(  # noqa: PLR0913 - what picks a page
    connection: sqlite3.Connection,
    *,
    busy: bool | None,
    kind: str | None,
    forgotten: bool,
    after: str | None,
    limit: int,
    where: str,
) -> tuple[RunEntry, ...]:
    """List the next runs in the order in which they were declared."""
    behind = 0
    if after is not None:
        (behind,) = row_of_run(connection, "SELECT number FROM runs", after)
    rows = connection.execute(
        f"{_ENTRY} WHERE number > :behind AND (:busy IS NULL OR busy = :busy)"
        " AND (:forgotten OR forgotten IS NULL) ORDER BY number",
        {"behind": behind, "busy": busy, "forgotten": forgotten},
    )
    with closing(rows):
        found: Iterator[RunEntry] = (_entry(row, where) for row in rows)
        if kind is not None:  # it stands in the run's JSON alone
            found = (it for it in found if it.run.kind == kind)
        return tuple(islice(found, limit))


def row_of_run(connection: sqlite3.Connection, select: str, run_id: str) -> Any:  # noqa: ANN401
    """Return what is selected of a run's row. Raises `UnknownRun`."""
    try:
        row = connection.execute(f"{select} WHERE run_id = ?", (run_id,)).fetchone()
    except UnicodeEncodeError:  # a lone surrogate: no run has such an id
        row = None
    if row is None:
        raise unknown_run(run_id)
    return row


def _entry(row: Any, where: str) -> RunEntry:  # noqa: ANN401 - a row of _ENTRY
    run_id, content, kept, sequence, busy, fence, owner, owned_until, *told = row
    try:
        run = record_from_json(Run, content) if checksum(content, run_id) == kept else None
    except InvalidValue as error:
        raise JournalError(damaged(where, f"run {run_id!r}", str(error))) from error
    if run is None or run.run_id != run_id:
        raise JournalError(damaged(where, f"run {run_id!r}", "the checksum does not fit"))
    began, changed, status, waiting, doubts, of, rewound, forgotten = told
    if not sequence:
        status, waiting, doubts = Status.IDLE, 0, 0
    elif of != sequence:
        changed = status = waiting = doubts = None
    return RunEntry(
        run=run,
        sequence=sequence,
        busy=bool(busy),
        fence=fence,
        owner=owner,
        owned_until=owned_until,
        began=began,
        changed=changed,
        status=None if status is None else Status(status),
        waiting=waiting,
        doubts=doubts,
        rewound=rewound,
        forgotten=forgotten,
    )


def told_of(busy: Busy) -> dict[str, Any]:
    """Return what an append says of its run besides, by the columns that it stands in."""
    if isinstance(busy, Summary):
        return {"status": busy.status, "waiting": busy.waiting, "doubts": busy.doubts}
    return {"status": None, "waiting": None, "doubts": None}


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
    for removal in _REMOVALS:
        connection.execute(removal, (number,))
    connection.execute(
        "UPDATE runs SET forgotten = ?, owner = NULL, owned_until = NULL WHERE number = ?",
        (at, number),
    )


def damaged(where: str, what: str, cause: str) -> str:
    """Return what is said of a row that is not as it was written."""
    return (
        f"journal {where}: {what} is damaged ({cause}); keep the file and its -wal file as they"
        " are, and restore them from a copy"
    )
