"""What the kernel makes unchecked is what the public constructor would have built."""

# ruff: noqa: S301 - what is unpickled here was pickled here

from __future__ import annotations

import copy
import inspect
import pickle
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.engine import unchecked
from turnlock.engine.kernel import Kernel
from turnlock.engine.state import Owed
from turnlock.lifecycle.invocation import Decision
from turnlock.lifecycle.phases import Phase
from turnlock.models.calls import CallResult
from turnlock.models.codec import read, read_delivery
from turnlock.models.effects import EFFECTS
from turnlock.models.fact import Fact
from turnlock.models.facts import FACTS, LifecycleFact, TurnSealed
from turnlock.models.inputs import Input
from turnlock.models.reasons import Reason
from turnlock.models.record import Record, fields_of, unchecked_maker, unchecked_maker_from
from turnlock.models.run import Run
from turnlock.models.verdicts import Accepted, Refused

from ..random_scripts import run, script
from .strategies import arguments_of, build, records

MAKERS: dict[str, Callable[..., Any]] = {
    name: maker.__globals__["write"]()
    for name, maker in vars(unchecked).items()
    if inspect.isfunction(maker) and maker.__name__ == "make"
}
"""Written, so that they can be asked what they take (test_written_late: when they are else)."""


def made_by(maker: Callable[..., Any]) -> type[Record]:
    """The class that a maker makes."""
    kind: type[Record] = maker.__globals__["Frozen"]
    return kind


MADE = {name: made_by(maker) for name, maker in MAKERS.items()}


def test_these_are_made_unchecked() -> None:
    """Every fact, every effect, both verdicts and three parts, each by a maker of its own name."""
    kinds = [*FACTS, *EFFECTS, Accepted, Refused, CallResult, Owed, Decision]

    assert sorted(kind.__name__ for kind in MADE.values()) == (
        sorted(kind.__name__ for kind in kinds)
    )
    for name, kind in MADE.items():
        assert name.replace("_", "") == kind.__name__.lower()


def make_like(name: str, record: Any) -> Any:
    """What a maker makes of the fields of a record: from its context, and the rest by keyword."""
    invocation = SimpleNamespace(
        invocation_id=getattr(record, "invocation_id", None),
        tool_name=getattr(record, "tool_name", None),
    )
    agent = {part: getattr(record, part, None) for part in ("run_id", "agent_id", "agent_name")}
    context = {
        "state": SimpleNamespace(run=SimpleNamespace(**agent)),
        "turn": SimpleNamespace(turn_id=getattr(record, "turn_id", None)),
        "invocation": invocation,
        "now": getattr(record, "at", None),
        "number": getattr(record, "sequence", None),
        "input_": getattr(record, "input", None),
    }
    parameters = inspect.signature(MAKERS[name]).parameters.values()
    leading = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    keywords = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    rest = {one: getattr(record, one) for one in keywords}
    return MAKERS[name](*(context[one] for one in leading), **rest)


def assert_alike(made: Any, built: Any) -> None:
    """Equal, of one class, with equal hash and repr, as frozen, and copied and pickled alike."""
    fields = fields_of(cast("Record", built).__class__)
    assert type(made) is type(built)
    assert made == built
    assert built == made
    assert hash(made) == hash(built)
    assert repr(made) == repr(built)
    for field in fields:
        assert type(getattr(made, field.name)) is type(getattr(built, field.name))
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(made, field.name, None)
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            delattr(made, field.name)
    assert not hasattr(made, "__dict__")
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(again) is type(built)
        assert again == built
    assert attrs.evolve(made) == built
    assert pickle.dumps(made) == pickle.dumps(built)


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=40)
@given(st.data())
def test_what_is_made_is_what_is_built(name: str, data: st.DataObject) -> None:
    """With and without the optional fields; the values are those that a constructor let through."""
    kind = MADE[name]
    arguments = data.draw(arguments_of(kind))
    if issubclass(kind, Fact):
        arguments["commit"] = arguments["sequence"]
    build_one: Any = kind
    built = build_one(**arguments)

    assert_alike(make_like(name, built), built)


@pytest.mark.parametrize("name", MAKERS)
def test_a_maker_takes_what_its_constructor_takes(name: str) -> None:
    """What the context does not give is a keyword; none may be left out, whatever its default."""
    kind = MADE[name]
    parameters = inspect.signature(MAKERS[name]).parameters
    keywords = [one for one in parameters.values() if one.kind is one.KEYWORD_ONLY]
    context: set[str] = {"run_id", "sequence", "commit", "at", "input"}
    if not kind.__name__.startswith("Grant"):
        context |= {"turn_id"}
    if "invocation" in parameters:
        context |= {"invocation_id"}
    if issubclass(kind, LifecycleFact):
        context |= {"tool_name", "agent_id", "agent_name"}

    if not issubclass(kind, Fact):
        context = set()
    fields = [field.name for field in fields_of(kind)]
    assert [one.name for one in keywords] == [one for one in fields if one not in context]
    assert {one.default for one in keywords} <= {inspect.Parameter.empty}


@pytest.mark.parametrize("name", MAKERS)
def test_a_maker_leaves_the_class_alone(name: str) -> None:
    """The twin is mutable, the class stays frozen."""
    kind = MADE[name]
    make_like(name, build(kind))

    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        build(kind).run_id = "other"


@pytest.mark.parametrize("name", MAKERS)
def test_a_maker_stores_as_any_object_does(name: str) -> None:
    """CPython has one slot for both: one of them from a frozen class makes each store a call."""
    twin = MAKERS[name].__globals__["Twin"]

    assert twin.__setattr__ is object.__setattr__
    assert twin.__delattr__ is object.__delattr__


def test_a_maker_refuses_what_it_does_not_know() -> None:
    with pytest.raises(TypeError):
        MAKERS["wake"](effect_id="wake/r", at=0.0, colour="red")
    with pytest.raises(TypeError):
        MAKERS["wake"](effect_id="wake/r")


def test_a_word_of_the_tables_serves_as_the_text_of_a_refusal() -> None:
    """The kernel gives phase and input as they stand in the table; they equal and hash as text."""
    phase, input_ = Phase.REQUESTED, Input.CLAIM
    made = unchecked.refused(reason=Reason.LATE, phase=phase, input=input_, facts=(), effects=())
    built = Refused(reason=Reason.LATE, phase="REQUESTED", input="claim")

    assert made == built
    assert hash(made) == hash(built)


@given(st.lists(records(Fact), min_size=1, max_size=4))
def test_sealing_a_commit_writes_the_last_sequence_into_all(facts: list[Fact]) -> None:
    """K-9; nothing else of the facts changes. The last is right already."""
    before = [copy.copy(fact) for fact in facts]
    facts = [copy.copy(fact) for fact in facts]
    last = facts[-1].sequence

    unchecked.seal_commit(facts)

    assert [fact.commit for fact in facts] == [*[last] * (len(facts) - 1), before[-1].commit]
    for fact, old in zip(facts, before, strict=True):
        now: Any = fact
        assert attrs.evolve(now, commit=old.commit) == old
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            fact.commit = 0  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]


def rebuilt(record: Record) -> Any:
    """The same record, by its public constructor; words of the tables become the text they are."""
    kind: Any = type(record)
    fields = {field.name: getattr(record, field.name) for field in fields_of(kind) if field.init}
    if isinstance(record, Refused):
        fields |= {name: fields[name] and str(fields[name]) for name in ("phase", "input")}
    return kind(**fields)


def test_whatever_the_kernel_makes_in_operation_could_have_been_built() -> None:
    """Over 150 seeded scripts: every fact, effect and verdict passes the constructor's checks."""
    seen: set[type[Record]] = set()
    for seed in range(150):
        rng = random.Random(seed)
        of = run(rng)
        kernel = Kernel(read(Run, of))
        for step in script(rng, 40, of):
            if step["type"] == "recover":
                continue
            delivery = read_delivery({name: step[name] for name in step if name != "now"})
            verdict = kernel.receive(delivery, step["now"])
            for made in (*verdict.facts, *verdict.effects, verdict):
                built = rebuilt(made)
                assert built == made
                assert hash(built) == hash(made)
                if not isinstance(made, Refused):
                    assert repr(built) == repr(made)
                seen.add(type(made))

    assert seen == {*FACTS, *EFFECTS, Accepted, Refused}


# ------------------------------------------------------------------------- the two ways to make one


def test_unchecked_has_the_signature_of_the_constructor() -> None:
    make = unchecked_maker(TurnSealed)
    fact = make(run_id="r", sequence=1, commit=1, at=0.0, input=None, turn_id="T")

    assert_alike(fact, TurnSealed(run_id="r", sequence=1, commit=1, at=0.0, turn_id="T"))


def test_unchecked_from_reads_fields_off_its_context() -> None:
    make = unchecked_maker_from(
        TurnSealed,
        context=("who", "now"),
        shorthand={"its": "who.run"},
        fields={"run_id": "its.run_id", "turn_id": "who.turn_id", "at": "now"},
    )
    who = SimpleNamespace(run=SimpleNamespace(run_id="r"), turn_id="T")

    assert_alike(
        make(who, 2.5, sequence=1, commit=3, input=None),
        TurnSealed(run_id="r", sequence=1, commit=3, at=2.5, turn_id="T"),
    )


def test_a_maker_may_have_no_keyword_left() -> None:
    names = {"run_id": "r", "sequence": "1", "commit": "1", "at": "0.0", "turn_id": "t"}
    names["input"] = "None"
    make = unchecked_maker_from(TurnSealed, context=("r", "t"), shorthand={}, fields=names)

    assert make("r", "T") == TurnSealed(run_id="r", sequence=1, commit=1, at=0.0, turn_id="T")
