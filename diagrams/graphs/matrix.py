"""The whole table of a machine as a matrix: a row for each input, a column for each phase.

A cell says where a delivery leads: **PHASE** / fact, or the *reason* of its refusal, or – when
nothing happens. Where a pair has several rows, the guard that holds stands in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from ..drawing.tables import Table, plain_markdown
from .graph import Cell, Graph

_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9]+(_[A-Za-z0-9]+)*")
_NOTHING: Final = "–"
_TITLE: Final = "Every input in every phase"
_WHY: Final = "Nothing happens"


def matrix_table(graph: Graph) -> Table:
    """Return the matrix in plain words."""
    return Table(
        title=_TITLE,
        head=("input", *_phases(graph)),
        rows=tuple(
            (input_, *("; ".join(map(_plain, cells)) for cells in row))
            for input_, row in _rows(graph)
        ),
        note="A cell says where the input leads, or why it is refused; – is: nothing happens.",
    )


def rows_table(graph: Graph) -> Table:
    """Return the same with a row for each cell, for where no matrix fits."""
    return Table(
        title=_TITLE,
        head=("phase", "input", "outcome"),
        rows=tuple((cell.phase, cell.input, _plain(cell)) for cell in graph.cells),
        note="Where it leads, or why it is refused; – is: nothing happens.",
    )


def rests_table(graph: Graph) -> Table:
    """Return why nothing happens, for what can come at all."""
    return Table(
        title=_WHY,
        head=("input", "in", "why"),
        rows=tuple((input_, ", ".join(phases), why) for input_, why, phases in _rests(graph)),
    )


def matrix_markdown(graph: Graph) -> str:
    """Return the matrix as Markdown, a line for each row of a pair, and below it the rests."""
    phases = _phases(graph)
    lines = ["| input | " + " | ".join(map(_name, phases)) + " |"]
    lines.append("|---" * (len(phases) + 1) + "|")
    for input_, row in _rows(graph):
        cells = ("<br>".join(map(_marked, cells)) for cells in row)
        lines.append(f"| {_name(input_)} | " + " | ".join(cells) + " |")
    lines += ["", f"{_WHY}:", ""]
    for input_, why, where in _rests(graph):
        named = ", ".join(map(_name, where))
        lines.append(f"- {_name(input_)} in {named}: {plain_markdown(why)}")
    return "\n".join((*lines, ""))


def _phases(graph: Graph) -> tuple[str, ...]:
    return tuple(node.name for node in graph.nodes)


def _rows(graph: Graph) -> Iterator[tuple[str, list[list[Cell]]]]:
    cells: dict[tuple[str, str], list[Cell]] = {}
    for cell in graph.cells:
        cells.setdefault((cell.input, cell.phase), []).append(cell)
    for input_ in dict.fromkeys(cell.input for cell in graph.cells):
        yield input_, [cells.get((input_, phase), []) for phase in _phases(graph)]


def _rests(graph: Graph) -> list[tuple[str, str, list[str]]]:
    found: dict[tuple[str, str], list[str]] = {}
    for cell in graph.cells:
        if cell.rest and cell.possible:
            phases = found.setdefault((cell.input, cell.rest), [])
            if cell.phase not in phases:
                phases.append(cell.phase)
    return [(input_, why, phases) for (input_, why), phases in found.items()]


def _name(text: str) -> str:
    """Return a name for Markdown; an identifier needs no backslashes."""
    return text if _IDENTIFIER.fullmatch(text) else plain_markdown(text)


def _plain(cell: Cell) -> str:
    return _told(cell, name=str, strong="", weak="")


def _marked(cell: Cell) -> str:
    return _told(cell, name=_name, strong="**", weak="*")


def _told(cell: Cell, *, name: Callable[[str], str], strong: str, weak: str) -> str:
    """Say what a cell does; `strong` and `weak` stand around phases and reasons."""
    if cell.target:
        fact = f" / {name(cell.fact)}" if cell.fact else ""
        outcome = f"{strong}{name(cell.target)}{strong}{fact}"
    else:
        outcome = f"{weak}{name(cell.reason)}{weak}" if cell.reason else _NOTHING
    guard = f" [{name(cell.guard)}]" if cell.guard else ""
    count = "" if cell.count is None else f" · {cell.count}×" if cell.count else _never(cell)
    return outcome + guard + count


def _never(cell: Cell) -> str:
    return " · never" if cell.possible else ""
