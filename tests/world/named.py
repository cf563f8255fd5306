"""The names of the tests in a file, for tests that hold other texts to them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def names_in(path: Path) -> frozenset[str]:
    """Return them, those of its classes included; of a file that is not there, none."""
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    )
