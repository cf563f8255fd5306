"""A socket is closed in every state, by either side: nobody's mistake, and nothing is logged."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
from uvicorn.protocols.utils import ClientDisconnected

from turnlock import Call, Run
from turnlock.runtime import Runtime
from turnlock.server import listening as connection
from turnlock.server.app import App
from turnlock.server.hub import Hub
from turnlock.server.routing import Role

from ..runtime.virtual import run, settled
from . import faces, sockets
from .listeners import Listener, listening

GATED = Call(invocation_id="c", tool_name="pay", arguments={}, requires_approval=True)
SAID: tuple[dict[str, Any], ...] = (
    {"type": "runs", "id": "runs"},
    {"type": "subscribe", "id": "run", "run_id": "r1", "after": ""},
    {"type": "subscribe", "id": "no", "run_id": "nobody", "after": ""},
    {"type": "decide", "id": "it", "run_id": "r1", "body": {"turn_id": "t"}},
    {"type": "unsubscribe", "id": "no"},
    {"type": "ping", "id": "ping"},
)


@pytest.fixture(autouse=True)
def nothing_is_logged(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    assert [it.getMessage() for it in caplog.records if it.levelname in {"WARNING", "ERROR"}] == []


async def _served(play: Callable[[App, Runtime], Awaitable[None]]) -> None:
    async with faces.opened() as made, Hub(journal=made.journal, runtime=made.runtime) as hub:
        await made.runtime.open_run(Run(run_id="r1"), on_continue=_taken_on)
        await made.runtime.open_turn("r1", [GATED], turn_id="t")
        await play(App(attrs.evolve(made.face, hub=hub), ()), made.runtime)
        await settled()
        assert hub.subscribers == 0


async def _go_on(runtime: Runtime) -> None:
    """Have the run change."""
    (call,) = runtime.pending("r1")
    await runtime.deny("r1", turn_id=call.turn_id, invocation_id="c")
    await runtime.open_turn("r1", [GATED], turn_id=f"{call.turn_id}+")


async def _taken_on(_: object) -> None:
    """Nobody has a model here."""


def test_f_51_a_client_that_goes_is_no_mistake_wherever_it_goes() -> None:
    """F-51: after any number of characters that were sent, with more still to be said and done."""

    async def play(app: App, runtime: Runtime) -> None:
        for most in range(0, 1_600, 40):
            async with sockets.opened(app, Role.DECIDE, most=most) as socket:
                for said in (*SAID, *SAID):
                    await socket.say(**said)
                await settled()
                await _go_on(runtime)
                await asyncio.sleep(1)

    run(_served(play))


@pytest.mark.parametrize("count", range(len(SAID) + 1))
def test_f_51_a_tab_that_is_closed_is_no_mistake(count: int) -> None:
    """F-51: before anything is answered, and after all is."""

    async def play(app: App, runtime: Runtime) -> None:
        for wait in (0, 2):
            async with sockets.opened(app, Role.DECIDE) as socket:
                for said in SAID[:count]:
                    await socket.say(**said)
                await asyncio.sleep(wait)
            await _go_on(runtime)

    run(_served(play))


def test_f_51_a_client_that_has_gone_when_it_is_let_in_is_no_mistake() -> None:
    async def play(app: App, _: Runtime) -> None:
        async def gone(_message: object) -> None:
            raise OSError

        async def receive() -> dict[str, Any]:
            return {"type": "websocket.connect"}

        await app(sockets.scope_of(Role.LOOK, []), receive, gone)

    run(_served(play))


def test_f_51_what_is_said_after_a_frame_that_is_none_is_no_mistake() -> None:
    """F-51: the server closes at once, while it still answers what came before."""

    async def play(app: App, _: Runtime) -> None:
        async with listening(app) as server:
            heard = await _exchange(server, _framed(b'{"type":"ping"}') * 3 + b"\xff" * 9)
        assert heard.startswith(b"HTTP/1.1 101 ")
        assert b"\x03\xea" in heard  # 1002: no frame

    asyncio.run(_served(play))


def test_f_51_whoever_speaks_into_a_socket_that_is_closing_hears_that_it_is_gone() -> None:
    """F-51: as after the connection's end, and not as of a mistake of who speaks."""
    closing = connection.Socket.__new__(connection.Socket)
    closing.close_sent = True
    with pytest.raises(ClientDisconnected):
        asyncio.run(closing.send({"type": "websocket.send", "text": "late"}))


async def _exchange(server: Listener, frames: bytes) -> bytes:
    """Shake hands, send at once, and read to the end."""
    reader, writer = await server.connect()
    head = (
        f"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        f"Authorization: Bearer {faces.SECRETS[Role.LOOK]}\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    writer.write(head.encode())
    shaken = await reader.readuntil(b"\r\n\r\n")
    writer.write(frames)
    try:
        return shaken + await reader.read()
    finally:
        writer.close()


def _framed(text: bytes) -> bytes:
    """A frame of a client, masked with nothing."""
    return bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text
