"""What stands on every screen: the line at the top, the line at the bottom, and the slider."""

from __future__ import annotations

from typing import Final

from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from ..models.safe_text import harmless
from .watched import Badge

_COLOURS: Final = {
    Badge.LIVE: ("●", "green"),
    Badge.CATCHING_UP: ("◌", "yellow"),
    Badge.GAP: ("◍", "yellow"),
    Badge.REPLAY: ("◀", "cyan"),
    Badge.OFF: ("○", "red"),
}


class Told(Static):
    """A text that is drawn anew only where it is another one; it is never markup."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - as Textual has it
        """Begin without a text."""
        super().__init__(Content(""), id=id, classes=classes, markup=False)
        self._told: object = None

    def tell(self, content: Content) -> None:
        """Show this."""
        told = content.plain, content.spans
        if told != self._told:
            self._told = told
            self.update(content, layout=True)


def badge(kind: Badge, told: str) -> Content:
    """Return the badge: a sign, a colour, and words."""
    sign, colour = _COLOURS[kind]
    return Content.styled(f"{sign} {told}", f"bold {colour}")


def bottom(*keys: tuple[str, str]) -> Static:
    """Return the line of keys at the bottom."""
    parts: list[Content | str] = []
    for key, what in keys:
        parts += [Content.styled(f" {key} ", "reverse"), f" {what}  "]
    return Static(Content.assemble(*parts), classes="bottom")


def waiting_told(count: int) -> str:
    """Say how many runs wait for a person."""
    if not count:
        return "nothing waits for you"
    return f"{count:,} run{'s wait' if count > 1 else ' waits'} for you"


class Slider(Widget):
    """The moment that is looked at, among all facts (F-98)."""

    at: reactive[int] = reactive(0)
    of: reactive[int] = reactive(0)
    live: reactive[bool] = reactive(default=True)

    class Moved(Message):
        """Another moment was clicked."""

        def __init__(self, sequence: int) -> None:
            """Say which fact."""
            self.sequence: Final = sequence
            super().__init__()

    def render(self) -> Content:
        """Draw it on one line."""
        told = f" {self.at:,} of {self.of:,} " + ("live" if self.live else "End: live")
        length = self._length(told)
        place = 0 if not self.of else round(self.at / self.of * (length - 1))
        return Content.assemble(
            ("◀ ", "bold"),
            ("━" * place, "cyan"),
            ("●", "bold cyan"),
            ("─" * (length - 1 - place), "dim"),
            (" ▶", "bold"),
            told,
        )

    def on_click(self, event: Click) -> None:
        """Go where it was clicked; its ends move by one."""
        length = self.size.width - 24
        if event.x <= 1:
            self.post_message(self.Moved(self.at - 1))
        elif event.x > length:
            self.post_message(self.Moved(self.at + 1 if event.x <= length + 3 else self.of))
        else:
            self.post_message(self.Moved(round((event.x - 2) / max(length - 1, 1) * self.of)))

    def _length(self, told: str) -> int:
        return max(self.size.width - max(len(told), 20) - 4, 1)


def section(title: str, *, id: str | None = None) -> Told:  # noqa: A002 - as Textual has it
    """Return a heading."""
    heading = Told(classes="section", id=id)
    heading.tell(Content(harmless(title)))
    return heading
