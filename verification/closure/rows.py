"""How often each row of both tables was read while something ran.

The tables are replaced by ones that count: 0.1 µs a read, where a transition of closure takes 30.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from ...lifecycle import table as invocation_table
from ...lifecycle.phases import Guard, Phase
from ...machines.rows import ALWAYS, Row
from ...models.facts import FactType
from ...models.inputs import Input
from ...turn import table as turn_table
from ...turn.phases import TurnPhase
from ..oracle.reading import Fact, digest_of, grant_covers

_ROWS: Final[tuple[Row[Any, Any], ...]] = (
    *invocation_table.INVOCATION.rows,
    *turn_table.TURN.rows,
)


class CountedTable(dict[Any, Any]):
    """A table that counts how often each of its rows is read."""

    def __init__(self, table: dict[Any, Any]) -> None:
        """Hold the same rows; none has been read."""
        super().__init__(table)
        self.reads: Counter[tuple[str, str, str]] = Counter()

    def __getitem__(self, key: tuple[str, str, str]) -> Any:  # noqa: ANN401 - a row
        """Return a row, and count it."""
        row = super().__getitem__(key)
        self.reads[key] += 1
        return row


@contextmanager
def counted_rows() -> Generator[tuple[CountedTable, ...]]:
    """Run with tables that count what is read of them, by all kernels of this process."""
    modules: tuple[Any, ...] = (invocation_table, turn_table)
    tables = tuple(CountedTable(module._TABLE) for module in modules)  # noqa: SLF001 - no other way in
    with (
        patch.object(modules[0], "_TABLE", tables[0]),
        patch.object(modules[1], "_TABLE", tables[1]),
    ):
        yield tables


def read_rows(tables: Iterable[CountedTable]) -> Counter[str]:
    """Say by name how often each row was read; those that were not count 0."""
    reads = Counter(dict.fromkeys(POSSIBLE, 0))
    for table in tables:
        for key, count in table.reads.items():
            reads[spoken(*key)] += count
    return reads


def met_unread(turn: Mapping[str, Any], facts: Iterable[Fact]) -> Iterator[str]:
    """Name the rows that these facts met, and that the kernel need not read: they say *rests*.

    `turn` is the oracle's, before they happened. Of the members that a grant covers when it is
    issued (K-41) the kernel asks those alone that wait for approval. When the grace is over it asks
    the members' rows, and not the turn's own.
    """
    graced = False
    for fact in facts:
        if fact["type"] == FactType.GRANT_ISSUED:
            for record in turn["records"]:
                waits = record["phase"] == Phase.REQUESTED and record["requires_approval"]
                covers = grant_covers(fact, record["tool_name"], digest_of(record["arguments"]))
                if covers and not waits:
                    guard = Guard.FREE if record["phase"] == Phase.REQUESTED else ALWAYS
                    yield spoken(record["phase"], Input.GRANT, guard)
        elif fact["input"] == Input.GRACE_OVER and not graced:
            graced = True
            yield spoken(TurnPhase.INTERRUPTING, Input.GRACE_OVER)


def spoken(phase: str, input_: str, guard: str = ALWAYS) -> str:
    """Name a row by where it stands, and not by what it says: that may be what is wrong with it."""
    return f"{phase} × {input_} [{guard}]" if guard else f"{phase} × {input_}"


POSSIBLE: Final = tuple(
    dict.fromkeys(spoken(row.phase, row.input, row.guard) for row in _ROWS if row.possible)
)
"""The names of all rows of both tables that can be met at all."""
