"""A proxy between an MCP client and a server: what is no call of a tool goes through as it came.

Requests keep their ids, so progress, cancellation and what a server asks its client need nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, cast

from ...runtime.log import logger
from ..guard import Guard
from .call import GuardedCall
from .messages import (
    GONE,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Id,
    Message,
    Unreadable,
    error,
    member,
    result,
)
from .pipes import ENDING, End, ServerEnd
from .refusals import Told
from .request import ToolCall
from .settings import Settings
from .sides import ClientSide, ServerSide

_log: Final = logger(__name__)

CANCELLED: Final = 5.0
"""Seconds that a server has to answer a call all the same that was cancelled; then it is lost."""
ENDED: Final = "the proxy has ended, or its server is gone; nothing was executed"
FINISH: Final = 30.0
"""Seconds in which what runs may end when the client has gone; then it is lost."""


class Proxy:
    """One client, one server, and the calls between them."""

    def __init__(
        self,
        guard: Guard,
        settings: Settings,
        *,
        client: End,
        server: ServerEnd,
    ) -> None:
        """Begin with no calls."""
        self._guard = guard
        self._settings = settings
        self._client = ClientSide(client)
        self._server = ServerSide(server)
        self._listed = Listed(settings.gates)
        self._calls: dict[Id, tuple[GuardedCall, asyncio.Task[None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> str | None:
        """Pass on what comes, until one of them is gone; returns why the server is, if it is."""
        listening = asyncio.create_task(self._listen())
        hearing = asyncio.create_task(self._hear())
        try:
            await asyncio.wait({listening, hearing}, return_when=asyncio.FIRST_COMPLETED)
            if not hearing.done():
                listening.result()
                await self._let_end(hearing)
                return None
            hearing.result()
            for message in self._server.unanswered():
                await self._client.send(message)
            return self._server.gone
        finally:
            listening.cancel()
            self._stop_waiting()
            self._server.lose("the proxy was told to end")
            await self._ended()
            hearing.cancel()
            await asyncio.gather(listening, hearing, return_exceptions=True)

    async def _let_end(self, hearing: asyncio.Task[None]) -> None:
        """Let the server answer what it executes, though nobody will hear of it: it is recorded."""
        self._stop_waiting()
        running = asyncio.create_task(self._ended())
        await asyncio.wait({running, hearing}, timeout=FINISH, return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
        if not hearing.done():
            await self._server.quiet(within=ENDING)

    async def _ended(self) -> None:
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _stop_waiting(self) -> None:
        for call, task in self._calls.values():
            if not call.is_sent:
                task.cancel()

    async def _hear(self) -> None:
        async for message in self._server.heard():
            self._client.hears(message)
            self._listed.hears(message)
            await self._client.send(message)

    async def _listen(self) -> None:
        async for message in self._client.end.messages():
            if isinstance(message, Unreadable):
                await self._client.send(error(None, message.code, str(message)))
            elif message.method == "tools/call":
                await self._begin(message)
            elif message.method == "notifications/cancelled":
                await self._cancel(message)
            elif not self._client.is_answer(message):
                if message.method == "initialize":
                    self._client.begins(message)
                self._listed.asks(message)
                await self._server.tell(message)

    async def _begin(self, message: Message) -> None:
        """Begin a call, beside all others."""
        if message.id in self._calls:
            twice = "a request with this id is being answered"
            await self._client.send(error(None, INVALID_REQUEST, twice))
            return
        try:
            call = ToolCall.of(message, self._client.said)
        except Told as told:
            await self._client.send(error(message.id, told.code, told.told, told.data))
            return
        self._client.speaks(call.client.version)
        guarded = GuardedCall(
            call,
            self._guard,
            self._settings,
            ask_client=self._client.ask,
            ask_server=self._server.ask,
            ran_nothing=self._server.ran_nothing,
        )
        task = self._start(self._answer(guarded, message))
        if message.id is not None:
            self._calls[message.id] = guarded, task
            task.add_done_callback(lambda _: self._calls.pop(message.id or 0, None))

    async def _answer(self, guarded: GuardedCall, message: Message) -> None:
        try:
            found = await guarded.answered()
            answer = found if isinstance(found, Message) else result(message.id, found)
        except Told as told:
            answer = error(message.id, told.code, told.told, told.data)
        except asyncio.CancelledError:
            self._start(guarded.withdrawn())
            if not guarded.is_cancelled:
                await self._client.send(error(message.id, GONE, ENDED))
            raise
        except Exception:  # noqa: BLE001 - whatever it is, the client is answered
            _log.exception("a call could not be guarded")
            answer = error(message.id, INTERNAL_ERROR, "turnlock: see the proxy's standard error")
        if not guarded.is_cancelled:
            await self._client.send(answer)

    async def _cancel(self, message: Message) -> None:
        """End a call that was not sent; the server is told of any other, and may answer still."""
        request = message.params.get("requestId")
        if isinstance(request, int | str) and request in self._calls:
            guarded, task = self._calls[request]
            guarded.is_cancelled = True
            if not guarded.is_sent:
                task.cancel()
                return
            self._server.abandon(request, within=CANCELLED)
        await self._server.tell(message)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class Listed:
    """What a server lists, held against the gates: a gate that names no tool guards nothing."""

    def __init__(self, gates: frozenset[str]) -> None:
        """`gates`: the tools that need approval."""
        self._missing = set(gates)
        self._asked: set[Id] = set()

    def asks(self, request: Message) -> None:
        """Hear what the client asks."""
        if request.method == "tools/list" and request.id is not None and self._missing:
            self._asked.add(request.id)

    def hears(self, response: Message) -> None:
        """Hear what the server says; after the last page, warn of gates that no tool has."""
        if response.id not in self._asked or not response.is_response:
            return
        self._asked.discard(response.id)
        told = member(response.body, "result")
        tools = told.get("tools")
        if not isinstance(tools, Sequence) or isinstance(tools, str):
            return
        for tool in cast("Sequence[object]", tools):
            if isinstance(tool, Mapping):
                self._missing.discard(str(cast("Mapping[str, object]", tool).get("name")))
        if not told.get("nextCursor"):
            for gate in sorted(self._missing):
                _log.warning("--gate %s guards nothing: the server lists no such tool", gate)
            self._missing.clear()
