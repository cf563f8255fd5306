"""How a mark looks: colours never say alone what a dash, a width or a word does not say too."""

from __future__ import annotations

from typing import Final

import attrs

from ..palette import BLUE, PAPERS, Look, Theme, look_of
from .graph import Edge, Mark, Node

_TAKEN: Final = Look(BLUE, "")
_THICK: Final = 3.5
"""Pixels that a full weight adds to an arrow."""


@attrs.frozen(kw_only=True)
class Pen:
    """A line: ``#rrggbb``, pixels, and whether it is dashed."""

    colour: str
    width: float = 1.2
    dashed: bool = False


def arrow_pen(edge: Edge, theme: Theme) -> Pen:
    """Return the line of an arrow; its weight makes it thicker."""
    pen = mark_pen(edge.mark, theme)
    return attrs.evolve(pen, width=pen.width + _THICK * min(1.0, max(0.0, edge.weight)))


def mark_pen(mark: Mark, theme: Theme) -> Pen:
    """Return the line that a mark alone asks for."""
    paper = PAPERS[theme]
    if mark in {Mark.TAKEN, Mark.CURRENT}:
        return Pen(colour=_TAKEN.stroke(theme), width=2.4)
    if mark is Mark.NEVER:
        return Pen(colour=paper.warning, width=1.6, dashed=True)
    if mark is Mark.REFUSED:
        return Pen(colour=paper.soft, dashed=True)
    return Pen(colour=paper.grid if mark is Mark.FADED else paper.soft)


def frame_pen(node: Node, theme: Theme) -> Pen:
    """Return the frame of a phase."""
    if node.mark in {Mark.NEVER, Mark.FADED}:
        return mark_pen(node.mark, theme)
    # the two frames of a terminal phase stand four pixels apart
    widths = {Mark.CURRENT: 2.8 if node.terminal else 4.5, Mark.TAKEN: 2.4}
    return Pen(colour=look_of(node.name).stroke(theme), width=widths.get(node.mark, 1.4))


def fill_of(node: Node, theme: Theme) -> str:
    """Return the colour inside the frame."""
    if node.mark in {Mark.NEVER, Mark.FADED}:
        return PAPERS[theme].ground
    return look_of(node.name).fill(theme)


def ink_of(mark: Mark, theme: Theme, *, soft: bool = False) -> str:
    """Return the colour of text."""
    paper = PAPERS[theme]
    if mark is Mark.NEVER:
        return paper.warning
    return paper.soft if soft or mark in {Mark.FADED, Mark.REFUSED} else paper.ink
