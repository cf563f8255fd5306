"""Write docs/tables.md from the declared machines; with --check, compare instead of writing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turnlock.diagrams.graphs.extract import graph_of
from turnlock.diagrams.graphs.matrix import matrix_markdown
from turnlock.lifecycle.table import INVOCATION
from turnlock.machines.rows import Machine
from turnlock.turn.table import TURN

TABLES = Path(__file__).resolve().parents[1] / "docs" / "tables.md"

HEAD = """# The tables that are enforced

Generated from `lifecycle/table.py` and `turn/table.py` by `make tables`; the gate compares.

A cell says where a delivery leads: **PHASE** / fact, or the *reason* of its refusal, or – when
nothing happens. Where a pair has several rows, the guard that holds stands in brackets.
"""


def main() -> int:
    """Write the file, or say whether it is what would be written."""
    text = "\n".join([HEAD, *section(INVOCATION), *section(TURN)])
    if "--check" not in sys.argv[1:]:
        TABLES.write_text(text, encoding="utf-8")
        return 0
    if TABLES.exists() and TABLES.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write("docs/tables.md is not what the tables say; run: make tables\n")
    return 1


def section(machine: Machine[Any, Any]) -> Iterator[str]:
    """One machine: where it begins and ends, and its matrix."""
    graph = graph_of(machine)
    initial = " or ".join(node.name for node in graph.nodes if node.initial)
    terminal = ", ".join(sorted(node.name for node in graph.nodes if node.terminal))
    yield f"## {graph.title}\n"
    yield f"Begins in {initial}; ends in {terminal}.\n"
    yield matrix_markdown(graph)


if __name__ == "__main__":
    sys.exit(main())
