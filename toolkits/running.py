"""A program that runs: its output while it comes, and the end of its whole process group (W-61)."""

from __future__ import annotations

import codecs
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypedDict

from ..models.errors import TurnlockError
from ..runtime.processes import members
from ..runtime.tools.calling import LOG_LINES, LOG_TEXT, ToolContext
from ..runtime.tools.errors import OutcomeUnknown

KEPT_BYTES: Final = 64 * 1024
"""Bytes of each output that the result holds: the first half of them, and the last."""
TERM_PAUSE: Final = 1.0
"""Seconds between the TERM that asks a process group to end, and the KILL that ends it."""
KILL_PAUSE: Final = 0.5
"""Seconds that the system has to take away what was killed."""
LATE_OUTPUT: Final = 0.2
"""Seconds that output is read for after its process group has ended."""
LOOK: Final = 0.05
"""Seconds from one look at the program to the next while it says nothing."""
CHUNK: Final = 64 * 1024
"""Bytes that are read at once."""
FULL_CHUNK_PAUSE: Final = 0.001
"""Seconds of rest after a full chunk, so that output without end takes no whole core."""
PIECE: Final = LOG_TEXT - 100
"""Characters of a line that are passed on as one text."""
STOPPED_OUTPUT: Final = 700
"""Characters of each output's end that the error of a stopped program repeats."""


class Ran(TypedDict, total=False):
    """What became of a program."""

    exit_code: int
    """What it returned; not there where a signal ended it."""
    ended_by: str
    """The signal that ended it."""
    stdout: str
    stderr: str
    note: str
    """What else is to be known: something goes on that could not be found."""


class CommandStopped(TurnlockError):
    """A program was ended before it had ended by itself; the message says what it had printed."""


class Output:
    """One output: what of it is kept, and what is passed on while it comes."""

    def __init__(self, name: str, log: Callable[[str], None]) -> None:
        """Keep nothing yet; `log` takes what is passed on."""
        self._name = name
        self._log = log
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""

    def feed(self, data: bytes) -> None:
        """Keep it, and pass its lines on; a line without end in pieces."""
        self._size += len(data)
        room = KEPT_BYTES // 2 - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: -KEPT_BYTES // 2]
        *lines, self._line = (self._line + self._decoder.decode(data)).split("\n")
        for line in lines[:LOG_LINES]:
            self._say(line)
        if len(lines) > LOG_LINES:
            self._say(f"(and {len(lines) - LOG_LINES:,} more lines at once)")
        if len(self._line) >= PIECE:
            self.flush()

    def flush(self) -> None:
        """Pass on what has no end of line."""
        line, self._line = self._line, ""
        if line:
            self._say(line)

    def _say(self, line: str) -> None:
        for start in range(0, max(len(line), 1), PIECE):
            self._log(f"{self._name}: {line[start : start + PIECE]}")

    def text(self) -> str:
        """Return what is kept, as text; what is left out is said."""
        left_out = self._size - len(self._head) - len(self._tail)
        between = f"\n… {left_out:,} bytes left out …\n".encode() if left_out else b""
        return (self._head + between + self._tail).decode("utf-8", "replace")


class Running:
    """A program that runs, as the leader of a process group of its own."""

    def __init__(self, process: subprocess.Popen[bytes], context: ToolContext) -> None:
        """Take a program that was just started; both its outputs are pipes."""
        self._process = process
        self._context = context
        self._selector = selectors.DefaultSelector()
        self._outputs: dict[str, Output] = {}
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            if pipe is None:
                raise AssertionError(name)
            self._outputs[name] = output = Output(name, context.log)
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, output)
        self._nap = LOOK / 64
        self._reaped = False
        """Whether the host has taken its exit code away."""

    def ended(self) -> Ran:
        """Wait for it, end what it has left behind, and return what became of it.

        Raises `CommandStopped` if it was asked to stop before, `OutcomeUnknown` if it did not.
        """
        try:
            while not self._has_exited() and not self._context.cancelled:
                self._read(LOOK)
            stopped = not self._has_exited()
            left = bool(members(self._process.pid))
            survivors = self._end_group()
            until = time.monotonic() + LATE_OUTPUT
            while self._selector.get_map() and time.monotonic() < until:
                self._read(LOOK)
            for output in self._outputs.values():
                output.flush()
            notes = self._notes(left=left and not stopped, survivors=survivors)
            if stopped and survivors:
                raise OutcomeUnknown(notes)
            if stopped:
                raise CommandStopped(self._stopped(notes))
            return self._ran(notes)
        finally:
            self._leave()

    def _has_exited(self) -> bool:
        """Whether the program itself has; it is not reaped, so that nobody else gets its id."""
        try:
            found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # the host has its children reaped
            self._reaped = True
            return True
        return found is not None

    def _read(self, wait: float) -> None:
        """Read what is said within so many seconds, once."""
        if not self._selector.get_map():
            time.sleep(min(wait, self._nap))
            self._nap *= 2
            return
        for key, _ in self._selector.select(wait):
            data = os.read(key.fd, CHUNK)
            key.data.feed(data)
            if not data:
                self._selector.unregister(key.fileobj)
            elif len(data) == CHUNK:
                time.sleep(FULL_CHUNK_PAUSE)

    def _end_group(self) -> int:
        """Ask the group to end, then end it; return how many are left of it."""
        for ending, pause in ((signal.SIGTERM, TERM_PAUSE), (signal.SIGKILL, KILL_PAUSE)):
            if not members(self._process.pid):
                return 0
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, ending)
            until = time.monotonic() + pause
            while members(self._process.pid) and time.monotonic() < until:
                self._read(LOOK)
        return len(members(self._process.pid))

    def _notes(self, *, left: bool, survivors: int) -> str:
        notes: list[str] = []
        if survivors:
            notes.append(f"{survivors} processes of its group could not be ended, and go on")
        elif left:
            notes.append("what it had left running in its process group was ended with it")
        if self._selector.get_map():
            notes.append(
                "something that has left its process group holds its output: it was not found, and "
                "may go on"
            )
        return "; ".join(notes)

    def _stopped(self, notes: str) -> str:
        said = [
            f"{name} ended with {_end(output.text())}"
            for name, output in self._outputs.items()
            if output.text()
        ]
        return "; ".join(["its process group was ended", *([notes] if notes else []), *said])

    def _ran(self, notes: str) -> Ran:
        code = self._process.wait()
        ran = Ran(stdout=self._outputs["stdout"].text(), stderr=self._outputs["stderr"].text())
        if self._reaped:
            notes = "; ".join(["its exit code was not found", *filter(None, [notes])])
        elif code < 0:
            ran["ended_by"] = _signal_named(-code)
        else:
            ran["exit_code"] = code
        if notes:
            ran["note"] = notes
        return ran

    def _leave(self) -> None:
        """Leave nothing behind, whatever has happened: no group that runs, no pipe, no zombie."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(KILL_PAUSE)
        self._selector.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


def _signal_named(number: int) -> str:
    known = {it.value: it.name for it in signal.Signals}
    return known.get(number, f"signal {number}")


def _end(text: str) -> str:
    """Return the end of a text, in quotes."""
    return repr(text[-STOPPED_OUTPUT:])
