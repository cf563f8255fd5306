"""A WebSocket in this process, as a server gives it to an application."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from turnlock.server.app import App
from turnlock.server.routing import Role
from turnlock.server.websocket import PROTOCOL

from . import faces


class Closed(Exception):
    """The server has closed the socket, or has not accepted it."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Socket:
    """The client's end."""

    def __init__(self, app: App, scope: dict[str, Any], *, most: int | None = None) -> None:
        self._app = app
        self._scope = scope
        self._given: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self._sent: asyncio.Queue[MutableMapping[str, Any] | None] = asyncio.Queue()
        self._most = most
        self.bytes = 0
        self.reads = asyncio.Event()
        """Whether the client reads; the server's sends wait until it does."""
        self.reads.set()
        self.task: asyncio.Task[None] | None = None

    async def open(self) -> str | None:
        """Shake hands; returns the subprotocol. Raises `Closed` with the status of a refusal."""
        self.task = asyncio.create_task(self._serve())
        await self._given.put({"type": "websocket.connect"})
        first = await self._sent.get()
        if first is None or first["type"] != "websocket.accept":
            raise Closed(0 if first is None else first.get("status", 403))
        return first.get("subprotocol")

    async def _serve(self) -> None:
        try:
            await self._app(self._scope, self._given.get, self._send)
        finally:
            self._sent.put_nowait(None)

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        await self.reads.wait()
        self.bytes += len(message.get("text", ""))
        if self._most is not None and self.bytes > self._most:
            self.hang_up()
            raise OSError
        self._sent.put_nowait(message)

    def hang_up(self) -> None:
        self._most = 0
        self._given.put_nowait({"type": "websocket.disconnect", "code": 1006})

    async def say(self, **message: Any) -> None:
        await self.raw(json.dumps(message))

    async def raw(self, text: str | bytes) -> None:
        key = "text" if isinstance(text, str) else "bytes"
        await self._given.put({"type": "websocket.receive", key: text})

    async def hear(self) -> dict[str, Any]:
        """The next message. Raises `Closed`."""
        message = await self._sent.get()
        if message is None:
            self._sent.put_nowait(None)
            raise Closed(1006)
        if message["type"] == "websocket.close":
            raise Closed(message["code"])
        told: dict[str, Any] = json.loads(message["text"])
        return told

    async def until(self, kind: str) -> list[dict[str, Any]]:
        """All messages up to one of this type."""
        heard = [await self.hear()]
        while heard[-1]["type"] != kind:
            heard.append(await self.hear())
        return heard

    async def close(self) -> None:
        self.reads.set()
        if self.task is not None:
            if not self.task.done():
                self._given.put_nowait({"type": "websocket.disconnect", "code": 1000})
            await self.task


def scope_of(role: Role | None, protocols: list[str], **headers: str) -> dict[str, Any]:
    """What a server says of a handshake."""
    given = {"Host": "127.0.0.1:8420", **headers}
    if role is not None:
        given["Authorization"] = f"Bearer {faces.SECRETS[role]}"
    return {
        "type": "websocket",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "ws",
        "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
        "path": "/v1/stream",
        "raw_path": b"/v1/stream",
        "query_string": b"",
        "server": ("127.0.0.1", 8420),
        "client": ("127.0.0.1", 50_000),
        "root_path": "",
        "subprotocols": protocols,
        "extensions": {"websocket.http.response": {}},
    }


@asynccontextmanager
async def opened(
    app: App, role: Role | None = Role.LOOK, *, most: int | None = None, **headers: str
) -> AsyncGenerator[Socket]:
    """A socket that is open."""
    socket = Socket(app, scope_of(role, [PROTOCOL], **headers), most=most)
    try:
        assert await socket.open() == PROTOCOL
        yield socket
    finally:
        await socket.close()
