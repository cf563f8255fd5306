"""The chats of all worlds, those that wait for a person with what waits there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content

from ..models.errors import TurnlockError
from ..models.safe_text import harmless
from .chat_heard import ListedChat
from .lines import Column, Rows
from .machine import Part
from .parts import Told, badge, bottom
from .screens import ConsoleScreen
from .watched import Badge

_LOOK: Final = 2.0
"""Seconds between two looks at the worlds."""
_OF_CHATS: Final = (
    Column("world", 24),
    Column("chat", 24),
    Column("title"),
    Column("agents"),
    Column("waits", 6, right=True),
    Column("doubt", 6, right=True),
)


class ChatsScreen(ConsoleScreen):
    """The worlds of a journal or a server, and their chats."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "step(1)"),
        Binding("k", "step(-1)"),
        Binding("escape", "dismiss"),
    ]

    def __init__(self) -> None:
        """Begin without a chat."""
        super().__init__()
        self.listed: tuple[ListedChat, ...] = ()
        self._why = ""
        self._is_known = False
        self._looking = False
        self._chosen: tuple[str, str | None] | None = None
        self._place = Told(id="place")
        self._standing = Told(id="standing")
        self._rows = Rows(_OF_CHATS, empty="there is no world", id="chats")

    def compose(self) -> ComposeResult:
        """Yield its parts."""
        with Horizontal(classes="top"):
            yield self._place
            yield self._standing
        yield self._rows
        yield bottom(("j k", "chat"), ("Enter", "open"), ("?", "keys"), ("Esc", "runs"))

    def on_mount(self) -> None:
        """Look, again and again."""
        self._rows.focus()
        self.set_interval(_LOOK, self._look)
        self.set_interval(1.0, self._draw)
        self._look()
        self._draw()

    def _look(self) -> None:
        if not self._looking:
            self._looking = True
            self.run_worker(self._read(), name="chats", exit_on_error=True)

    async def _read(self) -> None:
        try:
            self.listed = await self.console_app.source.chats.listed()
            self._why, self._is_known = "", True
        except TurnlockError as error:
            self._why = str(error)
        finally:
            self._looking = False
        self._draw()

    def _draw(self) -> None:
        cursor = next((n for n, it in enumerate(self.listed) if _key(it) == self._chosen), None)
        why = harmless(self._why, limit=300)
        self._rows.empty = "there is no world" if self._is_known else why or "not known yet"
        self._rows.tell(len(self.listed), self._cells, cursor=cursor)
        if self.listed and cursor is None:
            self._chosen = _key(self.listed[self._rows.cursor])
        place = harmless(self.console_app.source.place)
        self._place.tell(Content.assemble(("turnlock  ", "bold"), f"worlds of {place}"))
        kind = Badge.OFF if self._why else Badge.LIVE
        self._standing.tell(Content.assemble(badge(kind, f"off: {why}" if why else "live"), " "))

    def _cells(self, place: int) -> Sequence[Part]:
        it = self.listed[place]
        world = harmless(it.world_title or it.world, limit=100)
        if it.chat is None:
            return ((world, ""), ("no chat yet", "dim"))
        runs = [run for run in self.console_app.listing.entries if run.run_id.startswith(it.below)]
        waiting = sum(run.waiting for run in runs)
        doubts = sum(run.in_doubt for run in runs)
        closed = "  closed" if it.closed else ""
        return (
            (world, ""),
            (f"{it.chat}{closed}", "dim" if it.closed else "bold"),
            (harmless(it.title, limit=200), ""),
            (harmless(", ".join(it.members), limit=200), "dim"),
            (f"{waiting:,}" if waiting else "", "bold yellow"),
            (f"{doubts:,}" if doubts else "", "bold yellow"),
        )

    def action_step(self, by: int) -> None:
        """Go to the next chat, or the one before."""
        self._rows.action_step(by)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        """Remember which chat is meant, wherever it comes to stand."""
        self._chosen = _key(self.listed[event.place])

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Open it."""
        if event.place < len(self.listed):
            it = self.listed[event.place]
            self._chosen = _key(it)
            if it.chat is not None:
                self.console_app.open_chat(it.world, it.chat)


def _key(it: ListedChat) -> tuple[str, str | None]:
    return it.world, it.chat
