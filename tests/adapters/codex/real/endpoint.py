"""A model of ours, on loopback: what Codex asks of the Responses API, answered by a script.

Each request takes the next step of the script; once there is none left, it is told `done`. What was
asked is kept, so that a test may see what a tool's output was when it went to the model.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, TypeAlias

import attrs

Item: TypeAlias = dict[str, Any]
"""One output item of a response."""

PATIENCE: Final = 60.0
"""Seconds that a step waits for its `until`."""


@attrs.frozen(kw_only=True)
class Step:
    """What one request is answered."""

    items: tuple[Item, ...] = ()
    status: int = 200
    """Anything else is the answer of a server that fails, and nothing is streamed."""
    cut: bool = False
    """The stream ends before the response is said to be complete."""
    failed: str | None = None
    """The code of an error with which the response ends."""
    until: threading.Event | None = None
    """Nothing is said before it is set."""


@attrs.frozen(kw_only=True)
class Request:
    """What Codex has asked."""

    path: str
    body: dict[str, Any]

    def outputs(self) -> dict[str, str]:
        """What the tools gave, by call id; of those that share one, the last."""
        return {
            item["call_id"]: item["output"]
            if isinstance(item["output"], str)
            else json.dumps(item["output"])
            for item in self.body.get("input", ())
            if item.get("type", "").endswith("_output")
        }

    def said(self) -> list[str]:
        """What the user's messages say, the context that Codex adds among them."""
        return [
            part.get("text", "")
            for item in self.body.get("input", ())
            if item.get("role") == "user"
            for part in item["content"]
        ]


Script: TypeAlias = Sequence[Step] | Callable[[Request], Step]


def say(text: str) -> Item:
    """A message to the user."""
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }


def call(call_id: str, name: str, arguments: dict[str, Any], *, namespace: str = "") -> Item:
    """A call of a function."""
    told = {"type": "function_call", "call_id": call_id, "name": name}
    return (
        told
        | ({"namespace": namespace} if namespace else {})
        | {"arguments": json.dumps(arguments)}
    )


def command(call_id: str, script: str, *, escalated: bool = True, wait_ms: int = 10_000) -> Item:
    """A shell command; an escalated one asks to run outside of the sandbox, and so for approval."""
    asked = {"sandbox_permissions": "require_escalated", "justification": "may it?"}
    arguments = {"cmd": script, "yield_time_ms": wait_ms} | (asked if escalated else {})
    return call(call_id, "exec_command", arguments)


def custom(call_id: str, name: str, text: str) -> Item:
    """A call of a tool whose argument is text."""
    return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": text}


def patch(call_id: str, path: str, *lines: str) -> Item:
    """A patch that adds a file."""
    added = "".join(f"+{line}\n" for line in lines)
    text = f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch"
    return custom(call_id, "apply_patch", text)


def step(*items: Item, **how: Any) -> Step:
    """A response with these items."""
    return Step(items=items, **how)


class Endpoint:
    """It listens until it is closed; `url` is what Codex is given."""

    def __init__(self, script: Script = ()) -> None:
        self.asked: list[Request] = []
        self._script = script
        self._steps = iter(()) if callable(script) else iter(script)
        self._numbers = itertools.count(1)
        self._heard = threading.Condition()
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Its base, as `base_url` has it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def play(self, script: Script) -> None:
        """Answer what comes next by another script."""
        with self._heard:
            self._script = script
            self._steps = iter(()) if callable(script) else iter(script)

    def wait(self, count: int, *, seconds: float = PATIENCE) -> list[Request]:
        """Return what was asked, once it was asked so many times."""
        with self._heard:
            if not self._heard.wait_for(lambda: len(self.asked) >= count, seconds):
                raise TimeoutError(
                    f"Codex has asked the model {len(self.asked)} times, not {count}"
                )
            return list(self.asked)

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def take(self, request: Request) -> tuple[int, Step]:
        """Keep what was asked; return the number of the answer, and the answer."""
        with self._heard:
            self.asked.append(request)
            self._heard.notify_all()
            script = self._script
            if callable(script):
                return next(self._numbers), script(request)
            return next(self._numbers), next(self._steps, step(say("done")))


@contextmanager
def answering(script: Script = ()) -> Generator[Endpoint]:
    """Listen for as long as this holds."""
    endpoint = Endpoint(script)
    try:
        yield endpoint
    finally:
        endpoint.close()


def events(number: int, answer: Step) -> Iterator[dict[str, Any]]:
    """Yield what a response streams."""
    name = f"resp-{number}"
    yield {"type": "response.created", "response": {"id": name}}
    for index, item in enumerate(answer.items):
        if item["type"] == "message":
            empty: Item = item | {"id": f"msg-{number}-{index}", "content": []}
            yield {"type": "response.output_item.added", "output_index": index, "item": empty}
            for part in item["content"]:
                yield {
                    "type": "response.output_text.delta",
                    "item_id": empty["id"],
                    "output_index": index,
                    "content_index": 0,
                    "delta": part["text"],
                }
            item = item | {"id": empty["id"]}  # noqa: PLW2901 – the same item, now named
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    if answer.cut:
        return
    if answer.failed is not None:
        error = {"code": answer.failed, "message": f"the model fails: {answer.failed}"}
        yield {"type": "response.failed", "response": {"id": name, "error": error}}
        return
    none: dict[str, Any] = {
        "input_tokens": 0,
        "input_tokens_details": None,
        "output_tokens": 0,
        "output_tokens_details": None,
        "total_tokens": 0,
    }
    yield {"type": "response.completed", "response": {"id": name, "output": [], "usage": none}}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 – the base names it so
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer the list of models, which is empty."""
        self._json(200, {"models": [], "data": []})

    def do_POST(self) -> None:
        """Answer what the script says."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if not self.path.endswith("/responses"):
            self._json(404, {"error": {"message": f"{self.path} is not here"}})
            return
        assert isinstance(self.server, _Server)
        number, answer = self.server.endpoint.take(Request(path=self.path, body=json.loads(body)))
        if answer.until is not None:
            answer.until.wait(PATIENCE)
        if answer.status != 200:
            self._json(answer.status, {"error": {"message": f"the model says {answer.status}"}})
            return
        try:
            self._stream(number, answer)
        except OSError:  # Codex went away, or was killed
            self.close_connection = True

    def _stream(self, number: int, answer: Step) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events(number, answer):
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            self.wfile.write(data.encode())
            self.wfile.flush()

    def _json(self, status: int, told: dict[str, Any]) -> None:
        data = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(data)
