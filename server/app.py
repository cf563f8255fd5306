"""The ASGI application: guard, router, endpoint, answer; whatever fails is a problem (F-5)."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, cast

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ..runtime.log import logger
from . import bodies
from .face import Face
from .problems import MEDIA, Problem, problem_of
from .routing import Asked, Endpoint, Route, Router, Who

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_log = logger(__name__)

MODULES: Final = ("reading", "deciding", "commands", "sse")
"""Modules beside this one that have ENDPOINTS."""


def endpoints() -> tuple[Endpoint, ...]:
    """Return all endpoints of the server."""
    found: list[Endpoint] = []
    for name in MODULES:
        if find_spec(f".{name}", __package__) is not None:
            found += import_module(f".{name}", __package__).ENDPOINTS
    return tuple(found)


class App:
    """The face as an ASGI application."""

    def __init__(self, face: Face, own: Iterable[Endpoint] | None = None) -> None:
        """Serve these endpoints, or all."""
        self.face: Final = face
        self.router: Final = Router(endpoints() if own is None else own)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, it is answered (F-5)
            response = self._told(error)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        scope = cast("Any", request.scope)
        route = self.router.route(request.method, scope["raw_path"], request.headers.get("accept"))
        who = self._who(request, route)
        body: object = None
        if route.endpoint.body is not None:
            body = bodies.parse(route.endpoint.body, await _read(request))
        asked = Asked(ids=route.ids, query=_query(request), body=body, who=who, http=request)
        return await route.endpoint.handler(self.face, asked)

    def _who(self, request: Request, route: Route) -> Who:
        role = route.endpoint.role
        if role is None:
            return Who(name="", roles=frozenset())
        kind, _, secret = request.headers.get("authorization", "").partition(" ")
        who = self.face.tokens.find(secret.strip()) if kind.lower() == "bearer" else None
        if who is None:
            raise Problem("unauthenticated", "send a token: Authorization: Bearer …")
        who.check(role)
        return who

    def _told(self, error: Exception) -> Response:
        problem = problem_of(error)
        if problem.status == 500:  # noqa: PLR2004 - HTTP's
            name = secrets.token_hex(8)
            _log.exception("error %s", name, exc_info=error)
            problem = Problem(problem.code, str(problem), extra={"id": name})
        return Response(
            problem.encoded(), problem.status, headers=problem.headers(), media_type=MEDIA
        )


async def _read(request: Request) -> bytes:
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise Problem("unsupported_media_type", "send Content-Type: application/json")
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > bodies.LIMIT:
            raise Problem("too_large", f"a body has at most {bodies.LIMIT:,} bytes")
    return bytes(raw)


def _query(request: Request) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name in found:
            raise Problem("bad_request", "a parameter stands twice", at=f"query.{name}")
        found[name] = value
    return found
