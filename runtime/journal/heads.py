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
    epoch: int
    owner: str | None
    owned_until: float | None

    def is_owned(self, epoch: int) -> bool:
        """Say whether this is the epoch of an owner who has not let go."""
        return self.owner is not None and epoch == self.epoch


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
