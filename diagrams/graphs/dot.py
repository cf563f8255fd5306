r"""A graph in the language of Graphviz.

Every name is a label or part of an id, never an identifier. None can end its label, and no escape
of Graphviz (``\N``, ``\l``) and no entity is understood inside one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Final, Protocol, TypeAlias

from ...lifecycle.phases import Phase
from ..errors import CannotDraw
from ..palette import PAPERS, Theme
from .graph import Edge, Graph, Mark, Node
from .labels import (
    SIZE,
    Ids,
    Line,
    Pen,
    arrow_pen,
    edge_lines,
    fill_of,
    frame_pen,
    initial_id,
    is_in_box,
    node_lines,
    phase_id,
    picture_id,
    refused_lines,
)

METRICS: Final = "Arial"
"""Letters that Graphviz measures; the SVG says which ones are drawn."""

_ORDER: Final[dict[str, int]] = {
    name: place
    for place, name in enumerate(
        (
            Phase.FAILED,
            Phase.APPROVED,
            Phase.IN_DOUBT,
            Phase.DENIED,
            Phase.STARTED,
            Phase.REQUESTED,
            Phase.RETRY_AUTHORISED,
            Phase.SUCCEEDED,
        )
    )
}
"""Graphviz lays phases out by the order of their statements. Of 1,600 tried, this one is among the
narrowest without a crossing, 1,082 pixels wide; that of the table has several."""

_HEIGHT: Final = 0.5
_TALLER: Final = 0.04
_FEW: Final = 4
"""Inches of a phase, and how much each end of an arrow beyond a few adds: they need room."""

Attributes: TypeAlias = dict[str, str]


class Digraph(Protocol):
    """What we use of `graphviz.Digraph`, which has no types."""

    source: str

    def node(self, name: str, label: str | None = None, **attributes: str) -> None:
        """Add a node."""
        ...

    def edge(
        self, tail_name: str, head_name: str, label: str | None = None, **attributes: str
    ) -> None:
        """Add an arrow."""
        ...


def dot_of(graph: Graph, *, theme: Theme = Theme.LIGHT) -> str:
    """Return the graph as a `digraph`; phases are nodes ``p0``, ``p1`` … by their places in it.

    Raises `CannotDraw` without the package `graphviz`, which writes the language.
    """
    ids = Ids(graph)
    places = {node.name: f"p{place}" for place, node in enumerate(graph.nodes)}
    digraph = _digraph(picture_id(graph.name), theme)
    for node in sorted(graph.nodes, key=lambda node: _ORDER.get(node.name, len(_ORDER))):
        refused = (
            line
            for edge in graph.edges
            if is_in_box(edge) and edge.source == node.name
            for line in refused_lines(edge)
        )
        lines = (*node_lines(node), *refused)
        ends = sum(
            (edge.source, edge.target).count(node.name)
            for edge in graph.edges
            if not is_in_box(edge)
        )
        digraph.node(places[node.name], **_node(node, lines, ends, theme))
    for node in graph.nodes:
        if node.initial:
            _initial(digraph, node, places[node.name], theme)
    for edge, id_ in zip(graph.edges, ids.edges, strict=True):
        if not is_in_box(edge):
            digraph.edge(places[edge.source], places[edge.target], **_edge(edge, id_, theme))
    return digraph.source


def _digraph(name: str, theme: Theme) -> Digraph:
    try:
        package = import_module("graphviz")  # an extra, needed only here
    except ImportError as error:
        message = "the graphviz package is missing: pip install 'turnlock[diagrams]'"
        raise CannotDraw(message) from error
    paper = PAPERS[theme]
    letters = {"fontname": METRICS, "fontcolor": paper.ink}
    digraph: Digraph = package.Digraph(
        name,
        graph_attr={
            "rankdir": "TB",
            "bgcolor": paper.ground,
            "nodesep": "0.22",
            "ranksep": "0.32",
            "pad": "0.06",
        },
        node_attr={"shape": "box", "margin": "0.12,0.06", **letters},
        edge_attr={"fontsize": str(SIZE), "arrowsize": "0.8", **letters},
    )
    return digraph


def _initial(digraph: Digraph, node: Node, target: str, theme: Theme) -> None:
    ink = PAPERS[theme].ink
    id_ = initial_id(node.name)
    digraph.node(f"i{target}", label="", id=id_, shape="point", width="0.16", color=ink)
    digraph.edge(f"i{target}", target, id=f"{id_}-arrow", color=ink)


def _node(node: Node, lines: Sequence[Line], ends: int, theme: Theme) -> Attributes:
    pen = frame_pen(node, theme)
    dashed = ",dashed" if pen.dashed else ""
    # our widths are generous, those that Graphviz estimates know nothing of bold
    inches = (max(line.width for line in lines) + 22) / 72
    return {
        "id": phase_id(node.name),
        "label": _label(lines, r"\n"),
        "width": f"{inches:.2f}",
        "height": f"{_HEIGHT + _TALLER * max(0, ends - _FEW):.2f}",
        "style": f"rounded,filled{dashed}",
        "fillcolor": fill_of(node, theme),
        **_pen(pen),
        **({"peripheries": "2"} if node.terminal else {}),
    }


def _edge(edge: Edge, id_: str, theme: Theme) -> Attributes:
    pen = arrow_pen(edge, theme)
    return {
        "id": id_,
        "label": _label(edge_lines(edge), r"\l"),
        **_pen(pen),
        **({"style": "dashed"} if pen.dashed else {}),
        # what was refused goes nowhere
        **({"arrowhead": "tee"} if edge.mark is Mark.REFUSED else {}),
    }


def _pen(pen: Pen) -> Attributes:
    return {"color": pen.colour, "penwidth": f"{pen.width:.1f}"}


def _label(lines: Iterable[Line], end: str) -> str:
    """Return the lines as a label; `end` is the escape that ends a line on its side."""
    return "".join(_plain(str(line)) + end for line in lines)


def _plain(text: str) -> str:
    return text.replace("\\", r"\\").replace("&", "&amp;")
