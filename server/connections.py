"""Connections of uvicorn that say how much waits in them to be read, and can be cut (F-43).

An application is not told by ASGI; so the transport stands in the scope, under `TRANSPORT`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from websockets.http11 import Request

TRANSPORT: Final = "turnlock.transport"
"""The key in a scope."""
HIGH_WATER: Final = 32 * 1024
"""Bytes that wait in a connection beyond which nothing more is written to it."""


class Transport(Protocol):
    """What is asked of a connection."""

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait."""
        ...

    def abort(self) -> None:
        """Cut it, and let go what waits."""
        ...


def transport_of(scope: Mapping[str, Any]) -> Transport | None:
    """Return the transport of a request; None where another server serves it."""
    found: Transport | None = scope.get(TRANSPORT)
    return found


class HttpConnection(HttpToolsProtocol):
    """An HTTP connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Bound what waits in it."""
        transport.set_write_buffer_limits(high=HIGH_WATER)
        super().connection_made(transport)

    def on_headers_complete(self) -> None:
        """Have the application find the transport."""
        self.scope[TRANSPORT] = self.transport  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()


class WebSocketConnection(WebSocketsSansIOProtocol):
    """A WebSocket connection."""

    def handle_connect(self, event: Request) -> None:
        """Have the application find the transport."""
        super().handle_connect(event)
        if self.response.status_code == 101:  # noqa: PLR2004 - it is a WebSocket now
            self.transport.set_write_buffer_limits(high=HIGH_WATER)
            self.scope[TRANSPORT] = self.transport  # type: ignore[typeddict-unknown-key]
