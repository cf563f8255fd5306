"""A server at a URL, over streamable HTTP: the streams of the official client's transport."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from ..models.safe_text import harmless
from .mcp_asking import VERSION
from .mcp_http_answers import NOT_SENT, http_client
from .mcp_messages import RAN_NOTHING, Message, Unreadable, member
from .mcp_pipes import LINE

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams


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
    """Give the server at this URL. The transport's scopes are those of a task of its own."""
    ready: asyncio.Future[Http] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def live() -> None:
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - an extra

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
