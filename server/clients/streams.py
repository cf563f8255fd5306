"""A client's stream as server-sent events: `data:` lines, each one JSON of its protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from ..sse import BEAT, EventStream
from .following import Event, Following

if TYPE_CHECKING:
    from starlette.types import Send

_json: Final = msgspec.json.encode


def encoded(events: Iterable[Event]) -> bytes:
    """Return events as they are sent."""
    return b"".join([b"data: %b\n\n" % _json(it) for it in events])


class Translated(EventStream):
    """Writes what a translator says as soon as it does; it takes what it follows over."""

    def __init__(
        self,
        following: Following,
        begun: Iterable[Event],
        *,
        end: bytes = b"",
        headers: dict[str, str] | None = None,
    ) -> None:
        """Prepare: `begun` is what is said first, `end` stands behind the last event."""
        super().__init__(following.subscription)
        self._following = following
        self._begun = encoded(begun)
        self._end = end
        for name, value in (headers or {}).items():
            self.headers[name] = value

    async def _write(self, send: Send) -> None:
        try:
            await self._start(send)
            await self._part(send, self._begun)
            async for events in self._following.go_on():
                await self._part(send, encoded(events) or BEAT)
            await send({"type": "http.response.body", "body": self._end, "more_body": False})
        finally:
            self._following.close()
