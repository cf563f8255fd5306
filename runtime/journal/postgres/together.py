"""Works of many runs that are done one after the other in one transaction (D-33).

What costs is the commit, and there is one for all. A work that raises makes each be done again by
itself (D-34), so one that fails costs the others time, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

from .doors import Ask, Connection
from .lanes import Body, Kind, Outcome
from .tables import Tables, key_of

TOGETHER: Final = 32
"""Works of such a group: the runs of the first stay locked until the last is done."""


@attrs.frozen(eq=False)
class OfRun:
    """A work on one run."""

    run_id: str
    work: Ask[Any]


def under_runs(tables: Tables) -> Kind:
    """Return the kind of those that lock their run.

    All are locked before the first is done, in the order of their numbers (D-32).
    """
    statement = f"SELECT FROM {tables.runs} WHERE key = ANY ($1) ORDER BY number FOR NO KEY UPDATE"
    return Kind(_locking(statement), most=TOGETHER)


def _locking(statement: str) -> Body:
    async def body(connection: Connection, works: Sequence[OfRun]) -> Sequence[Outcome]:
        if len(works) > 1:
            await connection.fetch(statement, [key_of(it.run_id) for it in works])
        return await _each(connection, works)

    return body


async def _each(connection: Connection, works: Sequence[OfRun]) -> Sequence[Outcome]:
    return [Outcome(await it.work(connection)) for it in works]


BESIDE_RUNS: Final = Kind(_each, most=TOGETHER)
"""The kind of those that wait for nobody who writes under their run: posts, and answers."""
