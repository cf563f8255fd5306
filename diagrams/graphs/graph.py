"""The small graph that stands between what is drawn and how: phases, and the moves between them.

Whatever is drawn as a state diagram is first one of these: a declared machine, a foreign one, the
life of an invocation, the coverage of a test run. Renderers read nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

import attrs

from ..drawing.tables import Table


class Mark(StrEnum):
    """What a picture says of a node or an edge, beyond that it is there."""

    PLAIN = "plain"
    """Nothing more."""
    TAKEN = "taken"
    """On the path, or covered."""
    CURRENT = "current"
    """Where it stands now (nodes)."""
    NEVER = "never"
    """Never taken, where that is a warning."""
    FADED = "faded"
    """Not on the path."""
    REFUSED = "refused"
    """A delivery that was refused there: no move at all. A loop is written in the phase's box."""


@attrs.frozen(kw_only=True)
class Move:
    """One transition as its row declares it: `input` [`guard`] / `fact`.

    `note` is what a picture adds to it, such as ``+0.35 s`` or ``12 times``. A move that rests (no
    fact, no other phase) has no `fact`.
    """

    input: str
    guard: str = ""
    fact: str = ""
    note: str = ""
    mark: Mark = Mark.PLAIN

    def __str__(self) -> str:
        """Read it aloud."""
        guard = f" [{self.guard}]" if self.guard else ""
        fact = f" / {self.fact}" if self.fact else ""
        note = f" · {self.note}" if self.note else ""
        return f"{self.input}{guard}{fact}{note}"


@attrs.frozen(kw_only=True)
class Node:
    """One phase. `note` stands below its name."""

    name: str
    initial: bool = False
    terminal: bool = False
    mark: Mark = Mark.PLAIN
    note: str = ""


@attrs.frozen(kw_only=True)
class Edge:
    """All moves from one phase to one other (or to itself), drawn as one arrow.

    `weight`, from 0 to 1, is how thick it is drawn.
    """

    source: str
    target: str
    moves: tuple[Move, ...]
    mark: Mark = Mark.PLAIN
    weight: float = 0.0


@attrs.frozen(kw_only=True)
class Cell:
    """One row of a declared table as the matrix phase × input shows it.

    Exactly one of `target` (with its `fact`), `reason` (refused) and `rest` (why nothing happens)
    is not empty, but a rest may have no words. `count` is how often it was met, None: not counted.
    """

    phase: str
    input: str
    guard: str = ""
    target: str = ""
    fact: str = ""
    reason: str = ""
    rest: str = ""
    possible: bool = True
    count: int | None = None


@attrs.frozen(kw_only=True)
class Graph:
    """A state diagram, complete: what the picture is called, what it shows, and its tables.

    `name` makes ids and is the machine's name; `description` says in a sentence what is to be seen,
    for those who cannot see it. Nodes are in the order of the declaration; for each (source,
    target) there is at most one edge that is not REFUSED. `cells` is the whole table, for the
    matrix, or empty. `legend` is pairs (sign or mark, what it means).
    """

    name: str
    title: str
    description: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    cells: tuple[Cell, ...] = ()
    tables: tuple[Table, ...] = ()
    legend: tuple[tuple[Mark, str], ...] = ()


NAMED = 12
"""Phases that a description names; more are counted."""


def gathered(moves: Iterable[tuple[str, str, Move]]) -> tuple[Edge, ...]:
    """Gather (source, target, move) into one edge for each pair, in the order of appearance."""
    edges: dict[tuple[str, str], list[Move]] = {}
    for source, target, move in moves:
        edges.setdefault((source, target), []).append(move)
    return tuple(
        Edge(source=source, target=target, moves=tuple(found))
        for (source, target), found in edges.items()
    )


def described(nodes: Sequence[Node], edges: Sequence[Edge]) -> str:
    """Say in a sentence what the diagram shows."""
    count = sum(len(edge.moves) for edge in edges)
    initial = [node.name for node in nodes if node.initial]
    terminal = [node.name for node in nodes if node.terminal]
    parts = [f"A state diagram of {_counted(len(nodes), 'phase')} and {_counted(count, 'move')}."]
    if initial:
        parts.append(f"It begins in {_listed(initial)}.")
    if terminal:
        parts.append(f"It ends in {_listed(terminal)}.")
    return " ".join(parts)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _listed(names: Sequence[str]) -> str:
    if len(names) > NAMED:
        return f"one of {len(names)} phases"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
