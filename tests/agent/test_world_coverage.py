"""The numbered rules of docs/spec/world.md, and the tests that name them."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
SPEC = TESTS.parent / "docs" / "spec" / "world.md"
RULES = tuple(re.findall(r"^- \*\*(W-\d+)\*\*", SPEC.read_text(encoding="utf-8"), re.MULTILINE))


def rules_named(source: str) -> set[str]:
    """The rules that the test functions of a file name, by name or docstring."""
    named: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[:5] == "test_":
            named |= {f"W-{it}" for it in re.findall(r"^test_w_(\d+)_", node.name)}
            named |= set(re.findall(r"\bW-\d+", ast.get_docstring(node) or ""))
    return named


@cache
def rules_tested() -> set[str]:
    """Read once: every test file of ours is parsed for it."""
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        found |= rules_named(path.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_test_that_names_it(rule: str) -> None:
    """A rule without a test is a wish."""
    assert rule in rules_tested(), f"write a test_w_{rule.removeprefix('W-')}_…, or name {rule}"


def test_no_test_names_a_rule_that_does_not_exist() -> None:
    """A wrong number is worse than none."""
    assert rules_tested() <= set(RULES)


def test_the_reader_of_names_reads_names() -> None:
    """The negative control: a helper, a mention elsewhere and a comment are no tests."""
    told = "def test_a():\n    '''W-7: this.'''"
    assert rules_named(f"{told}\nasync def test_w_5_y(): ...") == {"W-5", "W-7"}
    assert rules_named("def w_1_x(): ...\n# W-2\ndef test_b():\n    return 'W-3'") == set()
