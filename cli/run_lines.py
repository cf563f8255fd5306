"""Lines that a person types, and what stands below all output while they do.

`StdinLines` reads a line at a time, from anything. Where standard input and error are a terminal
and prompt_toolkit is installed (extra `run`), `run_bottom` keeps the line that is typed below all
that happens.
"""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from typing import Final, Protocol, Self, TypeAlias, cast

import click
from rich.text import Text

from .asking import forget_typed

Rows: TypeAlias = Callable[[], Sequence[Text]]
"""What is shown below all output now."""

PROMPT: Final = "you: "
"""Stands before what the model is told next."""
LONGEST: Final = 1_000_000
"""Characters of a line; a longer one is refused, not cut."""


class Lines(Protocol):
    """Where a session's lines come from."""

    ended: bool
    """Whether there will be no more."""
    draws: bool
    """Whether anything can be shown below all output."""

    async def next(self, prompt: str, *, ahead: bool = False) -> str | None:
        """Ask for a line, and return it without its end; None at the end of input.

        With `ahead` one counts that was typed before it was asked for; otherwise that is no answer.
        """
        ...

    def below(self, rows: Rows) -> None:
        """Show these below all output, where that can be."""
        ...

    def above(self, write: Callable[[], None]) -> None:
        """Write something above the line that is being typed."""
        ...

    def forget(self) -> int:
        """Forget what was typed ahead; return how many lines that were, as far as is known."""
        ...

    def away(self) -> AbstractAsyncContextManager[None]:
        """Leave the terminal to another program meanwhile."""
        ...

    async def __aenter__(self) -> Self:
        """Begin."""
        ...

    async def __aexit__(self, *_: object) -> None:
        """Leave the terminal as it was."""
        ...


def lines_of(*, converses: bool, stop: Callable[[], None]) -> Lines:
    """Return those that suit the terminal; `stop` is what Ctrl-C does, if it is a key there.

    With `converses` a prompt may be typed whenever somebody likes.
    """
    if is_terminal() and os.environ.get("TERM", "dumb") != "dumb" and find_spec("prompt_toolkit"):
        from .run_bottom import BottomLines  # noqa: PLC0415 - an extra, and slow to load

        return BottomLines(converses=converses, stop=stop)
    return StdinLines()


def as_text(typed: str) -> str:
    """Return a line with the bytes in it that are no text as escapes, as `StdinLines` reads them.

    prompt_toolkit gives such a byte as a lone surrogate, which nothing may hold.
    """
    raw = typed.encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "backslashreplace")


def is_terminal() -> bool:
    """Whether somebody types on a terminal and sees on it what is told."""
    streams = (sys.stdin, sys.stderr)
    return all(it is not None and it.isatty() for it in streams)  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller


class StdinLines:
    """Reads a line when somebody wants one.

    The thread that reads is a daemon: nobody can wake it, and it must not keep the process alive. A
    line that nobody waits for any more belongs to whoever asks next, unless it was forgotten.
    """

    def __init__(self) -> None:
        """Read nothing yet. Bytes that are no text will be read as escapes, and end nothing."""
        stdin: object = sys.stdin
        if isinstance(stdin, io.TextIOWrapper):
            cast("io.TextIOWrapper", stdin).reconfigure(errors="backslashreplace")
        self.ended = self.draws = False
        self._reading: asyncio.Future[str | None] | None = None
        self._prompt: str | None = None

    async def __aenter__(self) -> Self:
        """Do nothing: the terminal, if there is one, stays as it is."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Do nothing."""

    async def next(self, prompt: str, *, ahead: bool = False) -> str | None:
        """Write the prompt, and read a line."""
        if self.ended:
            return None
        if not ahead:
            forget_typed()
        self._prompt = prompt
        try:
            self._tell(prompt)
            line = await self._line()
        finally:
            self._prompt = None
        if line is None or not is_terminal():
            self._tell("\n")  # nobody's return key has ended the line
        return line

    def below(self, rows: Rows) -> None:
        """Show nothing: here is no place for it."""

    def above(self, write: Callable[[], None]) -> None:
        """Write it on a line of its own, and the prompt again; what was typed is still there."""
        if self._prompt is None or not is_terminal():
            write()
            return
        self._tell("\n" if os.environ.get("TERM", "dumb") == "dumb" else "\r\x1b[K")
        write()
        self._tell(self._prompt)

    def forget(self) -> int:
        """Forget what the terminal holds."""
        forget_typed()
        return 0

    @asynccontextmanager
    async def away(self) -> AsyncGenerator[None]:
        """Do nothing: nobody reads just now."""
        yield

    def _tell(self, text: str) -> None:
        click.echo(text, err=True, nl=False)

    async def _line(self) -> str | None:
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
