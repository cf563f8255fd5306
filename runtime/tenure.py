"""Tenure: what this process owns, and until when; asked before anything that cannot be taken back.

A process that stood still beyond its ownership may have been replaced, and does not know it yet.
So before it starts a tool, and before it hands a continuation over, it compares the time with what
it owns for certain. Beyond that the journal is asked, which knows who has the run.
"""

from __future__ import annotations

import asyncio

from .actor import Actor, Actors
from .errors import RunFenced
from .journal.contract import Journal
from .scheduling import Clock, backoff, retried
from .settings import Settings


class Tenure:
    """The ownership of all runs of one runtime, as it was renewed last."""

    def __init__(
        self, *, journal: Journal, clock: Clock, owner: str, actors: Actors, settings: Settings
    ) -> None:
        """Own nothing; leases count by this clock."""
        self._journal = journal
        self._clock = clock
        self._owner = owner
        self._actors = actors
        self._settings = settings
        self._asking = asyncio.Lock()

    def now(self) -> float:
        """Return the time by which leases count, Unix time in seconds; from any thread."""
        return self._clock.now()

    def holds(self, actor: Actor) -> bool:
        """Whether this process has the run for certain, at this instant; from any thread."""
        return actor.stopped is None and self._clock.now() < actor.owned_until

    async def make_sure(self, actor: Actor) -> None:
        """Return when the run is surely owned, for which the journal is asked if need be.

        Raises what stopped the run: `RunFenced` where another process has it. While the journal
        fails, it is asked again: what is not known is not begun.
        """
        while not self.holds(actor):
            if actor.stopped is not None:
                raise actor.stopped
            await retried(
                lambda: self._ask(actor),
                pauses=backoff(self._settings),
                is_hopeless=lambda: actor.stopped is not None,
            )

    async def _ask(self, actor: Actor) -> None:
        """Renew, unless somebody else who waited before us has."""
        async with self._asking:
            if actor.stopped is None and not self.holds(actor):
                await self.renew()

    async def renew(self) -> None:
        """Renew the ownership of all runs; let go of those that somebody else has taken.

        Raises `JournalError` where it is not known.
        """
        owned = dict(self._actors)
        now, lease = self._clock.now(), self._settings.ownership
        renewed = await self._journal.renew(owner=self._owner, now=now, lease=lease)
        for run_id in owned.keys() & renewed:
            owned[run_id].owned_until = now + lease
        for run_id in owned.keys() - renewed:
            why = f"run {run_id!r} was taken over by another process while this one stood still"
            owned[run_id].lose(RunFenced(why))
