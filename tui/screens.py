"""What the screens of the console share: the console they belong to, and keys for cards (F-95)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input, Select, TextArea

from ..server.client import Judgeable
from .cards import Card
from .dialogs import Keys
from .heard import Answered

if TYPE_CHECKING:
    from .app import Console

FLUSH: Final = 0.05
"""Seconds in which what is heard is gathered before it is drawn."""
_REPEAT: Final = 0.3
"""Seconds in which the same key again is taken for one that is held down (F-95)."""
_FIELDS: Final = (Input, TextArea, Select)


class ConsoleScreen(Screen[None]):
    """A screen of the console."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "keys"),
        Binding("q", "app.quit"),
    ]

    @property
    def console_app(self) -> Console:
        """The console that it belongs to."""
        return cast("Console", self.app)  # pyright: ignore[reportUnknownMemberType]

    def action_keys(self) -> None:
        """Show the keys."""
        self.console_app.push_screen(Keys())


class CardsScreen(ConsoleScreen):
    """A screen with cards, about which a person decides by keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "card(1)"),
        Binding("k", "card(-1)"),
        Binding("a", "decide('a')"),
        Binding("d", "decide('d')"),
        Binding("e", "decide('e')"),
        Binding("i", "interrupt"),
        Binding("escape", "leave"),
    ]

    _pressed: tuple[str, float] = ("", 0.0)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's
        """None of the keys acts while a field has the focus, but for those that close (F-95)."""
        return action in {"leave", "app.quit"} or not self.in_field()

    def in_field(self) -> bool:
        """Whether something is typed or chosen just now."""
        focused = self.focused
        return focused is not None and any(
            isinstance(it, _FIELDS) for it in focused.ancestors_with_self
        )

    def is_repeat(self, key: str) -> bool:
        """Whether a key is held down: it came just now."""
        before, at = self._pressed
        now = self.console_app.tick()
        self._pressed = (key, now)
        return key == before and now - at < _REPEAT

    def on_card_made(self, event: Card.Made) -> None:
        """Tell a new card how things stand."""
        event.stop()
        self.draw_times()

    def on_card_deciding(self, event: Card.Deciding) -> None:
        """Have a decision judged by the run of its call."""
        event.stop()
        self.console_app.run_worker(self._deliver(event.card, event.delivery))

    async def _deliver(self, card: Card, delivery: Judgeable) -> None:
        answer = await self.console_app.source.deliver(card.call.run_id, delivery)
        if self.is_attached:  # otherwise the screen was left: the facts tell what came of it
            card.answered(answer)
            self.judged(card, delivery, answer)
            self.draw_times()

    def judged(self, card: Card, delivery: Judgeable, answer: Answered) -> None:
        """Take what a decision came to; its card was told."""

    def draw_times(self) -> None:
        """Draw what changes with time: where things stand, and the cards."""
