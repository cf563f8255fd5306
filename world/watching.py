"""What other processes do in the chats that are followed here: one look for all who follow (S-77).

While anybody follows a chat of a journal, a task looks where the logs and the runs end that are
followed, and wakes those for whom there is more. It ends when nobody follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol
from weakref import WeakKeyDictionary, WeakSet

from ..models.errors import TurnlockError
from ..runtime.errors import LASTING
from ..runtime.journal.contract import Journal
from ..runtime.journal.ledger import START, Cursor
from ..runtime.log import logger
from .passing import Listener

_log = logger(__name__)

POLL: Final = 0.25
"""Seconds between two looks at what other processes have done."""


class Follower(Protocol):
    """One who has read logs and runs so far."""

    @property
    def listener(self) -> Listener:
        """What is woken."""
        ...

    @property
    def world_log(self) -> str:
        """The log of the world that it follows: the names of its chats' begin with that."""
        ...

    @property
    def logs_read(self) -> Mapping[str, int]:
        """The numbers of the entries that were read last."""
        ...

    @property
    def runs_read(self) -> Mapping[str, int]:
        """The sequences of the facts that were read last."""
        ...


class _Watch:
    """Looks for all who follow at one journal."""

    def __init__(self) -> None:
        self.followers: WeakSet[Follower] = WeakSet()
        self.task: asyncio.Task[None] | None = None
        self._seen: object = None
        """What was seen last, by those who followed then."""

    def add(self, follower: Follower) -> None:
        """Have one more follow."""
        if follower not in self.followers:
            self.followers.add(follower)
            self._seen = None

    def ensure(self, journal: Journal) -> None:
        """Have it look, on the running loop."""
        task = self.task
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            self.task = asyncio.create_task(self._look_on(journal))

    async def _look_on(self, journal: Journal) -> None:
        while True:
            await asyncio.sleep(POLL)
            if not len(self.followers):
                return
            try:
                await self._look(journal)
            except LASTING:
                for follower in tuple(self.followers):
                    follower.listener.wake()  # it finds that for itself
            except TurnlockError as error:
                if not len(self.followers):  # who has gone may have closed it, too
                    return
                _log.warning("what others do in chats cannot be seen: %s", error)

    async def _look(self, journal: Journal) -> None:
        followers = tuple(self.followers)
        worlds = {follower.world_log for follower in followers}
        runs = {run_id for follower in followers for run_id in follower.runs_read}
        prefix = worlds.pop() if len(worlds) == 1 else ""
        last = {entry.name: entry.last for entry in await journal.logs(prefix)}
        ends: Mapping[str, Cursor] = await journal.ends([*runs]) if runs else {}
        if self._seen == (last, ends):
            return  # those who follow were woken
        self._seen = last, ends
        for follower in followers:
            for log, read in follower.logs_read.items():
                if last.get(log, 0) > read:
                    follower.listener.wake(log)
            for run_id, read in follower.runs_read.items():
                if ends.get(run_id, START).sequence > read:
                    follower.listener.wake(run_id)


_WATCHES: Final[WeakKeyDictionary[Journal, _Watch]] = WeakKeyDictionary()


def watch(journal: Journal, follower: Follower) -> None:
    """Have somebody woken by what other processes do, until it is dropped, or does not want it."""
    made = _WATCHES.setdefault(journal, _Watch())
    made.add(follower)
    made.ensure(journal)


def unwatch(journal: Journal, follower: Follower) -> None:
    """Have it woken no more."""
    made = _WATCHES.get(journal)
    if made is not None:
        made.followers.discard(follower)
