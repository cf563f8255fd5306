"""Requests of a process that wait for our answer: each is answered at most once (S-34, S-36, S-41).

A request is named by its process, the connection, and its id as JSON has it. All of them live in
memory, and die with their process: a new one begins its ids anew, and asks as a new request what it
still wants to know. A router is that of one connection to one process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...models.safe_text import harmless
from ...runtime.log import logger
from .heard import Reply
from .messages import Asked, RequestId
from .transport import PipeBroken, Wire

_log = logger(__name__)

OPEN: Final = 10_000
"""Requests that may wait at once: of more none is answered."""
REMEMBERED: Final = 10_000
"""Requests that are over, and known so if they are told of once more."""


class Router:
    """The requests of one process that wait."""

    def __init__(self, wire: Wire) -> None:
        """Begin with none; answers are written to the wire."""
        self._wire = wire
        self._open: dict[RequestId, Asked] = {}
        self._over: dict[RequestId, None] = {}
        self._closed = False

    @property
    def waiting(self) -> tuple[Asked, ...]:
        """Those that wait, in the order in which they were made."""
        return tuple(self._open.values())

    def opened(self, asked: Asked) -> bool:
        """Let a request wait; False for one that waits or is over already, though told of again."""
        if self._closed or asked.id in self._open or asked.id in self._over:
            return False
        if len(self._open) >= OPEN:
            _log.error("%s asks more than %d things at once", self._wire.name, OPEN)
            return False
        self._open[asked.id] = asked
        return True

    def resolved(self, request: RequestId) -> bool:
        """Take it that nobody waits for an answer any more; False where that was known."""
        was_open = request in self._open
        self._is_over(request)
        return was_open

    async def answer(self, reply: Reply) -> bool:
        """Write an answer; False where the request was answered, is over, or its process is dead.

        It is over before it is written: nobody can answer it a second time, whatever comes of the
        writing. A process that does not take it is ended (S-42).
        """
        if self._closed or reply.request not in self._open:
            return False
        self._is_over(reply.request)
        told: dict[str, Any] = {"id": reply.request}
        if reply.error is None:
            told["result"] = dict(reply.result)
        else:
            told["error"] = dict(reply.error)
        return await self._written(told)

    def close(self) -> None:
        """Take it that the process is dead, and its requests with it."""
        self._closed = True
        self._open.clear()

    async def _written(self, told: Mapping[str, Any]) -> bool:
        try:
            await self._wire.write(told)
        except PipeBroken as error:
            _log.warning("an answer could not be given: %s", harmless(str(error)))
            self._wire.kill()
            self.close()
            return False
        return True

    def _is_over(self, request: RequestId) -> None:
        self._open.pop(request, None)
        self._over[request] = None
        while len(self._over) > REMEMBERED:
            del self._over[next(iter(self._over))]
