"""The ASGI application: guard, router, endpoint, answer; whatever fails is a problem (F-5)."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qsl

import attrs
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocket

from ..models.safe_text import harmless
from ..runtime.log import logger
from ..runtime.version import version
from . import bodies
from .face import Face
from .guard import HEADERS, PREFLIGHT
from .openapi import document
from .problems import MEDIA, Problem, problem_of
from .raw_bodies import read_body
from .routing import Asked, Endpoint, Role, Route, Router, Who

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

_log = logger(__name__)
_access = logger(f"{__name__}.access")

MODULES: Final = (
    *("health", "signing_in", "assets", "metrics"),
    *("reading", "pages", "pictures", "deciding", "commands", "sse"),
    *("worlds", "worlds_chats", "worlds_streams"),
    *("clients.agui", "clients.chat", "clients.mcp.endpoints", "clients.a2a.endpoints"),
)
"""Modules beside this one that have ENDPOINTS."""
SOCKETS: Final[Mapping[bytes, str]] = {
    b"/v1/stream": ".websocket",
    b"/v1/chat-ws": ".clients.chat_socket",
}
"""Where a WebSocket is spoken to, and the modules that do it (F-50, F-74)."""
FACES: Final[tuple[str, ...]] = ("agui", "chat", "a2a")
"""The clients of others that every server speaks to (F-1)."""

ServeSocket: TypeAlias = "Callable[[Face, Scope, Receive, Send, Who], Awaitable[None]]"
"""What speaks with a WebSocket that was let in; it accepts it itself."""

_PROBES: Final = frozenset({b"/healthz", b"/readyz"})
"""Asked every few seconds: the log tells when they fail."""
_NOBODY: Final = Who(name="", roles=frozenset())
_PATH: Final = 200
"""Characters of a path in the log."""


def endpoints() -> tuple[Endpoint, ...]:
    """Return the endpoints of all modules."""
    found: list[Endpoint] = []
    for name in MODULES:
        if find_spec(f".{name}", __package__) is not None:
            found += import_module(f".{name}", __package__).ENDPOINTS
    return tuple(found)


def faces(face: Face) -> list[str]:
    """Return which clients of others are spoken to (F-1)."""
    return [*FACES, *(() if face.mcp is None else ("mcp",))]


@attrs.define
class _Heard:
    """What was answered to one request, for the log."""

    scope: Scope
    headers: Mapping[str, str]
    status: int = 0
    is_whole: bool = False
    name: str = ""


class App:
    """The face as an ASGI application."""

    def __init__(self, face: Face, own: Iterable[Endpoint] | None = None) -> None:
        """Serve these endpoints, or all, and what is said of them."""
        self.face: Final = face
        listed = (*(endpoints() if own is None else own), *self._said_of_it())
        self.router: Final = Router(listed)
        self._document: Final = json.dumps(document(listed, version=version())).encode()

    def _said_of_it(self) -> tuple[Endpoint, ...]:
        async def root(_: Face, __: Asked) -> Response:
            return JSONResponse({"turnlock": version(), "api": 1, "faces": faces(self.face)})

        async def described(_: Face, __: Asked) -> Response:
            return Response(self._document, media_type="application/json")

        return (
            Endpoint(
                method="GET", path="/v1", handler=root, role=Role.LOOK, summary="Say what this is."
            ),
            Endpoint(
                method="GET",
                path="/v1/openapi.json",
                handler=described,
                role=Role.LOOK,
                summary="Describe all endpoints.",
            ),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or one handshake and what follows."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        heard = _Heard(scope, HEADERS)
        send = _noting(heard, send)
        try:
            response, who = await self._answer(heard, Request(scope, receive))
            await self._send(response, who, heard, receive, send)
        except ClientDisconnect:
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, it is answered (F-5)
            response = self._told(error)
            if not heard.status:
                await response(scope, receive, send)
        finally:
            _tell(heard, scope["method"], began)

    async def _answer(self, heard: _Heard, request: Request) -> tuple[Response, Who]:
        scope = request.scope
        heard.headers = self.face.guard.check_names(scope)
        if _is_preflight(request) and "Access-Control-Allow-Origin" in heard.headers:
            return Response(status_code=204, headers=PREFLIGHT), _NOBODY
        route = self._routed(request)
        who = _NOBODY
        if isinstance(route, Problem) or route.endpoint.role is not None:
            who = self.face.guard.admit(scope)
            heard.name = who.name
        if isinstance(route, Problem):
            raise route
        role = route.endpoint.role
        if role is not None:
            who.check(role)
        if role not in {None, Role.LOOK}:
            self.face.standing.check_goes_on()
        kind: type[object] | None = route.endpoint.body
        body = (
            None
            if kind is None
            else bodies.parse(
                kind,
                await read_body(
                    request,
                    longest=route.endpoint.longest,
                    within=self.face.settings.body,
                ),
            )
        )
        asked = Asked(ids=route.ids, query=_query(scope), body=body, who=who, http=request)
        return await route.endpoint.handler(self.face, asked), who

    def _routed(self, request: Request) -> Route | Problem:
        """Return where a request goes, or why nowhere: told only to whoever is let in."""
        raw: bytes = request.scope["raw_path"]
        try:
            return self.router.route(request.method, raw, request.headers.get("accept"))
        except Problem as problem:
            return problem

    async def _send(
        self, response: Response, who: Who, heard: _Heard, receive: Receive, send: Send
    ) -> None:
        """Send an answer; a stream ends with the token that asked for it (F-13)."""
        task = asyncio.current_task()
        if type(response) in {Response, JSONResponse} or task is None or who is _NOBODY:
            await response(heard.scope, receive, send)
            return
        ended = False

        def end() -> None:
            nonlocal ended
            ended = True
            task.cancel()

        stop = self.face.tokens.watch(who, end)
        try:
            await response(heard.scope, receive, send)
        except asyncio.CancelledError:
            if not ended or task.uncancel() > 0:
                raise
        finally:
            stop()
        if ended and heard.status and not heard.is_whole:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a handshake in, before it is accepted, as any request (F-14)."""
        began = time.perf_counter()
        heard = _Heard(scope, HEADERS)
        send = _noting(heard, send)
        try:
            heard.headers = self.face.guard.check_names(scope)
            who = self.face.guard.admit(scope)
            heard.name = who.name
            who.check(Role.LOOK)
            serve = _served(scope)
        except Exception as error:  # noqa: BLE001 - as in _http
            await receive()
            await WebSocket(scope, receive, send).send_denial_response(self._told(error))
        else:
            try:
                await serve(self.face, scope, receive, send, who)
            except Exception as error:  # noqa: BLE001 - as in _http
                self._told(error)
                if heard.status and not heard.is_whole:
                    await send({"type": "websocket.close", "code": 1011})
        finally:
            _tell(heard, "WEBSOCKET", began)

    def _told(self, error: Exception) -> Response:
        """Return what is answered for an error; what is a bug stands in the log by its id."""
        problem = problem_of(error)
        if problem.code == "internal_error":
            name = secrets.token_hex(8)
            _log.error("error %s", name, exc_info=error)
            problem = Problem(problem.code, f"{problem}: {name}", extra={"id": name})
        elif str(problem) != str(error):
            _log.warning("%s: %s", problem.code, error)
        self.face.standing.refused[problem.code] += 1
        return Response(
            problem.encoded(), problem.status, headers=problem.headers(), media_type=MEDIA
        )


def _served(scope: Mapping[str, Any]) -> ServeSocket:
    """Return what serves a WebSocket. Raises `Problem` where none is spoken to."""
    module = SOCKETS.get(scope["raw_path"])
    if module is None:
        raise Problem("not_found", "there is no such endpoint")
    found: ServeSocket = import_module(module, __package__).serve
    return found


def _noting(heard: _Heard, send: Send) -> Send:
    """Add the headers that every answer has (F-16), and note what was answered."""

    async def noting(message: Message) -> None:
        kind = message["type"]
        if kind in {"http.response.start", "websocket.http.response.start"}:
            heard.status = int(message["status"])  # an enumeration of the SDK's, perhaps
            message = _with_headers(message, heard.headers)
        elif kind == "websocket.accept":
            heard.status = 101
        elif kind in {"http.response.body", "websocket.http.response.body"}:
            heard.is_whole = not message.get("more_body", False)
        elif kind == "websocket.close":
            heard.is_whole = True
        await send(message)

    return noting


def _with_headers(
    message: MutableMapping[str, Any], headers: Mapping[str, str]
) -> MutableMapping[str, Any]:
    told: list[tuple[bytes, bytes]] = list(message.get("headers", ()))
    present = {name.lower() for name, _ in told}
    more = ((name.lower().encode(), value.encode("latin-1")) for name, value in headers.items())
    return {**message, "headers": told + [it for it in more if it[0] not in present]}


def _tell(heard: _Heard, method: str, began: float) -> None:
    """Say in the log what was asked and answered: no query, no header, nothing that is secret."""
    raw: bytes = heard.scope["raw_path"]
    if raw in _PROBES and heard.status == 200:  # noqa: PLR2004 - HTTP's
        return
    path = harmless(raw.decode("latin-1"), limit=_PATH)
    took = (time.perf_counter() - began) * 1_000
    _access.info("%s %s %d %.0f ms %s", method, path, heard.status, took, heard.name)


def _is_preflight(request: Request) -> bool:
    return request.method == "OPTIONS" and "access-control-request-method" in request.headers


def _query(scope: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of the query. Raises `Problem` for what is none, or stands twice."""
    found: dict[str, str] = {}
    raw: bytes = scope["query_string"]
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=64
        )
    except ValueError:
        raise Problem("bad_request", "the query is no percent-encoded UTF-8 text") from None
    for name, value in pairs:
        if name in found:
            raise Problem("bad_request", "a parameter stands twice", at=f"query.{name}")
        found[name] = value
    return found
