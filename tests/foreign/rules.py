"""Reads from the comments of the foreign kernel which rules its lines hold."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Final

from .planting import source_of

_RULE: Final = re.compile(r"\b(K-\d+|S\d+|wire\.md)\b")
_COMMENT: Final = re.compile(r" +#(?: (?:K-\d+|S\d+|wire\.md))+(?=\n|$)")


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
        f"section {rule[1:]}" if rule.startswith("S") else rule for rule in _RULE.findall(text)
    )


def uncommented(source: str) -> str:
    """Return source without the rules at the ends of its lines."""
    return _COMMENT.sub("", source)


RECOVERY: Final = frozenset({"K-2", "K-3"})
REASONS: Final = frozenset({"section 11"})


def rules_at(module: str, path: list[ast.AST]) -> frozenset[str]:
    """Return the rules of a place: its own lines, and the heads of the blocks that it is in.

    `path` are the nodes from the module down to the place. Whatever is wrong with recovery breaks
    the rules of recovery, too, and a word that is none of the reasons breaks the list of them.
    """
    lines: set[int] = set()
    source = source_of(module).splitlines()
    for node, inner in zip(path, [*path[1:], None], strict=True):
        if isinstance(node, ast.stmt) and not _is_otherwise(node, inner):
            lines |= _lines_of(node)
    found = [_commented(module).get(line, frozenset[str]()) for line in lines]
    implied = RECOVERY if module == "restore" else frozenset[str]()
    if any("Refuse(" in source[line - 1] for line in lines):
        implied |= REASONS
    return implied.union(*found)


def _is_otherwise(node: ast.stmt, inner: ast.AST | None) -> bool:
    """Whether a place is what happens where the condition does not hold: an `elif` is no part."""
    return isinstance(node, ast.If) and any(inner is other for other in node.orelse)


def _lines_of(node: ast.stmt) -> set[int]:
    """Return the lines of a simple statement; of a block its head and what it does first."""
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            return set()
        case ast.If() | ast.For() | ast.While() | ast.Try():
            head = set(range(node.lineno, node.body[0].lineno))
            return head | (_whole(node.body[0]) if isinstance(node, ast.If) else set[int]())
        case _:
            return _whole(node)


def _whole(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
