"""Ids of phases, edges and moves: made of their names, so that they stay when others come or go.

Letters, digits and ``_`` stand as they are, every other character as its code between dots, so that
two names never share an id and a hyphen only ever joins names.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from .graph import Edge, Graph, Mark, Move

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
