"""A small client of the worlds of a server: their chats, what happens there, and what is said.

It asks by a `Client`, as the holder of its token: who says, replies or stops is who that is (F-12).
Decisions about calls go by the members' runs, as ever: `Client.deliver`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final, cast

from ..models.values import Json
from .client import RETRY, Answer, Client, connected_again
from .received import StreamEvent, Told, no_turnlock


class ChatsClient:
    """The worlds of one server. Every method raises `Problem` and `Unreachable`."""

    def __init__(self, client: Client, *, retry: float = RETRY) -> None:
        """Ask by this client; `retry` are the seconds between two connections of a stream."""
        self._client: Final = client
        self._retry: Final = retry

    async def worlds(self) -> tuple[Told, ...]:
        """Return the worlds, each with its chats, as the server tells them."""
        listed = _many(await self._client.told("/v1/worlds"), "worlds")
        return tuple([await self._client.told(f"/v1/worlds/{it['world']}") for it in listed])

    async def say(self, world: str, chat: str, text: str, *, message_id: str) -> Told:
        """Say something; again under the same id it is said once."""
        body = {"message_id": message_id, "text": text}
        return await self._client.asked(_path(world, chat, "messages"), body)

    async def reply(
        self,
        world: str,
        chat: str,
        question_id: str,
        action: str,
        content: Mapping[str, Json] | None = None,
    ) -> Told:
        """Reply to a question: the first reply stands."""
        body: dict[str, Any] = {"question_id": question_id, "action": action}
        if content is not None:
            body["content"] = dict(content)
        return await self._client.asked(_path(world, chat, "replies"), body)

    async def interrupt(self, world: str, chat: str, agent: str) -> Answer:
        """Stop what a member does."""
        return await self._client.judged(_path(world, chat, "interrupt"), {"agent": agent})

    async def follow(
        self, world: str, chat: str, *, after: str = ""
    ) -> AsyncGenerator[StreamEvent]:
        """Follow a chat for ever: what a connection did not bring, the next one does.

        Its messages are `entry`, `projection`, `transient` and `live`; `off` is the client's own.
        """
        last = after

        async def connection() -> AsyncGenerator[StreamEvent]:
            nonlocal last
            stream = self._client.stream(_path(world, chat, "events"), after=last)
            async with aclosing(stream) as events:
                async for event in events:
                    kind = event.data.get("type", event.name)
                    cursor = event.data.get("cursor")
                    last = cursor if isinstance(cursor, str) and cursor else last
                    yield StreamEvent(kind if isinstance(kind, str) else "", event.data)

        async with aclosing(connected_again(connection, retry=self._retry)) as events:
            async for event in events:
                yield event


def _path(world: str, chat: str, place: str) -> str:
    """Return a path of a chat; ids of worlds and chats need no escapes (W-3)."""
    return f"/v1/worlds/{world}/chats/{chat}/{place}"


def _many(told: Told, name: str) -> list[Told]:
    found = told.get(name)
    if not isinstance(found, list):
        raise no_turnlock(f"{name!r} is missing from an answer")
    return cast("list[Told]", found)
