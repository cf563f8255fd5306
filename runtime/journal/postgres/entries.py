"""The rows of runs as they are declared and listed: nothing is folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ....models.codec import record_from_json, to_json
from ....models.errors import InvalidValue, NewerVersion
from ....models.run import Run
from ....views.status import Status
from ....views.tally import Asked
from ...errors import JournalError
from ..contract import RunEntry, Summary, run_differs, unknown_run
from ..ledger import Cursor
from ..rows import checksum
from .appends import SET_SUMMED, SUMMED, summed
from .doors import Connection
from .heads import head_of
from .owning import UNTIL
from .tables import Tables, bytes_of, key_of, text_of

_COLUMNS: Final = (
    "r.number, r.run_id, r.run, r.checksum, r.sequence, r.busy, r.epoch, o.name AS owner,"
    f" {UNTIL} AS until, r.began, r.changed, r.told, r.status, r.waiting, r.doubts, r.trouble,"
    " r.turn_id, r.asked_id, r.asked_tool, r.asked_since, r.part, r.shown, r.snapped, r.rewound,"
    " r.forgotten"
)
_STATUSES: Final = frozenset(Status)


def selecting(tables: Tables) -> str:
    """Return what selects what `entry_in` is given, of runs `r`; a WHERE may follow."""
    return (
        f"SELECT {_COLUMNS} FROM {tables.runs} r"  # noqa: S608 - ours
        f" LEFT JOIN {tables.owners} o ON o.number = r.owner"
    )


def entry_in(row: Any, where: str) -> RunEntry:  # noqa: ANN401 - a record of `selecting`
    """Return an entry in any case: one damaged row must not hide the others."""
    run_id, problem = text_of(row["run_id"]), None
    try:
        run = configuration(row["run"], row["checksum"], run_id, where)
    except JournalError as error:
        run, problem = Run(run_id=run_id or "?"), str(error)
    sequence, is_told = row["sequence"], row["told"] == row["sequence"]
    begun = is_told and sequence > 0
    turn_id = _text(row["turn_id"]) if begun else None
    return RunEntry(
        run=run,
        sequence=sequence,
        busy=row["busy"],
        fence=row["epoch"],
        owner=_text(row["owner"]),
        owned_until=row["until"],
        began=row["began"],
        changed=row["changed"] if is_told else None,
        status=_status(row["status"]) if begun else None if sequence else Status.IDLE,
        waiting=row["waiting"] if begun else None if sequence else 0,
        doubts=row["doubts"] if begun else None if sequence else 0,
        trouble=_text(row["trouble"]) if is_told else None,
        turn_id=turn_id,
        asked=_asked(turn_id, row),
        parts=row["part"],
        shown=Cursor(sequence, row["shown"]),
        snapped=row["snapped"],
        rewound=_text(row["rewound"]),
        forgotten=row["forgotten"],
        problem=problem,
    )


def configuration(content: bytes, kept: int, run_id: str, where: str) -> Run:
    """Return what a run was declared with. Raises `JournalError` where that is damaged."""
    cause = "the checksum does not fit"
    try:
        if checksum(content, run_id) == kept:
            run = record_from_json(Run, content)
            if run.run_id == run_id:
                return run
    except NewerVersion as error:
        raise JournalError(
            f"journal {where}: a newer turnlock declared run {run_id!r} ({error.cause}); leave it"
            " to that one: nothing is damaged"
        ) from error
    except InvalidValue as error:
        cause = str(error)
    raise JournalError(
        f"journal {where}: run {run_id!r} is damaged ({cause}); keep it as it is, and restore the"
        " database from a backup"
    )


def _text(kept: bytes | None) -> str | None:
    return None if kept is None else text_of(kept)


def _status(kept: str | None) -> Status | None:
    return Status(kept) if kept in _STATUSES else None


def _asked(turn_id: str | None, row: Any) -> Asked | None:  # noqa: ANN401 - a record
    name, since = row["asked_id"], row["asked_since"]
    if turn_id is None or name is None or since is None:
        return None
    return Asked(
        turn_id=turn_id,
        invocation_id=text_of(name),
        tool_name=text_of(row["asked_tool"] or b""),
        since=since,
    )


async def entry(connection: Connection, tables: Tables, run_id: str, *, where: str) -> RunEntry:
    """Return one run's entry.

    Raises `UnknownRun`, and `JournalError` where its configuration is damaged.
    """
    row: Any = await connection.fetchrow(f"{selecting(tables)} WHERE r.key = $1", key_of(run_id))
    if row is None:
        raise unknown_run(run_id)
    configuration(row["run"], row["checksum"], run_id, where)
    return entry_in(row, where)


async def entries(  # noqa: PLR0913 - what picks a page
    connection: Connection,
    tables: Tables,
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
        behind = (await head_of(connection, tables, after, even_forgotten=True)).number
    picked = "" if busy is None else " AND r.busy" if busy else " AND NOT r.busy"
    rows: Any = await connection.fetch(
        f"{selecting(tables)} WHERE r.number > $1 AND ($2::bytea IS NULL OR r.kind = $2)"
        f" AND ($3 OR r.forgotten IS NULL){picked} ORDER BY r.number LIMIT $4",
        behind,
        None if kind is None else kind.encode(errors="surrogatepass"),
        forgotten,
        limit,
    )
    return tuple([entry_in(row, where) for row in rows])


async def free(  # noqa: PLR0913 - what picks a page
    connection: Connection,
    tables: Tables,
    *,
    now: float,
    dead: Sequence[str],
    kind: str | None,
    after: str | None,
    limit: int,
    where: str,
) -> tuple[RunEntry, ...]:
    """List the next busy runs that nobody owns, whose lease is over, or whose owner is dead."""
    behind = 0
    if after is not None:
        behind = (await head_of(connection, tables, after, even_forgotten=True)).number
    rows: Any = await connection.fetch(
        f"{selecting(tables)} WHERE r.busy AND r.number > $1 AND ($2::bytea IS NULL OR r.kind = $2)"
        " AND r.forgotten IS NULL"
        f" AND (o.number IS NULL OR coalesce({UNTIL}, $3) <= $3 OR o.key = ANY ($4))"
        " ORDER BY r.number LIMIT $5",
        behind,
        None if kind is None else kind.encode(errors="surrogatepass"),
        now,
        [key_of(owner) for owner in dead],
        limit,
    )
    return tuple([entry_in(row, where) for row in rows])


async def declare(connection: Connection, tables: Tables, run: Run, *, where: str) -> None:
    """Make a run known, or compare it with what is known."""
    content = to_json(run)
    added = await connection.fetchval(
        f"INSERT INTO {tables.runs} (key, run_id, run, checksum, kind)"  # noqa: S608 - ours
        " VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING RETURNING number",
        key_of(run.run_id),
        bytes_of(run.run_id),
        content,
        checksum(content, run.run_id),
        bytes_of(run.kind),
    )
    if added is None:
        await head_of(connection, tables, run.run_id)  # it was not removed
        known = (await entry(connection, tables, run.run_id, where=where)).run
        if known != run:
            raise run_differs(run, known)


async def tell(  # noqa: PLR0913 - what is told
    connection: Connection,
    tables: Tables,
    run_id: str,
    *,
    after: int,
    summary: Summary,
    changed: float,
) -> None:
    """Keep where a run stands, if it ends there still, and nobody has said it."""
    head = await head_of(connection, tables, run_id, even_forgotten=True, locked=True)
    columns = ", ".join(
        f"${n}::{kind} AS {name}" for n, (name, kind) in enumerate(SUMMED.items(), 4)
    )
    values: Sequence[Any] = summed(summary)
    await connection.execute(
        f"UPDATE {tables.runs} r SET changed = $3, told = $2, {SET_SUMMED}"  # noqa: S608 - ours
        f" FROM (SELECT {columns}) j WHERE r.number = $1 AND r.sequence = $2"
        " AND r.forgotten IS NULL AND (r.told <> $2 OR r.status IS NULL)",
        head.number,
        after,
        changed,
        *values,
    )
