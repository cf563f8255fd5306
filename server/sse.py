"""A run's stream as server-sent events (F-40 … F-46)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from ..runtime.journal.ledger import Cursor
from .connections import transport_of
from .face import Face
from .pages import check_query
from .problems import Problem
from .routing import Asked, Endpoint, Role
from .shown import Sent, Shown
from .tail import Batch

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from .subscriber import Subscriber

__all__ = ["ENDPOINTS", "EventStream", "after_of", "begun"]

MEDIA: Final = "text/event-stream"
RETRY: Final = b"retry: 1000\n"
"""Milliseconds after which a browser connects anew."""
BEAT: Final = b": beat\n\n"
LARGE: Final = 8 * 1024
"""Bytes of a write after which the next is made only once the connection has taken it."""


async def stream(face: Face, asked: Asked) -> Response:
    """Answer with a run's stream."""
    check_query(asked)
    after = Cursor.read(after_of(asked))
    follow = "follow" not in asked.query or asked.flag("follow")
    subscription = face.hub.subscribe(
        asked.ids["run"],
        after=after,
        follow=follow,
        diagnostics=asked.flag("diagnostics"),
        children=asked.flag("children"),
    )
    try:
        await subscription.open()
    except BaseException:
        subscription.close()
        raise
    return EventStream(subscription)


def after_of(asked: Asked) -> str:
    """Return the cursor after which a stream begins, as it was given (F-40)."""
    given = asked.http.headers.getlist("last-event-id")
    if len(given) > 1:
        raise Problem("bad_cursor", "the header Last-Event-ID stands twice")
    return given[0] if given else asked.query.get("after", "")


async def head(face: Face, asked: Asked) -> Response:
    """Answer as a stream would begin."""
    return begun(await stream(face, asked))


def begun(answer: Response) -> Response:
    """Return what a stream's answer begins with, and end the stream."""
    if isinstance(answer, EventStream):
        answer.close()
    return Response(media_type=MEDIA, headers={"Content-Type": MEDIA})


def encoded(batch: Iterable[Shown], run_id: str | None = None) -> bytes:
    """Return a batch as events; with `run_id` ids are cursors of that run alone."""
    if run_id is None:
        return b"".join([it.sse for it in batch])
    return b"".join(
        it.nameless if isinstance(it, Sent) and it.run_id != run_id else it.sse for it in batch
    )


class EventStream(Response):
    """Writes what a subscription brings, as soon as it does; it takes the subscription over."""

    media_type = MEDIA

    def __init__(self, subscription: Subscriber) -> None:
        """Prepare."""
        self._subscription = subscription
        self.status_code = 200
        self.background = None
        self.init_headers({"Content-Type": MEDIA, "X-Accel-Buffering": "no"})
        del self.headers["content-length"]

    def close(self) -> None:
        """End it: nobody is to be answered."""
        self._subscription.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        subscription = self._subscription
        task = asyncio.current_task()
        cut = _Cut()
        transport = transport_of(scope)
        if transport is not None:
            subscription.unread = transport.get_write_buffer_size
            subscription.when_cut = transport.abort
        elif task is not None:
            subscription.when_cut = lambda: cut.cancel(task)
        watching = asyncio.ensure_future(_gone(receive))
        watching.add_done_callback(lambda _: subscription.close())
        try:
            await self._write(send)
        except asyncio.CancelledError:
            if task is None or not cut.was or task.uncancel():
                raise
        finally:
            subscription.close()
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _write(self, send: Send) -> None:
        await self._start(send)
        subscription = self._subscription
        main = subscription.run_id if subscription.children else None
        begin = RETRY
        async for batch in subscription:
            if type(batch) is Batch:
                data = batch.sse
            else:
                data = begin + encoded(batch, main) if batch else BEAT
                begin = b""
            await self._part(send, data)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _start(self, send: Send) -> None:
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        await send(start)

    async def _part(self, send: Send, data: bytes) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": True})
        if len(data) > LARGE:  # writes nothing, and waits until there is room again
            await send({"type": "http.response.body", "body": b"", "more_body": True})


class _Cut:
    """A task that is cancelled because its client reads nothing."""

    was = False

    def cancel(self, task: asyncio.Task[object]) -> None:
        self.was = True
        task.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


_CODES: Final = ("unknown_run", "bad_cursor", "cursor_ahead", "overloaded", "journal_failed")
_QUERY: Final = {
    "after": "the cursor after which it begins; the header Last-Event-ID wins",
    "follow": "0: end at the head",
    "diagnostics": "1: refusals and logs, too",
    "children": "1: the runs of sub-agents, too",
}

ENDPOINTS: Final = (
    Endpoint(
        method="GET",
        path="/v1/runs/{run}/events",
        handler=stream,
        role=Role.LOOK,
        summary="Follow a run: what has happened, then what happens.",
        produces=(MEDIA,),
        query=_QUERY,
        codes=_CODES,
    ),
    Endpoint(
        method="HEAD",
        path="/v1/runs/{run}/events",
        handler=head,
        role=Role.LOOK,
        summary="Say whether a run can be followed from there.",
        produces=(MEDIA,),
        query=_QUERY,
        codes=_CODES,
    ),
)
