"""Which runs are performed here, by whom, and what was acknowledged of those that no longer are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from ..models.deliveries import Delivery
from ..models.errors import TurnlockError
from ..models.verdicts import Verdict
from .acknowledged import Acknowledged
from .actor import Actor
from .errors import JournalReplaced, JournalRewound
from .journal.contract import Journal
from .log import logger

_log = logger(__name__)

LEFT: Final = 10_000
"""Runs that were performed here once, of which it is known what was acknowledged last."""


class Actors(Mapping[str, Actor]):
    """The actors of this runtime, by the ids of their runs. The one registry of them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._actors: dict[str, Actor] = {}
        self.failure: JournalReplaced | None = None
        """Why no run is performed here any more, once that is so."""
        self.failed: Final = asyncio.Event()
        """Set with it."""
        self._left: dict[str, Acknowledged] = {}

    def __getitem__(self, run_id: str) -> Actor:
        """Return the actor of a run, or raise KeyError."""
        return self._actors[run_id]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the ids of the runs there are now, whatever comes or goes meanwhile."""
        return iter(tuple(self._actors))

    def __len__(self) -> int:
        """Count them."""
        return len(self._actors)

    def all(self) -> tuple[Actor, ...]:
        """Return all there are now."""
        return tuple(self._actors.values())

    def add(self, actor: Actor) -> None:
        """Take one in. Nobody may have the run already. Raises `failure`."""
        if self.failure is not None:
            raise self.failure
        if self._actors.setdefault(actor.run.run_id, actor) is not actor:
            raise AssertionError(actor.run.run_id)

    def fail(self, why: JournalReplaced) -> None:
        """Perform no run any more: there is no journal that anything could be kept in."""
        if self.failure is None:
            self.failure = why
            self.failed.set()
            _log.critical("nothing is performed here any more: %s", why)
        for actor in self.all():
            actor.lose(why)

    def remove(self, actor: Actor) -> bool:
        """Take one out; say whether it was there: its run may be another's by now."""
        if not self.is_current(actor):
            return False
        del self._actors[actor.run.run_id]
        self.decided(actor.run.run_id)
        if not isinstance(actor.stopped, JournalRewound):
            self._left[actor.run.run_id] = actor.writer.acknowledged
            while len(self._left) > LEFT:
                del self._left[next(iter(self._left))]
        return True

    async def check_left(self, run_id: str, journal: Journal) -> None:
        """Raise `JournalRewound` where a run ends before what was acknowledged here, once.

        A store that was failed over to an older copy has lost who owned the run, too: then whoever
        performed it here seems to be fenced, and nothing but this tells that from a takeover.
        """
        left = self._left.get(run_id)
        if left is not None:
            try:
                await left.check(journal)
            except JournalRewound:
                self.decided(run_id)
                raise

    def decided(self, run_id: str) -> None:
        """Forget what was acknowledged of a run: it is marked, and a person decides."""
        self._left.pop(run_id, None)

    def is_current(self, actor: Actor) -> bool:
        """Whether this one performs its run still."""
        return self._actors.get(actor.run.run_id) is actor

    def current(self, actor: Actor) -> Actor:
        """Return who performs its run now: it may have been let go, and opened here again."""
        return self._actors.get(actor.run.run_id, actor)

    async def deliver_surely(self, actor: Actor, delivery: Delivery) -> Verdict:
        """Deliver to whoever performs the run now, as `Actor.deliver_surely` does.

        Raises what stopped the run, if it was not opened here again.
        """
        while True:
            current = self.current(actor)
            try:
                return await current.deliver_surely(delivery)
            except TurnlockError:
                if self.current(actor) is current:
                    raise
