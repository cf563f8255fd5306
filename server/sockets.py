"""One WebSocket that was let in: it listens, and is closed by either side in any state (F-51)."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketDisconnected

from ..runtime.log import defects, logger
from ..runtime.scheduling import Tasks
from .connections import transport_of
from .face import Face
from .problems import Problem
from .routing import Who

_log, _defect = logger(__name__), defects(__name__)

MESSAGE: Final = 1024 * 1024
"""Characters of a message."""
JUDGED: Final = 15.0
"""Seconds in which commands are answered that were under way when their socket was closed."""

ENDED: Final = 1008
"""The token has ended."""
STOPS: Final = 1013
"""The server stops."""

GONE: Final = (WebSocketDisconnect, WebSocketDisconnected)
"""What whoever speaks into a socket hears once its client has gone."""


def text_of(message: str | None) -> str:
    """Return what a client has sent. Raises `Problem` for what is no text, or too long."""
    if message is None:
        raise Problem("bad_request", "send text: one JSON object a message")
    if len(message) > MESSAGE:
        raise Problem("too_large", f"a message has at most {MESSAGE:,} characters")
    return message


class Socket(ABC):
    """One socket: what it follows, and what is under way for it."""

    def __init__(self, face: Face, socket: WebSocket, who: Who, protocol: str | None) -> None:
        """Prepare; it is accepted when it is served, with a subprotocol or with none."""
        self._face = face
        self._socket = socket
        self._who = who
        self._protocol = protocol
        self._tasks = Tasks(failed=self._failed)
        self._judging = Tasks(failed=self._failed)
        self._closing: tuple[int, str] | None = None
        self._closes = asyncio.Event()

    @abstractmethod
    async def _heard(self, text: str | None) -> None:
        """Do what a message says; one that says nothing is an error, and the socket stays."""

    @abstractmethod
    def _let_go(self) -> None:
        """Follow nothing any more."""

    async def serve(self) -> None:
        """Listen until either side closes."""
        try:
            await self._socket.accept(self._protocol)
        except OSError:  # whoever shook hands has gone
            return
        stop = self._face.tokens.watch(self._who, lambda: self._close(ENDED, "the token has ended"))
        listening = asyncio.ensure_future(self._listen())
        closing = asyncio.ensure_future(self._closes.wait())
        try:
            await asyncio.wait({listening, closing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop()
            self._let_go()
            listening.cancel()
            closing.cancel()
            await asyncio.wait({listening, closing})
            await self._tasks.cancel()
        if listening.done() and not listening.cancelled():
            listening.result()
        if self._closing is not None:
            await self._last_words(*self._closing)
        await self._judging.ended(within=JUDGED)  # what is decided is decided, heard or not

    async def _last_words(self, code: int, reason: str) -> None:
        try:
            await self._socket.close(code, reason)
        except (WebSocketDisconnect, RuntimeError):  # it has gone
            _log.debug("a socket was closed before it was told why: %d", code)

    def _close(self, code: int, reason: str) -> None:
        """Close the socket: the first reason counts."""
        if self._closing is None:
            self._closing = code, reason
        self._closes.set()

    def _cut(self) -> None:
        """Let go a client that reads nothing (F-43)."""
        transport = transport_of(self._socket.scope)
        if transport is not None:
            transport.abort()
        self._closes.set()

    def _failed(self, name: str, error: BaseException) -> None:
        if not isinstance(error, GONE):
            _defect(name, error)
        self._close(1011, "internal_error")

    async def _listen(self) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            with suppress(*GONE):  # a message that comes says so
                await self._heard(message.get("text"))
