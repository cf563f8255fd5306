"""The ends of a proxy, and the one that started it: its own standard input and output.

Messages are lines. The proxy's standard output is the client's alone: whatever else writes to it,
in this process or below it, is sent to the standard error.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, Protocol

from ...models.errors import TurnlockError
from .messages import Message, Unreadable, messages_of

LINE: Final = 16 << 20
"""Bytes of one message; who sends a longer one has its connection ended."""
ENDING: Final = 2.0
"""Seconds that whoever is to read, or to end, has for it."""


class NoPipes(TurnlockError):
    """Nobody can speak MCP by this process's standard input and output."""


class End(Protocol):
    """One side of a proxy."""

    async def send(self, message: Message) -> None:
        """Pass a message on, in order. Raises OSError where nobody reads any more."""
        ...

    def messages(self) -> AsyncIterator[Message | Unreadable]:
        """Yield what comes, until nothing comes any more."""
        ...

    async def why_over(self) -> str:
        """Say why nothing comes any more."""
        ...


class ServerEnd(End, Protocol):
    """The side of a server."""

    ran_nothing: frozenset[int]
    """Errors of JSON-RPC by which it says that it could not even begin."""
    not_sent: frozenset[int]
    """Those by which the way to it says that it has got nothing."""


class Pipes:
    """An end that is two pipes."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, strict: bool
    ) -> None:
        """`strict`: see `messages_of`."""
        self._reader = reader
        self._writer = writer
        self._strict = strict
        self._why: str | None = None

    async def send(self, message: Message) -> None:
        """Write a line."""
        if self._writer.is_closing():
            raise BrokenPipeError
        self._writer.write(message.written())
        await self._writer.drain()

    async def messages(self) -> AsyncGenerator[Message | Unreadable]:
        """Yield what the lines say; empty ones say nothing."""
        while True:
            try:
                line = await self._line()
            except ValueError:  # what readline raises for a line beyond its limit
                self._why = f"it sent a message of more than {LINE:,} bytes"
                return
            except OSError as error:
                self._why = f"its pipe broke ({error.strerror})"
                return
            if not line:
                return
            if not line.strip():
                continue
            try:
                found = messages_of(line, strict=self._strict)
            except Unreadable as unreadable:
                yield unreadable
            else:
                for message in found:
                    yield message

    async def why_over(self) -> str:
        """Say why."""
        return self._why or "it closed its pipes"

    async def _line(self) -> bytes:
        return await self._reader.readline()


@asynccontextmanager
async def standard_pipes() -> AsyncGenerator[Pipes]:
    """Give the client that started this process. Raises `NoPipes` where there is none."""
    if not all(_can_be_heard(it.fileno()) for it in (sys.stdin, sys.stdout)):
        raise NoPipes(
            "standard input and output must be pipes: an MCP client starts this command, and speaks"
            " with it by them"
        )
    loop = asyncio.get_running_loop()
    ours = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what prints is no protocol
    heard, said = os.fdopen(sys.stdin.fileno(), "rb", 0, closefd=False), os.fdopen(ours, "wb", 0)
    reader = asyncio.StreamReader(limit=LINE)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), heard)
    try:
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), said
        )
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
        try:
            yield Pipes(reader, writer, strict=True)
        finally:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(ENDING):
                    await writer.drain()
            writer.close()
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(ENDING):
                    await writer.wait_closed()
    finally:
        reading.close()


def _can_be_heard(file: int) -> bool:
    """Whether an event loop can wait for it: a terminal, too, and no file of a disk."""
    mode = os.fstat(file).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(file)
