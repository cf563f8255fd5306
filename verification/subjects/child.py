"""A command that reads lines and answers lines, and how it ended if it did not."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Final, cast

from ..errors import HarnessFailed, SubjectFailed

MAX_ANSWER: Final = 256 * 1024 * 1024
"""Bytes of one answer (K-6): a request of 64 MiB, whose effects repeat the arguments it brought."""
STDERR_TAIL: Final = 2_000
"""Bytes of what a command last wrote to stderr that an error repeats (K-6)."""
LINES_AHEAD: Final = 4
"""Answers that are read before somebody asks for them; then a babbling command waits (K-6)."""
LAST_WORDS: Final = "; its stderr ended with:"
"""How the first line of an error ends below which stands what a command last wrote to stderr."""
HANGS: Final = "did not answer within"
"""How an error begins that tells of a command that hangs."""
ENDING: Final = 0.2
"""Seconds in which a command ends by itself when its input has ended, or its output; then it is
killed."""


class Child:
    """One running command.

    Three threads keep its pipes moving, so that neither side ever waits for the other to read:
    one writes requests, one reads answers, one reads stderr. They end with the process.
    """

    def __init__(self, command: Sequence[str]) -> None:
        """Start the command, or raise `HarnessFailed`: nobody was asked anything yet."""
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user's own command, without a shell
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # so that what it starts in turn can be killed with it
            )
        except (OSError, ValueError) as error:
            raise HarnessFailed(
                f"{command[0]!r} cannot be started ({getattr(error, 'strerror', None) or error}); "
                "see to that, or give another command, its words as a shell would split them"
            ) from error
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._answers: queue.Queue[bytes] = queue.Queue(LINES_AHEAD)
        self._tail = b""
        self._stopped = False
        self._threads = [
            threading.Thread(target=work, daemon=True)
            for work in (self._write, self._read, self._drain)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, line: bytes) -> None:
        """Have a line written when the command reads it."""
        self._requests.put(line)

    def receive(self, timeout: float) -> bytes:
        """Return the next line; raise `SubjectFailed` if there is none within `timeout` seconds."""
        try:
            line = self._answers.get(timeout=timeout)
        except queue.Empty:
            how = f"{HANGS} {timeout:g} s"
            raise SubjectFailed(how + self.stop(at_once=True)) from None
        if line.endswith(b"\n"):
            return line
        if len(line) > MAX_ANSWER:
            raise SubjectFailed(f"answered more than {MAX_ANSWER} bytes" + self.stop(at_once=True))
        how = "ended amid an answer" if line else "ended without an answer"
        raise SubjectFailed(how + self.stop())

    def stop(self, *, at_once: bool = False) -> str:
        """End the command, and return in words how it ended and what it last said on stderr.

        It may end by itself, because its input ends; after `ENDING` seconds, or at once, it is
        killed with whatever it started.
        """
        process = self._process
        self._requests.put(None)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0 if at_once else ENDING)
        by_itself = process.returncode is not None
        self._kill()
        status = process.wait()
        self._let_go()
        ending = f"; {_ending(status)}" if by_itself else "; it was killed"
        said = self._tail.decode(errors="replace").strip()
        return f"{ending}{LAST_WORDS}\n{said}" if said else ending

    def _kill(self) -> None:
        """Kill it and what it left running: its group lives on as long as one of them does."""
        if os.name == "posix":
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()

    def _let_go(self) -> None:
        """Join the threads, and close the pipes behind them.

        Something that left the group may still hold the other end of a pipe: that one stays open.
        """
        self._stopped = True
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        for thread, pipe in zip(self._threads, pipes, strict=True):
            until = time.monotonic() + ENDING
            while thread.is_alive() and time.monotonic() < until:
                with suppress(queue.Empty):  # it may wait for somebody to take an answer
                    self._answers.get_nowait()
                thread.join(ENDING / 100)
            if not thread.is_alive():
                with suppress(OSError):
                    cast("IO[bytes]", pipe).close()

    def _write(self) -> None:
        stdin = cast("IO[bytes]", self._process.stdin)
        with suppress(OSError):  # it reads no more: why, the reader of its answers will find out
            while (line := self._requests.get()) is not None:
                stdin.write(line)
                stdin.flush()
            stdin.close()

    def _read(self) -> None:
        stdout = cast("IO[bytes]", self._process.stdout)
        whole = True
        while whole and not self._stopped:
            line = stdout.readline(MAX_ANSWER + 1)
            whole = line.endswith(b"\n")
            self._answers.put(line)

    def _drain(self) -> None:
        stderr = cast("IO[bytes]", self._process.stderr)
        while said := os.read(stderr.fileno(), STDERR_TAIL):
            self._tail = (self._tail + said)[-STDERR_TAIL:]


def _ending(status: int) -> str:
    """Say how a process ended: its exit status, or the signal that killed it."""
    if status >= 0:
        return f"exit status {status}"
    return f"killed by signal {-status}"
