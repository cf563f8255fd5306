"""The scripts of the edges: told in words, well-formed on the wire, each about its rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from turnlock.models.calls import Call
from turnlock.models.codec import WIRE_NAMES
from turnlock.models.deliveries import DELIVERIES
from turnlock.models.record import fields_of
from turnlock.models.run import Limits, Run
from turnlock.verification.edges.edge import Edge
from turnlock.verification.edges.edges import EDGES
from turnlock.verification.edges.technique import edges_of
from turnlock.verification.findings import Profile
from turnlock.verification.oracle.oracle import Oracle
from turnlock.verification.rulebook import RULES, rules_of
from turnlock.verification.rulebook.attribution import rule_of_fact
from turnlock.wire.requests import WireError, read_request

Raw = dict[str, Any]

BY_NAME = {edge.name: edge for edge in EDGES}
edges = pytest.mark.parametrize("name", BY_NAME)


def request(edge: Edge) -> bytes:
    """The edge as a request of the wire."""
    return json.dumps({"id": 1, "run": edge.run, "scripts": [edge.steps]}).encode()


def test_every_edge_has_a_name_a_sentence_and_rules() -> None:
    """Each name is there once, and whoever reads the sentence knows what it is for."""
    assert len(BY_NAME) == len(EDGES) >= 35
    assert len({edge.about for edge in EDGES}) == len(EDGES)
    for edge in EDGES:
        assert 30 <= len(edge.about) <= 100, edge.name
        assert len(edge.name) <= 40, edge.name
        assert edge.rules, edge.name


@edges
def test_the_wire_takes_every_edge(name: str) -> None:
    """What the wire refuses (section 12) is in no script: it would say nothing of the kernel."""
    asked = read_request(request(BY_NAME[name]))

    assert len(asked.scripts[0]) == len(BY_NAME[name].steps)


def test_the_wire_would_refuse() -> None:
    """The control: an id that is empty is no delivery, and would be told."""
    steps = ({"type": "acknowledge", "turn_id": "", "now": 0.0},)

    with pytest.raises(WireError, match="turn_id"):
        read_request(request(attrs.evolve(EDGES[0], steps=steps)))


@edges
def test_every_edge_exercises_its_rules(name: str) -> None:
    """Receipts can show whatever rule a script names, and some step of it asks for the first."""
    edge = BY_NAME[name]
    oracle = Oracle(edge.run)
    exercised: set[str] = set()
    for step in edge.steps:
        receipt = oracle.receive(step)
        exercised |= rules_of(step, receipt)
        exercised |= {rule_of_fact(fact) for fact in receipt["facts"]}

    assert set(edge.rules) <= {rule.id for rule in RULES if rule.visible}
    assert edge.rules[0] in exercised


def test_dev_leaves_out_what_takes_long_and_nothing_else() -> None:
    """A few scripts fill the default limits: those wait for ci."""
    left = {edge.name for edge in EDGES} - {edge.name for edge in edges_of(Profile.DEV)}

    assert left == {"ten thousand calls", "a thousand grants", "a thousand continuations"}
    assert edges_of(Profile.CI) == edges_of(Profile.NIGHTLY) == EDGES


# ------------------------------------------------------------------------- null, wherever it may be


def optional(cls: type) -> set[str]:
    """The fields of a record that may be left out, in the words of the wire; `result` apart."""
    names = {field.name for field in fields_of(cls) if field.init} - {"result", "provider_call_id"}
    required = {
        field.name for field in fields_of(cls) if field.init and field.default is attrs.NOTHING
    }
    return {WIRE_NAMES.get(name, name) for name in names - required}


def nulls(part: Raw) -> set[str]:
    """The fields that are null."""
    return {name for name, value in part.items() if value is None}


def steps_of(kind: str) -> Iterator[Raw]:
    """All deliveries of one type, in all edges."""
    return (step for edge in EDGES for step in edge.steps if step["type"] == kind)


@pytest.mark.parametrize("cls", DELIVERIES, ids=lambda cls: cls.type)
def test_every_optional_field_of_a_delivery_is_null_somewhere(cls: Any) -> None:
    """Of every type of delivery: a kernel that takes null for a value is seen (section 3)."""
    said = {name for step in steps_of(cls.type) for name in nulls(step)}

    assert optional(cls) <= said


def test_every_optional_field_of_a_call_is_null_somewhere() -> None:
    """In an opening, and in an addition."""
    opened = [call for step in steps_of("open_turn") for call in step["calls"]]
    added = [step["call"] for step in steps_of("add_call")]

    for calls in (opened, added):
        assert optional(Call) <= {name for call in calls for name in nulls(call)}


def test_every_optional_field_of_a_run_is_null_somewhere() -> None:
    """The limits too, one by one."""
    runs = [edge.run for edge in EDGES]

    assert optional(Run) - {"limits"} <= {name for run in runs for name in nulls(run)}
    limits = [run["limits"] for run in runs if run.get("limits") is not None]
    assert optional(Limits) <= {name for limit in limits for name in nulls(limit)}
