"""From SVG to pixels, by resvg, with the letters of the machine and a family brought along."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Final

from ...models.safe_text import harmless
from ..errors import CannotDraw

MOST_PIXELS: Final = 64_000_000
"""Of one image: 256 MB while it is drawn."""
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_SIZE: Final = re.compile(r'<svg\b[^>]*?\swidth="([\d.]+)(?:px|pt)?"[^>]*?\sheight="([\d.]+)')
_FAMILY: Final = "Source Sans Pro"
_FACES: Final = ("Regular", "Bold")
_TOLD: Final = 400


def png_of(svg: str, *, scale: float = 2) -> bytes:
    """Return an SVG as a PNG image, `scale` pixels for each of its own.

    Raises `CannotDraw` when resvg is missing or fails, or when the image would have more than
    `MOST_PIXELS`.
    """
    try:
        resvg = import_module("resvg_py")
    except ImportError as error:
        raise CannotDraw(
            "resvg_py, which draws PNG, is missing: pip install 'turnlock[diagrams]'"
        ) from error
    _check_size(svg, scale)
    try:
        drawn = bytes(
            resvg.svg_to_bytes(
                svg_string=svg,
                zoom=scale,
                dpi=96,
                font_files=_letters(),
                font_family=_FAMILY,
                sans_serif_family=_FAMILY,
            )
        )
    except Exception as error:  # what resvg raises has no class of its own
        raise CannotDraw(f"resvg failed: {harmless(str(error), limit=_TOLD)}") from error
    if not drawn.startswith(_SIGNATURE):
        raise CannotDraw("resvg gave something that is no PNG: upgrade resvg_py")
    return drawn


def _check_size(svg: str, scale: float) -> None:
    found = _SIZE.search(svg)
    if found is None:
        raise CannotDraw("the SVG does not say its width and height in pixels")
    width, height = (float(length) * scale for length in found.groups())
    if width * height > MOST_PIXELS:
        raise CannotDraw(
            f"the image would be {width:.0f} × {height:.0f} pixels, more than {MOST_PIXELS} in "
            "all: draw less, or ask for .svg"
        )


def _letters() -> list[str]:
    """Return the letters brought along; without them those of the machine must do."""
    try:
        fonts = import_module("font_source_sans_pro")
    except ImportError:
        return []
    return [str(Path(fonts.font_directory) / f"SourceSansPro-{face}.ttf") for face in _FACES]
