"""Connections that never say what they want, and those that say too much (server.md 15)."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress

import attrs
import pytest
from starlette.responses import JSONResponse, Response, StreamingResponse
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from turnlock.models.errors import InvalidValue
from turnlock.server import listening as bounds
from turnlock.server import serve as serving
from turnlock.server.app import App
from turnlock.server.bodies import LIMIT
from turnlock.server.face import Face, ServerSettings
from turnlock.server.hub import Hub
from turnlock.server.listening import addresses, is_local, listen
from turnlock.server.routing import Asked, Endpoint, Role
from turnlock.server.websocket import PROTOCOL

from .faces import SECRETS, opened
from .listeners import Listener, listening

TOKEN = f"Host: localhost\r\nAuthorization: Bearer {SECRETS[Role.DECIDE]}\r\n"


@attrs.frozen(kw_only=True)
class Text:
    text: str


async def said(_: Face, asked: Asked) -> Response:
    return JSONResponse({"length": len(asked.body.text)})


async def streamed(_: Face, __: Asked) -> Response:
    async def lines() -> AsyncGenerator[bytes]:
        yield b"one\n"
        await asyncio.Event().wait()

    return StreamingResponse(lines(), media_type="text/plain")


async def broken(_: Face, __: Asked) -> Response:
    secret = "a secret of the server"  # noqa: S105 - that no answer tells
    raise RuntimeError(secret)


OWN = [
    Endpoint(
        method="POST", path="/v1/say", handler=said, role=Role.DECIDE, summary="Say.", body=Text
    ),
    Endpoint(
        method="GET",
        path="/v1/lines",
        handler=streamed,
        role=Role.LOOK,
        summary="Stream.",
        produces=("text/plain",),
    ),
    Endpoint(method="GET", path="/v1/broken", handler=broken, role=Role.LOOK, summary="Break."),
]


def with_server(play: Callable[[Listener], Awaitable[None]], *, body: float = 30.0) -> None:
    """Do something with a server that listens."""

    async def serve() -> None:
        async with opened(settings=ServerSettings(body=body)) as it:
            app = App(attrs.evolve(it.face, hub=Hub(journal=it.journal)), OWN)
            async with asyncio.timeout(20), listening(app) as server:
                await play(server)

    asyncio.run(serve())


def head(method: str = "GET", path: str = "/v1", *more: str) -> bytes:
    lines = "".join(f"{it}\r\n" for it in more)
    return f"{method} {path} HTTP/1.1\r\n{TOKEN}{lines}\r\n".encode()


def code(raw: bytes) -> str:
    return str(json.loads(raw.partition(b"\r\n\r\n")[2])["title"])


@pytest.mark.parametrize(
    "begins", [b"", b"GET /v1/", b"GET /v1 HTTP/1.1\r\nHost: localhost\r\nX: ", b"\r\n\r\n"]
)
def test_a_head_that_never_comes_is_not_waited_for(
    begins: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slowloris: each byte keeps the connection alive, and the whole head has its time."""
    monkeypatch.setattr(bounds, "HEAD_WITHIN", 0.15)

    async def play(server: Listener) -> None:
        reader, writer = await server.connect()
        writer.write(begins)

        async def drip() -> None:
            while not writer.is_closing():
                writer.write(b"\r\n" if begins.endswith(b"\n") or not begins else b"a")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        dripping.cancel()
        writer.close()

    with_server(play)


def test_a_connection_that_says_nothing_after_an_answer_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "IDLE", 0.1)

    async def play(server: Listener) -> None:
        answer = await server.exchange(head())
        assert answer.startswith(b"HTTP/1.1 200")

    with_server(play)


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /v1 HTTP/1.1\r\nX: " + b"a" * 70_000,
        b"GET /v1 HTTP/1.1\r\n" + b"X: y\r\n" * 20_000,
        b"GET /v1 HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        b"G" * 300_000,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /v1 HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /v1/ü HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
        b"POST /v1/say HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /v1/say HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /v1 HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"GET /v1 HTTP/1.1\nHost: localhost\x00\n\n",
    ],
)
def test_f_5_what_is_no_request_is_a_problem(raw: bytes) -> None:
    async def play(server: Listener) -> None:
        answer = await server.exchange(raw)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400 "), answer  # reset while it wrote
        if answer:
            assert code(answer) == "bad_request"
            assert b"application/problem+json" in answer

    with_server(play)


def test_f_3_an_oversized_body_is_413_however_it_is_sent() -> None:
    """Told before it is read, or as soon as it is too long."""

    async def play(server: Listener) -> None:
        typed = "Content-Type: application/json"
        for length, body in (
            (f"Content-Length: {LIMIT + 1}", b"{"),
            ("Transfer-Encoding: chunked", b"100001\r\n" + b" " * (LIMIT + 1) + b"\r\n"),
        ):
            reader, writer = await server.connect()
            writer.write(head("POST", "/v1/say", typed, length) + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 413 "), answer
            writer.close()
        whole = json.dumps({"text": "a" * (LIMIT - 12)}).encode()
        reader, writer = await server.connect()
        writer.write(head("POST", "/v1/say", typed, f"Content-Length: {LIMIT}") + whole)
        assert len(whole) == LIMIT
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        writer.close()

    with_server(play)


def test_trailers_without_end_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are no body, so no bound of a body holds them."""
    monkeypatch.setattr(bounds, "MESSAGE", 10_000)

    async def play(server: Listener) -> None:
        typed = ("Content-Type: application/json", "Transfer-Encoding: chunked")
        for trailer in (b"X: y\r\n" * 4_000, b"X: " + b"y" * 20_000):
            raw = head("POST", "/v1/say", *typed) + b"1\r\n{\r\n0\r\n" + trailer
            await server.exchange(raw)

    with_server(play)


def test_a_slow_body_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is answered, and the rest of it is let go for a moment, not for ever."""
    monkeypatch.setattr(bounds, "LINGER", 0.1)

    async def play(server: Listener) -> None:
        typed = ("Content-Type: application/json", "Content-Length: 100")
        answer = await server.exchange(head("POST", "/v1/say", *typed) + b"{")
        assert (answer[:12], code(answer)) == (b"HTTP/1.1 400", "bad_request")

    with_server(play, body=0.1)


def test_f_5_a_bug_is_told_by_an_id_that_stands_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play(server: Listener) -> None:
        answer = await server.exchange(head("GET", "/v1/broken", "Connection: close"))
        assert answer.startswith(b"HTTP/1.1 500 ")
        told = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert told["title"] == "internal_error"
        assert b"secret of" not in answer
        assert b"Traceback" not in answer
        assert any(told["id"] in record.getMessage() for record in caplog.records)

    with_server(play)


def test_the_log_of_requests_holds_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    async def play(server: Listener) -> None:
        await server.exchange(
            head("GET", "/v1/a%1b%5b31m?token=secret-in-query", "Connection: close")
        )
        await server.exchange(
            b"GET /v1/stream?token=secret-in-query HTTP/1.1\r\nHost: localhost\r\n"
            b"Cookie: turnlock=secret-in-cookie\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )

    with_server(play)
    told = "\n".join(
        f"{it.name} {it.getMessage()}" for it in caplog.records if it.name.startswith("turnlock")
    )
    assert "GET /v1/a%1b%5b31m 404" in told
    assert "WEBSOCKET /v1/stream 401" in told
    assert [it for it in caplog.records if it.levelname == "ERROR"] == []
    assert "secret-in" not in caplog.text


@pytest.mark.parametrize("more", ["X: y\r\n" * 300, "X: " + "y" * 9_000 + "\r\n"])
def test_a_handshake_that_websockets_does_not_read_ends_without_a_trace(
    more: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(server: Listener) -> None:
        await server.exchange(
            f"GET /v1/stream HTTP/1.1\r\n{TOKEN}{more}Upgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
        )

    with_server(play)
    assert [it for it in caplog.records if it.levelname == "ERROR"] == []


def test_connections_beyond_the_bound_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CONNECTIONS", 2)

    async def play(server: Listener) -> None:
        held = [await server.connect() for _ in range(2)]
        answer = await server.exchange(b"")
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert code(answer) == "overloaded"
        for _, writer in held:
            writer.close()

    with_server(play)


def test_s_97_idle_connections_and_new_ones_end_at_once() -> None:
    async def play(server: Listener) -> None:
        reader, writer = await server.connect()
        writer.write(head())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        server.stopping.set()
        await server.serving
        assert time.monotonic() - began < 3
        with pytest.raises(OSError, match=r"Connect call failed|refused"):
            await server.connect()
        writer.close()

    with_server(play)


def test_f_51_a_socket_is_told_1013_before_the_server_ends() -> None:
    """By the hub, not by uvicorn's 1012."""

    async def play(server: Listener) -> None:
        url = f"ws://localhost:{server.port}/v1/stream"
        token = {"Authorization": f"Bearer {SECRETS[Role.LOOK]}"}
        connecting = connect(url, additional_headers=token, subprotocols=[Subprotocol(PROTOCOL)])
        async with connecting as client:
            await client.send('{"type": "ping"}')
            assert json.loads(await client.recv()) == {"type": "pong"}
            server.stopping.set()
            with pytest.raises(ConnectionClosed):
                await client.recv()
            assert client.close_code == 1013

    with_server(play)


def test_s_97_a_stream_that_does_not_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server ends all the same."""
    monkeypatch.setattr(serving, "LEFT", 1)

    async def play(server: Listener) -> None:
        reader, writer = await server.connect()
        writer.write(head("GET", "/v1/lines"))
        await reader.readuntil(b"one\n")
        began = time.monotonic()
        server.stopping.set()
        await server.serving
        assert time.monotonic() - began < 10
        writer.close()

    with_server(play)


@pytest.mark.parametrize(
    ("hosts", "found", "local"),
    [
        (["127.0.0.1"], ("127.0.0.1",), True),
        (["localhost", "turnlock.example"], ("127.0.0.1",), True),
        (["turnlock.example"], ("127.0.0.1",), True),
        (["::1", "[::1]"], ("::1",), True),
        (["127.0.0.1", "10.0.0.7"], ("127.0.0.1", "10.0.0.7"), False),
        (["0.0.0.0", "turnlock.example"], ("0.0.0.0",), False),  # noqa: S104 - nothing is bound
        (["::"], ("::",), False),
    ],
)
def test_f_10_addresses_among_the_names_are_listened_on(
    hosts: list[str], found: tuple[str, ...], local: bool
) -> None:
    assert (addresses(hosts), is_local(hosts)) == (found, local)


def test_a_port_that_is_taken_is_told_with_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InvalidValue, match="another process listens there"):
            listen(["127.0.0.1"], taken.getsockname()[1])
    with pytest.raises(InvalidValue, match="an address of this machine"):
        listen(["127.0.0.1", "192.0.2.1"], 0)
