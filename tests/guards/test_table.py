"""The table of faults in docs/spec/guards.md, and the tests that hold its cells."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SPEC = HERE.parents[1] / "docs" / "spec" / "guards.md"
COLUMNS = ("openai_agents", "langgraph", "pydantic_ai", "agent_framework", "mcp")
"""The folders of tests, in the order of the table's columns."""


def cells() -> Iterator[tuple[str, str]]:
    """Yield each cell that promises something: its row's id and its folder."""
    for line in SPEC.read_text(encoding="utf-8").splitlines():
        if not (found := re.match(r"\| \*\*(G-\d+)\*\*", line)):
            continue
        told = [it.strip() for it in line.strip("|").split("|")[1:]]
        assert len(told) == len(COLUMNS), line
        yield from (
            (found[1], column) for column, it in zip(COLUMNS, told, strict=True) if it != "–"
        )


def named(folder: str) -> set[str]:
    """Return the rows that tests of a folder name, by their names or docstrings."""
    found: set[str] = set()
    for path in (HERE / folder).rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
                "test_"
            ):
                told = (ast.get_docstring(node) or "") + " "
                told += node.name.upper().replace("_", "-").replace("TEST-", "", 1)
                found |= set(re.findall(r"\bG-\d+\b", told))
    return found


@pytest.mark.parametrize(("row", "column"), [*cells()])
def test_every_cell_has_a_test(row: str, column: str) -> None:
    """Where a cell says that the SDK refuses by itself, a test holds the SDK to that."""
    assert row in named(column), f"write tests/guards/{column}/test_…: test_{row}_…"


def test_the_table_is_read() -> None:
    """The negative control of the reader."""
    found = set(cells())
    assert len({row for row, _ in found}) == 16
    assert ("G-3", "mcp") not in found
    assert ("G-13", "langgraph") in found
