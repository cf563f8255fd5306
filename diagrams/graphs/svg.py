"""A graph as SVG: Graphviz says where, we draw.

Every phase, arrow and move is a group with an id of its own (`ids`) and a title, which browsers
show as a tooltip and screen readers read. Labels stand above all arrows, with a rim that keeps
lines off the letters.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from math import ceil
from typing import Final

from ..drawing.canvas import Canvas
from ..drawing.engines import Engine, svg_of
from ..drawing.lettering import fitted, folded, measured, width_of
from ..errors import CannotDraw
from ..palette import PAPERS, Theme
from .dot import dot_of
from .graph import Edge, Graph, Mark, Move, Node
from .labels import (
    SIZE,
    Ids,
    Line,
    edge_lines,
    initial_id,
    ink_of,
    is_in_box,
    mark_pen,
    node_lines,
    node_words,
    phase_id,
    picture_id,
    refused_lines,
)
from .layout import Layout, Place, layout_of, parted

_FITTING: Final = {"lengthAdjust": "spacingAndGlyphs"}
_SIGNS: Final = "'DejaVu Sans', 'Segoe UI Symbol', 'Apple Symbols', sans-serif"
"""A run of letters that lacks one is drawn in other letters throughout: signs stand apart."""
_ASIDE: Final = 0.5
"""Of its size, how far a name gives way to its sign."""
_CLEAR: Final = 4.0
"""Pixels that a label keeps from its arrow."""
_LOOP: Final = (6.0, 9.0)
"""Pixels that the label of a loop is moved right and up: beneath it other arrows leave the box."""
_ABOVE: Final = 12.0
"""Pixels from the first refused delivery up to the rule above it."""
_ENTRY: Final = 22.0
"""Pixels of a line of the legend."""
_SWATCH: Final = 26.0
_WORDS: Final = 600.0
"""Pixels that the words of an entry may take."""
_EDGE: Final = 9.0
"""Pixels around the legend, and before the title."""
_TITLE: Final = 16
_HEAD: Final = 30.0
_LINE: Final = 16.0
"""Pixels of the title, and of each line below it where the description tells what happened."""


def svg_text(graph: Graph, *, theme: Theme = Theme.LIGHT, engine: Engine = Engine.AUTO) -> str:
    """Return the picture as one `svg` element. Raises `CannotDraw`."""
    layout = layout_of(svg_of(dot_of(graph, theme=theme), engine=engine))
    layout = parted(layout, graph)
    return _Drawing(graph, layout, theme).done()


class _Drawing:
    def __init__(self, graph: Graph, layout: Layout, theme: Theme) -> None:
        self._graph = graph
        self._layout = layout
        self._theme = theme
        self._paper = PAPERS[theme]
        self._ids = Ids(graph)
        self._legend = _legend_rows(graph.legend, layout.width)
        self._canvas = Canvas(
            name=picture_id(graph.name),
            title=graph.title,
            description=graph.description,
            width=ceil(max([layout.width + 2 * _CLEAR, *map(_row_width, self._legend)])),
            theme=theme,
        )

    def done(self) -> str:
        canvas, graph = self._canvas, self._graph
        head = self._head()
        with canvas.group(transform=f"translate(0 {head:g}) {self._layout.transform}"):
            for edge, id_ in zip(graph.edges, self._ids.edges, strict=True):
                if not is_in_box(edge):
                    self._outlines(id_, title=_edge_title(edge))
            for node in graph.nodes:
                self._node(node)
            for number, edge in enumerate(graph.edges):
                if not is_in_box(edge):
                    self._label(number)
        top = head + self._layout.height
        return canvas.done(ceil(top + self._key(top)))

    def _head(self) -> float:
        """Write the title, and below it what happened; return how high that is."""
        canvas, graph = self._canvas, self._graph
        room = canvas.width - 2 * _EDGE
        title = fitted(graph.title, room, _TITLE)
        canvas.text(_EDGE, 22, title, size=_TITLE, font_weight="600")
        if not graph.legend:  # the plain machine: nothing happened
            return _HEAD
        y = _HEAD - 6
        for line in folded(graph.description, room, 12):
            y += _LINE
            canvas.text(_EDGE, y, line, size=12, fill=canvas.paper.soft)
        return y + 10

    def _place(self, id_: str) -> Place:
        try:
            return self._layout.places[id_]
        except KeyError:
            raise CannotDraw(f"Graphviz left out {id_}") from None

    def _outlines(self, id_: str, *, title: str = "") -> None:
        with self._canvas.group(id_, title=title):
            self._shapes(self._place(id_))

    def _shapes(self, place: Place) -> None:
        for shape in place.shapes:
            paint = {name.replace("-", "_"): value for name, value in shape.paint}
            self._canvas.path(shape.path, **paint)

    def _node(self, node: Node) -> None:
        if node.initial:
            self._outlines(initial_id(node.name))
            self._outlines(f"{initial_id(node.name)}-arrow", title=f"begins in {node.name}")
        place = self._place(phase_id(node.name))
        lines = node_lines(node)
        with self._canvas.group(phase_id(node.name), title=_node_title(node)):
            self._shapes(place)
            for line, (x, y) in zip(lines, place.lines, strict=False):
                self._line(line, x, y)
        left = place.lines[len(lines) :]
        for number, edge in enumerate(self._graph.edges):
            if is_in_box(edge) and edge.source == node.name:
                left = self._refused(number, left)

    def _refused(
        self, number: int, places: tuple[tuple[float, float], ...]
    ) -> tuple[tuple[float, float], ...]:
        """Write what was refused below a dashed line; return the places that are left."""
        edge = self._graph.edges[number]
        lines = refused_lines(edge)
        with self._canvas.group(self._ids.edges[number], title=_edge_title(edge)):
            x, y = places[0]
            half = max(line.width for line in lines) / 2
            pen = mark_pen(Mark.REFUSED, self._theme)
            rule = {"stroke": pen.colour, "stroke_dasharray": "5,2"}
            self._canvas.line(x - half, y - _ABOVE, x + half, y - _ABOVE, **rule)
            for line, (at, down) in zip(lines, places, strict=False):
                with self._move(number, line):
                    self._line(line, at, down)
        return places[len(lines) :]

    def _move(self, number: int, line: Line) -> AbstractContextManager[None]:
        """Open the group of the move that a line is for; other lines need none."""
        if line.move is None:
            return nullcontext()
        edge = self._graph.edges[number]
        title = _move_title(edge, edge.moves[line.move])
        return self._canvas.group(self._ids.moves[number][line.move], title=title)

    def _line(self, line: Line, x: float, y: float) -> None:
        """Write one line of a phase's label around `x`, its sign apart at the left."""
        if line.sign:
            left = x - (line.width - line.size) / 2
            self._write(line, line.sign, left, y, font_family=_SIGNS)
            x += line.size * _ASIDE
        self._write(line, line.text, x, y)

    def _write(self, line: Line, words: str, x: float, y: float, **attributes: str) -> None:
        self._canvas.text(
            x,
            y,
            words,
            size=line.size,
            mono=False,
            fill=ink_of(line.mark, self._theme, soft=line.soft),
            font_weight="bold" if line.bold else "normal",
            **{"text_anchor": "middle", **attributes},
        )

    def _label(self, number: int) -> None:
        """Write the label of an edge: each move in a group of its own, facts between them."""
        edge = self._graph.edges[number]
        id_ = self._ids.edges[number]
        right, up = _LOOP if edge.source == edge.target else (_CLEAR, 0)
        with self._canvas.group(f"{id_}-label"):
            for line, (x, y) in zip(edge_lines(edge), self._place(id_).lines, strict=True):
                with self._move(number, line):
                    self._rimmed(line, x + right, y - up)

    def _rimmed(self, line: Line, x: float, y: float) -> None:
        """Write beside an arrow, where wider letters than were measured would touch others."""
        length = measured(line.text, line.size)
        fitting = {} if length is None else {"textLength": f"{length:.1f}", **_FITTING}
        self._write(
            line,
            line.text,
            x,
            y,
            text_anchor="start",
            stroke=self._paper.ground,
            stroke_width="3",
            stroke_linejoin="round",
            paint_order="stroke",
            **fitting,
        )

    def _key(self, top: float) -> float:
        """Draw the legend; return how high it is."""
        y = top
        for row in self._legend:
            x = _EDGE
            for mark, words in row:
                self._swatch(mark, x, y + _ENTRY / 2)
                self._canvas.text(x + _SWATCH + 6, y + _ENTRY / 2 + 4, words, size=SIZE)
                x += _entry_width((mark, words))
            y += _ENTRY
        return y - top + (_EDGE if self._legend else 0)

    def _swatch(self, mark: Mark, x: float, y: float) -> None:
        pen = mark_pen(mark, self._theme)
        paint = {"stroke": pen.colour, "stroke_width": f"{pen.width:g}"}
        if mark is Mark.CURRENT:
            self._canvas.rect(x + 4, y - 6, 18, 12, rx="3", fill="none", **paint)
            return
        if pen.dashed:
            paint["stroke_dasharray"] = "5,2"
        self._canvas.line(x, y, x + _SWATCH, y, **paint)


def _legend_rows(
    legend: tuple[tuple[Mark, str], ...], width: float
) -> list[list[tuple[Mark, str]]]:
    """Share the entries out to lines no wider than the picture."""
    rows: list[list[tuple[Mark, str]]] = []
    left = 0.0
    for mark, words in legend:
        entry = (mark, fitted(words, _WORDS, SIZE))
        needed = _entry_width(entry)
        if not rows or needed > left:
            rows.append([])
            left = width - _EDGE
        rows[-1].append(entry)
        left -= needed
    return rows


def _row_width(row: list[tuple[Mark, str]]) -> float:
    return _EDGE + sum(map(_entry_width, row))


def _entry_width(entry: tuple[Mark, str]) -> float:
    return _SWATCH + 24 + width_of(entry[1], SIZE)


def _edge_title(edge: Edge) -> str:
    moves = "; ".join(map(str, edge.moves))
    return f"{edge.source} → {edge.target}: {moves}"


def _move_title(edge: Edge, move: Move) -> str:
    return f"{edge.source} → {edge.target}: {move}"


def _node_title(node: Node) -> str:
    said = [
        *(["begins here"] if node.initial else []),
        *(["ends here"] if node.terminal else []),
        *node_words(node),
    ]
    return f"{node.name} ({', '.join(said)})" if said else node.name
