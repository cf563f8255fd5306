"""The server as a process: listening, signals, and an end in which nothing is lost (S-97, F-45)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from typing import Final

import uvicorn

from ..runtime.log import logger, through_the_door
from .app import App
from .listening import CONNECTIONS, IDLE, Connection, Socket

_log = logger(__name__)

LEFT: Final = 3
"""Seconds in which connections have to end once their streams have."""
TICK: Final = 0.01
FAREWELL: Final = 100
"""Ticks, in seconds, in which streams are told that the server ends."""
_FILES: Final = 4 * CONNECTIONS
"""Files that may be open: connections, the journal's, those of tools."""
_MESSAGE: Final = 1024 * 1024
"""Bytes of a WebSocket's message."""


class Server(uvicorn.Server):
    """uvicorn's, whose streams end before it waits for connections (F-45)."""

    def __init__(self, app: App, started: Callable[[], None]) -> None:
        """Prepare to serve it; `started` is told once connections are taken."""
        self._app: Final = app
        self._tell: Final = started
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws=Socket,
                ws_max_size=_MESSAGE,
                ws_per_message_deflate=False,
                loop="asyncio",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=int(IDLE),
                timeout_graceful_shutdown=LEFT,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to `serve`: uvicorn would raise them again before sessions have ended."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take connections, and say so."""
        await super().startup(sockets)
        self._tell()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, end the streams, then wait for the connections."""
        for it in self.servers:
            it.close()
        self._app.face.hub.close()
        if self._app.face.mcp is not None:
            self._app.face.mcp.ending.set()
        for _ in range(FAREWELL):
            if not self._app.face.hub.subscribers:
                break
            await asyncio.sleep(TICK)  # uvicorn's own word to them would come before the hub's
        await super().shutdown(sockets)

    def stop(self) -> None:
        """Begin to end: nothing more is commanded."""
        self._app.face.standing.is_stopping = True
        self.should_exit = True


@contextlib.contextmanager
def signals(stopping: asyncio.Event, again: asyncio.Event) -> Generator[None]:
    """Have the first SIGINT or SIGTERM stop, the second end at once, and SIGHUP do it `again`."""
    loop = asyncio.get_running_loop()

    def heard(number: int) -> None:
        if stopping.is_set():
            os._exit(128 + number)  # at once: what is kept is kept, what ran is in doubt
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, heard, number)
    loop.add_signal_handler(signal.SIGHUP, again.set)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)


async def serve(
    app: App,
    sockets: Sequence[socket.socket],
    *,
    until: asyncio.Event,
    started: Callable[[], None] = lambda: None,
) -> None:
    """Serve on sockets that listen; `started` is told once connections are taken.

    They are closed in the end.
    """
    through_the_door("uvicorn", only_warnings=True)  # it tells handshakes, queries and all
    through_the_door("websockets")
    _allow_files()
    server = Server(app, started)
    serving = asyncio.create_task(server.serve(sockets=list(sockets)))
    stopping = asyncio.create_task(until.wait())
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        server.stop()
        await serving
        await app.face.readiness.close()


def _allow_files() -> None:
    """Have as many files open as connections need, as far as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < _FILES:
        _log.warning(
            "only %d files may be open at once: give more (LimitNOFILE, ulimit -n)", wanted
        )
