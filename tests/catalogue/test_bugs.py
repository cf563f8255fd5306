"""Every bug of the catalogue changes what the kernel answers, and goes away without a trace."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import count
from typing import Any, cast

import attrs
import pytest

from turnlock.verification.edges.edges import EDGES
from turnlock.verification.errors import HarnessFailed
from turnlock.verification.fuzz.differences import alike
from turnlock.verification.fuzz.guided import RUNS, STEP_BYTES, follow
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.oracle.reading import canonical
from turnlock.verification.rulebook import RULES
from turnlock.verification.subjects.kernel import KernelSubject

from .bug import Bug, Family
from .bugs import CATALOGUE
from .field import ANALOGUES, Field
from .witnesses import WITNESSES

Raw = dict[str, Any]
Case = tuple[Raw, list[Raw], list[str]]
"""A run, a script for it, and the canonical text of what the oracle answers."""

SCRIPTS = 1_000
STEPS = 64
BUGS = {bug.name: bug for bug in CATALOGUE}


@cache
def case(number: int) -> Case:
    """One guided script, the same in every run of these tests."""
    draws = random.Random(number)
    decoded = follow(bytes([number % len(RUNS)]) + draws.randbytes(STEPS * STEP_BYTES))
    return decoded.run, decoded.script, [canonical(cast("Any", it)) for it in decoded.expected]


def witness(name: str) -> Case:
    """The script that was written by hand for this bug."""
    run: Raw = {"run_id": "r", "limits": {}}
    oracle = Oracle(run)
    script = WITNESSES[name]
    return run, script, [canonical(cast("Any", oracle.receive(step))) for step in script]


def first_difference(case_: Case) -> int | None:
    """The step that the kernel answers otherwise than the oracle, or at which it raises."""
    run, script, expected = case_
    subject = KernelSubject()
    subject.reset(run)
    for number, delivery, wanted in zip(count(), script, expected, strict=False):
        try:
            got = subject.recover() if delivery["type"] == "recover" else subject.receive(delivery)
        except Exception:  # noqa: BLE001 - a bug may also raise
            return number
        if canonical(cast("Any", got)) != wanted and not alike(json.loads(wanted), got):
            return number
    return None


def edge_case(bug: Bug) -> Case:
    """The script of the edges that is for this bug."""
    (edge,) = [edge for edge in EDGES if edge.name == bug.edge]
    oracle = Oracle(edge.run)
    expected = [canonical(cast("Any", oracle.receive(step))) for step in edge.steps]
    return edge.run, list(edge.steps), expected


def first_case(bug: Bug) -> Case | None:
    """The first script that shows the planted bug."""
    if bug.edge:
        cases = [edge_case(bug)]
    elif bug.name in WITNESSES:
        cases = [witness(bug.name)]
    else:
        cases = [case(number) for number in range(SCRIPTS)]
    return next((it for it in cases if first_difference(it) is not None), None)


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_seen_and_goes_away(name: str) -> None:
    """While it is planted some script is answered otherwise than by the oracle; then no more."""
    with BUGS[name].planted():
        shows = first_case(BUGS[name])

    assert shows is not None
    assert first_difference(shows) is None


@pytest.mark.parametrize("name", WITNESSES)
def test_a_witness_is_as_short_as_it_says(name: str) -> None:
    """The last step of a script written by hand is the one that differs."""
    with BUGS[name].planted():
        assert first_difference(witness(name)) == len(WITNESSES[name]) - 1


@pytest.mark.parametrize("number", range(40))
def test_the_healthy_kernel_agrees(number: int) -> None:
    """The control of these tests: without a bug the same scripts are answered alike."""
    assert first_difference(case(number)) is None


@attrs.frozen
class Kept:
    """A module, a class or a table as it is: its names, and the very objects under them."""

    place: str
    held: Mapping[object, object]
    entries: tuple[tuple[object, object], ...]

    def changed(self) -> bool:
        """Whether a name or an object of it is not the one that was there."""
        held = self.held
        return len(held) != len(self.entries) or any(
            held.get(name, self) is not it for name, it in self.entries
        )


def modules() -> dict[str, Mapping[object, object]]:
    """What is in the modules of the kernel."""
    floors = tuple(f"turnlock.{it}" for it in ("engine", "lifecycle", "turn", "models", "machines"))
    return {
        place: cast("Mapping[object, object]", vars(module))
        for place, module in list(sys.modules.items())
        if place.startswith(floors)
    }


def traces() -> list[Kept]:
    """Everything that a plant could change, down to the entries of tables and classes."""
    found: dict[int, Kept] = {}
    for place, held in modules().items():
        found[id(held)] = Kept(place, held, (*held.items(),))
        for name, it in held.items():
            if not str(name).startswith("__"):
                keep(it, f"{place}.{name}", found)
    return [*found.values()]


def keep(it: object, place: str, found: dict[int, Kept]) -> None:
    """Take down a class or a table, and the tables that are in it; each once."""
    inside = vars(it) if isinstance(it, type) else it
    if isinstance(inside, Mapping) and id(it) not in found:
        held = cast("Mapping[object, object]", inside)
        found[id(it)] = Kept(place, held, (*held.items(),))
        for name, entry in held.items():
            if isinstance(entry, Mapping):
                keep(cast("object", entry), f"{place}[{name}]", found)


def left(before: Iterable[Kept]) -> list[str]:
    """Where something is otherwise than it was, and what was not there."""
    known = {it.place for it in before}
    new = [place for place in modules() if place not in known]
    return [*new, *(it.place for it in before if it.changed())]


def test_every_bug_is_taken_back_exactly() -> None:
    """Function by function, row by row the kernel is the same objects as before."""
    before = traces()

    for bug in CATALOGUE:
        with bug.planted():
            pass

        assert left(before) == [], bug.name


def test_a_plant_leaves_traces_while_it_is_there() -> None:
    """The control of the test before this one: changed rows, functions and classes are seen."""
    before = traces()

    for name in ("not asked", "a stale report", "nothing is remembered", "wedged by an answer"):
        with BUGS[name].planted():
            assert left(before) != [], name


def test_a_bug_goes_away_when_something_raises() -> None:
    """An exception inside the context leaves a healthy kernel, and room for the next bug."""
    before = traces()

    with pytest.raises(ZeroDivisionError), CATALOGUE[0].planted():
        _ = 1 / 0

    assert left(before) == []
    with CATALOGUE[1].planted():
        pass


def test_two_bugs_are_never_planted_at_once() -> None:
    """The second is refused by name, and the first stays until its context is left."""
    first, second = CATALOGUE[:2]

    with first.planted():
        with pytest.raises(HarnessFailed, match=first.name), second.planted():
            pass
        with pytest.raises(HarnessFailed, match=first.name), first.planted():
            pass

    with second.planted():
        pass


def test_names_are_unique_and_intents_are_one_line() -> None:
    """A bug is told by its name, and understood by its intent."""
    assert len(BUGS) == len(CATALOGUE)
    assert len({bug.intent for bug in CATALOGUE}) == len(CATALOGUE)
    for bug in CATALOGUE:
        assert len(bug.name) <= 34, bug.name
        assert "\n" not in bug.intent, bug.name
        assert 20 <= len(bug.intent) <= 96, bug.name


def test_families_are_complete_and_stand_together() -> None:
    """At least sixty bugs; every family has at least five, and they stand in its order."""
    families = [bug.family for bug in CATALOGUE]

    assert len(CATALOGUE) >= 60
    assert all(families.count(family) >= 5 for family in Family)
    assert families == sorted(families, key=list(Family).index)


def test_every_failure_of_the_field_is_reproduced() -> None:
    """Each by some bug; and what cannot happen here says why, and what is planted instead."""
    assert {bug.field for bug in CATALOGUE} - {None} == set(Field)
    assert set(ANALOGUES) <= set(Field)
    assert all("Planted: " in why for why in ANALOGUES.values())


@pytest.mark.parametrize("bug", CATALOGUE, ids=lambda bug: bug.name)
def test_every_bug_names_the_rule_that_it_breaks(bug: Bug) -> None:
    """The index of rules lists it there; receipts can show that rule, or it were no bug to find."""
    assert bug.rule in {rule.id for rule in RULES if rule.visible} | {"K-8", "K-60"}
