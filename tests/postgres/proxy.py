"""A way to a server that cuts, holds up or loses at a message that a test names.

It has a thread and a loop of its own: a test's loop may stand still meanwhile. What a client has
sent before it went away is passed on all the same, when it is let go: the network does that, too.
"""

from __future__ import annotations

import asyncio
import enum
import re
import struct
import threading
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

import attrs

from .cluster import Cluster

T = TypeVar("T")

SSL: Final = 80_877_103
CANCEL: Final = 80_877_102
GSS: Final = 80_877_104
"""The numbers with which a connection begins that asks for something else than a session."""
_PARTS: Final = (b"P", b"B", b"D", b"E", b"C")
"""Messages that others follow, in the same breath."""
PATIENCE: Final = 60.0


class When(enum.Enum):
    """Where a connection is broken, seen from the message."""

    BEFORE = "before it was sent on"
    SENT = "once it was sent on, whatever becomes of it"
    DONE = "once the server has answered it, before that is passed on"


@attrs.define(eq=False)
class Break:
    """What happens at the next message whose statement has this text."""

    text: re.Pattern[str]
    when: When
    held: bool
    """Whether nothing passes from there on, until it is let go; otherwise the connection is cut."""
    reached: threading.Event = attrs.Factory(threading.Event)
    """Set once it has come to that."""
    over: threading.Event = attrs.Factory(threading.Event)
    """Set once the server has done with that connection, and all that came over it."""
    released: asyncio.Event = attrs.Factory(asyncio.Event)

    async def met(self) -> None:
        """Wait until it has come to that."""
        assert await asyncio.to_thread(self.reached.wait, PATIENCE), f"nobody said {self.text}"


@attrs.define(eq=False)
class _Link:
    """One connection through it."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    statements: dict[bytes, str] = attrs.Factory(dict[bytes, str])
    asked: bool = False
    """Whether the server's next byte is the answer to a question before the session."""
    breaking: Break | None = None
    silent: bool = False
    """Whether nothing of the server is passed on."""
    broken: Break | None = None
    kept: bytes = b""
    """What it has answered meanwhile."""

    def cut(self) -> None:
        """End it on both sides at once."""
        self.client.transport.abort()
        self.server.transport.abort()


@attrs.define(eq=False)
class Proxy:
    """On loopback, at a port of its own; `url` names it instead of the server."""

    server: Cluster
    statements: list[str] = attrs.Factory(list[str])
    """All that were sent through it, in order; one of a prepared statement each time."""
    cancels: int = 0
    """Requests to cancel a statement that came."""
    connections: int = 0
    """That were taken so far."""
    _port: int = 0
    _plans: list[Break] = attrs.Factory(list[Break])
    _links: set[_Link] = attrs.Factory(set[_Link])
    _listening: asyncio.Server | None = None
    _open: asyncio.Event = attrs.Factory(asyncio.Event)
    _loop: asyncio.AbstractEventLoop = attrs.Factory(asyncio.new_event_loop)

    @property
    def url(self) -> str:
        """The server's URL by way of this."""
        return self.server.url.replace(f":{self.server.port}/", f":{self._port}/")

    def at(self, text: str, when: When, *, held: bool = False) -> Break:
        """Break the connection over which a statement with this text comes next, once."""
        plan = Break(re.compile(text, re.DOTALL), when, held)
        self._plans.append(plan)
        return plan

    def release(self, plan: Break) -> None:
        """Let go what is held up there."""
        self._loop.call_soon_threadsafe(plan.released.set)

    def cut(self) -> None:
        """Cut all connections that there are."""
        self._done(self._cut_all())

    def lose(self) -> None:
        """Lose all that is sent from now on, as a network does that drops packets."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def pass_on(self) -> None:
        """Pass on again, what waits, too."""
        self._loop.call_soon_threadsafe(self._open.set)

    def refuse(self) -> None:
        """Cut all, and take nobody, as where no server listens."""
        self._done(self._end())

    def take(self) -> None:
        """Take connections again."""
        self._done(self._listen())

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _cut_all(self) -> None:
        for link in list(self._links):
            link.cut()

    @contextmanager
    def running(self) -> Generator[None]:
        """Take connections as long as this lasts."""
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        self._done(self._listen())
        try:
            yield
        finally:
            self._done(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    async def _listen(self) -> None:
        self._open.set()
        self._listening = await asyncio.start_server(self._take, "127.0.0.1", self._port)
        self._port = self._listening.sockets[0].getsockname()[1]

    async def _end(self) -> None:
        if self._listening is not None:
            self._listening.close()
        await self._cut_all()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError):  # at the end; asyncio would tell of it
            await self._pass(reader, client)

    async def _pass(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            answers, server = await asyncio.open_connection("127.0.0.1", self.server.port)
        except OSError:
            client.transport.abort()
            return
        link = _Link(client, server)
        self._links.add(link)
        asks = asyncio.create_task(self._asks(link, reader))
        try:
            await self._answers(link, answers)
            if link.broken is not None:
                link.broken.over.set()
            if not link.silent:
                link.client.close()
            await asks
        finally:
            asks.cancel()
            self._links.discard(link)
            link.cut()

    async def _asks(self, link: _Link, reader: asyncio.StreamReader) -> None:
        """Pass on what the client says."""
        with suppress(asyncio.IncompleteReadError, OSError):
            while await self._begins(link, reader):
                pass
            while True:
                await self._says(link, await _unit(link, reader))
        with suppress(OSError, RuntimeError):
            link.server.write_eof()

    async def _begins(self, link: _Link, reader: asyncio.StreamReader) -> bool:
        """Pass on one message of those before the session; whether another follows."""
        length = await reader.readexactly(4)
        body = await reader.readexactly(struct.unpack("!I", length)[0] - 4)
        number = struct.unpack("!I", body[:4])[0]
        self.cancels += number == CANCEL
        link.asked = number in {SSL, GSS}
        follows = link.asked
        await self._open.wait()
        link.server.write(length + body)
        return follows

    async def _says(self, link: _Link, unit: _Unit) -> None:
        if unit.text is not None:
            self.statements.append(unit.text)
        link.breaking = self._next(unit.text) if unit.text is not None else None
        plan = link.breaking
        link.silent, link.broken = plan is not None, plan or link.broken
        if plan is not None and plan.when is When.BEFORE:
            plan.reached.set()
            if not plan.held:
                link.cut()
                raise OSError("cut")
            await plan.released.wait()
            link.silent = False
        await self._open.wait()
        link.server.write(unit.messages)
        await link.server.drain()
        if plan is not None and plan.when is When.SENT:
            plan.reached.set()
            if not plan.held:
                link.client.transport.abort()
                raise OSError("cut")

    def _next(self, text: str) -> Break | None:
        """The break that is planned for this statement; it is broken once."""
        plan = next((it for it in self._plans if it.text.search(text)), None)
        if plan is not None:
            self._plans.remove(plan)
        return plan

    async def _answers(self, link: _Link, reader: asyncio.StreamReader) -> None:
        """Pass on what the server says."""
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                kind = await reader.readexactly(1)
                if link.asked:  # one letter is all of the answer
                    message, link.asked = kind, False
                else:
                    message = kind + await _rest(reader)
                await self._open.wait()
                await self._answer(link, kind, message)

    async def _answer(self, link: _Link, kind: bytes, message: bytes) -> None:
        plan = link.breaking
        if link.silent and plan is not None:
            link.kept += message
            if kind != b"Z":
                return
            plan.reached.set()
            if not plan.held:
                link.cut()
                return
            await plan.released.wait()
            link.silent = False
            message, link.kept = link.kept, b""
        link.client.write(message)
        await link.client.drain()


@attrs.frozen
class _Unit:
    """What a client sends at once: a statement, or what goes before or after one."""

    messages: bytes
    text: str | None
    """The statement that is done; None where none is, as when one is prepared."""


async def _unit(link: _Link, reader: asyncio.StreamReader) -> _Unit:
    """Read the next one. All of it is at hand then, whatever becomes of the client."""
    kind, messages = await _message(reader)
    text = _statement(link, kind, messages)
    while kind in _PARTS:
        kind, message = await _message(reader)
        messages += message
        text = _statement(link, kind, message) or text
    return _Unit(messages, text)


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return the letter of the next message, and all of it."""
    kind = await reader.readexactly(1)
    return kind, kind + await _rest(reader)


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """Return what follows the letter of a message: its length, which counts itself, and so much."""
    length = await reader.readexactly(4)
    return length + await reader.readexactly(struct.unpack("!I", length)[0] - 4)


def _statement(link: _Link, kind: bytes, message: bytes) -> str | None:
    """Return the statement that a message has done; those that are prepared are remembered."""
    body = message[5:]
    if kind == b"Q":
        return body.split(b"\0", 1)[0].decode()
    if kind == b"P":
        name, text, _ = body.split(b"\0", 2)
        link.statements[name] = text.decode()
    if kind == b"B":
        return link.statements.get(body.split(b"\0", 2)[1])
    return None


@contextmanager
def proxy(server: Cluster) -> Generator[Proxy]:
    """One before a server, as long as this lasts."""
    made = Proxy(server)
    with made.running():
        yield made
