"""A chat-completions endpoint on loopback: it answers as told, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs


@attrs.frozen
class Reply:
    """What one request is answered with; `hangs` is in seconds."""

    body: Any
    status: int = 200
    hangs: float = 0.0
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str])


def says(text: str | None = None, *calls: dict[str, Any], **more: Any) -> Reply:
    """An honest answer."""
    message: dict[str, Any] = {"role": "assistant", "content": text, **more}
    if calls:
        message["tool_calls"] = list(calls)
    return Reply({"id": "x", "object": "chat.completion", "choices": [{"message": message}]})


def call(arguments: Any = "{}", *, name: str | None = "look", **fields: Any) -> dict[str, Any]:
    """One tool call; `id` among the fields."""
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {"type": "function", "function": function, **fields}


@attrs.define
class Endpoint:
    """The server's side. The last reply is given again and again."""

    replies: list[Reply]
    asked: list[dict[str, Any]] = attrs.field(factory=list[dict[str, Any]])
    keys: list[str | None] = attrs.field(factory=list[str | None])
    url: str = ""

    def next(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@contextmanager
def endpoint(*replies: Reply) -> Generator[Endpoint]:
    """Serve on loopback until left."""
    served = Endpoint([*replies])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            served.asked.append(json.loads(self.rfile.read(length)))
            served.keys.append(self.headers.get("Authorization"))
            reply = served.next()
            time.sleep(reply.hangs)
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as its base has it
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
