"""The numbered rules of the spec, and the tests that name them."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from turnlock.verification.rulebook.specification import specification

TESTS = Path(__file__).resolve().parents[1]
RULES = tuple(rule.number for rule in specification().rules)


def rules_named(source: str) -> set[int]:
    """The rules that the test functions of a file name."""
    return {
        int(number)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for number in re.findall(r"^test_k_(\d+)_", node.name)
    }


@cache
def rules_tested() -> set[int]:
    """Read once: every test file of ours is parsed for it."""
    found: set[int] = set()
    for path in TESTS.rglob("test_*.py"):
        found |= rules_named(path.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_test_that_names_it(rule: int) -> None:
    """A rule without a test is a wish."""
    assert rule in rules_tested(), f"write a test_k_{rule}_…"


def test_no_test_names_a_rule_that_does_not_exist() -> None:
    """A wrong number is worse than none."""
    assert rules_tested() <= set(RULES)


def test_the_reader_of_names_reads_names() -> None:
    """The negative control: a helper, a mention and a comment are no tests."""
    assert rules_named("def test_k_33_x(): ...\nasync def test_k_7_y(): ...") == {33, 7}
    assert rules_named("def k_33_x(): ...\n# test_k_34_z\ntest_k_35_a = 'test_k_36_b'") == set()
