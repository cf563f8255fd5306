"""`/v1/a2a` as endpoints: JSON-RPC, and the card that says how it is asked (F-82)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.responses import Response

from ...bodies import FOREIGN_LIMIT
from ...face import Face
from ...raw_bodies import read_body
from ...routing import JSON, Asked, Endpoint, Role
from ...sse import EventStream
from ..following import Following
from ..streams import Translated
from . import methods
from .card import PATH, card
from .listing import listed
from .methods import Asking
from .streaming import TaskStream
from .wire import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    NO_EXTENDED_CARD,
    PUSH_NOT_SUPPORTED,
    VERSION_NOT_SUPPORTED,
    Refused,
    failure,
    is_of_request,
    read,
    refused_by,
    result,
)

if TYPE_CHECKING:
    from starlette.types import Send

EVENTS: Final = "text/event-stream"
VERSION: Final = "a2a-version"
VERSIONS: Final = ("1.0",)
_json: Final = msgspec.json.encode


class _Waited(EventStream):
    """The answer to a message that is waited for; whoever has gone is not."""

    def __init__(self, asking: Asking, following: Following, stream: TaskStream) -> None:
        super().__init__(following.subscription)
        self.headers["content-type"] = JSON
        self._asking = asking
        self._following = following
        self._stream = stream

    async def _write(self, send: Send) -> None:
        params = self._asking.request.params
        try:
            at_once = methods.immediate(params)
            await methods.wait(self._following, self._stream, at_once=at_once)
            told = self._told(methods.history_of(params))
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is answered
            told = failure(self._asking.request.id, refused_by(error))
        finally:
            self._following.close()
        await self._start(send)
        await send({"type": "http.response.body", "body": _json(told), "more_body": False})

    def _told(self, history: int | None) -> dict[str, Any]:
        status = self._stream.status
        if status is None:
            raise Refused(INTERNAL_ERROR, "the task cannot be told; ask for it", reason="unknown")
        return result(
            self._asking.request.id, {"task": self._stream.task.told(status, history=history)}
        )


async def _asked(face: Face, asked: Asked) -> Response:
    raw = await read_body(asked.http, longest=FOREIGN_LIMIT, within=face.settings.body)
    name, request = read(raw)
    if isinstance(request, Refused):
        return _answer(failure(name, request))
    asking = Asking(face=face, who=asked.who, agent=asked.query.get("agent"), request=request)
    if asked.http.headers.get(VERSION, "") not in VERSIONS:
        what = f"this agent speaks A2A {', '.join(VERSIONS)}; say so as A2A-Version"
        return _answer(failure(name, Refused(VERSION_NOT_SUPPORTED, what)))
    try:
        return await _method(asking)
    except Exception as error:
        if is_of_request(error):
            raise
        return _answer(failure(name, refused_by(error)))


async def _method(asking: Asking) -> Response:
    name = asking.request.method
    if name in {"SendStreamingMessage", "SubscribeToTask"}:
        if name == "SubscribeToTask":
            following, stream = await methods.subscribe(asking)
        else:
            following, stream = await methods.begin(asking, streams=True)
        return Translated(following, following.begin(stream))
    if name == "SendMessage":
        methods.immediate(asking.request.params)
        methods.history_of(asking.request.params)
        return _Waited(asking, *await methods.begin(asking, streams=False))
    if name in _METHODS:
        return _answer(result(asking.request.id, await _METHODS[name](asking)))
    if "PushNotificationConfig" in name:
        raise Refused(PUSH_NOT_SUPPORTED, "this agent sends no push notifications")
    if name == "GetExtendedAgentCard":
        raise Refused(NO_EXTENDED_CARD, "the card is all that there is")
    raise Refused(METHOD_NOT_FOUND, "there is no such method")


_METHODS: Final[Mapping[str, Callable[[Asking], Awaitable[dict[str, Any]]]]] = {
    "GetTask": methods.get,
    "ListTasks": listed,
    "CancelTask": methods.cancel,
}


def _answer(body: Mapping[str, Any]) -> Response:
    return Response(_json(body), media_type=JSON)


async def _card(face: Face, asked: Asked) -> Response:
    return _answer(card(face, asked.http, asked.query.get("agent")))


ENDPOINTS: Final = (
    Endpoint(
        method="POST",
        path=PATH,
        handler=_asked,
        role=Role.LOOK,
        summary="A request of an A2A client: JSON-RPC (A2A 1.0).",
        produces=(JSON, EVENTS),
        query={"agent": "the agent that new tasks are for"},
        codes=("unsupported_media_type", "too_large"),
    ),
    Endpoint(
        method="GET",
        path=f"{PATH}/.well-known/agent-card.json",
        handler=_card,
        role=Role.LOOK,
        summary="The agent card: what this server offers to clients of A2A.",
        query={"agent": "the agent that it is the card of"},
    ),
)
"""The endpoints of this module."""
