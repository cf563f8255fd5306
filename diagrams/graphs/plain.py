"""A graph in the language of Mermaid, as a `stateDiagram-v2`.

Phases are ``s0``, ``s1`` … by their places; names are labels only, and whatever could mean
something to Mermaid is written as an entity.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from textwrap import wrap
from typing import Final

from ...models.safe_text import harmless
from ..drawing.tables import WIDTH
from ..palette import Theme, look_of
from .graph import Edge, Graph, Mark, Move, Node
from .labels import NEVER, SIGNS, edge_lines, fill_of, frame_pen, ink_of, node_words

LABEL: Final = 80
"""Characters of a phase or a move."""
TITLE: Final = 300
"""Characters of the title and of the description."""

_TOLD: Final = re.compile(r"[^\w \-+.,/()\[\]'“”·…×≠=?!→✓✗✕●◉~]|--")
_YAML: Final = re.compile(r"[^\w \-+.,/()\[\]']")


def mermaid_of(graph: Graph) -> str:
    """Return the diagram in the light theme, its title in the front matter."""
    return "\n".join(_lines(graph)) + "\n"


def label(words: str, limit: int = LABEL) -> str:
    """Return words that Mermaid shows as they are, on one line."""
    return _TOLD.sub(
        lambda found: "".join(f"#{ord(sign)};" for sign in found[0]), harmless(words, limit=limit)
    )


def _lines(graph: Graph) -> Iterator[str]:
    names = {node.name: f"s{place}" for place, node in enumerate(graph.nodes)}
    yield from ("---", f"title: {_yaml(graph.title)}", "---", "stateDiagram-v2")
    yield f"    accTitle: {label(graph.title, TITLE)}"
    yield f"    accDescr: {label(graph.description, TITLE)}"
    yield "    direction TB"
    for node in graph.nodes:
        yield f'    state "{_node_label(node)}" as {names[node.name]}'
    for node in graph.nodes:
        if node.initial:
            yield f"    [*] --> {names[node.name]}"
    for edge in graph.edges:
        lines = "<br/>".join(_edge_label(edge))
        yield f"    {names[edge.source]} --> {names[edge.target]} : {lines}"
    for node in graph.nodes:
        if node.terminal:
            yield f"    {names[node.name]} --> [*]"
    for node in graph.nodes:
        yield f"    classDef {names[node.name]}look {_look(node)}"
        yield f"    class {names[node.name]} {names[node.name]}look"


def _node_label(node: Node) -> str:
    words = " · ".join((node.name.strip() or '""', *node_words(node)))
    return label(f"{look_of(node.name).sign} {words}")


def _edge_label(edge: Edge) -> Iterator[str]:
    """Yield the lines; arrows of Mermaid have one look only, so that marks are signs."""
    for line in edge_lines(edge):
        sign = (
            "" if line.move is None else SIGNS[edge.mark if line.mark is Mark.PLAIN else line.mark]
        )
        yield label(f"{sign} {line}".lstrip())


def _look(node: Node) -> str:
    pen = frame_pen(node, Theme.LIGHT)
    dash = ",stroke-dasharray:5 3" if pen.dashed else ""
    fill, ink = fill_of(node, Theme.LIGHT), ink_of(node.mark, Theme.LIGHT)
    return f"fill:{fill},stroke:{pen.colour},stroke-width:{pen.width:g}px,color:{ink}{dash}"


def _yaml(words: str) -> str:
    """Return a string as YAML and JSON write it, all that is not plain as its code."""
    plain = _YAML.sub(lambda found: json.dumps(found[0])[1:-1], harmless(words, limit=TITLE))
    return f'"{plain}"'


_NAME: Final = 32
"""Columns of a phase's name."""


def text_of(graph: Graph) -> str:
    """Return the diagram in at most `WIDTH` columns, without its tables."""
    return "\n".join(_text_lines(graph)) + "\n"


def _text_lines(graph: Graph) -> Iterator[str]:
    yield harmless(graph.title, limit=WIDTH)
    yield from wrap(harmless(graph.description), WIDTH)
    for node in graph.nodes:
        yield ""
        yield _node_line(node)
        for edge in graph.edges:
            if edge.source == node.name:
                yield from (_move_line(edge, move) for move in edge.moves)
    if graph.legend:
        yield ""
        yield from (
            f"{SIGNS[mark]:1} {harmless(told, limit=WIDTH - 2)}" for mark, told in graph.legend
        )


def _node_line(node: Node) -> str:
    said = [
        *(["begins here"] if node.initial else []),
        *(["ends here"] if node.terminal else []),
        *node_words(node),
    ]
    name = harmless(node.name, limit=_NAME)
    words = f"  ({', '.join(said)})" if said else ""
    return harmless(f"{look_of(node.name).sign} {name}{words}", limit=WIDTH)


def _move_line(edge: Edge, move: Move) -> str:
    mark = edge.mark if move.mark is Mark.PLAIN else move.mark
    refused = edge.mark is Mark.REFUSED
    end = "── refused" if refused else f"──▶ {harmless(edge.target, limit=_NAME)}"
    never = f" · {NEVER}" if mark is Mark.NEVER and NEVER not in move.note else ""
    begin = f" {SIGNS[mark]:1} ── "
    words = harmless(f"{move}{never}", limit=WIDTH - len(begin) - len(end) - 1)
    return f"{begin}{words} {end}"
