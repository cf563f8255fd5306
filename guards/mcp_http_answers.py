"""What a server at a URL answers, with what its transport does not tell apart told apart.

The official transport answers by itself for a server that cannot be reached, that refuses, or whose
answer nobody can read; and by codes that would mean that nothing was executed. Here such answers
become errors with codes of ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from .mcp_pipes import LINE

if TYPE_CHECKING:
    import httpx2

NOT_SENT: Final = -31_990
"""The server could not be reached, or refused by an HTTP status below 500: nothing was executed."""
UNANSWERED: Final = -31_992
"""Whatever else is no answer: an HTTP status from 500 on, an odd body, a connection that broke."""
CONNECT_WITHIN: Final = 30.0
"""Seconds to reach the server, and to send a request; then nothing was sent."""
SILENCE: Final = 300.0
"""Seconds that a server may say nothing at all while it works; then the call is in doubt."""

_REDIRECTED, _REFUSED, _FAILED, _UNAVAILABLE = 300, 400, 500, 503


def http_client(headers: Mapping[str, str]) -> httpx2.AsyncClient:
    """Return the client that the transport is given."""
    import httpx2  # noqa: PLC0415 - comes with mcp

    class Client(httpx2.AsyncClient):
        async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:  # noqa: ANN401 - as its base has it
            if request.method != "POST" or not _is_request(request.content):
                return await super().send(request, **how)
            try:
                return await _told_apart(request, await super().send(request, **how))
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as failed:
                why = f"it could not be reached ({type(failed).__name__}: {failed})"
                return _error(request, NOT_SENT, why)
            except httpx2.TransportError as failed:
                why = f"the connection broke ({type(failed).__name__}: {failed})"
                return _error(request, UNANSWERED, why)

    return Client(headers=dict(headers), timeout=httpx2.Timeout(CONNECT_WITHIN, read=SILENCE))


def _error(request: httpx2.Request, code: int, why: str) -> httpx2.Response:
    import httpx2  # noqa: PLC0415 - comes with mcp

    said = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": why}}
    return httpx2.Response(_UNAVAILABLE, json=said, request=request)


async def _told_apart(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    import httpx2  # noqa: PLC0415 - comes with mcp

    status = response.status_code
    kind = response.headers.get("content-type", "").lower()
    if _REDIRECTED <= status < _REFUSED or kind.startswith("text/event-stream"):
        return response
    body = await _body(response)
    if body is None:
        return _error(request, UNANSWERED, f"an answer of more than {LINE:,} bytes")
    if not kind.startswith("application/json") or not _is_response(body):
        code = NOT_SENT if _REFUSED <= status < _FAILED else UNANSWERED
        return _error(request, code, f"HTTP {status} {response.reason_phrase}")
    kept = {
        name: value
        for name, value in response.headers.items()
        if name not in {"content-encoding", "content-length", "transfer-encoding"}
    }
    return httpx2.Response(status, headers=kept, content=body, request=request)


async def _body(response: httpx2.Response) -> bytes | None:
    """Read an answer; None: it is too large."""
    body = bytearray()
    try:
        async for some in response.aiter_bytes():
            body += some
            if len(body) > LINE:
                return None
    finally:
        await response.aclose()
    return bytes(body)


def _object(content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


def _is_request(content: bytes) -> bool:
    said = _object(content)
    return "id" in said and "method" in said


def _is_response(content: bytes) -> bool:
    said = _object(content)
    return "id" in said and ("result" in said or "error" in said)
