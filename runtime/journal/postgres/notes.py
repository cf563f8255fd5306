"""Notes: kept beside facts, found, and pruned (S-60 … S-66). What a row of them is, `noted` says.

Where notes stand behind the last fact of a run, its row says in `part` and `shown`: who keeps
some has locked that row, and writes these two columns in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from ....models.fact import Fact
from ..contract import Appended
from ..given import Given
from ..ledger import LASTING, Cursor, Domain, Gap, Noted
from ..noted import NotedRow, ids_of, not_kept, placed
from ..pruning import TURN_FACTS, Spared, decides, joined, old_of, turn_facts, turn_in
from .doors import Connection
from .heads import Head, head_of, writable
from .tables import Tables, bytes_of, key_of, text_of

PAGE: Final = 200
"""Rows that are looked at together where mostly the first ones are enough."""

PARTS: Final = 2**31 - 1
"""No part comes so far; a cursor may say more."""

COLUMNS: Final = (
    "n.sequence, n.part, n.at, n.domain, n.id, n.pruned, n.checksum, n.correlation, n.content"
)
"""What `row_in` is given, of notes `n`."""
_OBSERVED: Final = "n.pruned IS NULL AND n.key IS NULL AND n.domain NOT IN ({})".format(
    ", ".join(f"'{domain}'" for domain in sorted(LASTING))
)


def row_in(kept: Any) -> NotedRow:  # noqa: ANN401 - a record of `COLUMNS`
    """Return a note or a gap as it is kept."""
    sequence, part, at, domain, name, pruned, summed, correlation, content = kept
    return NotedRow(
        sequence, part, at, domain, None if name is None else text_of(name), 0, pruned, summed,
        correlation, content,
    )  # fmt: skip


@attrs.frozen(kw_only=True)
class Beside:
    """Notes that are to be kept for a run, whose row is locked, and which ends there."""

    number: int
    run_id: str
    sequence: int
    """Its last fact before; notes of an append stand behind that one, or behind new ones."""
    part: int
    """Notes that were kept behind that fact."""
    given: Sequence[Given]


async def rows_of(
    connection: Connection, tables: Tables, asked: Sequence[Beside], *, where: str
) -> Sequence[Sequence[NotedRow] | None]:
    """Return the rows of the notes that are not kept yet, for each run; nothing is written.

    None where an id has other content.
    """
    known = await _known(connection, tables, asked, where)
    fresh = [not_kept(it.given, known.get(it.number, {})) for it in asked]
    return [
        None if some is None else [*placed(some, sequence=it.sequence, part=it.part)]
        for it, some in zip(asked, fresh, strict=True)
    ]


async def _known(
    connection: Connection, tables: Tables, asked: Sequence[Beside], where: str
) -> Mapping[int, Mapping[str, bytes]]:
    """Return what is kept under the ids of notes, by run."""
    named = [(it.number, name) for it in asked for name in ids_of(it.given)]
    if not named:
        return {}
    rows: Any = await connection.fetch(
        f"SELECT n.run, {COLUMNS} FROM {tables.notes} n"  # noqa: S608 - ours
        " JOIN unnest($1::bigint[], $2::bytea[]) AS k(run, key) ON n.run = k.run AND n.key = k.key",
        [number for number, _ in named],
        [key_of(name) for _, name in named],
    )
    runs = {it.number: it.run_id for it in asked}
    found: dict[int, dict[str, bytes]] = {}
    for number, *kept in map(tuple, rows):
        row = row_in(kept)
        found.setdefault(number, {})[row.id or ""] = row.told(runs[number], where)
    return found


async def insert(
    connection: Connection, tables: Tables, rows: Sequence[tuple[int, str, NotedRow]]
) -> None:
    """Keep rows, each with the number and the id of its run."""
    if not rows:
        return
    columns = zip(
        *(
            (
                number, it.sequence, it.part, it.at, it.domain,
                None if it.id is None else key_of(it.id),
                None if it.id is None else bytes_of(it.id),
                it.pruned, it.sum_of(run_id), it.correlation, it.content,
            )
            for number, run_id, it in rows
        ),
        strict=True,
    )  # fmt: skip
    await connection.execute(
        f"INSERT INTO {tables.notes} (run, sequence, part, at, domain, key, id, pruned, checksum,"  # noqa: S608 - ours
        " correlation, content) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::int[],"
        " $4::float8[], $5::text[], $6::bytea[], $7::bytea[], $8::int[], $9::bigint[],"
        " $10::bytea[], $11::bytea[])",
        *columns,
    )


def ends_of(
    rows: Sequence[NotedRow], *, sequence: int, part: int = 0, shown: int = 0
) -> tuple[int, int]:
    """Return `part` and `shown` of a run that ends with this fact, once these rows are kept.

    `part` and `shown` are what they were before, none behind a new fact.
    """
    last = [it for it in rows if it.sequence == sequence]
    seen = [it.part for it in last if it.domain != Domain.SESSION]
    return max([part, *(it.part for it in last)]), max([shown, *seen])


async def note(  # noqa: PLR0913 - what is asked
    connection: Connection,
    tables: Tables,
    run_id: str,
    *,
    fence: int | None,
    given: Sequence[Given],
    where: str,
) -> Appended:
    """Keep notes after the last fact."""
    head = await writable(connection, tables, run_id)
    if not head.admits(fence):
        return Appended.FENCED
    if any(it.after not in {None, head.sequence} for it in given):
        return Appended.CONFLICT
    beside = Beside(
        number=head.number, run_id=run_id, sequence=head.sequence, part=head.part, given=given
    )
    (rows,) = await rows_of(connection, tables, [beside], where=where)
    if rows is None:
        return Appended.CONFLICT
    if rows:
        await insert(connection, tables, [(head.number, run_id, row) for row in rows])
        ends = ends_of(rows, sequence=head.sequence, part=head.part, shown=head.shown)
        await connection.execute(
            f"UPDATE {tables.runs} SET part = $2, shown = $3 WHERE number = $1",  # noqa: S608 - ours
            head.number,
            *ends,
        )
    return Appended.OK


async def notes(  # noqa: PLR0913 - what is asked
    connection: Connection,
    tables: Tables,
    run_id: str,
    *,
    domain: Domain | None,
    after: Cursor,
    where: str,
) -> tuple[Noted, ...]:
    """Return the notes of a run, in order."""
    number = (await head_of(connection, tables, run_id)).number
    rows: Any = await connection.fetch(
        f"SELECT {COLUMNS} FROM {tables.notes} n WHERE n.run = $1"  # noqa: S608 - ours
        " AND (n.sequence, n.part) > ($2, $3) AND n.pruned IS NULL"
        " AND ($4::text IS NULL OR n.domain = $4) ORDER BY n.sequence, n.part",
        number,
        after.sequence,
        min(after.part, PARTS),
        None if domain is None else str(domain),
    )
    return tuple([row_in(row).noted(run_id, where) for row in rows])


async def find_note(
    connection: Connection, tables: Tables, run_id: str, *, note_id: str, where: str
) -> Noted | None:
    """Return the note of this id."""
    number = (await head_of(connection, tables, run_id)).number
    row: Any = await connection.fetchrow(
        f"SELECT {COLUMNS} FROM {tables.notes} n WHERE n.run = $1 AND n.key = $2",  # noqa: S608 - ours
        number,
        key_of(note_id),
    )
    return None if row is None else row_in(row).noted(run_id, where)


async def prunable(
    connection: Connection, tables: Tables, run_id: str, *, fence: int | None, now: float
) -> Sequence[Cursor]:
    """Return where the observations stand that may go, the oldest first."""
    head = await writable(connection, tables, run_id)
    if not head.admits(fence):
        return []
    rows: Any = await connection.fetch(
        f"SELECT n.sequence, n.part, n.at, n.correlation FROM {tables.notes} n"  # noqa: S608 - ours
        f" WHERE n.run = $1 AND {_OBSERVED} ORDER BY n.sequence, n.part",
        head.number,
    )
    gone = old_of(
        [((Cursor(sequence, part), about), at) for sequence, part, at, about in map(tuple, rows)],
        now=now,
    )
    if not gone:
        return []
    spared = Spared.by(
        await _deciding(connection, tables, head),
        latest=await _latest_turn(connection, tables, head),
    )
    return [cursor for cursor, about in gone if not spared.has(cursor.sequence, turn_in(about))]


async def _latest_turn(connection: Connection, tables: Tables, head: Head) -> str | None:
    """Return the turn of another runtime that was told of last."""
    before = Cursor(head.sequence, PARTS)
    while True:
        rows: Any = await connection.fetch(
            f"SELECT n.sequence, n.part, n.correlation FROM {tables.notes} n WHERE n.run = $1"  # noqa: S608 - ours
            " AND n.correlation IS NOT NULL AND (n.sequence, n.part) < ($2, $3)"
            " ORDER BY n.sequence DESC, n.part DESC LIMIT $4",
            head.number,
            *before,
            PAGE,
        )
        for sequence, part, about in map(tuple, rows):
            if (found := turn_in(about)) is not None:
                return found
            before = Cursor(sequence, part)
        if not rows:
            return None


async def _deciding(connection: Connection, tables: Tables, head: Head) -> Sequence[Fact]:
    """Return the latest fact that says whether a turn is open, if there is one."""
    before = head.sequence + 1
    while True:
        row: Any = await connection.fetchrow(
            f"SELECT last, facts FROM {tables.appends} WHERE run = $1 AND last < $2"  # noqa: S608 - ours
            " AND position($3::bytea IN facts) > 0 ORDER BY last DESC LIMIT 1",
            head.number,
            before,
            TURN_FACTS,
        )
        if row is None:
            return []
        before, facts = row
        for fact in turn_facts(facts):
            if decides(fact):
                return [fact]


async def prune(
    connection: Connection,
    tables: Tables,
    run_id: str,
    *,
    fence: int | None,
    cursors: Sequence[Cursor],
) -> int:
    """Remove the observations that stand there, and leave gaps in their places; return how many."""
    head = await writable(connection, tables, run_id)
    if not head.admits(fence):
        return 0
    gone = await _there(connection, tables, head, cursors)
    await _keep_gaps(connection, tables, head, joined(gone))
    return len(gone)


async def skip(
    connection: Connection, tables: Tables, run_id: str, *, fence: int | None, parts: int
) -> Appended:
    """Keep a gap behind the last entry, see `Ledgers.skip`."""
    head = await writable(connection, tables, run_id)
    if not head.admits(fence):
        return Appended.FENCED
    last = head.part + parts
    gap = Gap(first=Cursor(head.sequence, head.part + 1), last=Cursor(head.sequence, last))
    await _keep_gaps(connection, tables, head, [gap])
    await connection.execute(
        f"UPDATE {tables.runs} SET part = $2, shown = $2 WHERE number = $1",  # noqa: S608 - ours
        head.number,
        last,
    )
    return Appended.OK


async def _keep_gaps(
    connection: Connection, tables: Tables, head: Head, some: Sequence[Gap]
) -> None:
    """Keep gaps instead of what stands there, and those that they touch as one."""
    gaps = joined([*some, *await _touching(connection, tables, head, some)])
    await connection.execute(
        f"DELETE FROM {tables.notes} n"  # noqa: S608 - ours
        " USING unnest($2::bigint[], $3::int[], $4::int[]) AS g(sequence, first, last)"
        " WHERE n.run = $1 AND n.sequence = g.sequence AND n.part BETWEEN g.first AND g.last",
        head.number,
        *_columns(gaps),
    )
    rows = [(head.number, head.run_id, NotedRow.of_gap(it)) for it in gaps]
    await insert(connection, tables, rows)


def _columns(gaps: Sequence[Gap]) -> tuple[list[int], list[int], list[int]]:
    return (
        [it.first.sequence for it in gaps],
        [it.first.part for it in gaps],
        [it.last.part for it in gaps],
    )


async def _there(
    connection: Connection, tables: Tables, head: Head, cursors: Sequence[Cursor]
) -> Sequence[Gap]:
    """Return those that are still there, each as a gap of its own."""
    rows: Any = await connection.fetch(
        f"SELECT n.sequence, n.part FROM {tables.notes} n"  # noqa: S608 - ours
        " JOIN unnest($2::bigint[], $3::int[]) AS c(sequence, part)"
        f" ON n.sequence = c.sequence AND n.part = c.part WHERE n.run = $1 AND {_OBSERVED}",
        head.number,
        [it.sequence for it in cursors],
        [it.part for it in cursors],
    )
    return [Gap(first=Cursor(*it), last=Cursor(*it)) for it in map(tuple, rows)]


async def _touching(
    connection: Connection, tables: Tables, head: Head, gaps: Sequence[Gap]
) -> Sequence[Gap]:
    """Return the gaps right before and behind these: what goes between them joins them."""
    rows: Any = await connection.fetch(
        "SELECT g.sequence, t.part, t.pruned"  # noqa: S608 - ours
        " FROM unnest($2::bigint[], $3::int[], $4::int[]) AS g(sequence, first, last),"
        f" LATERAL ((SELECT n.part, n.pruned FROM {tables.notes} n WHERE n.run = $1"
        " AND n.sequence = g.sequence AND n.part < g.first ORDER BY n.part DESC LIMIT 1)"
        f" UNION ALL (SELECT n.part, n.pruned FROM {tables.notes} n WHERE n.run = $1"
        " AND n.sequence = g.sequence AND n.part = g.last + 1)) AS t"
        " WHERE t.pruned IS NOT NULL",
        head.number,
        *_columns(gaps),
    )
    return [
        Gap(first=Cursor(sequence, part), last=Cursor(sequence, pruned))
        for sequence, part, pruned in map(tuple, rows)
    ]
