"""The matrix says every row of the table, refusals with their reasons."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from turnlock.diagrams.graphs.extract import graph_of
from turnlock.diagrams.graphs.graph import Cell, Graph, Node
from turnlock.diagrams.graphs.matrix import (
    matrix_markdown,
    matrix_table,
    rests_table,
    rows_table,
)
from turnlock.lifecycle.table import INVOCATION
from turnlock.turn.table import TURN

from .machines import HOSTILE, AnyMachine, machines, names_of


@pytest.mark.parametrize("machine", [INVOCATION, TURN], ids=lambda machine: machine.name)
def test_every_row_stands_in_its_cell(machine: AnyMachine) -> None:
    """In plain words: where it leads with its fact, or its reason; and its guard."""
    table = matrix_table(graph_of(machine))

    column = {name: place for place, name in enumerate(table.head)}
    line = {row[0]: row for row in table.rows}
    for row in machine.rows:
        outcome = row.reason or (f"{row.target} / {row.fact}" if row.fact else "–")
        guard = f" [{row.guard}]" if row.guard else ""
        assert f"{outcome}{guard}" in line[row.input][column[row.phase]].split("; ")
    assert list(line) == names_of(machine.inputs)
    cells = [cell for row in table.rows for cell in row[1:]]
    assert sum(len(cell.split("; ")) for cell in cells) == len(machine.rows)


def test_markdown_marks_phases_and_reasons() -> None:
    """A line for each row of a pair; below, why nothing happens where something could come."""
    written = matrix_markdown(graph_of(TURN))

    assert (
        "| add_call | **OPEN** / CALL_ADDED [new]<br>*duplicate_invocation* [known]<br>" in written
    )
    assert "- settle in SEALED, INTERRUPTING: a member is not terminal" in written
    assert "no grace runs" not in written  # for it cannot come


def test_rests_are_told_where_they_can_come() -> None:
    """Each input and reason once, with its phases."""
    rows = rests_table(graph_of(TURN)).rows

    assert ("settle", "SEALED, INTERRUPTING", "a member is not terminal") in rows
    assert len(rows) == len(set(rows))


@given(machines())
def test_markdown_is_a_table_whatever_the_names(machine: AnyMachine) -> None:
    """As many columns as phases, and one, in every line, whatever the names hold."""
    graph = graph_of(machine)
    written = matrix_markdown(graph).splitlines()

    inputs = {cell.input for cell in graph.cells}
    table = written[: len(inputs) + 2]
    for line in table:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == len(graph.nodes) + 2
    outside = re.sub(r"<br>|\\.", "", "".join(table))
    assert "<" not in outside


def test_counts_stand_beside_outcomes() -> None:
    """Never is said of what could have come."""
    cells = (
        Cell(phase="a", input="x", reason="late", count=12),
        Cell(phase="a", input="y", target="a", fact="F", count=0),
        Cell(phase="a", input="z", count=0, possible=False),
    )
    graph = Graph(
        name="g", title="g", description="", nodes=(Node(name="a"),), edges=(), cells=cells
    )

    rows = rows_table(graph).rows

    assert [row[2] for row in rows] == ["late · 12×", "a / F · never", "–"]


def test_hostile_names_are_words_only() -> None:
    """No cell ends its row, no name is markup."""
    cells = tuple(
        Cell(phase="a", input=name, target=name, fact=name, guard=name) for name in HOSTILE
    )
    graph = Graph(
        name="g", title="g", description="", nodes=(Node(name="a"),), edges=(), cells=cells
    )

    lines = matrix_markdown(graph).splitlines()

    table = lines[: lines.index("")]
    assert len(table) == len(HOSTILE) + 2
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3 for line in table)
