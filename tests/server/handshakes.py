"""Requests as bytes arrive: raw headers, raw paths, and WebSocket handshakes, without a client."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Any

import attrs

from turnlock.server.app import App

Message = MutableMapping[str, Any]


@attrs.frozen(kw_only=True)
class Heard:
    """What was answered."""

    status: int | None
    headers: dict[str, str]
    body: bytes
    messages: list[Message]


async def ask(
    app: App,
    path: str = "/v1",
    *,
    method: str = "GET",
    headers: Iterable[tuple[str, str]] = (),
    body: bytes = b"",
    socket: bool = False,
    client: str = "127.0.0.1",
) -> Heard:
    """Send one request with these headers alone."""
    raw_path, _, query = path.partition("?")
    scope: dict[str, Any] = {
        "type": "websocket" if socket else "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "ws" if socket else "http",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in headers],
        "path": raw_path,
        "raw_path": raw_path.encode("latin-1"),
        "query_string": query.encode(),
        "server": ("127.0.0.1", 8420),
        "client": (client, 50_000),
        "root_path": "",
        "subprotocols": ["turnlock.v1"],
        "extensions": {"websocket.http.response": {}},
    }
    if socket:
        del scope["method"]
    told: list[Message] = [
        {"type": "websocket.connect"}
        if socket
        else {"type": "http.request", "body": body, "more_body": False}
    ]
    messages: list[Message] = []

    async def receive() -> Message:
        if told:
            return told.pop()
        return {"type": "websocket.disconnect" if socket else "http.disconnect", "code": 1005}

    async def send(message: Message) -> None:
        messages.append(message)

    await app(scope, receive, send)
    start = next((it for it in messages if it["type"].endswith("response.start")), None)
    return Heard(
        status=None if start is None else start["status"],
        headers={}
        if start is None
        else {name.decode(): value.decode("latin-1") for name, value in start["headers"]},
        body=b"".join(it.get("body", b"") for it in messages if it["type"].endswith(".body")),
        messages=messages,
    )
