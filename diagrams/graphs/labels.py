"""The words beside the boxes and arrows of a state diagram, cut and in lines."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Final

import attrs

from ..drawing.lettering import fitted, width_of
from ..palette import BLUE, PAPERS, Look, Theme, look_of
from .graph import Edge, Graph, Mark, Move, Node

SIGNS: Final = {
    Mark.PLAIN: "",
    Mark.TAKEN: "●",
    Mark.CURRENT: "◉",
    Mark.NEVER: "!",
    Mark.FADED: "",
    Mark.REFUSED: "✕",
}
"""Marks where there are no colours, in text and in Mermaid."""

NAME_SIZE: Final = 14
"""Pixels of a phase's name."""
SIZE: Final = 11
"""Pixels of everything else."""
WIDEST: Final = 260
"""Pixels that a line may take."""
MOVES: Final = 24
"""Moves that are written at one arrow; of the others the number is said."""
REFUSALS: Final = 8
"""The same, in the box of a phase."""
HERE: Final = "here"
NEVER: Final = "never"
_BOLD: Final = 1.08
_NAMELESS: Final = '""'


@attrs.frozen(kw_only=True)
class Line:
    """One line of a label; `sign` stands before the text.

    `move` is the place in its edge of the move that it is for.
    """

    text: str
    sign: str = ""
    size: int = SIZE
    bold: bool = False
    soft: bool = False
    mark: Mark = Mark.PLAIN
    move: int | None = None

    @property
    def width(self) -> float:
        """Pixels that it takes, on the generous side."""
        return width_of(str(self), self.size) * (_BOLD if self.bold else 1)

    def __str__(self) -> str:
        """Return all of it."""
        return f"{self.sign} {self.text}" if self.sign else self.text


def node_words(node: Node) -> tuple[str, ...]:
    """Return what is to be said of a phase besides its name."""
    said = [node.note] if node.note else []
    if node.mark is Mark.CURRENT:
        said.insert(0, HERE)
    if node.mark is Mark.NEVER and NEVER not in node.note:
        said.insert(0, NEVER)
    return tuple(said)


def move_words(move: Move) -> str:
    """Return the move without its fact; one never made says so."""
    words = str(attrs.evolve(move, input=move.input.strip() or _NAMELESS, fact=""))
    return f"{words} · {NEVER}" if move.mark is Mark.NEVER and NEVER not in move.note else words


def node_lines(node: Node) -> tuple[Line, ...]:
    """Return sign and name, then what is to be said below."""
    first = Line(
        text=fitted(node.name.strip() or _NAMELESS, WIDEST, NAME_SIZE),
        sign=look_of(node.name).sign,
        size=NAME_SIZE,
        bold=True,
        mark=node.mark,
    )
    words = node_words(node)
    if not words:
        return (first,)
    return (first, Line(text=fitted(" · ".join(words), WIDEST, SIZE), mark=node.mark))


def is_in_box(edge: Edge) -> bool:
    """Whether an edge is written in the box of its phase: what was refused went nowhere.

    Loops would be drawn one around the other, and across each other's labels.
    """
    return edge.mark is Mark.REFUSED and edge.source == edge.target


def refused_lines(edge: Edge) -> tuple[Line, ...]:
    """Return a line for each refused delivery, as they stand in the box of the phase."""
    lines = [
        Line(
            text=fitted(move_words(move), WIDEST, SIZE),
            sign=SIGNS[Mark.REFUSED],
            move=place,
        )
        for place, move in enumerate(edge.moves[:REFUSALS])
    ]
    if len(edge.moves) > REFUSALS:
        lines.append(Line(text=f"and {len(edge.moves) - REFUSALS} more", soft=True))
    return tuple(lines)


def edge_lines(edge: Edge) -> tuple[Line, ...]:
    """Return a line for each move; moves in a row to one fact share the line that names it."""
    return tuple(_edge_lines(edge))


def _edge_lines(edge: Edge) -> Iterator[Line]:
    places = range(min(len(edge.moves), MOVES))
    for fact, group in groupby(places, key=lambda place: edge.moves[place].fact):
        marks: set[Mark] = set()
        for place in group:
            move = edge.moves[place]
            marks.add(move.mark)
            yield Line(
                text=fitted(move_words(move), WIDEST, SIZE),
                bold=move.mark is Mark.TAKEN,
                mark=move.mark,
                move=place,
            )
        if fact:
            mark = marks.pop() if len(marks) == 1 else Mark.PLAIN
            yield Line(text=fitted(f"/ {fact}", WIDEST, SIZE), soft=True, mark=mark)
    if len(edge.moves) > MOVES:
        yield Line(text=f"and {len(edge.moves) - MOVES} more", soft=True)


LONGEST: Final = 60
"""Characters of a name in an id; of a longer one a digest is part."""


def word(name: str) -> str:
    """Return a name as part of an id."""
    if len(name) > LONGEST:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return f"{_spelt(name[: LONGEST - 20])}.{digest}"
    return _spelt(name)


def _spelt(name: str) -> str:
    return "".join(
        sign if sign.isascii() and (sign.isalnum() or sign == "_") else f".{ord(sign):x}."
        for sign in name
    )


def picture_id(name: str) -> str:
    """Return a graph's name as the beginning of all ids in its picture."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name[:LONGEST]).strip("-") or "graph"


def phase_id(name: str) -> str:
    """Return the id of a phase, such as ``phase-REQUESTED``."""
    return f"phase-{word(name)}"


def initial_id(name: str) -> str:
    """Return the id of the mark that shows where a machine begins."""
    return f"initial-{word(name)}"


class Ids:
    """The ids of the edges and moves of one graph, by their places in it."""

    def __init__(self, graph: Graph) -> None:
        """Give each its id; a second of the same names gets a number."""
        self._given: set[str] = set()
        self.edges = tuple(self._new(_edge_id(edge)) for edge in graph.edges)
        self.moves = tuple(
            tuple(self._new(_move_id(edge, move)) for move in edge.moves) for edge in graph.edges
        )

    def _new(self, wanted: str) -> str:
        made, number = wanted, 1
        while made in self._given:
            number += 1
            made = f"{wanted}-{number}"
        self._given.add(made)
        return made


def _edge_id(edge: Edge) -> str:
    refused = "-refused" if edge.mark is Mark.REFUSED else ""
    return f"edge-{word(edge.source)}-{word(edge.target)}{refused}"


def _move_id(edge: Edge, move: Move) -> str:
    parts = [word(part) for part in (edge.source, move.input, move.guard) if part]
    return "-".join(("move", *parts))


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
