"""`useChat` over its WebSocket transport: many chats on one socket, requests by ids (F-74)."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

import attrs
import msgspec
from starlette.websockets import WebSocket

from ...models.errors import TurnlockError
from ...models.safe_text import harmless
from ...models.values import Json
from ..bodies import named, parse
from ..connections import transport_of
from ..face import Face
from ..problems import Problem, problem_of
from ..routing import Who
from ..sockets import Socket, text_of
from .chat import asked_for, resumed
from .chat_requests import SUBMIT, ChatBody
from .following import Event, Following

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

Begun: TypeAlias = "tuple[Following, list[Event]]"
"""What is followed, and what is sent first."""

REQUESTS: Final = 64
"""Of one socket that are answered at once."""


@attrs.frozen(kw_only=True)
class Frame:
    """What the transport sends; of a request to send something also what `ChatBody` has."""

    FOREIGN: ClassVar[bool] = True
    type: Literal["send", "resume", "abort"]
    request_id: str = named("requestId")
    id: str = ""
    messages: tuple[Mapping[str, Json], ...] = ()
    trigger: str = SUBMIT
    message_id: str | None = named("messageId", default=None)


class _Named(msgspec.Struct):
    requestId: str = ""  # noqa: N815 - the client's


async def serve(face: Face, scope: Scope, receive: Receive, send: Send, who: Who) -> None:
    """Serve a socket that was let in, until it is closed; any subprotocol is the page's own."""
    socket = WebSocket(scope, receive, send)
    asked: list[str] = socket.scope["subprotocols"]
    await _ChatSocket(face, socket, who, asked[0] if asked else None).serve()


class _ChatSocket(Socket):
    """One socket: the replies that are told on it, by the ids of their requests."""

    def __init__(self, face: Face, socket: WebSocket, who: Who, protocol: str | None) -> None:
        super().__init__(face, socket, who, protocol)
        self._agent = socket.query_params.get("agent")
        self._told: dict[str, Following | None] = {}
        """What is followed; None while it is asked for."""
        self._is_gone = False

    def _let_go(self) -> None:
        self._is_gone = True
        for name in tuple(self._told):
            self._abort(name)

    def _abort(self, name: str) -> None:
        following = self._told.pop(name, None)
        if following is not None:
            following.close()

    async def _heard(self, text: str | None) -> None:
        name = ""
        try:
            text = text_of(text)
            name = _name_of(text)
            frame = parse(Frame, text.encode())
            if frame.type == "abort":
                self._abort(frame.request_id)
            else:
                self._begin(frame)
        except TurnlockError as error:
            await self._problem(name, error)

    def _begin(self, frame: Frame) -> None:
        name = frame.request_id
        if name in self._told:
            raise Problem("bad_request", "this id is in use; give another", at="requestId")
        if len(self._told) >= REQUESTS:
            raise Problem("overloaded", f"{REQUESTS} requests of this socket are under way")
        self._told[name] = None
        asking = resumed(self._face, frame.id) if frame.type == "resume" else self._sent(frame)
        self._judging.spawn("answer a request", self._answer(name, asking))

    async def _sent(self, frame: Frame) -> Begun | None:
        body = ChatBody(
            id=frame.id,
            messages=frame.messages,
            trigger=frame.trigger,
            message_id=frame.message_id,
        )
        return await asked_for(self._face, body, self._who, agent=self._agent)

    async def _answer(self, name: str, asking: Awaitable[Begun | None]) -> None:
        """Do what is asked for; then it is told in a task that ends with the socket."""
        try:
            begun = await asking
        except TurnlockError as error:
            self._told.pop(name, None)
            await self._problem(name, error)
            return
        if begun is None:
            self._told.pop(name, None)
            await self._say({"type": "no-active", "requestId": name})
        elif self._is_gone or name not in self._told:
            begun[0].close()
        else:
            self._told[name] = begun[0]
            self._tasks.spawn("tell a reply", self._tell(name, *begun))

    async def _tell(self, name: str, following: Following, begun: list[Event]) -> None:
        transport = transport_of(self._socket.scope)
        if transport is not None:
            following.subscription.unread = transport.get_write_buffer_size
        following.subscription.when_cut = self._cut
        sequence = 0
        try:
            await self._say({"type": "start", "requestId": name})
            sequence = await self._chunks(name, begun, sequence)
            async for events in following.go_on():
                sequence = await self._chunks(name, events, sequence)
            if self._told.pop(name, None) is not None:
                await self._say({"type": "end", "requestId": name})
        finally:
            following.close()

    async def _chunks(self, name: str, chunks: list[Event], sequence: int) -> int:
        """Send chunks, and return the number that the next one has."""
        for number, chunk in enumerate(chunks, start=sequence):
            named = {"type": "chunk", "requestId": name, "sequence": number}
            await self._say({**named, "chunk": chunk})
        return sequence + len(chunks)

    async def _problem(self, name: str, error: TurnlockError) -> None:
        problem = problem_of(error)
        self._face.standing.refused[problem.code] += 1
        text = f"{problem.code}: {harmless(str(problem))}"
        await self._say({"type": "error", "requestId": name, "errorText": text})

    async def _say(self, told: Mapping[str, Any]) -> None:
        await self._socket.send_text(msgspec.json.encode(told).decode())


def _name_of(text: str) -> str:
    """Return the id of a request, to be told what is wrong with it; nothing where it has none."""
    try:
        return msgspec.json.decode(text, type=_Named).requestId
    except (msgspec.DecodeError, UnicodeEncodeError):
        return ""
