"""The rows of runs: where one ends, whose it is, and why nobody may write it.

Who writes under a run locks its row first (`writable`), and so sees in its next statement whatever
the one before has kept.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from ..contract import rewound, run_forgotten, unknown_run
from .doors import Connection
from .tables import Tables, key_of, text_of

HEAD: Final = (
    "number, run_id, sequence, part, shown, snapped, busy, epoch, settle, owner, rewound, forgotten"
)
"""The columns of `runs` that a `Head` is made of."""


@attrs.frozen
class Head:
    """What changes in the row of a run. The order is that of `HEAD`; `owner` is a row's number."""

    number: int
    run_id: str
    sequence: int
    part: int
    """Notes that were kept after its last fact, those included that were pruned since."""
    shown: int
    """The last of them that is shown to anybody."""
    snapped: int
    busy: bool
    fence: int
    settle: int
    owner: int | None
    rewound: str | None
    forgotten: float | None

    def admits(self, fence: int | None) -> bool:
        """Say whether this may be written: by its owner; by whoever owns nothing if nobody does."""
        return self.owner is None if fence is None else self.is_owned(fence)

    def is_owned(self, fence: int) -> bool:
        """Say whether this is the fence of an owner who has not let go."""
        return self.owner is not None and fence == self.fence


_FIELDS: Final = len(attrs.fields(Head))


def head_in(row: Any) -> Head:  # noqa: ANN401 - a record of `HEAD`, and of more behind it
    """Return the head that a row says."""
    head = Head(*row[:_FIELDS])
    return attrs.evolve(
        head,
        run_id=text_of(row["run_id"]),
        rewound=None if row["rewound"] is None else text_of(row["rewound"]),
    )


async def head_of(
    connection: Connection,
    tables: Tables,
    run_id: str,
    *,
    even_forgotten: bool = False,
    locked: bool = False,
) -> Head:
    """Return the row of a run; `locked`: nobody else writes under it until the transaction ends.

    Raises `UnknownRun`, and `RunForgotten` for one that was removed.
    """
    lock = " FOR NO KEY UPDATE" if locked else ""
    row: Any = await connection.fetchrow(
        f"SELECT {HEAD} FROM {tables.runs} WHERE key = $1{lock}",  # noqa: S608 - ours
        key_of(run_id),
    )
    if row is None:
        raise unknown_run(run_id)
    head = head_in(row)
    if head.forgotten is not None and not even_forgotten:
        raise run_forgotten(run_id, at=head.forgotten)
    return head


async def writable(connection: Connection, tables: Tables, run_id: str) -> Head:
    """Lock the row of a run that may be written, and return it.

    Raises as `head_of` does, and `JournalRewound` for one that nobody may go on with.
    """
    head = await head_of(connection, tables, run_id, locked=True)
    if head.rewound is not None:
        raise rewound(run_id, why=head.rewound)
    return head
