"""PNG: pixels of the asked size, with letters; what is missing or too large is told."""

from __future__ import annotations

import struct
import sys
from types import SimpleNamespace

import pytest

from turnlock.diagrams.drawing.engines import png_of
from turnlock.diagrams.errors import CannotDraw

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20" viewBox="0 0 40 20">'
    '<text x="2" y="15" font-size="13">turn</text></svg>'
)


def size_of(png: bytes) -> tuple[int, int]:
    """Width and height, from the header."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


@pytest.mark.parametrize(("scale", "size"), [(1, (40, 20)), (2, (80, 40)), (1.5, (60, 30))])
def test_an_image_has_so_many_pixels_for_each(scale: float, size: tuple[int, int]) -> None:
    """The scale is that of the drawing's own pixels."""
    assert size_of(png_of(SVG, scale=scale)) == size


def test_text_is_drawn() -> None:
    """With letters brought along, where a machine has none."""
    assert png_of(SVG) != png_of(SVG.replace("turn", ""))


def test_without_letters_brought_along_those_of_the_machine_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A missing font package is no reason not to draw."""
    monkeypatch.setitem(sys.modules, "font_source_sans_pro", None)

    assert size_of(png_of(SVG)) == (80, 40)


def test_without_resvg_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra has it."""
    monkeypatch.setitem(sys.modules, "resvg_py", None)

    with pytest.raises(CannotDraw, match=r"is missing: pip install 'turnlock\[diagrams\]'"):
        png_of(SVG)


@pytest.mark.parametrize(
    ("svg", "told"),
    [
        ("<svg/>", "does not say its width"),
        (SVG.replace('"40"', '"40000"').replace('"20"', '"20000"'), "more than 64000000"),
        (SVG.replace("</svg>", ""), "resvg failed"),
    ],
)
def test_what_cannot_be_drawn_is_told(svg: str, told: str) -> None:
    """Before memory is taken, where that can be."""
    with pytest.raises(CannotDraw, match=told):
        png_of(svg)


def test_what_is_no_png_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a later version may give."""

    def gif(**_: object) -> bytes:
        return b"GIF89a"

    monkeypatch.setitem(sys.modules, "resvg_py", SimpleNamespace(svg_to_bytes=gif))

    with pytest.raises(CannotDraw, match="no PNG"):
        png_of(SVG)
