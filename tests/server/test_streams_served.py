"""Streams over real connections: uvicorn on the loopback, sockets of ours (section 10)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import uvicorn
import websockets

from turnlock.server.connections import HttpConnection, WebSocketConnection
from turnlock.server.hub import HubSettings
from turnlock.server.routing import Role
from turnlock.server.websocket import PROTOCOL

from . import faces
from .ledgers import WrittenLedgers
from .test_sse import PATH, Events, R, Served, served


@asynccontextmanager
async def listening(
    written: WrittenLedgers, *, settings: HubSettings | None = None
) -> AsyncGenerator[tuple[Served, int]]:
    """The face on a port of the loopback."""
    async with served(written, settings=settings) as it:
        config = uvicorn.Config(
            it.app,
            port=0,
            log_level="critical",
            lifespan="off",
            http=HttpConnection,
            ws=WebSocketConnection,
            ws_max_size=1 << 20,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110 - uvicorn tells it no other way
            await asyncio.sleep(0.005)
        try:
            yield it, server.servers[0].sockets[0].getsockname()[1]
        finally:
            it.hub.close()
            server.should_exit = True
            await serving


def request(port: int, *, last: str = "", query: str = "") -> bytes:
    head = f"GET {PATH}{query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n"
    token = f"Authorization: Bearer {faces.SECRETS[Role.LOOK]}\r\n"
    resumed = f"Last-Event-ID: {last}\r\n" if last else ""
    return f"{head}{token}{resumed}\r\n".encode()


def unchunked(data: bytes) -> bytes:
    """The body of an answer, as far as whole chunks of it have come."""
    _, _, rest = data.partition(b"\r\n\r\n")
    body = b""
    while True:
        size, found, rest = rest.partition(b"\r\n")
        if not found or len(rest) < int(size, 16):
            return body
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]


def test_connections_killed_during_a_flood_lose_nothing() -> None:
    """Section 10, UC-012: cut anywhere, resumed after the last id; nobody is kept of it (S-79)."""

    async def play() -> None:
        written = WrittenLedgers()
        async with listening(written) as (it, port):
            flooding = asyncio.create_task(flood(written))
            got: list[str] = []
            last = ""
            for size in (1, 900, 4_000, 30_000, 100_000, 5_000, 70_000, 10**9):
                events = Events()
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(request(port, last=last))
                data = b""
                async with asyncio.timeout(30):
                    while len(data) < size and events.last_id != "600":
                        data += await reader.read(min(1 << 16, size - len(data)))
                        events = Events()
                        events.feed(unchunked(data))
                writer.transport.abort()
                got += events.cursors
                last = events.last_id or last
                if last == "600" and flooding.done():
                    break
            await flooding
            assert got == [str(n) for n in range(1, 601)]
            async with asyncio.timeout(10):
                while it.hub.subscribers:  # noqa: ASYNC110 - the server sees it in its own time
                    await asyncio.sleep(0.01)

    async def flood(written: WrittenLedgers) -> None:
        for number in range(600):
            written.fact(R, text="x" * (number % 300))
            if number % 10 == 0:
                await asyncio.sleep(0.001)

    asyncio.run(play())


@pytest.mark.parametrize("reads", [False, True])
def test_f_43_who_reads_nothing_is_cut_off_and_who_reads_slowly_is_not(*, reads: bool) -> None:
    """F-43: the connection is closed, though its buffers are full; it delays nobody."""

    async def play() -> None:
        written = WrittenLedgers()
        text = "x" * 50_000
        for _ in range(200):  # more than the kernel keeps of a connection
            written.fact(R, text=text)
        async with listening(written, settings=HubSettings(cut=1.0)) as (it, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 19)
            writer.write(request(port))
            async with asyncio.timeout(30):
                while not it.hub.subscribers:  # noqa: ASYNC110 - it is on its way
                    await asyncio.sleep(0.01)
                if reads:
                    received = 0
                    for _ in range(24):
                        received += len(await reader.read(1 << 18))
                        await asyncio.sleep(0.05)
                    assert (it.hub.counts.cut, it.hub.subscribers) == (0, 1)
                else:
                    while it.hub.subscribers:  # noqa: ASYNC110 - likewise
                        await asyncio.sleep(0.01)
                    assert it.hub.counts.cut == 1
            writer.transport.abort()

    asyncio.run(play())


def test_f_50_a_socket_of_a_real_client() -> None:
    """F-50, F-51: the subprotocol, a kill and a resume; frames of more than 1 MiB close it."""

    async def play() -> None:
        written = WrittenLedgers()
        for _ in range(300):
            written.fact(R)
        async with listening(written) as (it, port):
            headers = {"Authorization": f"Bearer {faces.SECRETS[Role.LOOK]}"}
            url = f"ws://127.0.0.1:{port}/v1/stream"
            got: list[str] = []
            for most in (7, 120, 10**9):
                async with websockets.connect(
                    url, subprotocols=[websockets.Subprotocol(PROTOCOL)], additional_headers=headers
                ) as socket:
                    after = got[-1] if got else ""
                    await socket.send(
                        json.dumps({"type": "subscribe", "id": 1, "run_id": R, "after": after})
                    )
                    heard = 0
                    while heard < most and (not got or got[-1] != "300"):
                        told = json.loads(await socket.recv())
                        if told["type"] == "event":
                            heard += 1
                            got.append(told["data"]["cursor"])
                    socket.transport.abort()
            assert got == [str(n) for n in range(1, 301)]
            async with websockets.connect(
                url, subprotocols=[websockets.Subprotocol(PROTOCOL)], additional_headers=headers
            ) as socket:
                await socket.send("x" * (1 << 21))
                with pytest.raises(websockets.ConnectionClosedError) as closed:
                    await socket.recv()
                assert closed.value.rcvd is not None
                assert closed.value.rcvd.code == 1009
            async with asyncio.timeout(10):
                while it.hub.subscribers:  # noqa: ASYNC110 - the server sees it in its own time
                    await asyncio.sleep(0.01)

    asyncio.run(play())
