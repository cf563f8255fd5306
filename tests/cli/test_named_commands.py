"""A message that tells what to type names a command that there is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click

from turnlock.cli.main import main

from ..test_floors import MAY_IMPORT, ROOT

PLAIN = frozenset(
    {
        *("again", "approval", "coverage", "declared", "declares", "does", "failed", "guarded"),
        *("knows", "probe", "question", "reader", "reads", "serves", "stdio", "that", "tool"),
        *("wrote",),
    }
)
"""Words that follow the name of the project in a sentence."""
COMMANDS = frozenset(main.list_commands(click.Context(main)))
COMMAND = re.compile(r"(?<![\w.-])turnlock ([a-z][\w-]*)")


def words(source: str) -> Iterator[str]:
    """What follows `turnlock` in texts of a module that are no docstrings."""
    tree = ast.parse(source)
    told = {id(it.value) for it in ast.walk(tree) if isinstance(it, ast.Expr)}
    for it in ast.walk(tree):
        if isinstance(it, ast.Constant) and isinstance(it.value, str) and id(it) not in told:
            yield from COMMAND.findall(it.value)


def unknown(source: str) -> list[str]:
    return [it for it in words(source) if it not in PLAIN and it not in COMMANDS]


def test_each_command_that_a_message_names_is_there() -> None:
    files: list[Path] = [it for folder in MAY_IMPORT for it in (ROOT / folder).rglob("*.py")]
    found = {it: wrong for it in files if (wrong := unknown(it.read_text(encoding="utf-8")))}

    assert found == {}


def test_a_command_that_is_not_there_is_found() -> None:
    """The negative control: one that was once said, a docstring, and one that is there."""
    assert unknown('"""turnlock check-db"""\nFIX = "look with: turnlock check-db"') == ["check-db"]
    assert unknown('FIX = f"look with: turnlock check --db {place}"') == []
