"""A sheet on which timelines and sequence diagrams are drawn, as one SVG element.

Everything goes through the XML library, so that no text can become markup. Ids are prefixed with
the picture's name, because several pictures may stand in one page.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final
from xml.etree import ElementTree as ET

from ...models.safe_text import harmless
from ..palette import PAPERS, Paper, Theme
from .lettering import LONGEST

FONT: Final = "'Source Sans Pro', 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
MONO: Final = "'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_NAMESPACE: Final = "http://www.w3.org/2000/svg"


class Canvas:
    """One picture under way. Lengths are pixels, from the upper left corner."""

    def __init__(
        self, *, name: str, title: str, description: str, width: float, theme: Theme
    ) -> None:
        """Begin an empty sheet; its height is said when it is done.

        `name` begins all ids and must be of letters, digits and hyphens. `title` and `description`
        are what those read who cannot see the picture.
        """
        self.name = name
        self.width = width
        self.theme = theme
        self.paper: Paper = PAPERS[theme]
        self._root = ET.Element(
            "svg",
            {
                "xmlns": _NAMESPACE,
                "id": name,
                "role": "img",
                "aria-labelledby": f"{name}-title {name}-desc",
                "font-family": FONT,
                "font-size": "13",
            },
        )
        self._titled(self._root, "title", title, f"{name}-title")
        self._titled(self._root, "desc", description, f"{name}-desc")
        self._ground = ET.SubElement(self._root, "rect", {"fill": self.paper.ground})
        self._open = [self._root]

    @contextmanager
    def group(self, id_: str = "", *, title: str = "", **attributes: str) -> Generator[None]:
        """Draw what follows as one thing, with an id and a title of its own (a tooltip, too)."""
        fields = {"id": f"{self.name}-{id_}"} if id_ else {}
        made = ET.SubElement(self._open[-1], "g", {**fields, **_spelt(attributes)})
        if title:
            self._titled(made, "title", title)
        self._open.append(made)
        try:
            yield
        finally:
            self._open.pop()

    def rect(
        self, x: float, y: float, width: float, height: float, *, title: str = "", **attributes: str
    ) -> None:
        """Draw a rectangle."""
        lengths = {"x": x, "y": y, "width": width, "height": height}
        made = ET.SubElement(self._open[-1], "rect", {**_numbers(lengths), **_spelt(attributes)})
        if title:
            self._titled(made, "title", title)

    def line(self, x1: float, y1: float, x2: float, y2: float, **attributes: str) -> None:
        """Draw a straight line; without a colour it is that of the grid."""
        lengths = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
        fields = {"stroke": self.paper.grid, **_spelt(attributes)}
        ET.SubElement(self._open[-1], "line", {**_numbers(lengths), **fields})

    def path(self, d: str, **attributes: str) -> None:
        """Draw a path; it is not filled unless that is asked for."""
        ET.SubElement(self._open[-1], "path", {"d": d, "fill": "none", **_spelt(attributes)})

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = 13,
        mono: bool = False,
        **attributes: str,
    ) -> None:
        """Write one line of text that the caller has made fit; it stands on `y`."""
        fields = {"fill": self.paper.ink, **_spelt(attributes)}
        if size != 13:  # noqa: PLR2004 - that of the root
            fields["font-size"] = _number(size)
        if mono:
            fields["font-family"] = MONO
        made = ET.SubElement(self._open[-1], "text", {**_numbers({"x": x, "y": y}), **fields})
        made.text = harmless(words, limit=LONGEST)

    def done(self, height: float) -> str:
        """Return the whole element."""
        size = _numbers({"width": self.width, "height": height})
        self._root.attrib |= {**size, "viewBox": f"0 0 {size['width']} {size['height']}"}
        self._ground.attrib |= size
        ET.indent(self._root, " ")
        return ET.tostring(self._root, encoding="unicode") + "\n"

    @staticmethod
    def _titled(parent: ET.Element, tag: str, words: str, id_: str = "") -> None:
        ET.SubElement(parent, tag, {"id": id_} if id_ else {}).text = harmless(words, limit=2000)


def _spelt(attributes: dict[str, str]) -> dict[str, str]:
    """Spell attributes as SVG does: ``stroke_width`` is ``stroke-width``, ``class_`` is a class."""
    return {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}


def _numbers(lengths: dict[str, float]) -> dict[str, str]:
    return {name: _number(length) for name, length in lengths.items()}


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
