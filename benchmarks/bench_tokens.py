"""A streamed token: what it costs beyond the official client's own work.

A server in another process sends 2,000 tokens of text in one response, each in an event as its
provider sends it. They are read by the official client alone, typed as its users read it; by the
same client as we have it read, which for some gives plain dicts; and as an agent hears a model. The
CPU time of this process is counted, per token; clients are made before.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final

import attrs
from timing import Line, Work, measured, timed_on

from turnlock.agent import Ended, Model, Question, Said, open_model
from turnlock.agent.providers.client import posted

TOKENS: Final = 2_000
BOUND: Final = 50.0
"""Microseconds that a token may cost beyond the client's own work."""


@attrs.frozen(kw_only=True)
class Provider:
    """How a provider streams text, and how its client is read."""

    path: str
    """After the host, in a base URL."""
    body: bytes
    client: Callable[[str], Any]
    """Makes its client, at a base URL."""
    typed: Callable[[Any], AsyncGenerator[Any]]
    """Asks that client, and yields events as its users read them."""
    read: Callable[[Any], AsyncGenerator[Any]]
    """The same, as we have them read."""


def measure(rounds: int) -> list[Line]:
    """Read the same stream in three ways, for each provider."""
    lines: list[Line] = []
    for name, provider in PROVIDERS.items():
        with _served(provider.body) as host:
            url = host + provider.path
            samples = measured(
                rounds,
                {
                    "typed": _work(partial(provider.client, url), provider.typed),
                    "read": _work(partial(provider.client, url), provider.read),
                    "heard": _work(partial(_model, name, url), _heard),
                },
            )
        heard, read = samples["heard"], samples["read"]
        lines += [
            samples["typed"].line(f"{name}: the client, typed"),
            read.line(f"{name}: the client, as we read it"),
            heard.line(f"{name}: a model, heard"),
            heard.less(read).line(f"{name}: beyond the client, as we read it", bound=BOUND),
            heard.over(samples["typed"], f"{name}: a model, over the client typed"),
        ]
    return lines


def _work(make: Callable[[], Any], read: Callable[[Any], AsyncGenerator[Any]]) -> Work:
    return timed_on(TOKENS, make, lambda made: asyncio.run(_drained(read(made))))


async def _drained(events: AsyncGenerator[Any]) -> None:
    number = 0
    async for _ in events:
        number += 1
    if number < TOKENS:
        raise AssertionError(number)


def _model(name: str, url: str) -> Model:
    return open_model(f"{name}:m", base_url=url, api_key="k")


async def _heard(model: Model) -> AsyncGenerator[Said]:
    async for said in model.speak(Question(())):
        yield said
        if isinstance(said, Ended) and said.answer.text != " token" * TOKENS:
            raise AssertionError(said.stop)
    await model.close()


@contextmanager
def _served(body: bytes) -> Generator[str]:
    """Serve one body to whoever asks, from another process; yields its URL."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, body))
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()


def _serve(told: Any, body: bytes) -> None:  # noqa: ANN401 - a connection of a private class
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - as its base
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    told.send(server.server_address[1])
    server.serve_forever()


def _sent(events: Iterable[Any], *, named: bool) -> bytes:
    """Return the events as a server sends them."""
    lines: list[str] = []
    for event in events:
        name = f"event: {event['type']}\n" if named else ""
        lines.append(f"{name}data: {json.dumps(event)}\n\n")
    return "".join(lines).encode()


def _chat() -> bytes:
    def event(delta: Any, reason: str | None = None) -> dict[str, Any]:  # noqa: ANN401 - JSON
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        about = {"object": "chat.completion.chunk", "created": 1717866062, "model": "m"}
        more = {"service_tier": "default", "system_fingerprint": "fp_1", "usage": None}
        return {"id": "chatcmpl-1", **about, **more, "choices": [choice]}

    token = event({"content": " token"})
    first, last = event({"role": "assistant", "content": ""}), event({}, "stop")
    return _sent([first, *[token] * TOKENS, last], named=False)


def _items() -> bytes:
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    token = {"type": "response.output_text.delta", **where, "delta": " token", "logprobs": []}
    part = {"type": "output_text", "text": " token" * TOKENS, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": [item]}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        *[token] * TOKENS,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]
    numbered = ({**event, "sequence_number": number} for number, event in enumerate(events))
    return _sent(numbered, named=True)


def _blocks() -> bytes:
    message = {"type": "message", "id": "msg_1", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 1, "output_tokens": TOKENS}
    block = {"type": "text", "text": ""}
    token = {"type": "text_delta", "text": " token"}
    why = {"stop_reason": "end_turn", "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *[{"type": "content_block_delta", "index": 0, "delta": token}] * TOKENS,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": why, "usage": usage},
        {"type": "message_stop"},
    ]
    return _sent(events, named=True)


def _pieces() -> bytes:
    def piece(*parts: dict[str, str], **more: str) -> dict[str, Any]:
        content = {"parts": parts, "role": "model"}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        about = {"usageMetadata": usage, "modelVersion": "m", "responseId": "r"}
        return {"candidates": [{"content": content, "index": 0, **more}], **about}

    token = piece({"text": " token"})
    return _sent([*[token] * TOKENS, piece(finishReason="STOP")], named=False)


def _openai(url: str) -> Any:  # noqa: ANN401 - of a package that may be missing
    import openai  # noqa: PLC0415 - an extra

    return openai.AsyncOpenAI(base_url=url, api_key="k")


async def _typed_chat(client: Any) -> AsyncGenerator[Any]:  # noqa: ANN401 - as above
    async with client:
        async for it in await client.chat.completions.create(model="m", messages=[], stream=True):
            yield it


async def _typed_items(client: Any) -> AsyncGenerator[Any]:  # noqa: ANN401 - as above
    async with client:
        async for it in await client.responses.create(model="m", input=[], stream=True):
            yield it


async def _read_openai(client: Any) -> AsyncGenerator[Any]:  # noqa: ANN401 - as above
    import openai  # noqa: PLC0415 - an extra

    kind = openai.AsyncStream
    async with client:
        async for it in posted(client, "/x", {}, stream_class=kind, streams=True, as_events=list):
            yield it


def _anthropic(url: str) -> Any:  # noqa: ANN401 - as above
    import anthropic  # noqa: PLC0415 - an extra

    return anthropic.AsyncAnthropic(base_url=url, api_key="k")


async def _typed_anthropic(client: Any) -> AsyncGenerator[Any]:  # noqa: ANN401 - as above
    async with client:
        async for it in await client.messages.create(
            model="m", max_tokens=9, messages=[], stream=True
        ):
            yield it


async def _read_anthropic(client: Any) -> AsyncGenerator[Any]:  # noqa: ANN401 - as above
    import anthropic  # noqa: PLC0415 - an extra

    kind = anthropic.AsyncStream
    async with client:
        async for it in posted(client, "/x", {}, stream_class=kind, streams=True, as_events=list):
            yield it


def _google(url: str) -> Any:  # noqa: ANN401 - as above
    from google import genai  # noqa: PLC0415 - an extra

    return genai.Client(api_key="k", http_options={"base_url": url})


async def _typed_google(client: Any) -> AsyncGenerator[Any]:  # noqa: ANN401 - as above
    async for it in await client.aio.models.generate_content_stream(model="m", contents="go"):
        yield it
    await client.aio.aclose()


PROVIDERS: Final = {
    "openai": Provider(
        path="/v1", body=_chat(), client=_openai, typed=_typed_chat, read=_read_openai
    ),
    "openai-responses": Provider(
        path="/v1", body=_items(), client=_openai, typed=_typed_items, read=_read_openai
    ),
    "anthropic": Provider(
        path="", body=_blocks(), client=_anthropic, typed=_typed_anthropic, read=_read_anthropic
    ),
    "google": Provider(
        path="", body=_pieces(), client=_google, typed=_typed_google, read=_typed_google
    ),
}
