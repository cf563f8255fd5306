"""The client, as a proxy has it: what it said about itself, and what it is asked by the proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from .mcp_asking import Client
from .mcp_messages import Id, Message, cancelled, member, request
from .mcp_pipes import End


class ClientSide:
    """One client, until it is gone."""

    def __init__(self, end: End) -> None:
        """Begin with nothing asked."""
        self.end = end
        self.said = Client()
        self._name = f"turnlock-{uuid4().hex[:12]}"
        self._asked: dict[Id, asyncio.Future[Message]] = {}
        self._count = 0

    def begins(self, initialize: Message) -> None:
        """Remember what it says about itself, as a client before 2026-07-28."""
        params = initialize.params
        self.said = Client.of(
            info=member(params, "clientInfo"),
            capabilities=member(params, "capabilities"),
            is_modern=False,
        )

    async def ask(self, params: Mapping[str, Any]) -> Message:
        """Send `elicitation/create`, and return the response; taken back when this is cancelled."""
        self._count += 1
        name = f"{self._name}-{self._count}"  # no server gives such an id
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._asked[name] = answer
        try:
            await self.send(request(name, "elicitation/create", params))
            return await answer
        except asyncio.CancelledError:
            if answer.cancelled() or not answer.done():  # cancelled with who waits for it
                await self.send(cancelled(name, "it is decided, or nobody waits for it"))
            raise
        finally:
            del self._asked[name]

    def is_answer(self, message: Message) -> bool:
        """Take a response that is to a question of ours; also one that comes too late."""
        if not isinstance(message.id, str) or not message.id.startswith(f"{self._name}-"):
            return False
        answer = self._asked.get(message.id)
        if answer is not None and not answer.done():
            answer.set_result(message)
        return True

    async def send(self, message: Message) -> None:
        """Pass a message on; where the client is gone, nobody misses it."""
        try:
            await self.end.send(message)
        except OSError:
            return
