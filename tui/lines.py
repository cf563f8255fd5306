"""Widgets of many lines, of which only those are drawn that can be seen: tables, and whole texts.

What they are given is text, made harmless by whoever gives it; nothing is read as markup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import attrs
from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from .machine import Line, Part


@attrs.frozen
class Column:
    """A column of a table; of those without a width each gets the same of what is left."""

    title: str
    width: int = 0
    right: bool = False


class Rows(ScrollView, can_focus=True, inherit_bindings=False):
    """A table with a cursor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--cursor", "rows--here"}

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", show=False),
        Binding("down", "step(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("ctrl+home", "to(0)", show=False),
        Binding("ctrl+end", "to(-1)", show=False),
        Binding("enter", "choose", show=False),
    ]

    class Moved(Message):
        """The cursor stands on another row."""

        def __init__(self, rows: Rows, place: int) -> None:
            """Say which."""
            self.rows: Final = rows
            self.place: Final = place
            super().__init__()

        @property
        def control(self) -> Rows:
            """The table."""
            return self.rows

    class Chosen(Moved):
        """A row was chosen: by return, or by a click."""

    def __init__(self, columns: Sequence[Column], *, empty: str = "", id: str) -> None:  # noqa: A002 - as Textual has it
        """Begin without a row; `empty` is said instead of rows."""
        super().__init__(id=id)
        self._columns: Final = columns
        self.empty = empty
        """What is said instead of rows."""
        self._count = 0
        self._cells: Callable[[int], Sequence[Part]] = lambda _: ()
        self.cursor = 0
        """The row with the cursor."""

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self._count

    def tell(
        self, count: int, cells: Callable[[int], Sequence[Part]], *, cursor: int | None = None
    ) -> None:
        """Show other rows; the cursor stays where it is unless it is told."""
        self._count, self._cells = count, cells
        if cursor is not None and cursor != self.cursor:
            self.cursor = cursor
            self._into_view()
        self.cursor = max(0, min(self.cursor, count - 1))
        self.virtual_size = Size(self.size.width, count + 1)
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        """Return the lines that it has."""
        return max(self._count, 1 if self.empty else 0) + 1

    def on_resize(self, _: Resize) -> None:
        """Fill another width."""
        self.virtual_size = Size(self.size.width, self._count + 1)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one line of what can be seen; the first are the titles."""
        width = self.size.width
        base = self.rich_style
        place = y - 1 + self.scroll_offset.y
        if y == 0:
            titles = [(it.title, "dim") for it in self._columns]
            return self._strip(titles, width, base)
        if self._count == 0 and place == 0 and self.empty:
            return Strip([Segment(f" {self.empty}", base + _DIM)]).extend_cell_length(width, base)
        if not 0 <= place < self._count:
            return Strip.blank(width, base)
        if place == self.cursor:
            base = self.get_component_rich_style(
                "rows--cursor" if self.has_focus else "rows--here", partial=False
            )
        return self._strip(self._cells(place), width, base, mark=place == self.cursor)

    def _strip(
        self, cells: Sequence[Part], width: int, base: Style, *, mark: bool = False
    ) -> Strip:
        widths = self._widths(width - 1)
        segments = [Segment("▌" if mark else " ", base)]
        for column, size, (text, style) in zip(self._columns, widths, cells, strict=False):
            shown = _cut(text, size)
            if column.right:
                shown = " " * (size - cell_len(shown)) + shown
            segments.append(Segment(set_cell_size(shown, size), base + Style.parse(style)))
            segments.append(Segment(" ", base))
        return Strip(segments).adjust_cell_length(width, base)

    def _widths(self, total: int) -> list[int]:
        given = sum(it.width for it in self._columns) + len(self._columns)
        free = max(total - given, 0)
        open_ = sum(it.width == 0 for it in self._columns)
        return [it.width or max(free // max(open_, 1), 1) for it in self._columns]

    def action_step(self, by: int) -> None:
        """Move the cursor by rows."""
        self._move(self.cursor + by)

    def action_page(self, by: int) -> None:
        """Move it by what can be seen."""
        self._move(self.cursor + by * max(self.size.height - 2, 1))

    def action_to(self, place: int) -> None:
        """Move it to a row; -1 is the last."""
        self._move(place if place >= 0 else self._count - 1)

    def action_choose(self) -> None:
        """Choose the row with the cursor."""
        if self._count:
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: Click) -> None:
        """Move the cursor to what was clicked, and choose it."""
        place = event.y - 1 + self.scroll_offset.y
        if event.y > 0 and place < self._count:
            self._move(place)
            self.action_choose()

    def _move(self, to: int) -> None:
        to = max(0, min(to, self._count - 1))
        if self._count and to != self.cursor:
            self.cursor = to
            self._into_view()
            self.refresh()
            self.post_message(self.Moved(self, to))

    def _into_view(self) -> None:
        region = Region(0, self.cursor, 1, 2)  # below the titles, which stay
        self.scroll_to_region(region, animate=False, force=True)


class WholeText(ScrollView, can_focus=True):
    """A text, all of it: long lines go on below, and what is more than fits is scrolled to."""

    def __init__(self, lines: Sequence[Line] = (), *, classes: str | None = None) -> None:
        """Begin with lines, each of one part."""
        super().__init__(classes=classes)
        self._lines = lines
        self._width = 0
        self._wrapped: list[Part] = []

    def tell(self, lines: Sequence[Line]) -> None:
        """Show other lines."""
        if lines != self._lines:
            self._lines, self._width = lines, 0
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        """Return the lines that it has at a width."""
        return len(self._wrap(width))

    def on_resize(self, _: Resize) -> None:
        """Break the lines anew."""
        lines = self._wrap(self.size.width)
        self.virtual_size = Size(self.size.width, len(lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw one line of what can be seen."""
        width, base = self.size.width, self.rich_style
        lines = self._wrap(width)
        place = y + self.scroll_offset.y
        if place >= len(lines):
            return Strip.blank(width, base)
        text, style = lines[place]
        return Strip([Segment(text, base + Style.parse(style))]).adjust_cell_length(width, base)

    def _wrap(self, width: int) -> list[Part]:
        if width != self._width:
            self._width = width
            self._wrapped = [
                (piece, style)
                for line in self._lines
                for text, style in line
                for piece in _pieces(text, max(width, 4))
            ]
        return self._wrapped


_DIM: Final = Style(dim=True)


def _pieces(text: str, width: int) -> Sequence[str]:
    if not text.isascii():
        return chop_cells(text, width) or [""]
    return [text[place : place + width] for place in range(0, len(text), width)] or [""]


def _cut(text: str, width: int) -> str:
    """Return as much of a text as fits, with a sign where it is cut."""
    text = text[: 4 * width]
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…" * (width > 0)
