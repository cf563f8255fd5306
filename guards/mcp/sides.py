"""The client and the server, as a proxy has them: what each said, and who waits for what of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from ...models.safe_text import harmless
from ...runtime.log import logger
from ...runtime.tools.errors import OutcomeUnknown
from ..calling import NeverBegan
from .asking import Client
from .messages import GONE, Id, Message, Unreadable, cancelled, error, member, request
from .pipes import End, ServerEnd

_log: Final = logger(__name__)

PROTOCOLS: Final = ("2024-11-05", "2026-07-28")
"""The oldest and the newest version of the protocol that this was tested with."""


class NotSent(NeverBegan):
    """Nothing reached the server."""


class ClientSide:
    """One client, until it is gone."""

    def __init__(self, end: End) -> None:
        """Begin with nothing asked."""
        self.end = end
        self.said = Client()
        self._name = f"turnlock-{uuid4().hex[:12]}"
        self._asked: dict[Id, asyncio.Future[Message]] = {}
        self._count = 0
        self._began: Id | None = None
        self._untested: set[str] = set()

    def begins(self, initialize: Message) -> None:
        """Remember what it says about itself, as a client before 2026-07-28."""
        params, self._began = initialize.params, initialize.id
        self.said = Client.of(
            info=member(params, "clientInfo"),
            capabilities=member(params, "capabilities"),
            is_modern=False,
        )

    def hears(self, response: Message) -> None:
        """Hear which version the server has chosen, as before 2026-07-28."""
        if self._began is not None and response.id == self._began and response.is_response:
            self._began = None
            self.speaks(member(response.body, "result").get("protocolVersion"))

    def speaks(self, version: object) -> None:
        """Warn, once, of a version that was not tested: calls may come in another way there."""
        oldest, newest = PROTOCOLS
        if not isinstance(version, str) or oldest <= version <= newest:
            return
        if version not in self._untested:
            self._untested.add(version)
            _log.warning(
                "MCP %s is spoken here, and this guard was tested with %s up to %s: a call that"
                " comes in another way is not guarded",
                *(harmless(version, limit=40), oldest, newest),
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


class ServerSide:
    """One server, until it is gone."""

    def __init__(self, end: ServerEnd) -> None:
        """Begin with nothing asked."""
        self._end = end
        self._calls: dict[Id, asyncio.Future[Message]] = {}
        self._passed: set[Id] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._gone: str | None = None

    async def ask(self, request: Message) -> Message:
        """Send a call, and return its response.

        Raises `NotSent` where the server has not got it, `OutcomeUnknown` where it does not answer.
        """
        if request.id is None:
            raise AssertionError(request)
        if self._gone is not None:
            raise NotSent(self._gone)
        response: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._calls[request.id] = response
        try:
            try:
                await self._end.send(request)
            except OSError as broken:  # it may have read it all the same
                raise OutcomeUnknown(f"the server reads no more: {broken}") from None
            found = await response
        finally:
            del self._calls[request.id]
        said = member(found.body, "error")
        if said.get("code") in self._end.not_sent:
            raise NotSent(said.get("message"))
        return found

    async def tell(self, message: Message) -> None:
        """Pass on what is no call; where it is a request, somebody waits for the response."""
        if message.method is not None and message.id is not None:
            self._passed.add(message.id)
            self._quiet.clear()
        try:
            await self._end.send(message)
        except OSError as broken:  # its end is told when nothing more is heard of it
            _log.info("the server reads no more: %s", broken)

    async def heard(self) -> AsyncIterator[Message]:
        """Yield what is not the response to a call, until nothing more comes."""
        async for message in self._end.messages():
            if isinstance(message, Unreadable):
                _log.warning("the server said what is no message, and it was not passed on")
                continue
            if message.is_response and message.id is not None:
                self._passed.discard(message.id)
                if not self._passed:
                    self._quiet.set()
                waiting = self._calls.get(message.id)
                if waiting is not None:
                    if not waiting.done():
                        waiting.set_result(message)
                    continue
            yield message
        self.lose(harmless(await self._end.why_over()))

    async def quiet(self, *, within: float) -> None:
        """Wait until it has answered what was passed on, at most so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._quiet.wait()

    def lose(self, why: str) -> None:
        """Let nobody wait any more: what was asked may have been done."""
        self._gone = self._gone or why
        for response in self._calls.values():
            if not response.done():
                response.set_exception(OutcomeUnknown(f"the server is gone: {why}"))

    def abandon(self, request: Id, *, within: float) -> None:
        """Give a call that was cancelled so many seconds to be answered all the same."""
        response = self._calls.get(request)

        def give_up() -> None:
            if response is not None and not response.done():
                response.set_exception(OutcomeUnknown("it was cancelled, and has not answered"))

        asyncio.get_running_loop().call_later(within, give_up)

    @property
    def ran_nothing(self) -> frozenset[int]:
        """Errors by which it says that it could not even begin."""
        return self._end.ran_nothing

    @property
    def gone(self) -> str | None:
        """Why nothing can be asked of it any more."""
        return self._gone

    def unanswered(self) -> list[Message]:
        """Return errors for what the client still waits for, besides calls."""
        return [error(it, GONE, f"the server is gone: {self._gone}") for it in self._passed]
