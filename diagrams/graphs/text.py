"""A graph as plain text: every phase with its sign, and below it where its moves lead."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Final

from ...models.safe_text import harmless
from ..drawing.tables import WIDTH
from ..palette import look_of
from .graph import Edge, Graph, Mark, Move, Node
from .labels import NEVER, SIGNS, node_words

_NAME: Final = 32
"""Columns of a phase's name."""


def text_of(graph: Graph) -> str:
    """Return the diagram in at most `WIDTH` columns, without its tables."""
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
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
