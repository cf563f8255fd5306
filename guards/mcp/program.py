"""A server that is a program of ours: started, listened to, and ended with all that it started."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from .messages import RAN_NOTHING
from .pipes import ENDING, LINE, Pipes

LAST_WORDS: Final = 0.3
"""Seconds in which what a program said before its end is still read."""
LOOK: Final = 0.05
"""Seconds after which is looked whether a program lives: its children may hold its pipes."""

_JOURNAL: Final = "TURNLOCK_DB"
"""The variable that names our journal."""


class Program(Pipes):
    """A server that is a program of ours: in a process group of its own, told to end when we do."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Take a process with its input and output as pipes."""
        if process.stdout is None or process.stdin is None:
            raise AssertionError(process)
        super().__init__(process.stdout, process.stdin, strict=False)
        self.process: Final = process
        self.ran_nothing = RAN_NOTHING
        self.not_sent: frozenset[int] = frozenset()
        self._gone: asyncio.Task[None] | None = None

    async def why_over(self) -> str:
        """Say what became of it; its end may come a little after that of its pipes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDING):
                await _exited(self.process)
        code = self.process.returncode
        if self._why is not None or code is None:
            return await super().why_over()
        return f"it was ended by signal {-code}" if code < 0 else f"it ended with code {code}"

    async def _line(self) -> bytes:
        """Return what it says next, or nothing once it is gone: its children may hold its pipes."""
        if self._gone is None:
            self._gone = asyncio.create_task(_exited(self.process))
        line = asyncio.create_task(super()._line())
        try:
            await asyncio.wait({line, self._gone}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({line}, timeout=None if line.done() else LAST_WORDS)
            return line.result() if line.done() else b""
        finally:
            line.cancel()

    def forget(self) -> None:
        """Do not look any more whether it lives."""
        if self._gone is not None:
            self._gone.cancel()


@asynccontextmanager
async def program(command: Sequence[str]) -> AsyncGenerator[Program]:
    """Start a server, and end it afterwards. Raises OSError where it cannot be started.

    It has our environment, our working directory and our standard error. It is not told which
    journal is ours: a URL may hold a password, and whoever may write there decides (D-55).
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE,
        env={name: value for name, value in os.environ.items() if name != _JOURNAL},
        start_new_session=True,
    )
    end = Program(process)
    try:
        yield end
    finally:
        end.forget()
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close its input, then ask, then kill: it, and what else is in its process group."""
    if process.stdin is not None:
        process.stdin.close()
    ways: list[Callable[[], None]] = [
        lambda: os.killpg(process.pid, signal.SIGTERM),
        lambda: os.killpg(process.pid, signal.SIGKILL),
    ]
    for way in (lambda: None, *ways):
        with suppress(ProcessLookupError, PermissionError):
            way()
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDING):
                await _exited(process)
                break
    transport = getattr(process, "_transport", None)  # a child of it may hold its pipes still
    with suppress(PermissionError):
        if transport is not None:
            transport.close()


async def _exited(process: asyncio.subprocess.Process) -> None:
    """Wait for its end alone: `wait` would wait for the pipes that its children hold, too."""
    while process.returncode is None:  # noqa: ASYNC110 - nothing else tells
        await asyncio.sleep(LOOK)
