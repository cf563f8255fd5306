"""The words beside the boxes and arrows of a state diagram, cut and in lines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

import attrs

from ..drawing.lettering import fitted, width_of
from ..palette import look_of
from .graph import Edge, Mark, Move, Node

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
