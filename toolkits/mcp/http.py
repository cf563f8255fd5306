"""A server at a URL: the official client's transport, with what it does not tell apart told apart.

Whether a request was sent at all, and whether the server itself answered or something before it,
decides between a failure and a doubt (W-65). The client ends the whole connection for the first,
and says "Server returned an error response" for the second; and it reads a JSON body whole,
however large. Here such answers become errors of MCP with codes of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from .stdio import LINE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx2
    from mcp.client._transport import TransportStreams

NOT_SENT: Final = -31_990
"""The server could not be reached, so nothing was asked of it."""
REFUSED: Final = -31_991
"""An HTTP status below 500 and no word of MCP: nothing was run."""
UNANSWERED: Final = -31_992
"""An HTTP status from 500 on and no word of MCP, a gateway's perhaps; or an answer too large."""

CONNECT_WITHIN: Final = 30.0
"""Seconds to reach the server, and to send a request; then nothing was sent."""
SILENCE: Final = 300.0
"""Seconds that a server may say nothing at all while it works; then the call is in doubt."""

_UNAVAILABLE: Final = 503
_SERVER_ERROR: Final = 500
_CLIENT_ERROR: Final = 400
_NOT_FOUND: Final = 404  # the client knows what that means of a session


@asynccontextmanager
async def connected(url: str, headers: Mapping[str, str]) -> AsyncGenerator[TransportStreams]:
    """Give the streams of the server at this URL."""
    import httpx2  # noqa: PLC0415 - comes with mcp
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - an extra

    def error(request: httpx2.Request, status: int, code: int, why: str) -> httpx2.Response:
        said = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": why}}
        return httpx2.Response(status, json=said, request=request)

    class Client(httpx2.AsyncClient):
        async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:  # noqa: ANN401 - as its base has it
            try:
                response = await super().send(request, **how)
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as failed:
                why = f"it could not be reached ({type(failed).__name__}: {failed})"
                return error(request, _UNAVAILABLE, NOT_SENT, why)
            status = response.status_code
            if "json" in response.headers.get("content-type", ""):
                body = bytearray()
                async for some in response.aiter_bytes():
                    body += some
                    if len(body) > LINE:
                        await response.aclose()
                        why = f"it sent an answer of more than {LINE:,} bytes"
                        return error(request, _SERVER_ERROR, UNANSWERED, why)
                await response.aclose()
                kept = {
                    name: value
                    for name, value in response.headers.items()
                    if name not in {"content-encoding", "content-length", "transfer-encoding"}
                }
                return httpx2.Response(status, headers=kept, content=bytes(body), request=request)
            if status < _CLIENT_ERROR or status == _NOT_FOUND:
                return response
            await response.aclose()
            code = UNANSWERED if status >= _SERVER_ERROR else REFUSED
            return error(request, status, code, f"HTTP {status} {response.reason_phrase}")

    timeout = httpx2.Timeout(CONNECT_WITHIN, read=SILENCE)
    async with (
        Client(headers=dict(headers), timeout=timeout) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=LINE) as streams,
    ):
        yield streams
