"""Lines from standard input, without blocking the loop: a terminal, a pipe or a file."""

from __future__ import annotations

import asyncio
import sys
import threading


class Lines:
    """Reads a line when somebody wants one.

    The thread that reads is a daemon: nobody can wake it, and it must not keep the process alive. A
    line that nobody waits for any more belongs to whoever asks next, unless they `forget_typed`.
    """

    def __init__(self) -> None:
        """Read nothing yet."""
        self._reading: asyncio.Future[str | None] | None = None
        self.ended = False
        """Whether standard input has come to its end."""

    async def next(self) -> str | None:
        """Return the next line without its end, None at the end of input."""
        if self.ended:
            return None
        if self._reading is None:
            loop = asyncio.get_running_loop()
            self._reading = loop.create_future()
            threading.Thread(
                target=_read, args=(loop, self._reading), name="turnlock-stdin", daemon=True
            ).start()
        line = await asyncio.shield(self._reading)
        self._reading = None
        self.ended = line is None
        return line


def _read(loop: asyncio.AbstractEventLoop, wanted: asyncio.Future[str | None]) -> None:
    line = None
    try:
        text = "" if sys.stdin is None else sys.stdin.readline()  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller
        line = text.rstrip("\r\n") if text else None
    except (OSError, ValueError):  # closed meanwhile, or no text: as good as its end
        line = None

    def tell() -> None:
        if not wanted.done():
            wanted.set_result(line)

    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:
        return  # the loop is closed: nobody asks any more


def forget_typed() -> None:
    """Throw away what was typed on a terminal before a question is shown: it is no answer to it."""
    if sys.stdin is not None and sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        import termios  # noqa: PLC0415 - where there is a terminal of this kind

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
