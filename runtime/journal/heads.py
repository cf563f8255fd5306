"""A run's row in the SQLite journal: who owns it, and where it ends."""

from __future__ import annotations

import sqlite3

import attrs

from .refusals import unknown_run


@attrs.frozen
class Head:
    """The row of a run, as far as most of what is asked needs it."""

    number: int
    sequence: int
    fence: int
    owner: str | None
    owned_until: float | None

    def is_owned(self, fence: int) -> bool:
        """Say whether this is the fence of an owner who has not let go."""
        return self.owner is not None and fence == self.fence

    def admits(self, fence: int | None) -> bool:
        """Say whether this may be written: by its owner; by whoever owns nothing if nobody does."""
        return self.owner is None if fence is None else self.is_owned(fence)


def head_of(connection: sqlite3.Connection, run_id: str) -> Head:
    """Return the row of a run. Raises `UnknownRun`."""
    try:
        row = connection.execute(
            "SELECT number, sequence, epoch, owner, owned_until FROM runs WHERE run_id = ?",
            (run_id,),
        ).fetchone()
    except UnicodeEncodeError:  # a lone surrogate: no run has such an id
        row = None
    if row is None:
        raise unknown_run(run_id)
    return Head(*row)
