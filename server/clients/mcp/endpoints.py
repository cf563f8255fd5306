"""`/mcp` as endpoints: let in like any request, read strictly, then the SDK's (F-11, F-14)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from starlette.responses import Response

from ....models.errors import InvalidValue
from ....models.strict_json import parse
from ...bodies import FOREIGN_LIMIT
from ...face import Face
from ...problems import Problem
from ...raw_bodies import read_body
from ...routing import JSON, Asked, Endpoint, Role

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from .serving import Asks, Serving

EVENTS: Final = "text/event-stream"


class _Handled(Response):
    """The answer of the SDK to one request; it ends with the server."""

    def __init__(self, serving: Serving, asks: Asks, body: bytes | None) -> None:
        super().__init__()
        self._serving = serving
        self._asks = asks
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parts = [] if self._body is None else [self._body]

        async def received() -> Message:
            if parts:
                return {"type": "http.request", "body": parts.pop(), "more_body": False}
            return await receive()

        begun = whole = False

        async def sent(message: Message) -> None:
            nonlocal begun, whole
            begun = True
            whole |= message["type"] == "http.response.body" and not message.get("more_body")
            await send(message)

        handling = asyncio.create_task(
            self._serving.handle(self._asks, dict(scope), received, sent)
        )
        ending = asyncio.create_task(self._serving.ending.wait())
        try:
            await asyncio.wait({handling, ending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            over = not handling.done()
            handling.cancel()
            await asyncio.gather(handling, ending, return_exceptions=True)
        if not over:
            handling.result()
        elif not begun:
            raise Problem("shutting_down", "this server ends; ask the next one")
        elif not whole:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _serving(face: Face) -> Serving:
    """Return what speaks MCP here. Raises `Problem` where nothing is offered."""
    if face.mcp is None:
        raise Problem("not_found", "this server offers no tools; give it --mcp FILE")
    return face.mcp


async def _posted(face: Face, asked: Asked) -> Response:
    serving = _serving(face)
    body = await read_body(asked.http, longest=FOREIGN_LIMIT, within=face.settings.body)
    try:
        told: object = parse(body)
    except InvalidValue as error:
        raise Problem("invalid_json", f"{error.cause}; {error.fix}", at=error.place) from None
    if isinstance(told, dict) and cast("Mapping[str, Any]", told).get("method") == "tools/call":
        asked.who.check(Role.RUN)
        face.standing.check_goes_on()
    return _handled(face, asked, serving, body)


async def _other(face: Face, asked: Asked) -> Response:
    return _handled(face, asked, _serving(face), None)


def _handled(face: Face, asked: Asked, serving: Serving, body: bytes | None) -> Response:
    from .serving import Asks  # noqa: PLC0415 - an extra's

    return _Handled(serving, Asks(face=face, who=asked.who), body)


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path="/mcp",
        handler=_posted,
        role=Role.LOOK,
        summary="A message of an MCP client: list the tools, call one (streamable HTTP).",
        produces=(JSON, EVENTS),
        codes=("not_found", "forbidden", "invalid_json", "unsupported_media_type", "too_large"),
        statuses=(200, 202),
    ),
    Endpoint(
        method="GET",
        path="/mcp",
        handler=_other,
        role=Role.LOOK,
        summary="The stream of a session of MCP before 2026-07-28.",
        produces=(EVENTS,),
        codes=("not_found",),
    ),
    Endpoint(
        method="DELETE",
        path="/mcp",
        handler=_other,
        role=Role.LOOK,
        summary="End a session of MCP before 2026-07-28.",
        codes=("not_found",),
    ),
)
"""The endpoints of this module."""
