"""What the owner of a run was told is kept, and the journal has lost, is kept anew (D-62)."""

from __future__ import annotations

from ..contract import Appended, Told
from ..given import ends_of, given_notes
from ..refusals import not_restored
from ..rows import row_of
from .appends import Asked, Judged, Verdict
from .doors import Connection
from .heads import Head, head_of
from .noted_appends import appending_noted
from .notes import note
from .owning import Lease, Taken, owning
from .tables import Tables


async def restore(  # noqa: PLR0913 - what a lease and an append are made of
    connection: Connection,
    tables: Tables,
    lease: Lease,
    *,
    fence: int,
    after: int,
    parts: int,
    told: Told,
    where: str,
) -> Taken:
    """Take the run as `own` does, under a token above `fence`; keep what it lacks, each as it was.

    Whatever raises leaves all as it was: it is one transaction.
    """
    head = await head_of(connection, tables, lease.run_id, locked=True)
    if (head.sequence, head.part) != (after, parts):
        raise not_restored(lease.run_id, after=after, parts=parts)
    await connection.execute(
        f"UPDATE {tables.runs} SET rewound = NULL, epoch = greatest(epoch, $2) WHERE number = $1",  # noqa: S608 - ours
        head.number,
        fence,
    )
    (outcome,) = await owning(tables)(connection, [lease])
    if outcome.error is not None:
        raise outcome.error
    taken: Taken = outcome.value
    if told.facts or told.notes:
        await _keep(connection, tables, head, taken, told, where=where)
    return taken


async def _keep(  # noqa: PLR0913 - the run, whose it is, and what is kept
    connection: Connection, tables: Tables, head: Head, taken: Taken, told: Told, *, where: str
) -> None:
    """Keep facts with their notes, or notes alone."""
    run_id = head.run_id
    if not told.facts:
        given = given_notes(run_id, told.notes)
        kept = (
            await note(connection, tables, run_id, fence=taken.fence, given=given, where=where)
            is Appended.OK
        )
    else:
        ends = ends_of(told.facts, after=told.facts[0].sequence - 1)
        asked = Asked(
            number=head.number,
            run_id=run_id,
            fence=taken.fence,
            settle=taken.settle,
            row=row_of(run_id, told.facts, told.correlations),
            busy=told.busy,
            notes=given_notes(run_id, told.notes, ends=ends),
        )
        (outcome,) = await appending_noted(tables, where=where)(connection, [asked])
        judged: Judged | None = outcome.value
        kept = judged is not None and judged.verdict is Verdict.OK
    if not kept:
        raise not_restored(run_id, after=head.sequence, parts=head.part)
