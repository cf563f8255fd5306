"""What is told to servers of what they may ask: forms, and no pages in a browser (W-67).

The official client announces both as soon as it can answer questions at all. A server that may
choose would open a page, and be declined, where it had a form, too.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from mcp.client._transport import WriteStream
    from mcp.shared.message import SessionMessage


class FormsOnly:
    """What is sent to a server, with no word of pages among the client's capabilities."""

    def __init__(self, stream: WriteStream[SessionMessage]) -> None:
        """Pass everything on to this stream."""
        self._stream = stream

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message: capabilities are in the first one, or since 2026-07-28 in each."""
        from mcp_types import CLIENT_CAPABILITIES_META_KEY  # noqa: PLC0415 - an extra

        told: Any = getattr(item.message, "params", None) or {}
        meta: Any = told.get("_meta") or {}
        places: tuple[Any, ...] = (
            told.get("capabilities"),
            meta.get(CLIENT_CAPABILITIES_META_KEY),
        )
        for capabilities in filter(None, places):
            asking: Any = capabilities.get("elicitation")
            if asking is not None:
                asking.pop("url", None)
        await self._stream.send(item)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        """Enter the stream."""
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        """Leave the stream."""
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)
