"""Owners that are gone for long: their rows are removed.

Each process that owns runs has a row, whatever becomes of it, and whoever looks for free runs reads
them all. A row goes once its last lease is over for `KEPT`, and no run names it. Fencing tokens are
the runs' own, so none is given out twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from .doors import Connection
from .tables import Tables

KEPT: Final = 86_400.0
"""Seconds for which an owner is kept once its last lease is over."""
EVERY: Final = 3_600.0
"""Seconds between two cleanings by one journal that renews leases."""
MOST: Final = 1_000
"""Owners that one cleaning removes."""


async def clean_owners(connection: Connection, tables: Tables, *, now: float) -> int:
    """Remove owners that are gone for long, and say how many.

    They are locked first, and judged in a statement of its own, which sees what was kept before
    (D-31): whoever takes a run holds its owner's row against this (`owning`). Nobody is waited for.
    """
    rows: Any = await connection.fetch(
        f"SELECT o.number FROM {tables.owners} o WHERE o.renewed_until < $1"  # noqa: S608 - ours
        f" AND NOT EXISTS (SELECT FROM {tables.runs} r WHERE r.owner = o.number)"
        " ORDER BY o.number LIMIT $2 FOR UPDATE SKIP LOCKED",
        now - KEPT,
        MOST,
    )
    locked: Sequence[int] = [number for (number,) in map(tuple, rows)]
    if not locked:
        return 0
    gone: Any = await connection.fetch(
        f"DELETE FROM {tables.owners} o WHERE o.number = ANY ($1)"  # noqa: S608 - ours
        f" AND NOT EXISTS (SELECT FROM {tables.runs} r WHERE r.owner = o.number)"
        " RETURNING o.number",
        locked,
    )
    return len(gone)
