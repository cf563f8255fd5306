"""The rows of runs as they are declared and listed: nothing is folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self

import attrs

from ....models.codec import to_json
from ....models.errors import TurnlockError
from ....models.run import Run
from ..contract import RunEntry, Summary, run_differs, unknown_run
from ..ledger import Cursor
from ..rows import LastAppend, checksum, configuration, run_listed
from .appends import SET_SUMMED, SUMMED, summed
from .doors import Connection
from .heads import head_of
from .lanes import Body, Outcome
from .owning import UNTIL
from .tables import PERIOD, Tables, bytes_of, key_of, text_of

_COLUMNS: Final = (
    "r.number, r.run_id, r.run, r.checksum, r.sequence, r.busy, r.epoch, o.name AS owner,"
    f" {UNTIL} AS until, r.began, r.changed, r.told, r.status, r.waiting, r.doubts, r.trouble,"
    " r.turn_id, r.asked_id, r.asked_tool, r.asked_since, r.part, r.shown, r.snapped, r.rewound,"
    " r.forgotten"
)


def selecting(tables: Tables) -> str:
    """Return what selects what `entry_in` is given, of runs `r`; a WHERE may follow."""
    return (
        f"SELECT {_COLUMNS} FROM {tables.runs} r"  # noqa: S608 - ours
        f" LEFT JOIN {tables.owners} o ON o.number = r.owner"
    )


def entry_in(row: Any, where: str) -> RunEntry:  # noqa: ANN401 - a record of `selecting`
    """Return an entry in any case: one damaged row must not hide the others."""
    run, problem = run_listed(row["run"], row["checksum"], text_of(row["run_id"]), where)
    sequence: int = row["sequence"]
    return RunEntry(
        run=run,
        sequence=sequence,
        busy=row["busy"],
        fence=row["epoch"],
        owner=_text(row["owner"]),
        owned_until=row["until"],
        **_told(row).shown(sequence),
        parts=row["part"],
        shown=Cursor(sequence, row["shown"]),
        snapped=row["snapped"],
        rewound=_text(row["rewound"]),
        forgotten=row["forgotten"],
        problem=problem,
    )


def _told(row: Any) -> LastAppend:  # noqa: ANN401 - a record
    return LastAppend(
        of=row["told"],
        began=row["began"],
        changed=row["changed"],
        status=row["status"],
        waiting=row["waiting"],
        doubts=row["doubts"],
        trouble=_text(row["trouble"]),
        turn_id=_text(row["turn_id"]),
        asked_id=_text(row["asked_id"]),
        asked_tool=_text(row["asked_tool"]),
        asked_since=row["asked_since"],
    )


def _text(kept: bytes | None) -> str | None:
    return None if kept is None else text_of(kept)


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


@attrs.frozen
class Declared:
    """A run that is to be made known, and its row."""

    run: Run
    key: bytes
    run_id: bytes
    content: bytes
    checksum: int
    kind: bytes

    @classmethod
    def of(cls, run: Run) -> Self:
        """Return what is kept of a run."""
        content, run_id = to_json(run), run.run_id
        summed_up = checksum(content, run_id)
        return cls(run, key_of(run_id), bytes_of(run_id), content, summed_up, bytes_of(run.kind))


def declaring(tables: Tables, *, where: str) -> Body:
    """Return what makes a group of runs known, or compares each with what is known (D-33).

    They are listed in the order in which they came. Two hosts that declare the same ones in another
    order may lock each other out, once: the server ends one, which is done again (D-32).
    """
    statement = (
        f"INSERT INTO {tables.runs} (key, run_id, run, checksum, kind)"  # noqa: S608 - ours
        " SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[], $4::bigint[], $5::bytea[])"
        " ON CONFLICT DO NOTHING RETURNING key"
    )

    async def body(connection: Connection, works: Sequence[Declared]) -> Sequence[Outcome]:
        first = {it.key: it for it in reversed(works)}
        columns = [[getattr(it, name) for it in works] for name in _DECLARED]
        added = {key for (key,) in map(tuple, await connection.fetch(statement, *columns))}
        return [
            Outcome()
            if it.key in added and it is first[it.key]
            else await _compared(connection, tables, it.run, where=where)
            for it in works
        ]

    return body


_DECLARED: Final = ("key", "run_id", "content", "checksum", "kind")


async def _compared(connection: Connection, tables: Tables, run: Run, *, where: str) -> Outcome:
    """Compare a run with the one that is known; it may have been removed."""
    try:
        await head_of(connection, tables, run.run_id)
        known = (await entry(connection, tables, run.run_id, where=where)).run
        return Outcome() if known == run else Outcome(error=run_differs(run, known))
    except TurnlockError as error:
        return Outcome(error=error)


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
        f"UPDATE {tables.runs} r SET changed = $3, told = $2,"  # noqa: S608 - ours
        f" period = {PERIOD.format('$3')}, {SET_SUMMED}"
        f" FROM (SELECT {columns}) j WHERE r.number = $1 AND r.sequence = $2"
        " AND r.forgotten IS NULL AND (r.told <> $2 OR r.status IS NULL)",
        head.number,
        after,
        changed,
        *values,
    )
