"""The ledger of a run: facts and notes read in one order, as the bytes that were kept.

Where the ledger ends is asked first, and nothing behind that is read. What stands before it stays,
or becomes a gap, whatever happens meanwhile: so no page needs a transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import pages
from ..ledger import Cursor, Domain, LedgerEntry, LedgerPage
from ..noted import NotedRow
from ..pages import Told, page_of
from ..rows import entries_in, missing
from .doors import Connection
from .facts import rows_after
from .heads import Head, head_of
from .notes import COLUMNS, PARTS, row_in
from .tables import Tables, key_of, text_of


async def page(  # noqa: PLR0913 - what is asked
    connection: Connection,
    tables: Tables,
    run_id: str,
    *,
    after: Cursor,
    limit: int,
    manifests: bool,
    where: str,
) -> LedgerPage:
    """Return the next entries of a run."""
    head = await head_of(connection, tables, run_id)
    ends = Cursor(head.sequence, head.part if manifests else head.shown)
    if after.sequence > head.sequence:
        return LedgerPage(entries=[], head=ends, gaps=[])
    facts = await _facts(connection, tables, head, after=after.sequence, limit=limit, where=where)
    if not facts and after.sequence < head.sequence:
        await head_of(connection, tables, run_id)  # it was not removed meanwhile
        raise missing(after.sequence + 1, where)
    rows = await _rows(connection, tables, head, after=after, limit=limit, manifests=manifests)
    if len(rows) == limit:  # there may be more: no fact is shown that stands behind them
        facts = _until(facts, rows[-1].sequence)
    seen = facts[-1][-1].cursor.sequence if facts else after.sequence
    notes = _told((it for it in rows if it.sequence <= seen), run_id, after, where)
    return page_of(iter(facts), notes, head=ends, limit=limit)


async def _facts(  # noqa: PLR0913 - what is asked
    connection: Connection, tables: Tables, head: Head, *, after: int, limit: int, where: str
) -> Sequence[Sequence[LedgerEntry]]:
    """Return the next facts, those of an append together, none that came after the head."""
    if after >= head.sequence:
        return []
    found: list[Sequence[LedgerEntry]] = []
    last = after
    for kept in await rows_after(connection, tables, head, after=after, limit=limit):
        if kept["last"] > head.sequence:
            break
        found.append(entries_in(tuple(kept), head.run_id, after=last, where=where))
        last = kept["last"]
    return found


def _until(facts: Sequence[Sequence[LedgerEntry]], last: int) -> Sequence[Sequence[LedgerEntry]]:
    cut = ([it for it in row if it.cursor.sequence <= last] for row in facts)
    return [row for row in cut if row]


async def _rows(  # noqa: PLR0913 - what is asked
    connection: Connection,
    tables: Tables,
    head: Head,
    *,
    after: Cursor,
    limit: int,
    manifests: bool,
) -> Sequence[NotedRow]:
    """Return the next notes and gaps, a gap that `after` is inside of among them.

    The first in any case, and the others as long as they fit a page.
    """
    rows: Any = await connection.fetch(
        f"SELECT {COLUMNS} FROM (SELECT n.*, sum(octet_length(n.content))"  # noqa: S608 - ours
        " OVER (ORDER BY n.sequence, n.part) - octet_length(n.content) AS before"
        f" FROM {tables.notes} n WHERE n.run = $1 AND (n.sequence, n.part) >= ($2, coalesce("
        "(SELECT CASE WHEN g.pruned > $3 THEN g.part END FROM ("
        f"SELECT b.part, b.pruned FROM {tables.notes} b WHERE b.run = $1 AND b.sequence = $2"
        " AND b.part <= $3 ORDER BY b.part DESC LIMIT 1) g), $3 + 1))"
        " AND (n.sequence, n.part) <= ($4, $5) AND ($6 OR n.domain <> $7)"
        " ORDER BY n.sequence, n.part LIMIT $8) n WHERE n.before < $9"
        " ORDER BY n.sequence, n.part",
        head.number,
        after.sequence,
        min(after.part, PARTS - 1),
        head.sequence,
        head.part,
        manifests,
        str(Domain.SESSION),
        limit,
        pages.PAGE_BYTES,
    )
    return [row_in(row) for row in rows]


def _told(rows: Iterator[NotedRow], run_id: str, after: Cursor, where: str) -> Iterator[Told]:
    for row in rows:
        row.checked(run_id, where)
        if row.pruned is None:
            yield row.entry(run_id, where)
        else:
            yield row.gap(first=after.part + 1 if row.cursor <= after else None)


async def ends(
    connection: Connection, tables: Tables, *, run_ids: Sequence[str]
) -> Mapping[str, Cursor]:
    """Return where ledgers end: one question for all (D-15)."""
    rows: Any = await connection.fetch(
        f"SELECT run_id, sequence, shown FROM {tables.runs}"  # noqa: S608 - ours
        " WHERE key = ANY ($1) AND forgotten IS NULL",
        [key_of(run_id) for run_id in dict.fromkeys(run_ids)],
    )
    return {text_of(row["run_id"]): Cursor(row["sequence"], row["shown"]) for row in rows}
