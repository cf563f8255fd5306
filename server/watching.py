"""Which runs have changed, for all who look at the list of them (F-50).

Runs that are performed here tell at once; those of other processes show by where their ledgers
end. Each entry is read once for all who look, and at most 4 times a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..models.errors import TurnlockError
from ..runtime.journal.contract import Journal, RunEntry
from ..runtime.log import logger

if TYPE_CHECKING:
    from ..runtime.journal.ledger import Cursor

_log = logger(__name__)

EVERY: Final = 0.25
"""Seconds between two looks at what has changed: a run is told of 4 times a second at most."""
OTHERS: Final = 4
"""Looks after which the runs of other processes are looked at, too."""
AT_ONCE: Final = 500
"""Runs whose ends are asked for at once."""


class Watching:
    """Those who look at the list of runs."""

    def __init__(self, journal: Journal) -> None:
        """Begin with nobody who looks."""
        self._journal = journal
        self._listeners: set[Callable[[RunEntry], None]] = set()
        self._ends: dict[str, Cursor | None] = {}
        self._last: str | None = None
        self._changed: set[str] = set()

    def add(self, listener: Callable[[RunEntry], None]) -> Callable[[], None]:
        """Tell of each run that changes from now on; returns what ends it."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    def kept(self, run_id: str) -> None:
        """Learn that a run has grown here."""
        if self._listeners:
            self._changed.add(run_id)

    async def watch(self) -> None:
        """Look, for ever."""
        looks = 0
        while True:
            await asyncio.sleep(EVERY)
            if not self._listeners:
                self._ends.clear()
                self._last, looks = None, 0
                continue
            try:
                if looks % OTHERS == 0:
                    await self._look(is_first=looks == 0)
                await self._tell()
            except TurnlockError as error:
                _log.warning("the runs that have changed cannot be read: %s", error)
            looks += 1

    async def _look(self, *, is_first: bool) -> None:
        """Find what other processes have kept."""
        while page := await self._journal.runs(after=self._last):
            self._last = page[-1].run.run_id
            for entry in page:
                self._ends.setdefault(entry.run.run_id, None)
                if not is_first:
                    self._changed.add(entry.run.run_id)
        names = list(self._ends)
        for begin in range(0, len(names), AT_ONCE):
            asked = names[begin : begin + AT_ONCE]
            ends = await self._journal.ends(asked)
            for run_id in asked:
                end = ends.get(run_id)
                if end is None:
                    del self._ends[run_id]  # it was removed
                elif self._ends[run_id] != end:
                    if self._ends[run_id] is not None:
                        self._changed.add(run_id)
                    self._ends[run_id] = end

    async def _tell(self) -> None:
        changed, self._changed = self._changed, set()
        for run_id in changed:
            entry = await self._journal.entry(run_id)
            if run_id in self._ends:
                self._ends[run_id] = entry.shown
            if entry.forgotten is None:
                for listener in tuple(self._listeners):
                    listener(entry)
