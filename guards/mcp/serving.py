"""A proxy from its start to its end: the pipes are taken, the server is begun, signals heard."""

from __future__ import annotations

import asyncio
import shlex
import signal
from contextlib import AbstractAsyncContextManager

from ...runtime.tools.errors import said
from ..guard import Guard
from .pipes import ServerEnd, standard_pipes
from .program import program
from .proxy import Proxy
from .settings import Settings


def serve(guard: Guard, settings: Settings) -> str | None:
    """Stand between the client that started this process and its server, until one of them ends.

    Returns why, where it was the server.
    """
    return asyncio.run(_serve(guard, settings))


async def _serve(guard: Guard, settings: Settings) -> str | None:
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    name = settings.url or shlex.join(settings.command)
    try:
        async with standard_pipes() as client, _server(settings) as server:
            proxy = Proxy(guard, settings, client=client, server=server)
            running = asyncio.create_task(proxy.run())
            ending = asyncio.create_task(told.wait())
            await asyncio.wait({running, ending}, return_when=asyncio.FIRST_COMPLETED)
            ending.cancel()
            if not running.done():
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                return None
            over = running.result()
            return None if over is None else f"the server {name!r} is gone: {over}"
    except (OSError, ImportError) as error:
        return f"the server {name!r} cannot be used: {said(error)}"


def _server(settings: Settings) -> AbstractAsyncContextManager[ServerEnd]:
    if settings.url is None:
        return program(settings.command)
    from ..tested import warn_if_untested  # noqa: PLC0415 - as above
    from .http import http  # noqa: PLC0415 - its client is an extra

    warn_if_untested("mcp")

    return http(settings.url, settings.headers)
