"""Machines to draw: random tables with names from hell, and a graph with every mark."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeAlias

from hypothesis import strategies as st

from turnlock import FactType, Reason
from turnlock.diagrams.graphs.graph import Edge, Graph, Mark, Move, Node
from turnlock.machines.rows import Machine, Row, moves, refuses, rests

AnyMachine: TypeAlias = Machine[Any, Any]

HOSTILE = (
    'a"b',
    "<b>&amp;#35;</b>",
    "]]>",
    "-->",
    "%%{init}%%",
    r"\N\l\\",
    "two\nlines",
    "z" * 10_000,
    "שלום",
    "\u202eevil\x00\x1b[2J",
    "[*]",
    "{x}|y",
    "note end; style a:#fff;",
    "",
    "日本",
    "```",
    "a->b:n",
)
"""Names that mean something to one of the languages we write."""

_NAMES = st.text(alphabet="aZ0_-\"'\\<>&;#%{}[]|:/*`$.=~é日ש", min_size=1, max_size=6)


def enum_of(values: list[str]) -> Any:
    """A StrEnum of just these values."""
    return StrEnum("Made", {f"M{place}": value for place, value in enumerate(values)})


@st.composite
def machines(draw: st.DrawFn) -> AnyMachine:
    """Any table of up to five phases: nothing is asked of it but that its rows are rows."""
    phases = enum_of(draw(st.lists(_NAMES, min_size=1, max_size=5, unique=True)))
    inputs = enum_of(draw(st.lists(_NAMES, min_size=1, max_size=4, unique=True)))
    guards = st.sampled_from(("", *draw(st.lists(_NAMES, max_size=2))))
    one_phase, one_input = st.sampled_from(list(phases)), st.sampled_from(list(inputs))
    facts = st.sampled_from(list(FactType)[:3])
    row = st.one_of(
        st.builds(moves, one_phase, one_input, one_phase, facts, when=guards),
        st.builds(refuses, one_phase, one_input, st.sampled_from(list(Reason)), when=guards),
        st.builds(rests, one_phase, one_input, _NAMES, when=guards, possible=st.booleans()),
    )
    rows: list[Row[Any, Any]] = draw(st.lists(row, max_size=14))
    terminal = draw(st.sets(one_phase, min_size=1))
    return Machine(
        name=draw(_NAMES),
        phases=phases,
        inputs=inputs,
        initial=tuple(draw(st.lists(one_phase, min_size=1, max_size=2, unique=True))),
        rank={phase: int(phase in terminal) for phase in phases},
        questions={},
        rows=tuple(rows),
    )


def names_of(made: Any) -> list[str]:
    """The values of an enum, in its order."""
    return [str(member) for member in made]


def hostile_graph() -> Graph:
    """Every hostile name as a phase, an input, a guard, a fact and a note; every mark; a legend."""
    count = len(HOSTILE)
    marks = list(Mark)
    return Graph(
        name=HOSTILE[0],
        title=HOSTILE[1] + HOSTILE[4] + HOSTILE[9],
        description=HOSTILE[2] + HOSTILE[6],
        nodes=tuple(
            Node(name=name, initial=place == 0, mark=marks[place % 5], note=HOSTILE[-place - 1])
            for place, name in enumerate(HOSTILE)
        ),
        edges=tuple(
            Edge(
                source=name,
                target=HOSTILE[(place * 3 + 1) % count],
                moves=(
                    Move(
                        input=HOSTILE[(place + 1) % count],
                        guard=HOSTILE[(place + 2) % count],
                        fact=HOSTILE[(place + 3) % count],
                        note=HOSTILE[(place + 4) % count],
                        mark=marks[place % 6],
                    ),
                ),
                mark=marks[(place + 1) % 6],
                weight=place / count,
            )
            for place, name in enumerate(HOSTILE)
        ),
        legend=tuple((mark, f"{mark} {HOSTILE[place]}") for place, mark in enumerate(marks)),
    )


def moves_of(machine: AnyMachine) -> set[tuple[str, str, str, str, str]]:
    """What the table says can move: source, target, input, guard, fact."""
    return {
        (str(row.phase), str(row.target), str(row.input), str(row.guard), str(row.fact))
        for row in machine.rows
        if row.fact is not None
    }


def lines_of(machine: AnyMachine) -> dict[tuple[str, str], list[str]]:
    """The lines at each arrow: moves in a row to one fact share the line that names it."""
    edges: dict[tuple[str, str], list[Row[Any, Any]]] = {}
    for row in machine.rows:
        if row.fact is not None:
            edges.setdefault((str(row.phase), str(row.target)), []).append(row)
    found: dict[tuple[str, str], list[str]] = {}
    for ends, rows in edges.items():
        lines = found.setdefault(ends, [])
        for row, following in zip(rows, (*rows[1:], None), strict=True):
            lines.append(f"{row.input} [{row.guard}]" if row.guard else str(row.input))
            if following is None or following.fact != row.fact:
                lines.append(f"/ {row.fact}")
    return found
