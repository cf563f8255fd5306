"""A chat's stream as a browser reads it, and as its bytes must be (F-41)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import httpx

from .worlded import CHAT


@attrs.define
class ChatStream:
    """Reads server-sent events, one at a time."""

    parts: AsyncIterator[bytes]
    last_id: str = ""
    retry: int | None = None
    beaten: asyncio.Event = attrs.field(factory=asyncio.Event)
    _rest: bytes = b""
    _ready: list[tuple[str, dict[str, Any]]] = attrs.field(
        factory=list[tuple[str, "dict[str, Any]"]]
    )

    async def next(self) -> tuple[str, dict[str, Any]]:
        """The name of the next event, "" where it has none, and its data; ends with the stream."""
        while not self._ready:
            part = await anext(self.parts)
            assert b"\r" not in part, "F-41: it never occurs"
            *whole, self._rest = (self._rest + part).split(b"\n\n")
            for block in whole:
                self._take(block)
        return self._ready.pop(0)

    def _take(self, block: bytes) -> None:
        name, found, told = "", None, None
        for line in block.split(b"\n"):
            field, _, value = line.partition(b": ")
            if field == b"":
                self.beaten.set()
                assert value == b"beat"
            elif field == b"retry":
                self.retry = int(value)
            elif field == b"event":
                name = value.decode()
            elif field == b"id":
                found = value.decode()
            else:
                assert field == b"data", line
                told = json.loads(value)
        if told is None:
            return
        assert (found is not None) == (not name), "F-41: an id is a cursor, and no name has one"
        assert found == (told.get("cursor") if not name else None)
        assert told["world"] and told["chat"]  # noqa: PT018 - both are there
        if found is not None:
            self.last_id = found
        self._ready.append((name, told))

    async def until(self, name: str) -> list[tuple[str, dict[str, Any]]]:
        """All up to an event of this name."""
        found = [await self.next()]
        while found[-1][0] != name:
            found.append(await self.next())
        return found

    async def rest(self) -> list[tuple[str, dict[str, Any]]]:
        """All until it ends."""
        found: list[tuple[str, dict[str, Any]]] = []
        try:
            while True:
                found.append(await self.next())
        except StopAsyncIteration:
            return found


@asynccontextmanager
async def following(
    client: httpx.AsyncClient,
    *,
    path: str = f"{CHAT}/events",
    last: str | None = None,
    **query: str,
) -> AsyncGenerator[ChatStream]:
    """Follow a chat until the block is left."""
    headers = {"Accept": "text/event-stream"} | ({} if last is None else {"Last-Event-ID": last})
    async with client.stream("GET", path, params=query, headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"] == "text/event-stream"
        yield ChatStream(answer.aiter_bytes())


async def past(client: httpx.AsyncClient, **query: str) -> list[dict[str, Any]]:
    """What has happened in the chat."""
    async with following(client, follow="0", **query) as stream:
        return [told for name, told in await stream.rest() if not name]
