"""Records: frozen, keyword-only, equal by class and fields, and hashed as they are equal."""

# ruff: noqa: S301 - what is unpickled here was pickled here

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.models.calls import Call
from turnlock.models.deliveries import Acknowledge, Claim, Delivery, Report, SealTurn
from turnlock.models.diagnostics import Diagnostic
from turnlock.models.effects import Effect
from turnlock.models.errors import InvalidValue
from turnlock.models.facts import (
    ExecutionFact,
    Fact,
    GrantFact,
    LifecycleFact,
    TurnFact,
    TurnSealed,
    TurnSettled,
)
from turnlock.models.record import Record, changed, fields_of
from turnlock.models.values import arguments_digest

from .strategies import RECORDS, arguments_of, build, complete, minimal, records


def every_class(kind: type[Record] = Record) -> set[type[Record]]:
    """Every class below one that its module names: makers' twins are not among them."""
    below = {deeper for one in kind.__subclasses__() for deeper in {one, *every_class(one)}}
    return {one for one in below if vars(sys.modules[one.__module__]).get(one.__name__) is one}


BASES = (Delivery, Diagnostic, Effect, Fact, TurnFact, GrantFact, LifecycleFact, ExecutionFact)


def test_the_strategies_know_every_record() -> None:
    """A new record class must be listed in strategies.py, so that all of these tests reach it."""
    nouns = ("turnlock.models", "turnlock.lifecycle", "turnlock.turn", "turnlock.engine")
    declared = {one for one in every_class() if one.__module__.startswith(nouns)}

    assert len(RECORDS) == len(set(RECORDS))
    assert {one for one in declared if "__init__" in vars(one)} == set(RECORDS)
    assert {one for one in declared if "__init__" not in vars(one)} == set(BASES)


@pytest.mark.parametrize("kind", BASES)
def test_nobody_builds_a_base(kind: type[Record]) -> None:
    made: Any = kind
    with pytest.raises(TypeError):
        made(run_id="r")


@pytest.mark.parametrize("kind", RECORDS)
def test_a_record_is_frozen(kind: type[Record]) -> None:
    record = build(kind)
    before = repr(record)

    for field in fields_of(kind):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(record, field.name, "x")
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            delattr(record, field.name)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        record.colour = "red"

    assert repr(record) == before
    assert not hasattr(record, "__dict__")
    assert not hasattr(record, "__weakref__")


@pytest.mark.parametrize("kind", RECORDS)
def test_a_record_is_built_by_keyword(kind: type[Record]) -> None:
    made: Any = kind
    with pytest.raises(TypeError):
        made(*minimal(kind).values(), "one more")


@pytest.mark.parametrize("kind", RECORDS)
@settings(max_examples=15)
@given(st.data())
def test_equal_fields_make_equal_records(kind: type[Record], data: st.DataObject) -> None:
    """Equal, of one hash, of one repr; copies and pickles are equal too."""
    made: Any = kind
    arguments = data.draw(arguments_of(kind))
    record, again = made(**arguments), made(**copy.deepcopy(arguments))

    for other in (again, copy.copy(record), copy.deepcopy(record), reread(record)):
        assert type(other) is kind
        assert record == other
        assert not record != other  # noqa: SIM202 - the other operator
        assert hash(record) == hash(other)
        assert [getattr(record, field.name) for field in fields_of(kind)] == (
            [getattr(other, field.name) for field in fields_of(kind)]
        )
    assert attrs.evolve(record) == record
    assert record.__replace__() == record
    assert repr(record) == repr(again)


def reread(record: Record) -> Record:
    """A record that went through pickle."""
    again: Record = pickle.loads(pickle.dumps(record))
    return again


@given(st.data())
def test_hash_follows_equality(data: st.DataObject) -> None:
    """Over pairs that differ in one field at most, in a value that Python may hold for equal."""
    kind = data.draw(st.sampled_from(RECORDS))
    made: Any = kind
    one = made(**data.draw(arguments_of(kind)))
    other = made(**data.draw(arguments_of(kind)))

    assert one == one  # noqa: PLR0124 - reflexive
    assert (one == other) is (other == one)
    if one == other:
        assert hash(one) == hash(other)


@pytest.mark.parametrize("pair", [(1, 1.0), (1, True), (0, False), (0.0, -0.0), ("x", "x")])
def test_what_python_holds_for_equal_hashes_alike(pair: tuple[Any, Any]) -> None:
    one, other = (Report(invocation_id="a", result=value) for value in pair)

    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize("kind", RECORDS)
def test_a_difference_in_any_field_is_one(kind: type[Record]) -> None:
    """Whatever the field holds: no value of ours equals a fresh object."""
    record = build(kind)
    for field in fields_of(kind):
        other = copy.copy(record)
        object.__setattr__(other, field.name, object())
        assert record != other
        assert other != record


def test_a_changed_record_is_another_and_is_checked_again() -> None:
    claim = Claim(turn_id="T", invocation_id="a", attempt=1, worker="w")
    other = changed(claim, attempt=2, worker=None)

    assert other == Claim(turn_id="T", invocation_id="a", attempt=2)
    assert claim.attempt == 1
    assert changed(claim) == claim
    assert claim.__replace__(attempt=2, worker=None) == other  # copy.replace, Python 3.13
    with pytest.raises(InvalidValue, match=r"^worker: is empty"):
        changed(claim, worker="")
    with pytest.raises(TypeError, match="colour"):
        changed(claim, colour="red")


def test_a_changed_call_has_the_digest_of_its_arguments() -> None:
    call = Call(invocation_id="a", tool_name="ls", arguments={}, requires_approval=True)

    assert changed(call, arguments={"n": 1}).arguments_digest == arguments_digest({"n": 1})


def test_class_counts() -> None:
    """Equal fields in another class are another record."""
    fields: dict[str, Any] = {"run_id": "r", "sequence": 1, "commit": 1, "at": 0.0, "turn_id": "T"}

    assert TurnSealed(**fields) != TurnSettled(**fields)
    assert hash(TurnSealed(**fields)) != hash(TurnSettled(**fields))
    assert SealTurn(turn_id="T") != Acknowledge(turn_id="T")
    assert SealTurn(turn_id="T") != "T"
    assert SealTurn(turn_id="T") != None  # noqa: E711 - the operator is under test


@given(records(Delivery))
def test_records_serve_as_keys(delivery: Delivery) -> None:
    assert {delivery: 1}[copy.copy(delivery)] == 1
    assert len({delivery, copy.copy(delivery)}) == 1


def test_repr_shows_what_differs_from_the_defaults() -> None:
    claim = Claim(turn_id="T", invocation_id="a", attempt=2)

    assert repr(claim) == "Claim(turn_id='T', invocation_id='a', attempt=2)"
    assert repr(Claim(turn_id="T", invocation_id="a", attempt=2, worker="w", run_id="r")) == (
        "Claim(run_id='r', turn_id='T', invocation_id='a', attempt=2, worker='w')"
    )
    assert repr(Report(invocation_id="a", result=None)) == "Report(invocation_id='a', result=None)"


@pytest.mark.parametrize("kind", RECORDS)
def test_repr_names_every_field_that_was_given(kind: type[Record]) -> None:
    made: Any = kind
    given = complete(kind)
    shown = repr(made(**given))

    assert shown.startswith(f"{kind.__name__}(")
    defaults = {field.name: field.default for field in fields_of(kind)}
    for name, value in given.items():
        assert (f"{name}=" in shown) is not (value is defaults[name])


@pytest.mark.parametrize("kind", RECORDS)
def test_every_record_says_what_it_is(kind: type[Record]) -> None:
    assert kind.__doc__
    assert "Record" not in kind.__doc__.split()[0]
