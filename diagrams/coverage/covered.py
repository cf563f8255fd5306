"""A machine with how often each of its moves was taken: what was never taken stands out."""

from __future__ import annotations

from collections.abc import Iterator
from math import log1p
from typing import Any, Final

import attrs

from ...machines.rows import Machine
from ...models.safe_text import harmless
from ..drawing.tables import Table
from ..errors import NothingToDraw
from ..graphs.extract import graph_of
from ..graphs.graph import Cell, Edge, Graph, Mark, Move, Node
from .counts import Counts, row_name

NEVER: Final = "never"
LISTED: Final = 6
"""Rows that a sentence names: of those never taken more are counted, and the table has all."""
NAME: Final = 60
"""Characters of a name in a message."""
THICK: Final = 10
"""Times below which no arrow is drawn as thick as can be."""

LEGEND: Final = {
    Mark.TAKEN: "taken, and how often; the oftener, the thicker",
    Mark.NEVER: "never taken, or never reached",
}


def covered(machine: Machine[Any, Any], counts: Counts) -> Graph:
    """Return the state diagram of a declared machine with its moves counted.

    Where recorded facts cannot tell two moves apart, a move says ``2 … 5 ×``: at least, at most.
    A move that was not counted, where others were, was never taken. Raises `NothingToDraw` where no
    row of the machine was counted.
    """
    base = graph_of(machine)
    _refuse_uncounted(base, counts)
    most = max([THICK, *(_times(counts, edge) for edge in base.edges)])
    edges = tuple(_edge(edge, counts, most) for edge in base.edges)
    reached = {edge.target for edge in edges if edge.mark is Mark.TAKEN}
    nodes = tuple(_node(node, reached) for node in base.nodes)
    marks = {node.mark for node in nodes} | {move.mark for e in edges for move in e.moves}
    return attrs.evolve(
        base,
        title=f"The {machine.name} machine, as far as it was covered",
        description=_description(edges, base.cells, counts),
        nodes=nodes,
        edges=edges,
        cells=tuple(_cell(cell, counts) for cell in base.cells),
        tables=tuple(_tables(edges, counts)),
        legend=tuple((mark, words) for mark, words in LEGEND.items() if mark in marks),
    )


def _refuse_uncounted(base: Graph, counts: Counts) -> None:
    counted = dict.fromkeys([*counts.rows, *(name for names in counts.either for name in names)])
    rows = [row_name(cell.phase, cell.input, cell.guard) for cell in base.cells]
    if rows and counted.keys().isdisjoint(rows):
        there = ", ".join(harmless(name, limit=NAME) for name in list(counted)[:LISTED])
        raise NothingToDraw(
            f"no row of the {base.name} machine was counted; counted were {there or 'none'}"
        )


def _between(counts: Counts, phase: str, move: Move) -> tuple[int, int]:
    """Return how often a move was taken, at least and at most."""
    name = row_name(phase, move.input, move.guard)
    least = counts.met(name) or 0
    return least, least + counts.perhaps(name)


def _times(counts: Counts, edge: Edge) -> int:
    return sum(_between(counts, edge.source, move)[1] for move in edge.moves)


def _edge(edge: Edge, counts: Counts, most: int) -> Edge:
    moves = tuple(_move(edge.source, move, counts) for move in edge.moves)
    times = _times(counts, edge)
    return attrs.evolve(
        edge,
        moves=moves,
        mark=Mark.TAKEN if times else Mark.NEVER,
        weight=log1p(times) / log1p(most) if times else 0.0,
    )


def _move(phase: str, move: Move, counts: Counts) -> Move:
    least, most = _between(counts, phase, move)
    if not most:
        return attrs.evolve(move, note=NEVER, mark=Mark.NEVER)
    times = f"{least:,} ×" if least == most else f"{least:,} … {most:,} ×"
    return attrs.evolve(move, note=times, mark=Mark.TAKEN)


def _node(node: Node, reached: set[str]) -> Node:
    there = node.initial or node.name in reached
    return attrs.evolve(node, mark=Mark.TAKEN if there else Mark.NEVER)


def _cell(cell: Cell, counts: Counts) -> Cell:
    """Count a cell; where it is not known whether it was met at all it stays uncounted."""
    name = row_name(cell.phase, cell.input, cell.guard)
    met = counts.met(name)
    return attrs.evolve(cell, count=None if not met and counts.perhaps(name) else met)


def _description(edges: tuple[Edge, ...], cells: tuple[Cell, ...], counts: Counts) -> str:
    moves = [(edge, move) for edge in edges for move in edge.moves]
    never = [f"{edge.source} × {_called(move)}" for edge, move in moves if move.mark is Mark.NEVER]
    said = [f"{len(moves) - len(never)} of {len(moves)} moves taken."]
    if never:
        more = f" and {len(never) - LISTED} more" if len(never) > LISTED else ""
        said.append(f"Never: {', '.join(never[:LISTED])}{more}.")
    refusing = [
        counts.met(row_name(cell.phase, cell.input, cell.guard))
        for cell in cells
        if cell.reason and cell.possible
    ]
    known = [times for times in refusing if times is not None]
    if known:
        met = sum(times > 0 for times in known)
        said.append(f"{met} of {len(refusing)} rows that refuse were met.")
    return " ".join(said)


def _called(move: Move) -> str:
    return f"{move.input} [{move.guard}]" if move.guard else move.input


def _tables(edges: tuple[Edge, ...], counts: Counts) -> Iterator[Table]:
    never = tuple(
        (f"{edge.source} → {edge.target}", move.input, move.guard, move.fact)
        for edge in edges
        for move in edge.moves
        if move.mark is Mark.NEVER
    )
    if never:
        yield Table(title="Never taken", head=("move", "input", "guard", "fact"), rows=never)
    if counts.reasons:
        yield Table(
            title="Refusals by reason",
            head=("reason", "times"),
            rows=tuple(
                (reason, f"{times:,}" if times else NEVER)
                for reason, times in counts.reasons.items()
            ),
            note="Of both machines, and of admission, which refuses before any table is asked.",
        )
