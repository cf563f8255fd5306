"""Tenure: what this process owns, and until when; asked before anything that cannot be taken back.

A process that stood still beyond its ownership may have been replaced, and does not know it yet.
So before it prepares, starts or probes a tool, and before it hands a continuation over, it compares
the time with what it owns for certain. Beyond that the journal is asked, which knows who has the
run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from ..models.errors import TurnlockError
from .actor import Actor
from .actors import Actors
from .errors import RunFenced
from .journal.contract import Journal
from .scheduling import Clock, backoff, retried, since_boot
from .settings import Settings
from .tools.calling import Admitted
from .tools.errors import StoodStill

T = TypeVar("T")


class Tenure:
    """The ownership of all runs of one runtime, as it was renewed last."""

    def __init__(
        self, *, journal: Journal, clock: Clock, owner: str, actors: Actors, settings: Settings
    ) -> None:
        """Own nothing; leases count by this clock."""
        self._journal = journal
        self._clock = clock
        self.owner: Final = owner
        self._actors = actors
        self._settings = settings
        self._asking = asyncio.Lock()
        self.orphans: frozenset[str] = frozenset()
        """Runs that were renewed last and that nobody performed here then."""
        self._read = (0.0, 0.0)
        """The clock when it was read last, and how long this machine ran then."""

    def now(self) -> float:
        """Return the time by which leases count, Unix time in seconds; from any thread.

        A clock that only its loop can read goes on, elsewhere, as this machine does.
        """
        try:
            now = self._clock.now()
        except RuntimeError:  # there is no loop here
            then, ran = self._read
            return then + (since_boot() - ran)
        self._read = (now, since_boot())
        return now

    def holds(self, actor: Actor) -> bool:
        """Whether this process has the run for certain, at this instant; from any thread."""
        return actor.stopped is None and self.now() < actor.owned_until

    async def has(self, run_id: str) -> bool:
        """Whether a run is owned here still, for which the journal is asked if need be."""
        actor = self._actors.get(run_id)
        if actor is None:
            return False
        with suppress(TurnlockError):
            await self.make_sure(actor)
        return self.holds(actor)

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

    async def while_held(self, actor: Actor, work: Callable[[Admitted], Awaitable[T]]) -> T:
        """Do something that makes a user's calls, each of them only while the run is surely owned.

        It is done again where one of them was not admitted. Raises what stopped the run.
        """
        while True:
            await self.make_sure(actor)
            with suppress(StoodStill):
                return await work(partial(self.holds, actor))

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
        now, lease = self.now(), self._settings.ownership
        renewed = await self._journal.renew(owner=self.owner, now=now, lease=lease)
        self.orphans = renewed - owned.keys()
        for run_id in owned.keys() & renewed:
            owned[run_id].owned_until = now + lease
        for run_id in owned.keys() - renewed:
            if await owned[run_id].writer.mend_lost():
                owned[run_id].owned_until = now + lease
                continue
            why = f"run {run_id!r} was taken over by another process while this one stood still"
            owned[run_id].lose(RunFenced(why))
