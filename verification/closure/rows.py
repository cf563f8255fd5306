"""Which rows of both tables were read while something ran: coverage that costs nothing.

A dict asks `__missing__` only for what it does not hold. So the tables are replaced by empty ones
that fetch a row from the true table when it is first read, and hold it from then on.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from ...lifecycle import table as invocation_table
from ...lifecycle.phases import Guard, Input, Phase
from ...machines.rows import ALWAYS, Row
from ...turn import table as turn_table
from ...turn.phases import TurnInput, TurnPhase
from ..oracle.moment import Moment
from ..oracle.reading import Fact, digest_of, grant_covers

_ROWS: Final[tuple[Row[Any, Any], ...]] = (
    *invocation_table.INVOCATION.rows,
    *turn_table.TURN.rows,
)


class _Fetched(dict[Any, Any]):
    """The part of a table that has been read."""

    def __init__(self, table: dict[Any, Any]) -> None:
        super().__init__()
        self._table = table

    def __missing__(self, key: object) -> Any:  # noqa: ANN401 - a row
        row = self[key] = self._table[key]
        return row


@contextmanager
def watched_rows() -> Generator[list[dict[Any, Any]]]:
    """Run with tables that hold, afterwards, just what was read of them."""
    modules: tuple[Any, ...] = (invocation_table, turn_table)
    tables = [_Fetched(module._TABLE) for module in modules]  # noqa: SLF001 - no other way in
    with (
        patch.object(modules[0], "_TABLE", tables[0]),
        patch.object(modules[1], "_TABLE", tables[1]),
    ):
        yield [*tables]


def read_rows(tables: Iterable[dict[Any, Any]]) -> frozenset[str]:
    """Name the rows that were read; the turn's own row for the end of its grace is among them.

    When the grace is over the kernel asks the members' rows; the turn's says that it rests.
    """
    read = {spoken(row.phase, row.input, row.guard) for table in tables for row in table.values()}
    if any(name.endswith(f"× {Input.GRACE_OVER}") for name in read):
        read.add(spoken(TurnPhase.INTERRUPTING, TurnInput.GRACE_OVER))
    return frozenset(read)


def met_by_grant(moment: Moment, facts: Iterable[Fact]) -> set[str]:
    """Name the rows of the members that a grant covers when it is issued (K-41).

    The kernel asks the table only of those that wait for approval: the others' rows say that they
    rest, and are met all the same.
    """
    met: set[str] = set()
    for fact in facts:
        if fact["type"] == "GRANT_ISSUED":
            for record in moment.state["turn"]["records"]:
                if grant_covers(fact, record["tool_name"], digest_of(record["arguments"])):
                    free = record["phase"] == Phase.REQUESTED and not record["requires_approval"]
                    guard = Guard.FREE if free else ""
                    met.add(spoken(record["phase"], Input.GRANT, guard))
    return met


def spoken(phase: str, input_: str, guard: str = ALWAYS) -> str:
    """Name a row by where it stands, and not by what it says: that may be what is wrong with it."""
    return f"{phase} × {input_} [{guard}]" if guard else f"{phase} × {input_}"


POSSIBLE: Final = tuple(
    dict.fromkeys(spoken(row.phase, row.input, row.guard) for row in _ROWS if row.possible)
)
"""The names of all rows of both tables that can be met at all."""
