"""The two ways to command something in a chat: HTTP on the loopback, and the WebSocket (F-50)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, Protocol, TypeAlias

import attrs
import httpx

from . import sockets
from .worlded import Served, secret_of

Way: TypeAlias = Literal["http", "websocket"]
WAYS: Final[tuple[Way, ...]] = ("http", "websocket")

_PATHS: Final = {
    "decide": "decisions",
    "interrupt": "interrupt",
    "reply": "replies",
    "say": "messages",
}


class Commanding(Protocol):
    """Commands by one person, in any chat; whatever is answered is returned."""

    async def command(
        self, kind: str, body: Any, *, world: str = "demo", chat: str = "plan"
    ) -> tuple[int, dict[str, Any]]: ...


@attrs.frozen
class ByHttp:
    client: httpx.AsyncClient

    async def command(
        self, kind: str, body: Any, *, world: str = "demo", chat: str = "plan"
    ) -> tuple[int, dict[str, Any]]:
        path = f"/v1/worlds/{world}/chats/{chat}/{_PATHS[kind]}"
        answer = await self.client.post(path, json=body)
        return answer.status_code, answer.json()


@attrs.define
class BySocket:
    """Many at once on one socket: answers are told apart by their ids."""

    socket: sockets.Socket
    _sent: int = 0
    _waiting: dict[int, asyncio.Future[dict[str, Any]]] = attrs.field(
        factory=dict[int, "asyncio.Future[dict[str, Any]]"]
    )

    async def listen(self) -> None:
        while True:
            told = await self.socket.hear()
            assert told["type"] == "answer", told
            self._waiting.pop(told["id"]).set_result(told)

    async def command(
        self, kind: str, body: Any, *, world: str = "demo", chat: str = "plan"
    ) -> tuple[int, dict[str, Any]]:
        self._sent += 1
        named = self._sent
        self._waiting[named] = asyncio.get_running_loop().create_future()
        answered = self._waiting[named]
        await self.socket.say(type=kind, id=named, world=world, chat=chat, body=body)
        told = await answered
        return told["status"], told["body"]


@asynccontextmanager
async def commanding(it: Served, way: Way, name: str = "ada") -> AsyncGenerator[Commanding]:
    """Command by one of the ways, as somebody."""
    if way == "http":
        yield ByHttp(it.as_(name))
        return
    authorization = f"Bearer {secret_of(name)}"
    async with sockets.opened(it.app, None, Authorization=authorization) as socket:
        found = BySocket(socket)
        listening = asyncio.create_task(found.listen())
        try:
            yield found
        finally:
            listening.cancel()
            await asyncio.wait({listening})
