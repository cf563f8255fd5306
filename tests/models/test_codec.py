"""Records to and from JSON: what is written is read back, and nothing else is read."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlock.engine.kernel import Kernel
from turnlock.engine.snapshot import SavedClosing, Snapshot
from turnlock.engine.state import Owed
from turnlock.models.calls import Call
from turnlock.models.codec import (
    WIRE_NAMES,
    delivery_from_json,
    effect_from_json,
    fact_from_json,
    read,
    read_delivery,
    read_effect,
    read_fact,
    read_verdict,
    record_from_json,
    to_json,
    upgraded,
    verdict_from_json,
    write,
)
from turnlock.models.deliveries import DELIVERIES, Delivery, OpenTurn, Report, Resolve, Tick
from turnlock.models.diagnostics import DIAGNOSTICS
from turnlock.models.effects import EFFECTS, Continue, Effect
from turnlock.models.errors import InvalidValue
from turnlock.models.fact import Fact
from turnlock.models.facts import (
    FACTS,
    GRANT_FAMILY,
    ToolDenied,
    ToolExecutionSucceeded,
    TurnOpened,
)
from turnlock.models.record import Record
from turnlock.models.run import Run
from turnlock.models.strict_json import parse
from turnlock.models.verdicts import Accepted, Refused, Verdict

from ..depth import DEEP
from ..random_scripts import run, script
from .strategies import (
    SECONDS,
    STORED,
    build,
    complete,
    fields_given,
    is_required,
    kind_of,
    make,
    may_be_empty,
    minimal,
    records,
)

READERS: list[tuple[type[Record], Callable[[object], Record]]] = [
    *((kind, read_delivery) for kind in DELIVERIES),
    *((kind, read_fact) for kind in FACTS),
    *((kind, read_effect) for kind in EFFECTS),
    *((kind, partial(read, kind)) for kind in STORED),
]


def text_of(raw: object) -> str:
    """A JSON value as text that tells 1, 1.0 and true apart."""
    return json.dumps(raw, sort_keys=True)


# ------------------------------------------------------------------------------------ round trips


@pytest.mark.parametrize(("kind", "reader"), READERS)
@settings(max_examples=100 if DEEP else 10)
@given(st.data())
def test_what_is_written_is_read_back(
    kind: type[Record], reader: Callable[[object], Record], data: st.DataObject
) -> None:
    """As an object and as a line of text; and what is read back is written alike."""
    record = data.draw(records(kind))
    raw = write(record)
    line = to_json(record)
    stored = upgraded(parse(line))

    assert reader(raw) == record
    assert reader(stored) == record
    assert type(reader(raw)) is kind
    assert text_of(stored) == text_of(raw)
    assert to_json(reader(stored)) == line
    assert b"\n" not in line


@given(records(Fact))
def test_a_fact_survives_its_journal(fact: Fact) -> None:
    assert fact_from_json(to_json(fact)) == fact
    assert fact_from_json(to_json(fact).decode()) == fact


@settings(max_examples=20)
@given(records(Snapshot))
def test_a_snapshot_survives_its_file(snapshot: Snapshot) -> None:
    assert record_from_json(Snapshot, to_json(snapshot)) == snapshot
    assert to_json(record_from_json(Snapshot, to_json(snapshot))) == to_json(snapshot)


@given(records(Delivery), records(Effect))
def test_deliveries_and_effects_survive_their_lines(delivery: Delivery, effect: Effect) -> None:
    """Whoever queues or logs them needs no more than whoever keeps facts."""
    assert delivery_from_json(to_json(delivery)) == delivery
    assert effect_from_json(to_json(effect)) == effect


@given(st.one_of(records(Accepted), records(Refused)))
def test_a_verdict_survives_its_line(verdict: Verdict) -> None:
    """`accepted` says which it is; reason, phase, facts and effects are those that were."""
    line = to_json(verdict)

    assert json.loads(line)["accepted"] is verdict.accepted
    assert verdict_from_json(line) == verdict


@pytest.mark.parametrize(
    ("raw", "cause"),
    [
        ({}, "is missing"),
        ({"accepted": None}, "is missing"),
        ({"accepted": 1}, "1 is no boolean"),
        ({"accepted": "no"}, "'no' is no boolean"),
    ],
)
def test_a_verdict_says_whether_it_accepts(raw: Any, cause: str) -> None:
    """And whoever has written it wrongly is told what was read, and what would be right."""
    with pytest.raises(InvalidValue) as caught:
        read_verdict(raw)
    assert str(caught.value) == f"accepted: {cause}; give true or false"


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        ({"accepted": False}, "reason"),
        ({"accepted": True, "effects": []}, "facts"),
        ({"accepted": True, "reason": "late", "facts": [], "effects": []}, "reason"),
        ({"accepted": True, "facts": [{"type": "TURN_SEALED"}], "effects": []}, "facts[0].run_id"),
        ([], ""),
    ],
)
def test_what_is_no_verdict_is_refused_at_its_place(raw: Any, place: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        read_verdict(raw)
    assert caught.value.place == place


@given(records(Delivery), records(Effect))
def test_writing_is_flat_with_the_type_first(delivery: Delivery, effect: Effect) -> None:
    for record in (delivery, effect):
        raw = write(record)
        assert next(iter(raw.items())) == ("type", record.type)
        assert None not in [value for name, value in raw.items() if name != "result"]


def test_only_what_is_given_is_written() -> None:
    assert write(Tick()) == {"type": "tick"}
    assert write(build(OpenTurn)) == {"type": "open_turn", "turn_id": "x", "calls": [CALL]}
    assert write(Run(run_id="r")) == {"run_id": "r"}
    assert write(Report(invocation_id="a", result=None)) == {
        "type": "report",
        "invocation_id": "a",
        "result": None,
    }


CALL: dict[str, Any] = {
    "invocation_id": "x",
    "tool_name": "x",
    "arguments": {"n": 1},
    "requires_approval": True,
    "observed": False,  # a call carries the field (K-58)
}


def test_a_digest_is_not_written_with_its_call() -> None:
    """It follows from the arguments, and is computed again."""
    call = make(Call, **CALL)

    assert write(call) == CALL
    assert read(Call, CALL).arguments_digest == call.arguments_digest


def test_a_word_of_python_has_another_name_on_the_wire() -> None:
    raw = {"type": "resolve", "turn_id": "T", "invocation_id": "a", "attempt": 1, "as": "retry"}
    record = read_delivery(raw)

    assert record == make(Resolve, turn_id="T", invocation_id="a", attempt=1, resolution="retry")
    assert write(record) == raw


def test_bytes_of_a_line() -> None:
    """Pinned, because journals outlive the code that wrote them."""
    fact = TurnOpened(
        run_id="r",
        sequence=1,
        commit=1,
        at=2.0,
        turn_id="é/1",
        epoch=1,
        sealed=False,
        calls=(Call(invocation_id="a", tool_name="ls", arguments={}, requires_approval=False),),
    )

    assert to_json(fact).decode() == (
        '{"version":2,"type":"TURN_OPENED","run_id":"r","sequence":1,"commit":1,"at":2.0,'
        '"turn_id":"é/1","epoch":1,"sealed":false,"calls":[{"invocation_id":"a",'
        '"tool_name":"ls","arguments":{},"requires_approval":false,"observed":false}]}'
    )


# ------------------------------------------------------------------------------------- strictness


def raw_of(kind: type[Record], *, full: bool = True) -> dict[str, Any]:
    """A record of this class as JSON, with as many fields as go together or as few."""
    made: Any = kind
    written: dict[str, Any] = parse(
        json.dumps(write(made(**(complete if full else minimal)(kind))))
    )
    return written


def wire_name(name: str) -> str:
    return WIRE_NAMES.get(name, name)


def is_tuple(holds: Any) -> bool:
    return get_origin(holds) is tuple


def wrong_for(kind: type[Record], name: str) -> list[Any]:
    """Values of a wrong type for a field, and of the right type but out of bounds."""
    holds = kind_of(kind, name)
    if is_tuple(holds):
        return [5, "x", {}, True]
    if isinstance(holds, type) and issubclass(holds, StrEnum):
        return [5, "nope", [], {}, True]
    if isinstance(holds, type) and issubclass(holds, Record):
        return [5, "x", [], True]
    wrong: Mapping[Any, list[Any]] = {
        "json": [float("inf")],
        Mapping: [5, "x", [], True],
        bool: [0, 1, "true", [], {}],
        int: ["5", 1.0, True, [], {}],
        float: ["5", True, [], {}, float("inf"), *([-1, -0.5] if name in SECONDS else [])],
        str: [5, 1.5, True, [], {}, "\ud800", *([] if may_be_empty(kind, name) else [""])],
    }
    return wrong[holds]


FIELDS = [(kind, reader, field.name) for kind, reader in READERS for field in fields_given(kind)]


@pytest.mark.parametrize(("kind", "reader", "name"), FIELDS)
def test_a_wrong_type_is_refused_at_its_place(
    kind: type[Record], reader: Callable[[object], Record], name: str
) -> None:
    """Never coerced: not "5" for 5, nor 1 for true, nor 1.0 for 1."""
    raw = raw_of(kind)
    for wrong in wrong_for(kind, name):
        with pytest.raises(InvalidValue) as raised:
            reader({**raw, wire_name(name): wrong})
        assert raised.value.place == wire_name(name)
        assert raised.value.cause
        assert raised.value.fix


NESTED = [row for row in FIELDS if is_tuple(kind_of(row[0], row[2]))]


@pytest.mark.parametrize(("kind", "reader", "name"), NESTED)
def test_a_wrong_item_is_refused_at_its_index(
    kind: type[Record], reader: Callable[[object], Record], name: str
) -> None:
    raw = raw_of(kind)
    wrongs: list[Any] = [5, None, []]
    for wrong in wrongs:
        with pytest.raises(InvalidValue) as raised:
            reader({**raw, name: [*raw[name], wrong]})
        assert raised.value.place == f"{name}[1]"


OTHERS = [
    row for row in FIELDS if row[2] != "result" and row[::2] != (ToolDenied, "reason")
]  # a denial says why: its reason is absent beside an error alone


@pytest.mark.parametrize(("kind", "reader", "name"), OTHERS)
def test_null_is_as_good_as_absent(
    kind: type[Record], reader: Callable[[object], Record], name: str
) -> None:
    """Where absent is allowed; result is the exception, for its presence counts (section 3)."""
    raw = raw_of(kind, full=False)
    field = next(field for field in fields_given(kind) if field.name == name)
    raw_without = {one: value for one, value in raw.items() if one != wire_name(name)}
    raw_null = {**raw, wire_name(name): None}
    if not is_required(field):
        assert reader(raw_null) == reader(raw_without)
        return

    with pytest.raises(InvalidValue) as raised:
        reader(raw_without)
    assert raised.value.place == wire_name(name)
    assert raised.value.cause == "is missing"
    assert raised.value.fix == "give this field"
    if name == "turn_id" and kind in GRANT_FAMILY:
        assert write(reader(raw_null)) == raw_null  # outside of a turn, and it says so (section 4)
        return
    with pytest.raises(InvalidValue) as raised:
        reader(raw_null)
    assert raised.value.place == wire_name(name)


def test_the_presence_of_result_counts() -> None:
    report = {"type": "report", "invocation_id": "a"}

    assert read_delivery({**report, "result": None}) == Report(invocation_id="a", result=None)
    assert read_delivery({**report, "error": "x"}) == Report(invocation_id="a", error="x")
    for outcome in ({}, {"error": None}, {"result": None, "error": "x"}):
        with pytest.raises(InvalidValue, match=r"^result: "):
            read_delivery({**report, **outcome})
    raw = raw_of(ToolExecutionSucceeded)
    with pytest.raises(InvalidValue, match=r"^result: is missing"):
        read_fact({name: raw[name] for name in raw if name != "result"})


@pytest.mark.parametrize(("kind", "reader"), READERS)
def test_an_unknown_field_is_refused_by_name(
    kind: type[Record], reader: Callable[[object], Record]
) -> None:
    """With the list of the known ones, which is that of the fields that may be given."""
    raw = raw_of(kind)
    known = ", ".join(wire_name(field.name) for field in fields_given(kind))

    for extra in ({"colour": 1}, {"colour": None}, {"zebra": 1, "colour": 2}):
        with pytest.raises(InvalidValue) as raised:
            reader({**raw, **extra})
        assert raised.value.place == "colour"
        assert raised.value.cause == "is no known field here"
        assert raised.value.fix == f"leave it out; known are {known}"


def test_a_fields_name_in_python_is_none_on_the_wire() -> None:
    raw = raw_of(Resolve)
    with pytest.raises(InvalidValue, match=r"^resolution: is no known field here"):
        read_delivery({**raw, "resolution": "retry"})


def test_the_digest_of_a_call_is_not_read() -> None:
    with pytest.raises(InvalidValue) as raised:
        read(Call, {**CALL, "arguments_digest": "00"})

    assert raised.value.place == "arguments_digest"
    assert "arguments_digest" not in raised.value.fix


@pytest.mark.parametrize("reader", [read_delivery, read_fact, read_effect])
@pytest.mark.parametrize(
    ("raw", "place", "cause"),
    [
        ([], "", "[] is no JSON object"),
        (None, "", "None is no JSON object"),
        ("tick", "", "'tick' is no JSON object"),
        ({}, "type", "is missing"),
        ({"type": None}, "type", "is missing"),
        ({"type": "nope"}, "type", "'nope' is no known type"),
        ({"type": 5}, "type", "5 is no known type"),
        ({"type": ["tick"]}, "type", "['tick'] is no known type"),
        ({"type": True}, "type", "True is no known type"),
    ],
)
def test_the_type_says_what_it_is(
    reader: Callable[[object], Record], raw: object, place: str, cause: str
) -> None:
    with pytest.raises(InvalidValue) as raised:
        reader(raw)

    assert raised.value.place == place
    assert raised.value.cause == cause


def test_each_reader_lists_its_own_types() -> None:
    kinds: list[tuple[Callable[[object], Record], tuple[Any, ...]]] = [
        (read_delivery, DELIVERIES),
        (read_fact, FACTS),
        (read_effect, EFFECTS),
    ]
    for reader, classes in kinds:
        with pytest.raises(InvalidValue) as raised:
            reader({"type": "nope"})
        assert raised.value.fix == "give one of " + ", ".join(str(one.type) for one in classes)


READ_RUN = partial(read, Run, place="run")
PATHS: list[tuple[Any, Any, str]] = [
    (
        read_delivery,
        {"type": "open_turn", "turn_id": "T", "calls": [CALL, CALL, 5]},
        "calls[2]",
    ),
    (
        read_delivery,
        {
            "type": "open_turn",
            "turn_id": "T",
            "calls": [CALL, CALL, {**CALL, "arguments": {"x": [float("inf")]}}],
        },
        "calls[2].arguments.x[0]",
    ),
    (
        read_delivery,
        {"type": "open_turn", "turn_id": "T", "calls": [{**CALL, "colour": 1}]},
        "calls[0].colour",
    ),
    (
        read_delivery,
        {"type": "open_turn", "turn_id": "T", "calls": [{**CALL, "tool_name": None}]},
        "calls[0].tool_name",
    ),
    (
        read_delivery,
        {"type": "add_call", "turn_id": "T", "call": {**CALL, "arguments": []}},
        "call.arguments",
    ),
    (
        partial(read, Run),
        {"run_id": "r", "limits": {"calls": -1}},
        "limits.calls",
    ),
    (
        READ_RUN,
        {"run_id": "r", "limits": {"colour": 1}},
        "run.limits.colour",
    ),
    (READ_RUN, [], "run"),
    (READ_RUN, {}, "run.run_id"),
]


@pytest.mark.parametrize(("reader", "raw", "place"), PATHS)
def test_a_nested_fault_has_its_whole_path(
    reader: Callable[[object], Record], raw: object, place: str
) -> None:
    with pytest.raises(InvalidValue) as raised:
        reader(raw)

    assert raised.value.place == place
    assert str(raised.value).startswith(f"{place}: ")


def test_paths_reach_through_every_level_of_a_snapshot() -> None:
    raw = raw_of(Snapshot)
    outcome = {"invocation_id": "a", "tool_name": "ls", "status": "failed", "error": ""}
    raw["continuations"] = [
        {
            "settled": 1,
            "effect": {
                "type": "continue",
                "effect_id": "e",
                "turn_id": "T",
                "results": [outcome],
            },
        }
    ]

    with pytest.raises(InvalidValue) as raised:
        read(Snapshot, raw)

    assert raised.value.place == "continuations[0].effect.results[0].error"


def test_the_ids_of_a_closing_are_texts() -> None:
    raw = {"turn_id": "T", "at": 0.0, "invocation_ids": ["a", 5]}
    with pytest.raises(InvalidValue, match=r"^invocation_ids\[1\]: 5 is not a str"):
        read(SavedClosing, raw)


def test_reading_changes_nothing_of_what_it_is_given() -> None:
    raw = {"type": "open_turn", "turn_id": "T", "epoch": None, "calls": [dict(CALL)]}
    before = text_of(raw)
    read_delivery(raw)
    upgraded({**raw, "version": 1})

    assert text_of(raw) == before


@pytest.mark.parametrize("kind", [*DELIVERIES, *FACTS, *EFFECTS, *DIAGNOSTICS])
def test_a_class_reads_its_own_type_and_no_other(kind: type[Record]) -> None:
    raw = raw_of(kind)
    own = raw["type"]

    assert write(read(kind, raw)) == raw
    for wrong in ("Tick", 5, [own], None):
        with pytest.raises(InvalidValue) as raised:
            read(kind, {**raw, "type": wrong}, place="it")
        assert raised.value.place == "it.type"
        assert raised.value.fix == f"give one of {own}"


def test_a_continuation_that_is_owed_stands_in_a_snapshot_as_the_effect_it_is() -> None:
    owed = Owed(effect=Continue(effect_id="e", turn_id="T", results=()), settled=3)

    assert write(owed)["effect"] == write(owed.effect)
    assert write(owed)["effect"]["type"] == "continue"
    with pytest.raises(InvalidValue, match=r"^effect\.type: 'cancel' is no known type"):
        read(Owed, {"settled": 3, "effect": {**write(owed.effect), "type": "cancel"}})


def test_a_class_without_a_type_does_not_read_one() -> None:
    with pytest.raises(InvalidValue, match=r"^type: is no known field here"):
        read(Run, {"type": "run", "run_id": "r"})


def test_a_kernel_survives_its_snapshot_on_disk() -> None:
    """At every step of 40 seeded scripts: with turns, grants, memory and continuations owed."""
    owed = 0
    for seed in range(40):
        rng = random.Random(seed)
        of = run(rng)
        kernel = Kernel(read(Run, of))
        for step in script(rng, 40, of):
            if step["type"] == "recover":
                line = to_json(kernel.snapshot())
                assert record_from_json(Snapshot, line) == kernel.snapshot()
                kernel = Kernel.recover(kernel.run, (), snapshot=record_from_json(Snapshot, line))
                assert to_json(kernel.snapshot()) == line
                owed += len(kernel.snapshot().continuations)
            else:
                raw = {name: step[name] for name in step if name != "now"}
                kernel.receive(read_delivery(raw), step["now"])
    assert owed
