"""The clock of a SQLite file: one time line for all processes of one boot of a machine.

Leases count by Unix time, and somebody may set that while they run: two processes that read it at
different moments would then not agree who has a run. So the first process of a boot keeps in the
file how far Unix time is ahead of the clock that counts since the boot and that nobody sets (see
`since_boot`); all others of that boot, whatever their wall clock shows, count by that.

It is kept anew where it is off and no lease is in force that counts by it: a machine may begin with
no idea of the time. A process that had the file open then learns of it before it owns or renews.
Where no boot can be told from another (anything but Linux), and where it cannot be kept, each
process counts by the wall clock as it was when the file was opened.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from ..errors import ClockMoved
from ..processes import time_line
from ..scheduling import SteadyClock, since_boot
from .rows import checksum
from .sqlite_schema import keep_meta

TOLERATED: Final = 1.0
"""Seconds that the kept clock may be off before it is kept anew."""

_CLOCK: Final = "clock/"
"""Begins its name in `meta`; the boot follows, and what else has a time of its own."""


class FileClock(SteadyClock):
    """The clock of one file, as this process knows it."""

    def __init__(self) -> None:
        """Show the time of the wall clock, until it is known what others count by."""
        super().__init__()
        line = time_line()
        self._name = None if line is None else f"{_CLOCK}{line}"

    def look(self, connection: sqlite3.Connection) -> None:
        """Count by what is kept, if anything is."""
        kept = self._kept(connection)
        if kept is not None:
            self.ahead = kept

    def agree(self, connection: sqlite3.Connection) -> None:
        """Count by what is kept; keep it where nothing is, or what is kept is off and unused."""
        if self._name is None:
            return
        wall, kept = self.ahead, self._kept(connection)
        if kept is not None:
            earlier = min(wall, kept) + since_boot()  # in force by either of them
            if abs(wall - kept) <= TOLERATED or _leased(connection, after=earlier):
                self.ahead = kept
                return
        connection.execute(
            "DELETE FROM meta WHERE name LIKE ? AND name NOT LIKE ?",
            (f"{_CLOCK}%", f"{self._name.rpartition('/')[0]}/%"),
        )
        keep_meta(connection, self._name, repr(wall).encode())

    def check(self, connection: sqlite3.Connection) -> None:
        """Raise `ClockMoved` where it was kept anew since it was read; it counts by that then."""
        kept = self._kept(connection)
        if kept is not None and kept != self.ahead:
            self.ahead = kept
            raise ClockMoved(
                "the clock that leases count by was set anew while this process owned nothing; ask"
                " again"
            )

    def _kept(self, connection: sqlite3.Connection) -> float | None:
        row = connection.execute(
            "SELECT value, checksum FROM meta WHERE name = ?", (self._name,)
        ).fetchone()
        if row is None or checksum(row[0], self._name) != row[1]:
            return None  # a damaged one is kept anew: the runs are none the worse for it
        return float(row[0])


def _leased(connection: sqlite3.Connection, *, after: float) -> bool:
    """Whether a lease ends after this moment."""
    row = connection.execute(
        "SELECT 1 FROM runs WHERE owner IS NOT NULL AND owned_until > ? LIMIT 1", (after,)
    ).fetchone()
    return row is not None
