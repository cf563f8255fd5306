"""The numbered rules of the texts of docs/spec/, and the tests that name them."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
sys.path.append(str(TESTS.parent / "tools"))

from spec_rules import TEXTS, named_in, rules_of  # noqa: E402 - a script's own module

CONTRACT = TESTS / "runtime" / "journal"
"""The parts of the suite that every journal passes; test_every_journal.py derives classes of it."""
CLIENTS = frozenset({"F-82", "F-83"})
"""Of the clients of others: those that are not here yet."""
REASONS = frozenset({"D-2", "D-3", "D-73", "D-74", "D-75", "D-83", "D-85"})
"""Of the distributed form: why it is as it is, what others do, and figures on paper."""
SHARDS = frozenset({"D-80", "D-81", "D-82", "D-84"})
"""Of the distributed form: beyond one primary, which is not here yet."""
LEFT_OUT = CLIENTS | REASONS | SHARDS

RULES = tuple(rule.id for letter in TEXTS for rule in rules_of(letter))


@cache
def rules_tested() -> set[str]:
    """Read once: every test file of ours is parsed for it."""
    found: set[str] = set()
    for path in (*TESTS.rglob("test_*.py"), *CONTRACT.glob("*.py")):
        for _, rules in named_in(path.read_text(encoding="utf-8")):
            found |= rules
    return {it for it in found if it[0] in TEXTS}


@pytest.mark.parametrize("rule", [it for it in RULES if it not in LEFT_OUT])
def test_every_rule_has_a_test_that_names_it(rule: str) -> None:
    """A rule without a test is a wish."""
    name = rule.lower().replace("-", "_")
    assert rule in rules_tested(), f"write a test_{name}_…, or name {rule} in a docstring"


def test_no_test_names_a_rule_that_does_not_exist() -> None:
    """A wrong number is worse than none."""
    assert rules_tested() <= set(RULES)


def test_what_is_not_built_is_stated() -> None:
    """What is left out here is a rule of the texts."""
    assert set(RULES) >= LEFT_OUT


def test_the_reader_of_names_reads_names() -> None:
    """The negative control: a helper, a mention elsewhere and a comment are no tests."""
    told = "def test_a():\n    '''W-7: this, F-33a, D-3 and S-4.'''"
    found = dict(named_in(f"{told}\nasync def test_s_42a_y(): ..."))
    assert found == {"test_a": {"W-7", "F-33a", "D-3", "S-4"}, "test_s_42a_y": {"S-42a"}}
    assert not [*named_in("def w_1_x(): ...\n# S-2\ndef test_b():\n    return 'F-3'")]
