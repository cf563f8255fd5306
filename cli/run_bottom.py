"""The bottom of the terminal: what is under way, and below it the line that is typed.

prompt_toolkit draws and reads it; all else that this process writes to the terminal goes above it,
whoever writes it, so that no line swallows what somebody types.
"""

from __future__ import annotations

import asyncio
import io
import os
import select
import sys
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from contextvars import copy_context
from typing import Final, Self, TextIO

import click
from prompt_toolkit.application import Application, create_app_session, in_terminal, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.selection import SelectionType
from rich.console import Console
from rich.text import Text

from ..models.safe_text import harmless, harmless_lines
from .run_lines import LONGEST, PROMPT, Rows, as_text

_BUNDLE: Final = 0.03
"""Seconds in which what is written is put together, so that the bottom is drawn once for it."""
_REFRESH: Final = 1.0
"""Seconds after which it is drawn anew, for the time that it tells."""
_SHOWN: Final = 200
"""Characters of a prompt that waits."""
_ROWS: Final = 8
"""Rows of what is under way, at most; a low terminal has a third for them."""


class _Line(Buffer):
    """A line that is typed; nothing of it can be selected.

    A selection takes the keys for itself, and nothing here shows that there is one.
    """

    def start_selection(self, selection_type: SelectionType = SelectionType.CHARACTERS) -> None:
        """Select nothing."""


class BottomLines:
    """Lines that are typed at the bottom of a terminal."""

    def __init__(self, *, converses: bool, stop: Callable[[], None]) -> None:
        """Take prompts ahead if the session `converses`; Ctrl-C calls `stop`."""
        self.ended = False
        self.draws = True
        self._converses = converses
        self._stop = stop
        self._ahead: deque[str] = deque()
        """Prompts that were typed before anybody asked for them."""
        self._prompt: str | None = None
        self._wanted: asyncio.Future[str | None] | None = None
        self._rows: Rows = tuple
        self._next = _Line(multiline=False, accept_handler=self._accept)
        """The next prompt; it stays while a question is answered."""
        self._answer = _Line(multiline=False, accept_handler=self._accept)
        self._exit = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Take the terminal, and every stream that goes to it."""
        async with AsyncExitStack() as stack:
            keyboard = create_input(sys.stdin)
            stack.callback(keyboard.close)
            screen = Vt100_Output.from_pty(sys.stderr, term=os.environ.get("TERM"))
            screen.enable_cpr = False  # nothing here needs to know where the cursor is
            stack.enter_context(create_app_session(input=keyboard, output=screen))
            self._app = self._application()
            proxy = _Above(sys.stderr)
            stack.callback(proxy.end)
            stack.enter_context(redirect_stderr(proxy))
            if sys.stdout is not None and sys.stdout.isatty():  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller
                stack.enter_context(redirect_stdout(proxy))
            running = asyncio.create_task(
                self._app.run_async(handle_sigint=False, set_exception_handler=False)
            )
            running.add_done_callback(lambda _: self._end(None))  # the terminal is gone, say
            watching = asyncio.create_task(self._watch(keyboard.fileno()))
            stack.callback(watching.cancel)
            stack.push_async_callback(self._left, running)
            self._exit = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Take the bottom away, and write what is still to be written."""
        await self._exit.aclose()

    async def next(self, prompt: str, *, ahead: bool = False) -> str | None:
        """Return what is typed next."""
        if ahead and self._ahead:
            line = self._ahead.popleft()
            _tell(f"{prompt}{line}")
            return line
        if self.ended:
            return None
        self._wanted = asyncio.get_running_loop().create_future()
        self._prompt = prompt
        self._answer.reset()
        self._focus()
        try:
            return await self._wanted
        finally:
            self._wanted = self._prompt = None
            self._focus()

    def below(self, rows: Rows) -> None:
        """Show these rows above the line that is typed."""
        self._rows = rows
        self._app.invalidate()

    def above(self, write: Callable[[], None]) -> None:
        """Write it: whatever is written goes above."""
        write()

    @asynccontextmanager
    async def away(self) -> AsyncGenerator[None]:
        """Take the bottom away meanwhile."""
        async with in_terminal():
            yield

    def forget(self) -> int:
        """Forget the prompts that nobody asked for yet; return how many there were."""
        count = len(self._ahead)
        self._ahead.clear()
        return count

    @property
    def _takes_next(self) -> bool:
        """Whether it is the next prompt that is typed, and no answer to a question."""
        return self._prompt == PROMPT or (self._wanted is None and self._converses)

    def _application(self) -> Application[None]:
        self._next_window = self._window(self._next)
        self._answer_window = self._window(self._answer)
        under_way = Window(FormattedTextControl(self._under_way), dont_extend_height=True)
        next_is = Condition(lambda: self._takes_next)
        asked = Condition(lambda: self._wanted is not None)
        parts = [
            ConditionalContainer(under_way, Condition(lambda: bool(self._all_rows()))),
            ConditionalContainer(self._next_window, next_is),
            ConditionalContainer(self._answer_window, asked & ~next_is),
        ]
        return Application(
            layout=Layout(HSplit(parts)),
            key_bindings=self._keys(),
            erase_when_done=True,
            refresh_interval=_REFRESH,
            min_redraw_interval=_BUNDLE,
        )

    def _window(self, buffer: Buffer) -> Window:
        control = BufferControl(
            buffer, input_processors=[BeforeInput(lambda: self._prompt or PROMPT)]
        )
        return Window(control, dont_extend_height=True, wrap_lines=True)

    def _all_rows(self) -> list[Text]:
        waiting = [Text(f"next: {harmless(it, limit=_SHOWN)}", "dim") for it in self._ahead]
        return [*self._rows(), *waiting]

    def _under_way(self) -> AnyFormattedText:
        size = self._app.output.get_size()
        console = Console(force_terminal=True, width=size.columns - 1, highlight=False, stderr=True)
        rows = self._all_rows()[-max(1, min(_ROWS, size.rows // 3)) :]
        with console.capture() as captured:
            for row in rows:
                console.print(row, no_wrap=True, overflow="ellipsis", crop=True)
        return ANSI(captured.get().rstrip("\n"))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("c-c")
        def _(_: KeyPressEvent) -> None:
            if self._prompt == PROMPT and self._next.text:
                self._next.reset()
            else:
                self._stop()

        @keys.add("c-z")
        def _(event: KeyPressEvent) -> None:
            event.app.suspend_to_background()

        @keys.add("c-d", filter=Condition(lambda: not self._app.current_buffer.text))
        def _(_: KeyPressEvent) -> None:
            if self._wanted is not None or self._converses:
                self._end(None)

        return keys

    def _accept(self, buffer: Buffer) -> bool:
        """Take a line that was typed; return whether it stays where it was typed."""
        text = as_text(buffer.text)
        if len(text) > LONGEST:
            _tell(f"(a line has at most {LONGEST:,} characters; this one was not sent)")
            return True
        if self._wanted is not None:
            _tell(f"{self._prompt}{text}")
            self._end(text)
        elif buffer is self._next and text.strip():
            self._ahead.append(text)
        return False

    def _end(self, line: str | None) -> None:
        self.ended = line is None
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(line)

    def _focus(self) -> None:
        self._app.layout.focus(self._next_window if self._takes_next else self._answer_window)
        self._app.invalidate()

    async def _watch(self, keyboard: int) -> None:
        """End once the terminal is gone: prompt_toolkit would read its error for ever."""
        while not is_gone(keyboard):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(_REFRESH)
        if self._app.is_running:
            self._app.exit(exception=EOFError())

    async def _left(self, running: asyncio.Task[None]) -> None:
        if self._app.is_running:
            self._app.exit()
        await asyncio.gather(running, return_exceptions=True)


class _Above(io.TextIOBase):
    """A stream whose lines go above the bottom, from whichever thread they come."""

    def __init__(self, file: TextIO) -> None:
        """Write to this file at last."""
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        """That of the application, whose bottom is taken away meanwhile."""
        self._parts: list[str] = []
        self._due = False
        self._lock = threading.Lock()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # io has a str there, and no setter needs it
        """That of the file."""
        return self._file.encoding

    def isatty(self) -> bool:
        """Whether the file is a terminal: it is."""
        return self._file.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the file, for whoever asks how wide it is."""
        return self._file.fileno()

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, text: str, /) -> int:
        """Take it; it is written with what else comes soon, when its line has ended."""
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - click asks
            raise TypeError(f"text is wanted here, no {type(text).__name__}")
        with self._lock:
            self._parts.append(text)
            due, self._due = self._due, True
        if not due:
            with suppress(RuntimeError):  # the loop is closed: `end` has written all there was
                self._loop.call_soon_threadsafe(
                    self._loop.call_later, _BUNDLE, self._pass_on, context=self._context
                )
        return len(text)

    def end(self) -> None:
        """Write what is left, a line that has not ended, too."""
        self._write("".join(self._parts))
        self._parts = []

    def _pass_on(self) -> None:
        with self._lock:
            whole, ends, rest = "".join(self._parts).rpartition("\n")
            self._parts, self._due = [rest], False
        if ends:
            run_in_terminal(lambda: self._write(whole + ends))

    def _write(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()


def is_gone(terminal: int) -> bool:
    """Whether nobody is at the other end of a terminal any more."""
    poll = select.poll()
    poll.register(terminal, 0)
    return bool(poll.poll(0))


def _tell(text: str) -> None:
    """Write what was typed, or why it was not taken, above: it happened, too."""
    click.echo(harmless_lines(text), err=True)
