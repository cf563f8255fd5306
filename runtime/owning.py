"""Owning runs: taken for a while, renewed while the process lives, lost when it stood still."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from ..models.errors import TurnlockError
from ..models.run import Run
from .conductor import Conductor, folded
from .errors import Closed, JournalError, RunFenced
from .executing import Means
from .hosting import Hosting
from .journal.contract import Journal
from .workers import is_dead

_log = logging.getLogger(__name__)

RENEWALS: Final = 3
"""Times that the ownership of runs is renewed before it would be over."""


class Owning:
    """Takes runs, recovers them, and keeps them as long as it is renewed."""

    def __init__(
        self,
        *,
        journal: Journal,
        means: Means,
        hosting: Hosting,
        conductors: dict[str, Conductor],
    ) -> None:
        """Begin with none."""
        self._journal = journal
        self._means = means
        self._hosting = hosting
        self._conductors = conductors
        self._taking: dict[str, asyncio.Lock] = {}

    async def own(self, run: Run) -> None:
        """Declare a run, take it, fold it, and perform what it owes; idempotent."""
        await self._journal.declare(run)
        async with self._taking.setdefault(run.run_id, asyncio.Lock()):
            if run.run_id not in self._conductors:
                await self._take(run)
        self._taking.pop(run.run_id, None)

    async def take_over(self) -> tuple[str, ...]:
        """Take the runs that have something under way and no living owner; return their ids."""
        before = frozenset(self._conductors)
        for entry in await self._journal.runs(busy=True):
            try:
                await self.own(entry.run)
            except TurnlockError as why:  # a living owner's, or one that cannot be read
                _log.warning("run %r is left alone: %s", entry.run.run_id, why)
        return tuple(run_id for run_id in self._conductors if run_id not in before)

    async def release(self, run_id: str) -> None:
        """Let a run go; what it owes stays owed."""
        conductor = self._conductors.pop(run_id)
        conductor.stop(Closed(f"run {run_id!r} was closed here; open it again, or elsewhere"))
        self._hosting.forget(run_id)
        try:
            await self._journal.release(run_id, epoch=conductor.epoch)
        except JournalError as error:
            _log.warning("run %r stays owned until its lease is over: %s", run_id, error)

    async def renew(self) -> None:
        """Renew until cancelled; let go of runs that somebody else has taken."""
        lease = self._means.settings.ownership
        while True:
            await asyncio.sleep(lease / RENEWALS)
            owned = dict(self._conductors)
            try:
                renewed = await self._journal.renew(
                    owner=self._means.worker, now=self._means.clock.now(), lease=lease
                )
            except JournalError as error:
                _log.warning("the ownership could not be renewed: %s", error)
                continue
            for run_id in owned.keys() - renewed:
                why = f"run {run_id!r} was taken over by another process while this one stood still"
                owned[run_id].fence(RunFenced(why))

    async def _take(self, run: Run) -> None:
        means = self._means
        before = (await self._journal.entry(run.run_id)).owner
        epoch = await self._journal.own(
            run.run_id,
            owner=means.worker,
            now=means.clock.now(),
            lease=means.settings.ownership,
            gone=before if is_dead(before) else None,
        )
        conductor = Conductor(
            kernel=await folded(run, self._journal),
            epoch=epoch,
            journal=self._journal,
            clock=means.clock,
            settings=means.settings,
            listener=self._hosting,
            tasks=means.tasks,
        )
        self._conductors[run.run_id] = conductor
        await self._hosting.doubts.lose_what_died(conductor)
        self._hosting.folded(conductor)
