"""Reads from the comments of the foreign kernel which rules its lines hold."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Final

from .planting import source_of

_RULE: Final = re.compile(r"\b(K-\d+|S\d+)\b")


@cache
def _commented(module: str) -> dict[int, frozenset[str]]:
    """Return the rules that stand at the end of each line, by line number."""
    found: dict[int, frozenset[str]] = {}
    for number, line in enumerate(source_of(module).splitlines(), start=1):
        _, mark, comment = line.rpartition("#")
        if mark:
            found[number] = spelled(comment)
    return found


def spelled(text: str) -> frozenset[str]:
    """Read rules as comments write them: `K-33 S5` are K-33 and section 5."""
    return frozenset(
        rule if rule.startswith("K") else f"section {rule[1:]}" for rule in _RULE.findall(text)
    )


def rules_at(module: str, around: list[ast.AST]) -> frozenset[str]:
    """Return the rules of a place: its own lines and the heads of the blocks that hold it.

    `around` are the nodes from the module down to the place.
    """
    lines: set[int] = set()
    for node in around:
        if isinstance(node, ast.stmt):
            lines |= _lines_of(node)
    return frozenset().union(*(_commented(module).get(line, frozenset()) for line in lines))


def _lines_of(node: ast.stmt) -> set[int]:
    """Return the lines of a simple statement, or of a block's head and, of an `if`, its first."""
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            return set()
        case ast.If() | ast.For() | ast.While() | ast.Try():
            first = node.body[0]
            head = set(range(node.lineno, first.lineno))
            return head | (_whole(first) if isinstance(node, ast.If) else set[int]())
        case _:
            return _whole(node)


def _whole(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
