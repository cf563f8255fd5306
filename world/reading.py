"""A world's logs as one process has read them: each entry told once, soon after it was appended.

What is appended through the same journal object is read at once; what other processes append, at
the next look, one for all chats of the world.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ..models.errors import TurnlockError
from ..runtime.errors import JournalReplaced
from ..runtime.journal.contract import Journal
from ..runtime.log import logger
from ..runtime.scheduling import backoff
from ..runtime.settings import Settings
from .configuration import Configuration
from .names import chat_log, chat_of, world_log
from .standing import PAGE, ReadEntry, entries_after

_log = logger(__name__)


class Reading:
    """Reads the logs of a world, and tells what follows."""

    def __init__(
        self,
        journal: Journal,
        world: str,
        *,
        changed: Callable[[Configuration], None],
        said: Callable[[str, tuple[ReadEntry, ...]], None],
    ) -> None:
        """Begin before anything was read.

        `changed` is told what the world is, whenever it is another; `said` what was said in a chat
        since it was known here, in order.
        """
        self.journal: Final = journal
        self.world: Final = world
        self.known: Configuration = Configuration(world=world)
        """The world as it was read last."""
        self._told_of = 0
        """The number of the world's log up to which `changed` was told."""
        self._changed: Final = changed
        self._said: Final = said
        self._read_to: dict[str, int] = {}
        """By the logs of chats: up to where they were read."""
        self._dirty: set[str] = set()
        self._arrived = asyncio.Event()
        self._line = asyncio.Lock()
        self._of_world = asyncio.Lock()

    def attend(self) -> Callable[[], None]:
        """Learn of what is appended through this journal object; return what ends it."""
        return self.journal.when_entered(self._entered)

    def is_read(self, chat: str) -> bool:
        """Whether all was read that was said in a chat through this journal object."""
        return self._told_of == self.known.number and chat_log(self.world, chat) not in self._dirty

    async def configuration(self) -> Configuration:
        """Return the world as its log has it now; what follows from that is told soon."""
        async with self._of_world:
            log = world_log(self.world)
            while page := await self.journal.entries(log, after=self.known.number, limit=PAGE):
                self.known = self.known.after(page)
                self._entered(log)
        return self.known

    async def look(self) -> None:
        """Take in all that was said since, by whomever, and what the world is now."""
        async with self._line:
            await self._look_at_world()
            self._arrived.clear()
            for log in await self.journal.logs(f"{world_log(self.world)}/"):
                await self._read(log.name, last=log.last)

    async def watch(self, settings: Settings) -> None:
        """Look whenever something was said here, and as often as others may have, until cancelled.

        Returns only where the journal is gone: then nothing more can be said.
        """
        pauses, loop = backoff(settings), asyncio.get_running_loop()
        due = loop.time() + settings.poll
        while True:
            try:
                if (left := due - loop.time()) > 0:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(left):
                            await self._arrived.wait()
                    await self._look_where_told()
                    continue
                await self.look()
                pauses, due = backoff(settings), loop.time() + settings.poll
            except JournalReplaced:
                raise
            except TurnlockError as error:
                _log.warning("world %s cannot be looked at: %s", self.world, error)
                due = loop.time() + (pause := next(pauses))
                await asyncio.sleep(pause)

    def _entered(self, log: str) -> None:
        found = chat_of(log)
        if log == world_log(self.world) or (found is not None and found.world == self.world):
            self._dirty.add(log)
            self._arrived.set()

    async def _look_where_told(self) -> None:
        """Take in what was said through this journal object."""
        async with self._line:
            self._arrived.clear()
            if world_log(self.world) in self._dirty:
                await self._look_at_world()
            for log in tuple(self._dirty):
                await self._read(log)

    async def _look_at_world(self) -> None:
        self._dirty.discard(world_log(self.world))
        known = await self.configuration()
        self._dirty.discard(world_log(self.world))
        if known.number == self._told_of:
            return
        new = [log for it in known.chats if (log := chat_log(self.world, it)) not in self._read_to]
        if new:
            logs = await self.journal.logs(f"{world_log(self.world)}/")
            last = {log.name: log.last for log in logs}
            self._read_to.update((log, last.get(log, 0)) for log in new)
        self._told_of = known.number
        self._changed(known)

    async def _read(self, log: str, *, last: int | None = None) -> None:
        """Tell what was said in a chat since."""
        read, name = self._read_to.get(log), chat_of(log)
        self._dirty.discard(log)
        if read is None or name is None or read == last:
            return
        said: list[ReadEntry] = []
        try:
            async for entry in entries_after(self.journal, log, read):
                said.append(entry)
                self._read_to[log] = entry.number
        except BaseException:
            self._dirty.add(log)
            raise
        finally:
            self._said(name.chat, tuple(said))
