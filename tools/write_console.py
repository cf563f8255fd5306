"""Write the machine's picture into server/console/index.html, from the table that is enforced.

With --check, compare instead of writing. The picture is also the table by which the console folds
facts: each arrow names the phases that it joins, and the facts that lead along it. Colours are the
stylesheet's, so that the picture follows the colour scheme and lights the phase of a call.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html import escape
from typing import Final

import attrs
from generated import ROOT, keep

from turnlock.diagrams.drawing.engines import Engine, svg_of
from turnlock.diagrams.graphs.dot import dot_of
from turnlock.diagrams.graphs.extract import graph_of
from turnlock.diagrams.graphs.graph import Edge, Graph, Node
from turnlock.diagrams.graphs.labels import Ids, initial_id, phase_id
from turnlock.diagrams.graphs.layout import Layout, Place, box_of, ends_of, layout_of, parted
from turnlock.diagrams.palette import look_of
from turnlock.lifecycle.table import INVOCATION

PAGE: Final = ROOT / "server" / "console" / "index.html"
BEGIN: Final = "<!-- the machine: written by make tables -->"
END: Final = "<!-- the machine's end -->"

PHASES: Final = (
    *("SUCCEEDED", "REQUESTED", "APPROVED", "DENIED", "FAILED", "RETRY_AUTHORISED"),
    *("IN_DOUBT", "STARTED"),
)
ARROWS: Final = (
    ("STARTED", "IN_DOUBT"),
    ("IN_DOUBT", "RETRY_AUTHORISED"),
    ("RETRY_AUTHORISED", "IN_DOUBT"),
    ("REQUESTED", "APPROVED"),
    ("REQUESTED", "FAILED"),
    ("APPROVED", "DENIED"),
    ("REQUESTED", "DENIED"),
    ("RETRY_AUTHORISED", "SUCCEEDED"),
    ("APPROVED", "FAILED"),
    ("STARTED", "SUCCEEDED"),
    ("RETRY_AUTHORISED", "FAILED"),
    ("RETRY_AUTHORISED", "STARTED"),
    ("IN_DOUBT", "SUCCEEDED"),
    ("IN_DOUBT", "FAILED"),
    ("REQUESTED", "STARTED"),
    ("APPROVED", "STARTED"),
    ("STARTED", "FAILED"),
)
"""Graphviz lays out by the order of statements. Of 1,500 tried, this one has a single crossing and
is 379 pixels wide: it stands in a column. What the table has besides comes last."""

TIP: Final = (
    '<marker id="tip" viewBox="0 0 8 6" refX="0" refY="3" markerWidth="8" markerHeight="6" '
    'markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0L8,3L0,6z"/></marker>'
)
_NARROW: Final = (
    ("nodesep=0.22", "nodesep=0.16"),
    ("ranksep=0.32", "ranksep=0.3"),
    (r'"↻ RETRY_AUTHORISED\n"', r'"↻ RETRY_\nAUTHORISED\n"'),
    ("width=2.88", "width=1.75"),
)
_TWO_LINES: Final = 12
"""Letters beyond which a name stands in two lines."""
_LINE: Final = 15
_DOT: Final = 6
"""Pixels from the middle of the beginning to its rim."""
_INSET: Final = 4
"""Pixels between the two frames of a phase that ends."""


def main() -> int:
    """Write the page, or compare it."""
    text = PAGE.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        sys.stderr.write(f"{PAGE.name} has no place for the picture: {BEGIN} … {END}\n")
        return 1
    head, rest = text.split(BEGIN)
    filled = f"{head}{BEGIN}\n{picture()}\n{END}{rest.split(END)[1]}"
    return keep({PAGE: filled}, told_by="the table says")


def picture() -> str:
    """Return the picture as one `svg` element that has no colours of its own."""
    graph = _without_loops(graph_of(INVOCATION))
    layout = _laid_out(graph)
    drawing = _Drawing(layout)
    parts = [*drawing.beginning(graph)]
    for edge, id_ in zip(graph.edges, Ids(graph).edges, strict=True):
        parts.append(drawing.arrow(edge, layout.places[id_]))
    parts += [drawing.phase(node) for node in graph.nodes]
    size = f"0 0 {layout.width:.0f} {layout.height:.0f}"
    return (
        f'<svg id="machine" role="img" viewBox="{size}" aria-labelledby="path">\n'
        f"{TIP}\n" + "\n".join(parts) + "\n</svg>"
    )


def _without_loops(graph: Graph) -> Graph:
    """Leave out moves that change no phase: they say nothing of where a call stands."""
    order = {pair: place for place, pair in enumerate(ARROWS)}
    edges = [edge for edge in graph.edges if edge.source != edge.target]
    edges.sort(key=lambda edge: order.get((edge.source, edge.target), len(order)))
    return attrs.evolve(graph, edges=tuple(edges))


def _laid_out(graph: Graph) -> Layout:
    bare = attrs.evolve(graph, edges=tuple(attrs.evolve(it, moves=()) for it in graph.edges))
    dot = dot_of(bare)
    for old, new in _NARROW:
        dot = dot.replace(old, new)
    lines = dot.split("\n")
    places = [place for place, line in enumerate(lines) if 'id="phase-' in line]
    found = sorted((lines[place] for place in places), key=_order)
    for place, line in zip(places, found, strict=True):
        lines[place] = line
    return parted(layout_of(svg_of("\n".join(lines), engine=Engine.WASI)), bare)


def _order(line: str) -> int:
    names = [place for place, name in enumerate(PHASES) if f'id="{phase_id(name)}"' in line]
    return names[0] if names else len(PHASES)


class _Drawing:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        moved = re.search(r"translate\((\S+) (\S+)\)", layout.transform)
        self._by = (float(moved[1]), float(moved[2])) if moved else (0.0, 0.0)

    def beginning(self, graph: Graph) -> Iterator[str]:
        for node in graph.nodes:
            if node.initial:
                id_ = initial_id(node.name)
                arrow = self._layout.places[f"{id_}-arrow"]
                x, y = ends_of(arrow)[0]
                x, y = x + self._by[0], y + self._by[1] - _DOT
                yield f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{_DOT}"/>'
                yield self._lines(arrow, "")

    def arrow(self, edge: Edge, place: Place) -> str:
        facts = " ".join(dict.fromkeys(move.fact for move in edge.moves))
        named = f' data-move="{edge.source} {edge.target}" data-on="{facts}"'
        return self._lines(place, named)

    def phase(self, node: Node) -> str:
        left, top, right, bottom = self._box(self._layout.places[phase_id(node.name)])
        frames = self._frame(left, top, right, bottom)
        if node.terminal:
            frames += self._frame(left + _INSET, top + _INSET, right - _INSET, bottom - _INSET)
        x, y = (left + right) / 2, (top + bottom) / 2
        words = f"{look_of(node.name).sign} {node.name}"
        lines = [words]
        if len(node.name) > _TWO_LINES:
            first, second = words.rsplit("_", 1)
            lines = [f"{first}_", second]
        y += 4.5 - _LINE * (len(lines) - 1) / 2
        told = "".join(
            f'<text x="{x:.0f}" y="{y + _LINE * place:.0f}">{escape(line)}</text>'
            for place, line in enumerate(lines)
        )
        return f'<g data-look="{node.name}">{frames}{told}</g>'

    def _frame(self, left: float, top: float, right: float, bottom: float) -> str:
        return (
            f'<rect x="{left:.0f}" y="{top:.0f}" width="{right - left:.0f}" '
            f'height="{bottom - top:.0f}" rx="9"/>'
        )

    def _box(self, place: Place) -> tuple[float, float, float, float]:
        left, top, right, bottom = box_of(place)
        x, y = self._by
        return left + x, top + y, right + x, bottom + y

    def _lines(self, place: Place, named: str) -> str:
        """Return an arrow, moved into view, in whole pixels; the page puts the tip on it."""
        x, y = self._by
        drawn = re.sub(
            r"(-?[\d.]+)[, ](-?[\d.]+)",
            lambda pair: f"{float(pair[1]) + x:.0f},{float(pair[2]) + y:.0f}",
            place.shapes[0].path,
        )
        return f'<path{named} d="{drawn}"/>'


if __name__ == "__main__":
    sys.exit(main())
