"""A server as a program: its pipes as the streams of the official client.

The client's own transport neither bounds a line, nor sees that a program has died whose children
hold its pipes, nor says what it wrote last. This one does; what is said over it is the client's.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from ...runtime.log import logger
from .declared import McpServer

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

_log = logger(__name__)

LINE: Final = 16 << 20
"""Bytes of one message of a server; one that sends more has its connection ended."""
GARBAGE: Final = 100
"""Lines that are no messages; a server that writes more has its connection ended."""
LAST_WORDS: Final = 10
"""Lines of its standard error that are remembered, for the message when it dies."""
ENDING: Final = 2.0
"""Seconds that it has to end when its input is closed, and again after SIGTERM."""
LOOK: Final = 0.2
"""Seconds after which is looked whether it lives: its children may hold its pipes."""


class Program:
    """One process of a server, from its start to its end."""

    def __init__(self, name: str, server: McpServer, *, ended: Callable[[], None]) -> None:
        """Prepare; `ended` is called once nothing more can be heard of it."""
        self._name = name
        self._server = server
        self._ended = ended
        self._why: str | None = None
        self._last_words: deque[str] = deque(maxlen=LAST_WORDS)
        self._process: asyncio.subprocess.Process | None = None
        self.over = False
        """Whether nothing more can be heard of it, by no doing of ours."""
        self._ending = False

    @property
    def pid(self) -> int | None:
        """The process, as long as it lives."""
        process = self._process
        return None if process is None or process.returncode is not None else process.pid

    async def exited(self) -> None:
        """Wait a little for its end, after which more is known of why."""
        if self._process is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await _exited(self._process, look=0.01)

    def why_over(self) -> str:
        """Say what became of it."""
        process = self._process
        why = self._why
        if why is None and process is not None and process.returncode is not None:
            code = process.returncode
            why = f"it was ended by signal {-code}" if code < 0 else f"it ended with code {code}"
        return why or "it closed its pipes"

    def last_words(self) -> str:
        """Return what it wrote to its standard error last: for who started it, not for models."""
        return "; its last words: " + " / ".join(self._last_words) if self._last_words else ""

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[TransportStreams]:
        """Start it, and end it afterwards, with its process group where it does not end by itself.

        Raises OSError where it cannot be started.
        """
        import anyio  # noqa: PLC0415 - comes with mcp
        from mcp.client.stdio import get_default_environment  # noqa: PLC0415 - an extra

        server = self._server
        process = self._process = await asyncio.create_subprocess_exec(
            *server.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**get_default_environment(), **server.env},
            cwd=server.cwd,
            limit=LINE,
            start_new_session=True,
        )
        heard, hearing = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
        saying, said = anyio.create_memory_object_stream["SessionMessage"](0)
        pipes = [
            asyncio.create_task(work, name=f"mcp server {self._name}")
            for work in (
                self._read(process, heard),
                self._write(process, said, heard),
                self._watch(process, heard),
            )
        ]
        errors = asyncio.create_task(self._listen_to_errors(process))
        try:
            yield hearing, saying
        finally:
            self._ending = True
            saying.close()
            hearing.close()
            try:
                await self._end(process)
                await asyncio.wait({errors}, timeout=LOOK)  # its last words
            finally:  # whoever ends it may be cancelled meanwhile
                for pipe in (*pipes, errors):
                    pipe.cancel()
                for stream in (heard, hearing, saying, said):
                    stream.close()
                close_pipes(process)
                await asyncio.gather(*pipes, errors, return_exceptions=True)

    async def _read(
        self,
        process: asyncio.subprocess.Process,
        heard: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        """Pass on what it says, until it says no more or what is no message."""
        import anyio  # noqa: PLC0415 - comes with mcp
        from mcp.shared.message import SessionMessage  # noqa: PLC0415 - an extra
        from mcp_types import jsonrpc_message_adapter  # noqa: PLC0415 - an extra

        output, garbage = process.stdout, 0
        if output is None:
            raise AssertionError(process)
        try:
            while line := await output.readline():
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    garbage += bool(line.strip())
                    if garbage == 1:
                        _log.warning("MCP server %s wrote what is no message: %r", self._name, line)
                    if garbage > GARBAGE:
                        self._why = (
                            f"it wrote more than {GARBAGE} lines that are no messages to its"
                            " standard output, where only MCP belongs; have it log to its standard"
                            " error"
                        )
                        break
                else:
                    await heard.send(SessionMessage(message))
        except ValueError:  # what readline raises for a line beyond its limit
            self._why = f"it sent a message of more than {LINE:,} bytes"
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # nobody listens any more
        finally:
            self._is_over(heard)

    async def _write(
        self,
        process: asyncio.subprocess.Process,
        said: MemoryObjectReceiveStream[SessionMessage],
        heard: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        if process.stdin is None:
            raise AssertionError(process)
        try:
            async for it in said:
                text = it.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()
        except OSError:  # it reads no more: it may live on, but nothing can be asked of it
            await asyncio.sleep(LOOK)  # what it said before is read first
            self._is_over(heard)

    async def _listen_to_errors(self, process: asyncio.subprocess.Process) -> None:
        """Remember what it writes to its standard error, and log it."""
        if process.stderr is None:
            raise AssertionError(process)
        while True:
            try:
                line = await process.stderr.readline()
            except ValueError:
                continue
            if not line:
                return
            text = line[:1_000].decode(errors="replace").strip()
            self._last_words.append(text[:200])
            _log.info("MCP server %s: %s", self._name, text)

    async def _watch(
        self,
        process: asyncio.subprocess.Process,
        heard: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        """Notice that it is gone, though what it started may hold its pipes open."""
        await _exited(process, look=LOOK)
        await asyncio.sleep(LOOK)  # what it said before is read first
        self._is_over(heard)

    def _is_over(self, heard: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        if not self.over and not self._ending:
            self.over = True
            self._ended()
        heard.close()

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Close its input, then ask, then kill: it, and what else is in its process group.

        Whoever waits for that and is cancelled leaves nothing behind: it is killed at once.
        """
        if process.stdin is not None:
            process.stdin.close()
        try:
            if await _gone(process):
                return
            for number in (signal.SIGTERM, signal.SIGKILL):
                _signal(process, number)
                if await _gone(process):
                    return
        except asyncio.CancelledError:
            _signal(process, signal.SIGKILL)
            raise
        _log.error("MCP server %s (process %d) cannot be ended", self._name, process.pid)


async def _exited(process: asyncio.subprocess.Process, *, look: float) -> None:
    """Wait for its end alone: `wait` would wait for the pipes that its children hold, too."""
    while process.returncode is None:  # noqa: ASYNC110 - nothing else tells
        await asyncio.sleep(look)


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


async def _gone(process: asyncio.subprocess.Process) -> bool:
    """Wait for its end, at most `ENDING`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(ENDING):
            await _exited(process, look=0.01)
    return process.returncode is not None


def close_pipes(process: asyncio.subprocess.Process) -> None:
    """Let go of pipes that a child of it holds still; `Process` offers nothing for that.

    Each by itself: to close the whole would reap it, and who watches it could not say how it ended.
    """
    transport: asyncio.SubprocessTransport | None = getattr(process, "_transport", None)
    for end in (0, 1, 2):
        pipe = None if transport is None else transport.get_pipe_transport(end)
        if pipe is not None:
            pipe.close()
