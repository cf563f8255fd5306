"""Every edge is planted against: it finds its bug, nothing else does, and no alphabet says it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any
from unittest.mock import patch

import pytest

from turnlock.verification.alphabet import scopes, slices
from turnlock.verification.alphabet.slice import RECOVER
from turnlock.verification.alphabet.symbols import TICK, Relative, Symbol
from turnlock.verification.edges import technique
from turnlock.verification.edges.edge import Edge
from turnlock.verification.edges.edges import EDGES
from turnlock.verification.edges.technique import Played, edges_of
from turnlock.verification.findings import Finding, Profile
from turnlock.verification.subjects.kernel import kernel_driver

from ..verification.depth import DEEP
from .bug import Bug, Family
from .bugs import CATALOGUE

Raw = dict[str, Any]

BY_NAME = {edge.name: edge for edge in EDGES}
BUGS = {bug.name: bug for bug in CATALOGUE if bug.edge}
HEAVY = {"a thousand calls", "a memory of 1,024"}
"""What takes long, beside what dev leaves out; `make selftest` plays them all."""
FEW_PLAYS = 5
"""Scripts that are played to make a large finding shorter: a thousand take 20 s for each bug, which
`make selftest` spends. Neither the rule that is told nor the run depends on it."""
FEW_BUGS = 8
"""Every so many bugs are held against all other edges in the gate: each takes a second of processor
time. `make selftest` does it for all of them."""
bugs = pytest.mark.parametrize("name", BUGS)
some_bugs = pytest.mark.parametrize("name", list(BUGS)[:: 1 if DEEP else FEW_BUGS])


def found_by(bug: Bug, edges: Iterable[Edge]) -> list[str]:
    """The names of the edges that find a bug."""
    names: list[str] = []
    with bug.planted():
        for edge in edges:
            played = Played(kernel_driver())
            played.play(edge)
            if played.found:
                names.append(edge.name)
    return names


def test_every_edge_is_planted_against() -> None:
    """By the bug that names it; and what names one stands in the family of the edges."""
    assert {bug.edge for bug in BUGS.values()} == set(BY_NAME)
    assert {bug.name for bug in CATALOGUE if bug.family is Family.EDGES} == set(BUGS)


@bugs
def test_a_bug_of_the_edges_is_found_by_its_edge(name: str) -> None:
    assert [it.message.endswith(f"(edge: {BUGS[name].edge})") for it in findings(name)] == [True]


@some_bugs
def test_a_bug_of_the_edges_is_found_by_no_other(name: str) -> None:
    """The control: without that script the edges do not find it."""
    bug = BUGS[name]
    others = [edge for edge in edges_of(Profile.DEV) if edge.name not in {bug.edge, *HEAVY}]

    assert found_by(bug, others) == []


@bugs
def test_a_bug_of_the_edges_is_told_with_a_rule_of_its_edge(name: str) -> None:
    """The finding is one of the technique, short, and names what the script is about."""
    bug = BUGS[name]
    (finding,) = findings(name)

    assert finding.technique == "edges"
    assert finding.run == BY_NAME[bug.edge].run
    assert finding.rule in {bug.rule, *BY_NAME[bug.edge].rules}


@cache
def findings(name: str) -> tuple[Finding, ...]:
    """What the technique tells of a bug while it is planted, from its edge alone."""
    bug = BUGS[name]
    edge = BY_NAME[bug.edge]
    plays = FEW_PLAYS if edge.large or edge.name in HEAVY else technique.PLAYS
    with bug.planted(), patch.object(technique, "PLAYS", plays):
        result = technique.check(
            kernel_driver(), profile=Profile.CI, progress=lambda _: None, edges=[edge]
        )
    return result.findings


# ---------------------------------------------------------------- what an alphabet can say is none


@bugs
def test_a_bug_of_the_edges_lies_outside_of_every_alphabet(name: str) -> None:
    """A bug that a script of some scope or slice shows is closure's, and must not be marked.

    Where no alphabet has the limits of the edge's run, none says any script of it, however short.
    """
    bug = BUGS[name]
    near = of_limits(BY_NAME[bug.edge].run)
    if not near:
        return
    (finding,) = findings(name)

    assert [alphabet.name for alphabet in near if says(alphabet, finding)] == []


def test_some_bugs_of_the_edges_are_near_to_an_alphabet() -> None:
    """The control: not every bug lies outside by the limits of its run alone."""
    assert [name for name, bug in BUGS.items() if of_limits(BY_NAME[bug.edge].run)]


def of_limits(run: Raw) -> list[Alphabet]:
    """The alphabets for runs with the limits of this one."""
    return [alphabet for alphabet in alphabets() if limits(alphabet.run) == limits(run)]


def test_an_alphabet_says_what_it_can_say() -> None:
    """The control: a script of a scope's own symbols is inside of it, at its times only."""
    steps = [
        {"type": "open_turn", "turn_id": "T", "calls": calls("T"), "now": 0.0},
        {"type": "claim", "turn_id": "T", "invocation_id": "a", "attempt": 1, "now": 0.0},
        {**TICK, "now": 3.0},
    ]
    (leases,) = [alphabet for alphabet in alphabets() if alphabet.name == "leases of dev"]

    steps[1] |= {"worker": "w", "lease": 1.5}
    assert says(leases, told(leases.run, steps)) is False
    steps[1] |= {"lease": 1.0}
    assert says(leases, told(leases.run, steps)) is True
    steps[2]["now"] = 3.25
    assert says(leases, told(leases.run, steps)) is False


def calls(turn_id: str) -> list[Raw]:
    """The calls of the opening of the scope."""
    (leases,) = [alphabet for alphabet in alphabets() if alphabet.name == "leases of dev"]
    (opening,) = [
        symbol.delivery for symbol in leases.symbols if symbol.delivery["type"] == "open_turn"
    ]
    assert opening["turn_id"] == turn_id
    found: list[Raw] = opening["calls"]
    return found


def told(run: Raw, steps: list[Raw]) -> Finding:
    """A finding with this script."""
    return Finding(
        technique="x", rule="", message="", run=run, script=tuple(steps), expected={}, got={}
    )


class Alphabet:
    """Symbols for a run, of a scope or of a slice."""

    def __init__(self, name: str, run: Raw, symbols: tuple[Symbol, ...]) -> None:
        self.name = name
        self.run = run
        self.symbols = symbols


@cache
def alphabets() -> tuple[Alphabet, ...]:
    """All that the techniques have, of every profile."""
    return tuple(_alphabets())


def _alphabets() -> Iterator[Alphabet]:
    for profile, of_profile in (("dev", scopes.DEV), ("ci", scopes.CI), ("night", scopes.NIGHTLY)):
        for scope in of_profile:
            yield Alphabet(f"{scope.name} of {profile}", scope.run, scope.symbols)
    for part in slices.SLICES:
        yield Alphabet(part.name, part.run, part.symbols)


def says(alphabet: Alphabet, finding: Finding) -> bool:
    """Whether a script is one of an alphabet: for its limits, of its symbols, at their times."""
    if limits(alphabet.run) != limits(finding.run):
        return False
    clock = 0.0
    for step in finding.script:
        now = float(step.get("now", clock))
        if step != RECOVER and not any(
            _is(symbol, step, now - clock) for symbol in alphabet.symbols
        ):
            return False
        clock = max(clock, now)
    return True


def limits(run: Raw) -> Raw:
    """The limits of a run that were given."""
    return run.get("limits") or {}


def _is(symbol: Symbol, step: Raw, dt: float) -> bool:
    """Whether a step is this symbol; what is relative may be anything."""
    said = {name: value for name, value in step.items() if name != "now"}
    return (
        symbol.dt == dt
        and symbol.delivery.keys() == said.keys()
        and all(
            isinstance(value, Relative) or repr(value) == repr(said[name])
            for name, value in symbol.delivery.items()
        )
    )
