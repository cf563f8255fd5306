"""Expected and got, side by side, below a diagram."""

from __future__ import annotations

from typing import Final

from ..drawing.canvas import Canvas
from ..drawing.lettering import fitted, width_of
from ..palette import GREEN, TINTS, Look
from .answers import Comparison, Pair
from .layout import LINE, MARGIN, SIZE, WIDTH

RIGHT: Final = Look(GREEN, "=")
"""How what is right looks."""
_ROW: Final = 20
_FIELD, _EXPECTED, _GOT = MARGIN + 24, 392, 672
_PAD: Final = 12


def draw_panel(canvas: Canvas, comparison: Comparison, *, top: float) -> float:
    """Draw it with its upper edge at `top`, and return where its lower edge is."""
    right = RIGHT.stroke(canvas.theme)
    y = top + 16
    if comparison.more:
        canvas.text(MARGIN, y, comparison.more, fill=canvas.paper.soft)
        y += LINE + 6
    for x, words, colour in (
        (_FIELD, "field", canvas.paper.soft),
        (_EXPECTED, "= expected", right),
        (_GOT, "≠ got", canvas.paper.warning),
    ):
        canvas.text(x, y, words, fill=colour, font_weight="600")
    y += 7
    beginning = y
    for pair in comparison.pairs:
        _draw_pair(canvas, pair, y)
        y += _ROW
    for x, colour in ((_EXPECTED, right), (_GOT, canvas.paper.warning)):
        canvas.line(x - 10, beginning, x - 10, y, stroke=colour, stroke_width="3")
    return y


def _draw_pair(canvas: Canvas, pair: Pair, top: float) -> None:
    y = top + 14
    room = _EXPECTED - _FIELD - 2 * _PAD
    name = fitted(f" {pair.name}", room, SIZE) if pair.name else ""
    part = fitted(pair.part, room - width_of(name, SIZE), SIZE)
    columns = (
        (_FIELD, _EXPECTED, f"{part}{name}".strip()),
        (_EXPECTED, _GOT, pair.expected),
        (_GOT, WIDTH - MARGIN + _PAD, pair.got),
    )
    title = f"{pair.field}: expected {pair.expected}, got {pair.got}"
    with canvas.group(title=title):
        if pair.differs:
            tint = TINTS[canvas.theme]
            canvas.rect(MARGIN, top, WIDTH - 2 * MARGIN, _ROW, fill=tint)
        canvas.text(MARGIN + 6, y, "≠" if pair.differs else "=", size=SIZE)
        for x, end, words in columns:
            canvas.text(x, y, fitted(words, end - x - 2 * _PAD, SIZE), size=SIZE)
        canvas.line(MARGIN, top + _ROW, WIDTH - MARGIN, top + _ROW)
