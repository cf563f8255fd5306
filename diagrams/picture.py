"""What every picture can do: be rendered in a format, be shown in a notebook, be kept in a file.

A picture is drawn whole before the file is touched, and the file is replaced in one step: a failed
draw leaves nothing behind, and what stood there stays.
"""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from .drawing.raster import png_of
from .errors import CannotDraw, NoSuchForm
from .palette import Theme


class Format(StrEnum):
    """The forms of a picture; the value is the ending of the file's name."""

    SVG = "svg"
    PNG = "png"
    DOT = "dot"
    MERMAID = "mmd"
    MARKDOWN = "md"
    HTML = "html"
    TEXT = "txt"


class Picture(ABC):
    """Base of all pictures. They are immutable, and the same picture is drawn the same way."""

    formats: frozenset[Format] = frozenset(Format)
    """The forms that this kind of picture has."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is called, on one line."""

    @abstractmethod
    def svg(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return one `svg` element with `title` and `desc`. Raises `CannotDraw`."""

    @abstractmethod
    def dot(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return it in the language of Graphviz. Raises `NoSuchForm`."""

    @abstractmethod
    def mermaid(self) -> str:
        """Return a Mermaid diagram, without a fence."""

    @abstractmethod
    def markdown(self) -> str:
        """Return Markdown with a Mermaid block and the tables."""

    @abstractmethod
    def html(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return one whole page that needs no network, no script and no other file."""

    @abstractmethod
    def text(self) -> str:
        """Return plain text for a terminal, at most 100 columns wide."""

    def png(self, *, theme: Theme = Theme.LIGHT) -> bytes:
        """Return a PNG image of the SVG, at twice its size. Raises `CannotDraw`."""
        return png_of(self.svg(theme=theme))

    def render(self, form: Format, *, theme: Theme = Theme.LIGHT) -> bytes:
        """Return what a file of this form holds. Raises `NoSuchForm` and `CannotDraw`."""
        if form not in self.formats:
            kind = type(self).__name__
            there = ", ".join(sorted(self.formats))
            raise NoSuchForm(f"a {kind} has no form {form}; ask for one of {there}")
        if form is Format.PNG:
            return self.png(theme=theme)
        return _line_ended(self._written(form, theme)).encode("utf-8")

    def _written(self, form: Format, theme: Theme) -> str:
        if form is Format.SVG:
            return self.svg(theme=theme)
        if form is Format.DOT:
            return self.dot(theme=theme)
        if form is Format.HTML:
            return self.html(theme=theme)
        if form is Format.MERMAID:
            return self.mermaid()
        return self.markdown() if form is Format.MARKDOWN else self.text()

    def save(self, path: str | os.PathLike[str], *, theme: Theme = Theme.LIGHT) -> None:
        """Draw it into a file whose ending names the form.

        Raises `NoSuchForm`, `CannotDraw` or `OSError`; the file is then as it was before.
        """
        target = Path(path)
        drawn = self.render(format_of(target), theme=theme)
        _replace(target, drawn)

    def is_saved_in(self, path: str | os.PathLike[str], *, theme: Theme = Theme.LIGHT) -> bool:
        """Whether the file holds just what `save` would write: for checks in CI."""
        target = Path(path)
        drawn = self.render(format_of(target), theme=theme)
        return target.is_file() and target.read_bytes() == drawn

    def __str__(self) -> str:
        """Return it as text."""
        return self.text()

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_mimebundle_(self, **_asked: object) -> dict[str, str]:
        """Give notebooks the SVG where it can be drawn, and text in any case."""
        bundle = {"text/plain": self.text(), "text/markdown": self.markdown()}
        with suppress(CannotDraw):  # Markdown holds a Mermaid block
            bundle["image/svg+xml"] = self.svg()
        return bundle


ENDINGS: Final = ", ".join(f".{form}" for form in Format)


def format_of(path: Path) -> Format:
    """Return the form that a file name asks for. Raises `NoSuchForm` for an unknown ending."""
    try:
        return Format(path.suffix.removeprefix(".").lower())
    except ValueError:
        raise NoSuchForm(
            f"{path.name!r} names no form of a picture; end it with one of {ENDINGS}"
        ) from None


def _line_ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _replace(target: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)  # noqa: PTH101 - mkstemp makes files of its own alone
        os.replace(name, target)  # noqa: PTH105
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
