"""How a call that waits comes to its decision: by a person at the client, or in the journal.

Whoever decides first has decided; the other is told nothing more, or asked no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from ...lifecycle.phases import Phase
from ..errors import DecidedOtherwise, Differs, NotApproved, Stale
from ..guard import Guard
from .asking import Reply, can_be_shown, input_required, question, reply_of
from .messages import Message
from .request import ToolCall
from .settings import Settings

MISFITS: Final = 3
"""Answers that fit no question before nothing is decided."""
WATCHED: Final = 60.0
"""Seconds of one look for a decision from elsewhere, while a person is asked here."""
WITHDRAWN: Final = "withdrawn: the request ended before anybody had decided"

Ask = Callable[[Mapping[str, Any]], Awaitable[Message]]


class Approval:
    """The decision about one request."""

    def __init__(self, guard: Guard, settings: Settings, call: ToolCall, ask: Ask) -> None:
        """`ask` sends `elicitation/create` and returns the response."""
        self._guard = guard
        self._settings = settings
        self._call = call
        self._ask = ask
        self._waited = False
        self._replied = False

    async def come(self, waiting: NotApproved) -> Mapping[str, Any] | None:
        """Wait for a decision. None: ask the guard again; else the question, as a result.

        Raises `waiting` where nobody decided.
        """
        client = self._call.client
        if self._settings.decide == "journal" or not (
            client.can_be_asked and can_be_shown(waiting.arguments)
        ):
            await self._elsewhere(waiting)
            return None
        if not client.is_modern:
            said = await self._elicited(waiting)
            await (self._elsewhere(waiting) if said is None else self._decide(waiting, said))
            return None
        reply, state = reply_of(self._call.replied), self._call.state
        if self._replied or reply is None or state is None or state.digest != waiting.digest:
            return input_required(self._call.tool, waiting, call=self._call.name)
        self._replied = True
        await self._decide(waiting, reply)
        return None

    async def withdraw(self, waiting: NotApproved) -> None:
        """Have it wait no more: nobody can ask for it again, so nobody should decide about it."""
        with suppress(Stale, Differs):
            await self._guard.adecide(
                waiting.at,
                approved=False,
                digest=waiting.digest,
                by="turnlock guard mcp",
                reason=WITHDRAWN,
            )

    async def _elsewhere(self, waiting: NotApproved) -> None:
        """Wait a while for who decides in the journal."""
        if self._waited:
            raise waiting
        self._waited = True
        await self._guard.await_decided(waiting.at, within=self._settings.wait)

    async def _decide(self, waiting: NotApproved, reply: Reply) -> None:
        if reply.approved is None:
            raise waiting
        with suppress(DecidedOtherwise, Differs, Stale):  # the guard tells what it is now
            await self._guard.adecide(
                waiting.at,
                approved=reply.approved,
                digest=waiting.digest,
                by=f"{self._call.client.name} (MCP)",
                reason=reply.reason,
            )

    async def _elicited(self, waiting: NotApproved) -> Reply | None:
        """Ask by a request, as before 2026-07-28; None: it is decided elsewhere, or must be."""
        asking = asyncio.create_task(self._asked(waiting))
        elsewhere = asyncio.create_task(self._decided(waiting))
        try:
            await asyncio.wait({asking, elsewhere}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            for task in (asking, elsewhere):
                task.cancel()
            await asyncio.gather(asking, elsewhere, return_exceptions=True)

    async def _asked(self, waiting: NotApproved) -> Reply | None:
        for _ in range(MISFITS + 1):
            answer = await self._ask(question(self._call.tool, waiting))
            if "error" in answer.body:
                return None
            if (reply := reply_of(answer.body.get("result"))) is not None:
                return reply
        return Reply(approved=None)

    async def _decided(self, waiting: NotApproved) -> None:
        while True:
            look = await self._guard.await_decided(waiting.at, within=WATCHED)
            if look.phase is not Phase.REQUESTED:
                return
