"""A chat's stream: what was said, asked and decided there, then what is said just now (W-71).

The chat itself brings it in order, as messages of section 11; here it is given to connections, by
the same means as a run's: beats, batches, bounds, and an end with a word when to come again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..models.errors import TurnlockError
from ..models.ids import escape
from ..models.safe_text import harmless
from ..world.events import ChatEvent, LiveEvent, TransientEvent
from ..world.streams import Events
from . import shown, sse
from .face import Face
from .problems import problem_of
from .routing import Asked, Endpoint, Role
from .shown import Hello, InChat, Shown
from .subscriber import BYTES, Subscriber, batch_of
from .worlds_known import chat_of

if TYPE_CHECKING:  # an extra's
    from starlette.responses import Response

    from .hub import Hub

_json: Final = msgspec.json.encode


def follow_chat(
    face: Face, ids: Mapping[str, str], *, after: str, follow: bool = True
) -> ChatSubscription:
    """Return what a chat's subscriber is shown after a cursor, batch by batch; close it.

    Raises `Overloaded` beyond the bounds, at once; that there is no such chat, or what is wrong
    with the cursor, is raised by `open`, or by the first batch.
    """
    world, chat = ids["world"], ids["chat"]

    def made(hub: Hub) -> ChatSubscription:
        return ChatSubscription(hub, face, ids, after=after, follow=follow)

    named = f"chat {harmless(chat)!r} of world {harmless(world)!r}"
    return face.hub.attach(made, to=("chat", world, chat), named=named)


class ChatSubscription(Subscriber):
    """What a subscriber of a chat is shown. `follow_chat` makes it.

    One task reads ahead, as much as one write has, and then waits until that is taken.
    """

    def __init__(
        self, hub: Hub, face: Face, ids: Mapping[str, str], *, after: str, follow: bool
    ) -> None:
        """Prepare; nothing is read yet."""
        super().__init__(hub, f"{escape(ids['world'])}/{escape(ids['chat'])}")
        self._face: Final = face
        self._ids: Final = ids
        self._named: Final = {"world": ids["world"], "chat": ids["chat"]}
        self._after: Final = after
        self._follow: Final = follow
        self._waiting: deque[Shown] = deque()
        self._bytes = 0
        self._hello: Hello | None = None
        self._reading: asyncio.Task[None] | None = None
        self._room = asyncio.Event()

    async def open(self) -> Hello:
        """Read the first event, and say where the chat ends now.

        Raises `Problem` where there is no such chat, `BadCursor`, `CursorAhead`, and what the
        journal raises.
        """
        if self._hello is None:
            chat = await chat_of(self._face, self._ids)
            events = chat.events(self._after, follow=self._follow)
            await events.open()
            self._hello = Hello(self.run_id, self._told(head=events.head))
            self._waiting.append(self._hello)
            if self._closed:
                await events.aclose()
            else:
                self._reading = self._hub.spawn("follow a chat", self._read(events))
        return self._hello

    async def __anext__(self) -> tuple[Shown, ...]:
        """Return the next batch, as soon as there is something to say."""
        self._since = None
        try:
            batch = await self._next()
        except TurnlockError as error:
            self._finish(shown.failed(self.run_id, problem_of(error).encoded()))
            batch = tuple(self._waiting)
            self._waiting.clear()
        self._hub.counts.sent += sum(
            isinstance(it, InChat) and it.cursor is not None for it in batch
        )
        self._shown_at = self._since = self._loop.time()
        return batch

    async def _next(self) -> tuple[Shown, ...]:
        await self.open()
        while True:
            if self._ending:
                self._ending = False
                self._waiting.clear()
                self._finish(shown.Bye(self.run_id, self._told(retry=self._hub.settings.retry)))
            if self._waiting:
                batch = batch_of(self._waiting)
                self._bytes = sum(map(len, self._waiting))
                self._room.set()
                return batch
            if self._closed:
                raise StopAsyncIteration
            if self._beat:
                self._beat = False
                return ()
            await self._wait()

    async def _read(self, events: Events) -> None:
        """Have what comes wait to be handed out."""
        try:
            async for event in events:
                await self._take(event)
        except TurnlockError as error:
            self._finish(shown.failed(self.run_id, problem_of(error).encoded()))
        finally:
            await events.aclose()

    async def _take(self, event: ChatEvent) -> None:
        if isinstance(event, LiveEvent) and not self._follow:
            self._finish(shown.End(self.run_id, self._told(cursor=event.cursor)))
            return
        it = self._shown(event)
        self._waiting.append(it)
        self._bytes += len(it)
        self.wake()
        while self._bytes > BYTES and not self._closed:
            self._room.clear()
            await self._room.wait()

    def _shown(self, event: ChatEvent) -> Shown:
        if isinstance(event, LiveEvent):
            return shown.Live(self.run_id, self._told(cursor=event.cursor))
        told = event.as_json()
        cursor = None if isinstance(event, TransientEvent) else event.cursor
        return InChat(
            self.run_id, _json({"type": told["type"], **self._named, **told}), cursor=cursor
        )

    def _told(self, **fields: Any) -> bytes:  # noqa: ANN401 - any JSON
        return _json({**self._named, **fields})

    def _finish(self, last: Shown) -> None:
        self._waiting.append(last)
        self.close()

    def close(self) -> None:
        """End it: nothing is kept of it, and an iteration under way ends."""
        reading, self._reading = self._reading, None
        if reading is not None and reading is not asyncio.current_task():
            reading.cancel()
        self._room.set()
        super().close()


async def stream(face: Face, asked: Asked) -> Response:
    """Answer with a chat's stream."""
    follow = "follow" not in asked.query or asked.flag("follow")
    subscription = follow_chat(face, asked.ids, after=sse.after_of(asked), follow=follow)
    try:
        await subscription.open()
    except BaseException:
        subscription.close()
        raise
    return sse.EventStream(subscription)


async def head(face: Face, asked: Asked) -> Response:
    """Answer as a stream would begin."""
    return sse.begun(await stream(face, asked))


_CODES: Final = ("not_found", "bad_cursor", "cursor_ahead", "overloaded", "journal_failed")
_QUERY: Final = {
    "after": "the cursor after which it begins; the header Last-Event-ID wins",
    "follow": "0: end at the head",
}
_EVENTS: Final = "/v1/worlds/{world}/chats/{chat}/events"

ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path=_EVENTS,
        handler=stream,
        role=Role.LOOK,
        summary="Follow a chat: what was said, asked and decided, then what is said just now.",
        produces=(sse.MEDIA,),
        query=_QUERY,
        codes=_CODES,
    ),
    Endpoint(
        method="HEAD",
        path=_EVENTS,
        handler=head,
        role=Role.LOOK,
        summary="Say whether a chat can be followed from there.",
        produces=(sse.MEDIA,),
        query=_QUERY,
        codes=_CODES,
    ),
)
"""The endpoints of this module."""
