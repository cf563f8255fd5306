"""The numbered rules that the texts of docs/spec/ state, and those that tests name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

SPEC: Final = Path(__file__).resolve().parents[1] / "docs" / "spec"
TEXTS: Final = {"W": "world.md", "S": "server.md", "F": "face.md", "D": "distributed.md"}
"""By the letter of their rules; kernel.md has a reader of its own, `turnlock explain` uses it."""

_STATED: Final = re.compile(
    r"(?:^ *-|(?<=\.)) (\*\*)?(?P<id>[WSFD]-\d+a?)(?(1)\*\*) "
    r"(?P<sentence>.+?(?:[.](?=\s|$)|:(?=\n\n)))",
    re.MULTILINE | re.DOTALL,
)
_NAME: Final = re.compile(r"^test_([kwsfd])_(\d+a?)_")
_TOLD: Final = re.compile(r"\b([KWSFD]-\d+a?)\b")


@attrs.frozen
class StatedRule:
    """A rule as a text states it: its id and how it begins."""

    id: str
    sentence: str


def rules_of(letter: str) -> Iterator[StatedRule]:
    """Yield the rules of a text, in their order, each once."""
    text = (SPEC / TEXTS[letter]).read_text(encoding="utf-8")
    seen: set[str] = set()
    for found in _STATED.finditer(text):
        rule = StatedRule(found["id"], " ".join(found["sentence"].split()))
        if rule.id.startswith(letter) and rule.id not in seen:
            seen.add(rule.id)
            yield rule


def rules_named(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Return the rules that a function names if it is a test, by its name and its docstring."""
    if not node.name.startswith("test_"):
        return frozenset()
    by_name = (f"{letter.upper()}-{number}" for letter, number in _NAME.findall(node.name))
    return frozenset((*by_name, *_TOLD.findall(ast.get_docstring(node) or "")))


def named_in(source: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the tests of a file that name a rule, and which."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (it := rules_named(node)):
            yield node.name, it
