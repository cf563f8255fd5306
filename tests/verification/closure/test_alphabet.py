"""Symbols: named, bound to where a run stands, and none twice in a scope."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from turnlock.verification import oracle as package
from turnlock.verification.alphabet.scope import Scope
from turnlock.verification.alphabet.scopes import NIGHTLY
from turnlock.verification.alphabet.symbols import (
    TICK,
    Attempt,
    Epoch,
    GrantInForce,
    GrantToCome,
    approve,
    call,
    deny,
    of_call,
    of_turn,
    open_turn,
    revoke,
    symbols,
)
from turnlock.verification.oracle.oracle import Oracle

OPEN = open_turn("T", call("a"), call("b", gated=True), call("c", gated=True))
ORACLE_FILES = sorted(Path(str(package.__file__)).parent.glob("*.py"))


def oracle_after(*deliveries: dict[str, object]) -> Oracle:
    """An oracle that accepted these at time 0."""
    oracle = Oracle({"run_id": "r"})
    for delivery in deliveries:
        assert oracle.receive({**delivery, "now": 0.0})["accepted"]
    return oracle


def test_an_attempt_is_relative_to_that_of_its_invocation() -> None:
    """An id that the active turn does not have counts as never started."""
    oracle = oracle_after(OPEN, of_call("claim", "T", "a", attempt=1))
    current, following = symbols(
        of_call("report", "T", name, result=1, attempt=Attempt(more))
        for name, more in (("a", 0), ("b", 1))
    )
    (unknown,) = symbols([of_call("lose", "T", "x", attempt=Attempt(-1))])

    assert current.bound(oracle.state, "r")["attempt"] == 1
    assert following.bound(oracle.state, "r")["attempt"] == 1
    assert unknown.bound(oracle.state, "r")["attempt"] == -1


def test_an_epoch_is_relative_to_the_turns_opened() -> None:
    """The next one is 1 more."""
    (opening,) = symbols([open_turn("T2", call("a"), epoch=Epoch())])

    assert opening.bound(oracle_after().state, "r")["epoch"] == 1
    assert opening.bound(oracle_after(OPEN).state, "r")["epoch"] == 2


def test_grants_are_named_by_their_place() -> None:
    """Where none is at that place: one that has ended; where none has, the one to come."""
    oldest, second, to_come = symbols(
        [revoke(GrantInForce()), revoke(GrantInForce(1)), revoke(GrantToCome())]
    )
    once = approve("T", "b", scope="session")
    none, one = oracle_after(OPEN), oracle_after(OPEN, once)
    ended = oracle_after(OPEN, once, revoke("grant/r/1"))
    named = {
        "none": [it.bound(none.state, "r")["grant_id"] for it in (oldest, second, to_come)],
        "one": [it.bound(one.state, "r")["grant_id"] for it in (oldest, second, to_come)],
        "ended": [it.bound(ended.state, "r")["grant_id"] for it in (oldest, second, to_come)],
    }

    assert named == {
        "none": ["grant/r/1"] * 3,
        "one": ["grant/r/1", "grant/r/2", "grant/r/2"],
        "ended": ["grant/r/1", "grant/r/1", "grant/r/2"],
    }


def test_a_symbol_reads_aloud() -> None:
    """What it says, about what, and when."""
    said = [
        *symbols([of_call("report", None, "a", result="ok"), deny("T", "a")]),
        *symbols([of_turn("interrupt", "T", grace=1.0), TICK], dt=-1.0),
        *symbols([of_call("claim", "T", "a", attempt=Attempt(1)), revoke(GrantInForce())]),
    ]

    assert [symbol.name for symbol in said] == [
        'report –/a result="ok"',
        "decide T/a approved=false",
        "interrupt T grace=1.0 -1s",
        "tick -1s",
        "claim T/a attempt=current+1",
        "revoke grant_id=in force #0",
    ]


@pytest.mark.parametrize("scope", NIGHTLY, ids=lambda scope: str(scope.name))
def test_no_symbol_stands_twice_in_a_scope(scope: Scope) -> None:
    """It would only cost time."""
    names = [symbol.name for symbol in scope.symbols]

    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("file", ORACLE_FILES, ids=lambda file: str(file.name))
def test_the_oracle_shares_no_code_with_the_kernel(file: Path) -> None:
    """It imports the standard library and its own files; else it could not disagree."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level == 1, f"{file.name} imports from {'.' * node.level}{node.module}"
        elif isinstance(node, ast.ImportFrom):
            assert str(node.module).partition(".")[0] in sys.stdlib_module_names
        elif isinstance(node, ast.Import):
            assert {alias.name.partition(".")[0] for alias in node.names} <= sys.stdlib_module_names
