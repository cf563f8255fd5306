"""A real server on a port of its own, in the loop of a test, and requests as bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import attrs

from turnlock.server.app import App
from turnlock.server.listening import listen
from turnlock.server.serve import serve


@attrs.frozen
class Listener:
    """A server that listens."""

    port: int
    stopping: asyncio.Event
    serving: asyncio.Task[None]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def exchange(self, raw: bytes) -> bytes:
        """Send bytes, and read until the server closes."""
        reader, writer = await self.connect()
        try:
            writer.write(raw)
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()


@asynccontextmanager
async def listening(app: App, port: int = 0) -> AsyncGenerator[Listener]:
    """Serve until the block is left."""
    sockets = listen(["127.0.0.1"], port)
    port = sockets[0].getsockname()[1]
    stopping, started = asyncio.Event(), asyncio.Event()
    serving = asyncio.create_task(serve(app, sockets, until=stopping, started=started.set))
    await started.wait()
    try:
        yield Listener(port, stopping, serving)
    finally:
        stopping.set()
        await serving
