"""One process, and the lines between it and us: bounded, in order, never waited for by the loop.

What it says is read as long as it is taken: beyond `AHEAD` messages that nobody has taken it is not
read further, and then waits itself (section 15). What it writes to standard error is read always,
and its end kept (S-54). A line that is no message, or too long a one, ends it (S-13): nobody knows
what else was lost. So does a line that it does not take (S-42).
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fcntl import ioctl
from struct import unpack
from termios import FIONREAD
from typing import IO, Any, Final, Protocol

import attrs
import msgspec

from ...models.errors import TurnlockError
from ...models.safe_text import harmless_lines
from ...runtime.log import logger
from .messages import Message, NotAMessage, read
from .process import Child, Exited, ProcessName, environment

_log = logger(__name__)

LINE: Final = 16 << 20
"""Bytes of one line of it (section 15)."""
AHEAD: Final = 500
"""Messages that are read before somebody takes them: half of those that are not kept (section 15),
for the session holds as many."""
BYTES_AHEAD: Final = LINE
"""Bytes of them, and of the line that comes: as many as one line may have."""
UNWRITTEN: Final = 4 * LINE
"""Bytes that wait for it to read them; one that lets more wait does not read."""
STDERR: Final = 4 * 1024
"""What is kept of its standard error: the last bytes, or characters (S-54)."""
CHUNK: Final = 64 * 1024
"""Bytes that are read at once."""
FULL_CHUNK_PAUSE: Final = 0.001
"""Seconds of rest after a full chunk of standard error, so that one without end takes no core."""
WRITING: Final = 30.0
"""Seconds in which it reads what is written to it; then it is taken for stalled."""

_ENDED: Final = "it has ended"

_encode: Final = msgspec.json.Encoder().encode


class PipeBroken(TurnlockError):
    """A message that a process did not take, or not whole: it has ended, or is ended for it."""


class Wire(Protocol):
    """What requests and answers pass over: a `Transport`, or what stands for one."""

    @property
    def name(self) -> ProcessName:
        """Which process it is."""
        ...

    @property
    def stderr_tail(self) -> str:
        """The last it wrote to standard error, harmless to look at."""
        ...

    async def read(self) -> Message | None:
        """Return what it says next; None when it says no more. Raises `NotAMessage`."""
        ...

    async def write(self, message: Mapping[str, Any]) -> None:
        """Write a message. Raises `PipeBroken`."""
        ...

    async def end(self, *, grace: float) -> Exited:
        """End it step by step (S-47)."""
        ...

    def kill(self) -> None:
        """End it at once (S-49)."""
        ...


class Transport:
    """A process that is started and spoken to by this event loop alone (S-30)."""

    def __init__(self, child: Child) -> None:
        """Begin to read; the pipes of the child are ours from now on."""
        self._child = child
        self._loop = asyncio.get_running_loop()
        self._lines: deque[bytes | NotAMessage] = deque()
        self._held = 0
        """Bytes of the lines that wait."""
        self._part = bytearray()
        """What was read of a line without its end."""
        self._readable = asyncio.Event()
        """Whether a line waits, or none comes any more."""
        self._over = False
        """Whether none comes any more."""
        self._stderr = bytearray()
        self._unwritten: deque[memoryview] = deque()
        self._waits_unwritten = 0
        self._written = 0
        """Bytes that were written, or given up."""
        self._given = 0
        self._broken: str | None = None
        self._writers: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._reads: dict[int, Callable[[], None]] = {}
        """What is read now, by descriptor, and how."""
        self._in, self._out, self._err = _pipes(child)
        for pipe in (self._in, self._out, self._err):
            os.set_blocking(pipe.fileno(), False)
        self._read_on(self._out, self._hear)
        self._read_on(self._err, self._hear_error)
        child.when_exited(self._has_exited)

    @classmethod
    async def start(
        cls, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str] | None
    ) -> Transport:
        """Start a program with our own variables and these (`environment`). Raises `NotStarted`."""
        variables = environment(os.environ, env or {})
        return cls(await Child.start(command, cwd=cwd, env=variables))

    @property
    def name(self) -> ProcessName:
        """Which process it is."""
        return self._child.name

    @property
    def stderr_tail(self) -> str:
        """The last it wrote to standard error, as text that is harmless to look at."""
        return harmless_lines(self._stderr.decode(errors="replace"))[-STDERR:]

    @property
    def waiting(self) -> int:
        """How many of its messages were read, and not taken: so often `read` does not wait."""
        return len(self._lines)

    @property
    def exited(self) -> asyncio.Event:
        """Set when it itself has ended."""
        return self._child.exited

    async def read(self) -> Message | None:
        """Return what it says next; None when it says no more.

        Raises `NotAMessage` for a line that is none or longer than `LINE`: the process was ended.
        """
        while not self._lines:
            if self._over:
                return None
            self._readable.clear()
            await self._readable.wait()
        line = self._lines.popleft()
        if isinstance(line, NotAMessage):
            raise line
        self._held -= len(line)
        self._read_or_wait()
        try:
            return read(line)
        except NotAMessage:
            self._stop_reading(self._out)
            self._over = True
            self._lines.clear()
            self.kill()
            raise

    async def write(self, message: Mapping[str, Any]) -> None:
        """Write a message, and wait until the process has room for all of it.

        What it has room for is written before this waits. Raises `PipeBroken` where it has ended,
        or does not read: then it is killed, for half a message cannot be taken back. Who stops
        waiting does not know whether it was written.
        """
        if self._broken is None and self._waits_unwritten > UNWRITTEN:
            self._break("it does not read what is written to it")
        if self._broken is not None:
            raise PipeBroken(f"{self.name}: {self._broken}")
        data = _encode(message) + b"\n"
        self._unwritten.append(memoryview(data))
        self._given += len(data)
        self._waits_unwritten += len(data)
        if len(self._unwritten) == 1:
            self._write_on()
        if self._written < self._given or self._broken is not None:
            await self._until_written(self._given)

    async def end(self, *, grace: float) -> Exited:
        """End it: close its input, wait, TERM, 3 s, KILL to its group, then what it left (S-47).

        What it says meanwhile may be read still, and what is there when it ends.
        """
        self._stop_writing("its input was closed")
        try:
            exited = await self._child.end(grace=grace)
        finally:
            self._has_exited()
            self._stop_reading(self._err)
            self._child.close_pipes()
        return attrs.evolve(exited, said=self.stderr_tail)

    def kill(self) -> None:
        """End it at once (S-49). Who can wait calls `end` afterwards: it says what came of it."""
        self._stop_writing("it was killed")
        self._child.kill()

    # What it says

    def _hear(self) -> None:
        """Read what is there, once."""
        data = self._some_of(self._out)
        if data is None:
            return
        if not data:
            self._says_no_more()
            return
        self._take(data)
        self._read_or_wait()

    def _take(self, data: bytes) -> None:
        """Keep the lines of what was read."""
        *whole, rest = data.split(b"\n")
        if whole:
            whole[0] = bytes(self._part) + whole[0]
            self._part.clear()
            for line in whole:
                self._keep(line)
        self._part += rest
        if len(self._part) > LINE:
            self._keep(bytes(self._part))

    def _keep(self, line: bytes) -> None:
        if len(line) > LINE and not self._over:
            self._lines.append(NotAMessage(f"a line of more than {LINE:,} bytes"))
            self._part = bytearray()
            self._says_no_more()
            self.kill()
        elif line.strip() and not self._over:
            self._lines.append(line)
            self._held += len(line)
        self._readable.set()

    def _says_no_more(self) -> None:
        """Take it that nothing more comes; what was not ended by a line end may be whole yet."""
        if self._over:
            return
        self._stop_reading(self._out)
        rest, self._part = bytes(self._part), bytearray()
        if rest.strip():
            try:
                read(rest)
            except NotAMessage:
                _log.warning("%s ended amid a line of %d bytes", self.name, len(rest))
            else:
                self._keep(rest)
        self._over = True
        self._readable.set()

    def _read_or_wait(self) -> None:
        """Read it further, unless as much waits to be taken as may."""
        if self._over:
            return
        if len(self._lines) >= AHEAD or self._held >= BYTES_AHEAD:
            self._stop_reading(self._out)
        else:
            self._read_on(self._out, self._hear)

    def _has_exited(self) -> None:
        """Read what it has left in its pipes, which others may hold open for ever."""
        self._stop_writing(_ENDED)
        for pipe, take in ((self._err, self._take_error), (self._out, self._take)):
            if not pipe.closed and (pipe is self._err or not self._over):
                there = unpack("i", ioctl(pipe.fileno(), FIONREAD, b"\0" * 4))[0]
                while there > 0 and (data := self._some_of(pipe, there)):
                    there -= len(data)
                    take(data)
        self._says_no_more()

    # What it writes to standard error

    def _hear_error(self) -> None:
        data = self._some_of(self._err)
        if data is None:
            return
        self._take_error(data)
        if not data:
            self._stop_reading(self._err)
        elif len(data) == CHUNK:
            self._stop_reading(self._err)
            self._loop.call_later(FULL_CHUNK_PAUSE, self._read_on, self._err, self._hear_error)

    def _take_error(self, data: bytes) -> None:
        self._stderr += data
        del self._stderr[:-STDERR]

    # What is said to it

    def _write_on(self) -> None:
        """Write as much as it has room for."""
        while self._unwritten:
            data = self._unwritten[0]
            try:
                count = os.write(self._in.fileno(), data)
            except BlockingIOError:
                self._loop.add_writer(self._in.fileno(), self._write_on)
                return
            except (OSError, ValueError) as error:
                ended = self.exited.is_set()  # and nobody has been told yet
                self._break(_ENDED if ended else f"it reads no more ({error})")
                return
            self._written += count
            self._waits_unwritten -= count
            if count < len(data):
                self._unwritten[0] = data[count:]
            else:
                self._unwritten.popleft()
            while self._writers and self._writers[0][0] <= self._written:
                _, writer = self._writers.popleft()
                if not writer.done():
                    writer.set_result(None)
        self._loop.remove_writer(self._in.fileno())

    async def _until_written(self, position: int) -> None:
        if self._broken is None:
            writer = self._loop.create_future()
            self._writers.append((position, writer))
            try:
                async with asyncio.timeout(WRITING):
                    await writer
            except TimeoutError:
                self._break(f"it has not read what was written to it for {WRITING:g} s")
        if self._broken is not None and self._written < position:
            raise PipeBroken(f"{self.name}: {self._broken}")

    def _break(self, why: str) -> None:
        """End a process to which nothing can be said any more."""
        self._stop_writing(why)
        self._child.kill()

    def _stop_writing(self, why: str) -> None:
        if self._broken is not None:
            return
        self._broken = why
        self._unwritten.clear()
        if not self._in.closed:
            self._loop.remove_writer(self._in.fileno())
            with suppress(OSError):
                self._in.close()
        while self._writers:
            _, writer = self._writers.popleft()
            if not writer.done():
                writer.set_result(None)

    # The pipes

    def _some_of(self, pipe: IO[bytes], size: int = CHUNK) -> bytes | None:
        """Read what is there; None where nothing is, or it was let go of."""
        try:
            return os.read(pipe.fileno(), size)
        except BlockingIOError:
            return None
        except (OSError, ValueError):
            return b""

    def _read_on(self, pipe: IO[bytes], hear: Callable[[], None]) -> None:
        if not pipe.closed and pipe.fileno() not in self._reads:
            self._reads[pipe.fileno()] = hear
            self._loop.add_reader(pipe.fileno(), hear)

    def _stop_reading(self, pipe: IO[bytes]) -> None:
        if not pipe.closed and self._reads.pop(pipe.fileno(), None) is not None:
            self._loop.remove_reader(pipe.fileno())


def _pipes(child: Child) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    process = child.process
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise AssertionError(child.name)
    return process.stdin, process.stdout, process.stderr
