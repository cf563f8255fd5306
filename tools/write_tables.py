"""Write docs/tables.md from the declared machines; with --check, compare instead of writing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from turnlock.lifecycle.table import INVOCATION
from turnlock.machines.rows import Machine, Row
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
    """One machine: for each input a table row, for each phase a column."""
    phases = [str(phase) for phase in cast("type[StrEnum]", machine.phases)]
    terminal = ", ".join(sorted(machine.terminal))
    yield f"## The {machine.name} machine\n"
    yield f"Begins in {' or '.join(machine.initial)}; ends in {terminal}.\n"
    yield "| input | " + " | ".join(phases) + " |"
    yield "|---" * (len(phases) + 1) + "|"
    for input_ in cast("type[StrEnum]", machine.inputs):
        cells = [cell(machine, phase, input_) for phase in phases]
        yield f"| {input_} | " + " | ".join(cells) + " |"
    yield "\nNothing happens:\n"
    notes: dict[tuple[str, str], list[str]] = {}
    for row in machine.rows:
        if row.note and row.possible:
            notes.setdefault((row.input, row.note), []).append(row.phase)
    for (name, note), where in notes.items():
        yield f"- {name} in {', '.join(dict.fromkeys(where))}: {note}"
    yield ""


def cell(machine: Machine[Any, Any], phase: str, input_: str) -> str:
    """Say what one (phase, input) pair does."""
    rows = [row for row in machine.rows if (row.phase, row.input) == (phase, input_)]
    return "<br>".join(outcome(row) for row in rows)


def outcome(row: Row[Any, Any]) -> str:
    """One row, read aloud."""
    guard = f" [{row.guard}]" if row.guard else ""
    if row.fact is not None:
        return f"**{row.target}** / {row.fact}{guard}"
    return f"*{row.reason}*{guard}" if row.reason is not None else f"–{guard}"


if __name__ == "__main__":
    sys.exit(main())
