"""From a machine, ours or one of the `transitions` library, to the small graph."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, cast

from ...machines.rows import Machine, Row
from ..errors import NothingToDraw
from .foreign import Foreign, foreign_graph, is_foreign
from .graph import Cell, Graph, Move, Node, described, gathered


def graph_of(machine: Machine[Any, Any] | Foreign, *, title: str | None = None) -> Graph:
    """Return the state diagram of a machine.

    Of one declared with our rows every row is an edge that lets a fact happen or leads elsewhere;
    all rows are cells. A `transitions.Machine` has no reasons, hence no cells. Raises
    `NothingToDraw` for anything else.
    """
    if isinstance(machine, Machine):
        return _declared(machine, title)
    if is_foreign(machine):
        return foreign_graph(machine, title=title)
    raise NothingToDraw(
        f"{type(machine).__name__} is no machine: give a turnlock Machine or a transitions.Machine"
    )


def _declared(machine: Machine[Any, Any], title: str | None) -> Graph:
    initial = frozenset(map(str, machine.initial))
    terminal = frozenset(map(str, machine.terminal))
    phases = [str(phase) for phase in cast("type[StrEnum]", machine.phases)]
    nodes = tuple(
        Node(name=phase, initial=phase in initial, terminal=phase in terminal) for phase in phases
    )
    edges = gathered(
        (str(row.phase), str(row.target), _move(row)) for row in machine.rows if _moves(row)
    )
    name = machine.name
    return Graph(
        name=name,
        title=title or f"The {name} machine",
        description=described(nodes, edges),
        nodes=nodes,
        edges=edges,
        cells=_cells(machine, phases),
    )


def _moves(row: Row[Any, Any]) -> bool:
    return row.reason is None and (row.fact is not None or row.target != row.phase)


def _move(row: Row[Any, Any]) -> Move:
    return Move(input=str(row.input), guard=str(row.guard), fact=str(row.fact or ""))


def _cells(machine: Machine[Any, Any], phases: list[str]) -> tuple[Cell, ...]:
    """Return all rows, by phase and then by input, each in the order of its declaration."""
    inputs = [str(name) for name in machine.inputs]
    rows = sorted(machine.rows, key=lambda row: (phases.index(row.phase), inputs.index(row.input)))
    return tuple(
        Cell(
            phase=str(row.phase),
            input=str(row.input),
            guard=str(row.guard),
            target=str(row.target) if _moves(row) else "",
            fact=str(row.fact or ""),
            reason=str(row.reason or ""),
            rest=row.note,
            possible=row.possible,
        )
        for row in rows
    )
