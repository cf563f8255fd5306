"""The life of one invocation: the path that it took through its machine, and what was refused.

The picture is the machine's own. Moves that were taken carry the numbers of their steps and when
they were taken, in seconds since the invocation was requested; a phase says how long it was stood
in. What was refused while it stood there is an arrow of its own, dashed, that leads nowhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import attrs

from ..lifecycle.phases import TERMINAL, Phase
from ..lifecycle.table import INVOCATION
from ..models.safe_text import harmless
from ..models.workers import opaque
from .drawing.engines import Engine
from .drawing.tables import Table
from .graphs.extract import graph_of
from .graphs.graph import Edge, Graph, Mark, Move, Node
from .graphs.picture import MachinePicture
from .recordings.moves import AnyRow, Life, RefusedStep, Step, life_in, named
from .recordings.recording import Recording

TIMES: Final = 3
"""Times that a move tells; the rest is counted."""
PATH: Final = 12
"""Phases of the path that a description tells; the rest is counted."""
UNITS: Final = ((0.1, 1.0, "s"), (1e-4, 1e-3, "ms"), (0.0, 1e-6, "µs"))
"""From how many seconds on a life is told in which unit, all its times in the same one."""
UNKNOWN: Final = "input unknown"
"""What is said of a fact that does not name the input that brought it about (K-59)."""
VALUE: Final = 60
"""Characters of a recorded value in a table."""

LEGEND: Final = {
    Mark.TAKEN: "its path, each step with its time since the request",
    Mark.CURRENT: "where it stands at the end of the recording",
    Mark.REFUSED: "refused: nothing moved",
    Mark.FADED: "not on its path",
}


def life_of(
    recording: Recording, *, turn_id: str, invocation_id: str, epoch: int | None = None
) -> Graph:
    """Return the life of an invocation as a state diagram with its path marked.

    Where turns of several epochs had that id, the latest that had the invocation is meant, or the
    one of `epoch`. Raises `NothingToDraw` for an invocation that the recording does not hold, and
    `CorruptJournal` for facts that no run can have written.
    """
    life = life_in(recording, turn_id=turn_id, invocation_id=invocation_id, epoch=epoch)
    base = graph_of(INVOCATION)
    edges = (*(_edge(edge, life) for edge in base.edges), *_refused_edges(life))
    nodes = tuple(_node(node, life) for node in base.nodes)
    marks = {node.mark for node in nodes} | {edge.mark for edge in edges}
    return attrs.evolve(
        base,
        title=f"Invocation {named(invocation_id)} of turn {named(turn_id)}",
        description=_description(life),
        nodes=nodes,
        edges=edges,
        cells=(),
        tables=tuple(_tables(life)),
        legend=tuple((mark, words) for mark, words in LEGEND.items() if mark in marks),
    )


def _description(life: Life) -> str:
    path = [phase for _, phase in life.arrivals]
    more = f" and {len(path) - PATH:,} more phases, last {path[-1]}" if len(path) > PATH else ""
    took = f" in {_time(life, life.since(life.steps[-1].at))}" if life.steps else ""
    tool = harmless(life.birth.tool_name, limit=VALUE)
    refused = f" Refused meanwhile: {len(life.refused):,}." if life.refused else ""
    return f"A call of {tool}: {' → '.join(path[:PATH])}{more}{took}.{refused}"


def _node(node: Node, life: Life) -> Node:
    arrivals = life.arrivals
    last_at, last = arrivals[-1]
    if node.name == last:
        note = "" if last in TERMINAL else f"since +{_time(life, life.since(last_at))}"
        return attrs.evolve(node, mark=Mark.CURRENT, note=note)
    stays = [left - came for (came, phase), (left, _) in pairwise(arrivals) if phase == node.name]
    if not stays:
        return attrs.evolve(node, mark=Mark.FADED)
    return attrs.evolve(node, mark=Mark.TAKEN, note=_time(life, sum(stays)))


def _edge(edge: Edge, life: Life) -> Edge:
    """Mark the moves that were taken, and put them first, in the order of their first step."""
    steps = [
        (number, step)
        for number, step in enumerate(life.steps, start=1)
        if (step.source, step.target) == (edge.source, edge.target)
    ]
    taken: list[tuple[int, Move]] = []
    faded: list[Move] = []
    for move in edge.moves:
        by = [(number, step) for number, step in steps if any(_is(row, move) for row in step.rows)]
        if by:
            taken.append((by[0][0], attrs.evolve(move, note=_note(life, by), mark=Mark.TAKEN)))
        else:
            faded.append(attrs.evolve(move, mark=Mark.FADED))
    moves = (*(move for _, move in sorted(taken, key=lambda it: it[0])), *faded)
    return attrs.evolve(edge, moves=moves, mark=Mark.TAKEN if taken else Mark.FADED)


def _is(row: AnyRow, move: Move) -> bool:
    return (str(row.input), str(row.guard), str(row.fact)) == (move.input, move.guard, move.fact)


def _note(life: Life, steps: Sequence[tuple[int, Step]]) -> str:
    shown = [
        f"{number}: +{_time(life, life.since(step.at))}"
        + ("" if len(step.rows) == 1 else f", {UNKNOWN}")
        for number, step in steps[:TIMES]
    ]
    more = [f"{len(steps):,} × in all"] if len(steps) > TIMES else []
    return "; ".join(shown + more)


def _refused_edges(life: Life) -> Iterator[Edge]:
    """Yield an edge for each phase in which something was refused."""
    for phase in Phase:
        counts = Counter(
            (_delivered(one), str(one.reason)) for one in life.refused if one.phase == phase
        )
        moves = tuple(
            Move(
                input=name,
                note=reason if count == 1 else f"{reason} ×{count:,}",
                mark=Mark.REFUSED,
            )
            for (name, reason), count in counts.items()
        )
        if moves:
            yield Edge(source=phase, target=phase, moves=moves, mark=Mark.REFUSED)


def _delivered(one: RefusedStep) -> str:
    """Name what was refused: the input, where a row tells it, or else the type of the delivery."""
    return str(one.rows[0].input) if len(one.rows) == 1 else one.kind


# ------------------------------------------------------------------------------------ the tables


def _tables(life: Life) -> Iterator[Table]:
    unsure = any(len(step.rows) > 1 for step in life.steps)
    yield Table(
        title="Steps",
        head=("step", "after", "since the one before", "move", "by", "details"),
        rows=tuple(_step_rows(life)),
        note="The journal is of a version that did not record the input." if unsure else "",
    )
    if life.refused:
        yield Table(
            title="Refusals",
            head=("phase", "delivery", "reason", "times", "first", "last"),
            rows=tuple(_refusal_rows(life)),
        )


def _step_rows(life: Life) -> Iterator[tuple[str, ...]]:
    birth = life.birth
    tool = f"tool {harmless(birth.tool_name, limit=VALUE)}"
    yield "0", "+0 s", "", f"→ {Phase.REQUESTED}", birth.by, tool
    before = birth.at
    for number, step in enumerate(life.steps, start=1):
        yield (
            str(number),
            f"+{_time(life, life.since(step.at))}",
            _time(life, step.at - before),
            f"{step.source} → {step.target}",
            _called(step.rows[0]) if len(step.rows) == 1 else UNKNOWN,
            ", ".join(_details(step)),
        )
        before = step.at


def _called(row: AnyRow) -> str:
    return f"{row.input} [{row.guard}]" if row.guard else str(row.input)


_DETAILS: Final = ("attempt", "worker", "decided_by", "grant_id", "scope", "reason", "error")


def _details(step: Step) -> Iterator[str]:
    fact: Any = step.fact
    for name in _DETAILS:
        value = getattr(fact, name, None)
        if name == "worker" and value is not None:
            value = opaque(value)
        if value is not None:
            yield f"{name.replace('_', ' ')} {harmless(str(value), limit=VALUE)}"
    until = getattr(fact, "lease_until", None)
    if until is not None:
        yield f"lease {until - fact.at:.6g} s"


def _refusal_rows(life: Life) -> Iterator[tuple[str, ...]]:
    groups: dict[tuple[str, str, str], list[RefusedStep]] = {}
    for one in life.refused:
        groups.setdefault((one.phase or "", one.kind, one.reason), []).append(one)
    for (phase, kind, reason), found in groups.items():
        first, last = (f"+{_time(life, life.since(one.at))}" for one in (found[0], found[-1]))
        yield phase, kind, str(reason), f"{len(found):,}", first, last


def _time(life: Life, seconds: float) -> str:
    """Say a length of time in the unit of this life: kernels take microseconds, people days."""
    lasted = life.since(life.steps[-1].at) if life.steps else 0.0
    scale, unit = next((scale, unit) for least, scale, unit in UNITS if (lasted or 1.0) >= least)
    many = scale == 1 or abs(seconds) >= 1000 * scale
    return f"{seconds / scale:.6g} {unit}" if many else f"{seconds / scale:.3g} {unit}"


def life_picture(
    recording: Recording, *, turn_id: str, invocation_id: str, engine: Engine = Engine.AUTO
) -> MachinePicture:
    """Return the path of one invocation through its machine. Raises `NothingToDraw`."""
    graph = life_of(recording, turn_id=turn_id, invocation_id=invocation_id)
    return MachinePicture(graph=graph, engine=engine)
