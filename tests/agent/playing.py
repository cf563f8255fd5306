"""A provider on loopback that plays responses byte by byte, for the real clients (W-50).

async with playing(Play(body=recording.body)) as server:
    model = …(base_url=server.url)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs

from .recordings import Recording

PIECE = 1021
"""Bytes that are sent at once, unless told: a prime, so that pieces end anywhere."""


@attrs.frozen(kw_only=True)
class Play:
    """What one request is answered with.

    `cut` is the byte before which it ends: `cleanly`, as a whole response does, or with the
    connection. `hangs` are seconds before the first byte, `pause` seconds after each piece.
    """

    body: bytes
    content_type: str = "text/event-stream"
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str])
    piece: int = PIECE
    cut: int | None = None
    cleanly: bool = True
    hangs: float = 0.0
    pause: float = 0.0

    @classmethod
    def of(cls, recording: Recording, **more: Any) -> Play:
        """Play a recording as it came."""
        return cls(
            body=recording.body,
            content_type=recording.content_type,
            status=recording.status,
            **more,
        )


@attrs.define
class Server:
    """What is played, the last again and again, and what was asked."""

    plays: list[Play]
    url: str = ""
    """Of the host, without a path: each client adds its own."""
    asked: list[Any] = attrs.field(factory=list[Any])
    """The bodies."""
    paths: list[str] = attrs.field(factory=list[str])
    headers: list[dict[str, str]] = attrs.field(factory=list[dict[str, str]])
    """In small letters."""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection's requests until it closes."""
        try:
            while await self._answered(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        self.headers.append(fields)
        self.paths.append(head[0].split(" ")[1])
        self.asked.append(json.loads(body) if body else None)
        play = self.plays.pop(0) if len(self.plays) > 1 else self.plays[0]
        await asyncio.sleep(play.hangs)
        headers = {
            "Content-Type": play.content_type,
            "Transfer-Encoding": "chunked",
            **play.headers,
        }
        lines = [f"HTTP/1.1 {play.status} -", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode())
        for start in range(0, len(whole := play.body[: play.cut]), play.piece):
            part = whole[start : start + play.piece]
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
            await asyncio.sleep(play.pause)  # whoever listens in this process may read it now
        if play.cut is not None and not play.cleanly:
            writer.transport.abort()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


@asynccontextmanager
async def playing(*plays: Play) -> AsyncGenerator[Server]:
    """Serve on loopback until left: the n-th request gets the n-th play."""
    server = Server([*plays])
    connections: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(server.answer(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    serving = await asyncio.start_server(connected, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{serving.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        serving.close()
        for task in [*connections]:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
