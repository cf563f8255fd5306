"""The terminal console: runs, chats, keys (F-99). It looks on and decides; it performs nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from ..models.errors import TurnlockError

try:  # before what needs httpx: this extra brings both
    from textual.app import App
except ImportError as missing:  # pragma: no cover - tests have it
    raise TurnlockError(
        'the terminal console needs Textual: pip install "turnlock[tui]"'
    ) from missing

from .chat_screen import ChatScreen
from .chats_screen import ChatsScreen
from .heard import Listing
from .run_screen import RunScreen
from .runs_screen import RunsScreen
from .sources import Source

_LOOK: Final = 1.0
"""Seconds between two looks at the list of runs."""


class Console(App[None]):
    """A console on a journal or a server."""

    CSS_PATH = "console.tcss"
    ENABLE_COMMAND_PALETTE = False
    TITLE = "turnlock"

    def __init__(
        self,
        source: Source,
        *,
        run_id: str | None = None,
        chat: tuple[str, str] | None = None,
        now: Callable[[], float] = time.time,
        tick: Callable[[], float] = time.monotonic,
    ) -> None:
        """Look there, at once at a run, or at a chat of a world, where one is named.

        `now` and `tick` are the clocks.
        """
        super().__init__()
        self.source: Final = source
        self.now: Final = now
        self.tick: Final = tick
        self.listing = Listing(entries=(), waiting=0)
        self.is_known = False
        """Whether the list was read once."""
        self.why = ""
        """Why the list is not known."""
        self._first = run_id
        self._first_chat = chat
        self._looking = False

    @property
    def waiting(self) -> int:
        """Runs that wait for a person."""
        return self.listing.waiting

    def on_mount(self) -> None:
        """Show the runs, and look again and again."""
        self.push_screen(RunsScreen())
        if self._first is not None:
            self.open(self._first)
        if self._first_chat is not None:
            self.open_chat(*self._first_chat)
        self.set_interval(_LOOK, self.look)
        self.call_later(self.look)

    def look(self) -> None:
        """Look at the list, unless somebody is looking."""
        if not self._looking:
            self._looking = True
            self.run_worker(self._look(), exit_on_error=True)

    async def _look(self) -> None:
        try:
            self.listing, self.why = await self.source.runs(), ""
            self.is_known = True
        except TurnlockError as error:
            self.why = str(error)
        finally:
            self._looking = False
        for screen in self.screen_stack:
            if isinstance(screen, RunsScreen):
                screen.draw()

    def open(self, run_id: str) -> None:
        """Show a run."""
        self.push_screen(RunScreen(run_id))

    def open_chats(self) -> None:
        """Show the worlds and their chats."""
        self.push_screen(ChatsScreen())

    def open_chat(self, world: str, chat: str) -> None:
        """Show a chat."""
        self.push_screen(ChatScreen(world, chat))

    async def on_unmount(self) -> None:
        """Let the source go."""
        await self.source.close()
