"""What every picture can do: be rendered in a format, be shown in a notebook, be kept in a file.

A picture is drawn whole before the file is touched, and the file is replaced in one step: a failed
draw leaves nothing behind, and what stood there stays.
"""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from .drawing.tables import Table, markdown_table, page, plain_markdown
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


GRAPHS_ALONE: Final = frozenset({Format.DOT})
"""Forms that only state diagrams have."""
WITH_TABLES: Final = frozenset({Format.MARKDOWN, Format.HTML, Format.TEXT})
"""Forms that hold tables beside the picture."""


class Picture(ABC):
    """Base of all pictures. They are immutable, and the same picture is drawn the same way."""

    formats: frozenset[Format] = frozenset(Format) - GRAPHS_ALONE
    """The forms that this kind of picture has."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is called, on one line."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What it shows, for those who cannot see it."""

    @abstractmethod
    def svg(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return one `svg` element with `title` and `desc`. Raises `CannotDraw`."""

    @abstractmethod
    def mermaid(self) -> str:
        """Return a Mermaid diagram, without a fence."""

    @abstractmethod
    def text(self) -> str:
        """Return plain text for a terminal, at most 100 columns wide."""

    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """Return the tables that stand below it."""

    def drawings(self, theme: Theme) -> list[str]:
        """Return the pictures of a page, each an `svg` element."""
        return [self.svg(theme=theme)]

    def dot(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return it in the language of Graphviz. Raises `NoSuchForm` for what is no graph."""
        raise NoSuchForm(f"a {type(self).__name__} is no graph ({theme}); {self._others()}")

    def markdown(self) -> str:
        """Return Markdown with a Mermaid block and the tables."""
        parts = [f"# {plain_markdown(self.title)}", plain_markdown(self.description)]
        parts.append(f"```mermaid\n{self.mermaid()}```")
        parts += self.sections()
        return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"

    def sections(self) -> list[str]:
        """Return what stands below the diagram in Markdown: the tables."""
        return [markdown_table(table) for table in self.tables()]

    def html(self, *, theme: Theme = Theme.LIGHT) -> str:
        """Return one whole page that needs no network, no script and no other file."""
        return page(
            title=self.title,
            description=self.description,
            pictures=self.drawings(theme),
            tables=self.tables(),
            theme=theme,
        )

    def png(self, *, theme: Theme = Theme.LIGHT) -> bytes:
        """Return a PNG image of the SVG, at twice its size. Raises `CannotDraw`."""
        from .drawing.engines import png_of  # noqa: PLC0415 - most forms need no engine

        return png_of(self.svg(theme=theme))

    def render(self, form: Format, *, theme: Theme = Theme.LIGHT) -> bytes:
        """Return what a file of this form holds. Raises `NoSuchForm` and `CannotDraw`."""
        if form not in self.formats:
            raise NoSuchForm(f"a {type(self).__name__} has no form {form}; {self._others()}")
        drawn = WRITERS[form](self, theme)
        if isinstance(drawn, bytes):
            return drawn
        return (drawn if drawn.endswith("\n") else f"{drawn}\n").encode("utf-8")

    def _others(self) -> str:
        return f"ask for one of {', '.join(sorted(self.formats))}"

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


WRITERS: Final[dict[Format, Callable[[Picture, Theme], str | bytes]]] = {
    Format.SVG: lambda picture, theme: picture.svg(theme=theme),
    Format.PNG: lambda picture, theme: picture.png(theme=theme),
    Format.DOT: lambda picture, theme: picture.dot(theme=theme),
    Format.MERMAID: lambda picture, _: picture.mermaid(),
    Format.MARKDOWN: lambda picture, _: picture.markdown(),
    Format.HTML: lambda picture, theme: picture.html(theme=theme),
    Format.TEXT: lambda picture, _: picture.text(),
}
"""How each form is written. A new form is a `Format`, an entry here, and what writes it."""

ENDINGS: Final = ", ".join(f".{form}" for form in Format)


def format_of(path: Path) -> Format:
    """Return the form that a file name asks for. Raises `NoSuchForm` for an unknown ending."""
    try:
        return Format(path.suffix.removeprefix(".").lower())
    except ValueError:
        raise NoSuchForm(
            f"{path.name!r} names no form of a picture; end it with one of {ENDINGS}"
        ) from None


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
