"""A process as a session has it: read by one task, asked by the gateway, answered by the router."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from ...runtime.log import logger
from .gateway import Gateway
from .messages import Answered, Asked, NotAMessage, Notified
from .process import Exited
from .router import Router
from .transport import Wire

_log = logger(__name__)

Put: TypeAlias = Callable[[Notified | Asked], Awaitable[None]]

RESOLVED: Final = "serverRequest/resolved"
SLICE: Final = 64
"""Messages that are read before other tasks are let run."""
REAPED_WITHIN: Final = 0.5
"""Seconds that a process has to end once it has closed its output."""


class Connection:
    """A process that lives, until it has ended."""

    def __init__(self, wire: Wire, put: Put) -> None:
        """Begin to read a process; `put` is given what is no answer to us, and may hold it up."""
        self.wire: Final = wire
        self.put = put
        self.gateway: Final = Gateway(wire)
        self.router: Final = Router(wire)
        self.closed = False
        """Whether it says nothing more, and nothing is said to it."""
        self.trouble = ""
        """What was wrong with what it said, where that ended it."""
        self.reading: Final = asyncio.create_task(self._read(), name=f"read {wire.name}")
        """Ends when the process has."""

    def kill(self) -> None:
        """End it at once: nothing more is written, and nobody waits for an answer (S-49)."""
        self.wire.kill()
        self._close()

    async def cease(self) -> None:
        """Read no more."""
        self.reading.cancel()
        await asyncio.wait([self.reading])

    def _close(self) -> None:
        self.closed = True
        self.gateway.close()
        self.router.close()

    async def _read(self) -> Exited:
        """Read until the pipe ends, or a line that is no message: who knows what else is lost."""
        try:
            read = 0
            while (message := await self.wire.read()) is not None:
                read += 1
                if read % SLICE == 0:
                    await asyncio.sleep(0)
                if isinstance(message, Answered):
                    self.gateway.take(message)
                    continue
                if isinstance(message, Asked):
                    self.router.opened(message)
                elif message.method == RESOLVED:
                    self.router.resolved(message.params.get("requestId", ""))
                await self.put(message)
        except NotAMessage as error:
            self.trouble = str(error)
            _log.error("%s is ended: %s", self.wire.name, error)
            self.wire.kill()
        finally:
            self._close()
        return await self.wire.end(grace=REAPED_WITHIN)
