"""The shapes of a timeline: bars with their patterns, outcomes, and marks."""

from __future__ import annotations

from typing import Final, TypeAlias

from ..drawing.canvas import Canvas
from ..palette import Look
from .looks import Drawn
from .spans import MarkKind

SIGN: Final = 7.0
"""Radius of the sign of an outcome."""
HIDDEN: Final = 0.6
"""A bar is at least so wide, so that no span is invisible."""


Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, width, height."""


def bar(canvas: Canvas, drawn: Drawn, box: Box, *, title: str = "") -> None:
    """Draw a bar of one kind: solid, hollow, dotted or striped."""
    x, y, width, height = box
    look, theme = drawn.look, canvas.theme
    stroke = look.stroke(theme)
    fill = stroke if drawn.solid else "none" if drawn.hollow else look.fill(theme)
    wide = max(width, HIDDEN)
    canvas.rect(x, y, wide, height, title=title, fill=fill, stroke=stroke, pointer_events="all")
    if drawn.dashes and width > drawn.weight:
        middle = y + height / 2
        canvas.line(
            x + 2,
            middle,
            x + width - 1,
            middle,
            stroke=stroke,
            stroke_width=str(drawn.weight),
            stroke_dasharray=drawn.dashes,
            stroke_linecap="round" if drawn.dashes.startswith("0") else "butt",
            pointer_events="none",
        )


def onwards(canvas: Canvas, look: Look, x: float, y: float, height: float) -> None:
    """Draw the tip of a bar that goes on beyond what is known."""
    d = f"M{x:.1f} {y:.1f}l{height / 2:.1f} {height / 2:.1f}l-{height / 2:.1f} {height / 2:.1f}"
    canvas.path(d, stroke=look.stroke(canvas.theme), stroke_width="1.5")


def sign(canvas: Canvas, look: Look, x: float, y: float) -> None:
    """Draw how something ended: its sign in a disc, left of which `x` is."""
    x += SIGN + 2
    stroke = look.stroke(canvas.theme)
    side = 2 * SIGN
    canvas.rect(
        x - SIGN, y - SIGN, side, side, rx=str(SIGN), fill=look.fill(canvas.theme), stroke=stroke
    )
    canvas.text(x, y + 4, look.sign, size=11, text_anchor="middle", font_weight="700")


def deadline(canvas: Canvas, x: float, y: float, *, met: bool) -> None:
    """Draw a tip that points down at its time; one that was met is hollow."""
    ink = canvas.paper.ink
    fill = canvas.paper.ground if met else ink
    canvas.path(f"M{x - 3.5:.1f} {y:.1f}h7l-3.5 5.5z", fill=fill, stroke=ink)


def refusal(canvas: Canvas, x: float, y: float) -> None:
    """Draw a refused delivery: a small cross."""
    d = f"M{x - 2.5:.1f} {y - 2.5:.1f}l5 5m0 -5l-5 5"
    canvas.path(d, stroke=canvas.paper.warning, stroke_width="1.4")


def across(canvas: Canvas, kind: MarkKind, x: float, sides: tuple[float, float]) -> None:
    """Draw what happened within a bar: a line across it, from its upper to its lower side."""
    top, low = sides
    fields = {"stroke": canvas.paper.ink, "stroke_width": "2", "stroke_dasharray": "2 2"}
    if kind is MarkKind.RENEWED:
        fields |= {"stroke": canvas.paper.ground, "stroke_dasharray": "none"}
    elif kind is MarkKind.INTERRUPT:
        fields |= {"stroke": canvas.paper.warning, "stroke_dasharray": "none"}
    reach = 0 if kind is MarkKind.RENEWED else 3
    canvas.line(x, top - reach, x, low + reach, **fields)
