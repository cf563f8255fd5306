"""What every way to a graph shares: moves gathered into edges, and the graph in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .graph import Edge, Move, Node

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
