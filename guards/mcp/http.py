"""A server at a URL, over streamable HTTP: the streams of the official client's transport.

That transport answers by itself for a server that cannot be reached, that refuses, or whose answer
nobody can read; and by codes that would mean that nothing was executed. Here such answers become
errors with codes of ours.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from ...models.safe_text import harmless
from ..tested import warn_if_untested
from .asking import VERSION
from .messages import RAN_NOTHING, Message, Unreadable, member
from .pipes import LINE

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

NOT_SENT: Final = -31_990
"""The server could not be reached, or refused by an HTTP status below 500: nothing was executed."""
UNANSWERED: Final = -31_992
"""Whatever else is no answer: an HTTP status from 500 on, an odd body, a connection that broke."""
CONNECT_WITHIN: Final = 30.0
"""Seconds to reach the server, and to send a request; then nothing was sent."""
SILENCE: Final = 300.0
"""Seconds that a server may say nothing at all while it works; then the call is in doubt."""

_REDIRECTED, _REFUSED, _FAILED, _UNAVAILABLE = 300, 400, 500, 503


class Http:
    """A server at a URL, as one end of a proxy."""

    ran_nothing = RAN_NOTHING - {-32_700}  # the transport says so of what it cannot read
    not_sent = frozenset({NOT_SENT})

    def __init__(self, streams: TransportStreams) -> None:
        """Take the streams of the transport."""
        from mcp.shared import inbound  # noqa: PLC0415 - an extra

        self._hearing, self._saying = streams
        self._inbound = inbound
        self._version: str | None = None
        """What was agreed on before 2026-07-28; since then each request names it."""
        self._mirrored: dict[str, Mapping[tuple[str, ...], str]] = {}
        """Arguments that tools want as headers, too."""
        self.why: str | None = None

    async def send(self, message: Message) -> None:
        """Pass a message on. Raises OSError where that is not possible."""
        import anyio  # noqa: PLC0415 - comes with mcp
        from mcp.shared.message import ClientMessageMetadata, SessionMessage  # noqa: PLC0415
        from mcp_types import jsonrpc_message_adapter  # noqa: PLC0415

        try:
            said = jsonrpc_message_adapter.validate_python(dict(message.body), by_name=False)
            await self._saying.send(
                SessionMessage(said, ClientMessageMetadata(headers=self._headers(message)))
            )
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise BrokenPipeError from error
        except ValueError as error:
            raise OSError(f"this is no message of MCP: {error}") from None

    async def messages(self) -> AsyncIterator[Message | Unreadable]:
        """Yield what comes."""
        async for item in self._hearing:
            if isinstance(item, Exception):
                yield Unreadable(str(item))
                continue
            body = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
            self._learn(member(body, "result"))
            yield Message(body)

    async def why_over(self) -> str:
        """Say why."""
        return self.why or "the connection is closed"

    def _learn(self, result: Mapping[str, Any]) -> None:
        version, tools = result.get("protocolVersion"), result.get("tools")
        if isinstance(version, str):
            self._version = version
        for it in cast("list[object]", tools) if isinstance(tools, list) else []:
            tool = member({"it": it}, "it")
            schema = tool.get("inputSchema")
            if self._inbound.find_invalid_x_mcp_header(schema) is None:
                self._mirrored[str(tool.get("name"))] = self._inbound.x_mcp_header_map(schema)

    def _headers(self, message: Message) -> dict[str, str]:
        """Return what the specification wants to see of a message in its HTTP headers."""
        if message.method == "initialize":
            return {}
        version = member(message.params, "_meta").get(VERSION)
        if not isinstance(version, str):
            return {} if self._version is None else {"mcp-protocol-version": self._version}
        found = {"mcp-protocol-version": version, "mcp-method": message.method or ""}
        name = message.params.get(self._inbound.NAME_BEARING_METHODS.get(message.method or "", ""))
        if isinstance(name, str):
            found["mcp-name"] = self._inbound.encode_header_value(name)
            if message.method == "tools/call" and name in self._mirrored:
                arguments = member(message.params, "arguments")
                found |= self._inbound.mcp_param_headers(self._mirrored[name], arguments)
        return found


@asynccontextmanager
async def http(url: str, headers: Mapping[str, str]) -> AsyncGenerator[Http]:
    """Give the server at this URL. The transport's scopes are those of a task of its own.

    Raises ImportError, with what to install.
    """
    try:
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - an extra
    except ImportError as error:
        message = "a server at a URL needs a library: pip install 'turnlock[guard-mcp]'"
        raise ImportError(message) from error
    warn_if_untested("mcp")
    ready: asyncio.Future[Http] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def live() -> None:
        try:
            async with (
                http_client(headers) as client,
                streamable_http_client(url, http_client=client, max_sse_event_size=LINE) as streams,
            ):
                ready.set_result(Http(streams))
                await over.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            else:
                ready.result().why = harmless(f"{type(error).__name__}: {error}", limit=300)
            raise

    living = asyncio.create_task(live())
    try:
        yield await ready
    finally:
        over.set()
        await asyncio.gather(living, return_exceptions=True)


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
