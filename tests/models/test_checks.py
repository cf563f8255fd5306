"""What a field may hold: nothing is coerced, and each refusal names place, cause and fix (K-8)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from turnlock.models.errors import InvalidValue
from turnlock.models.record import (
    Record,
    any_text,
    choice,
    count,
    field,
    fields_of,
    flag,
    identifier,
    instance,
    instances,
    instant,
    json_object,
    json_or_absent,
    json_value,
    number,
    optional,
    optional_json_object,
    record,
    seconds,
    whole,
)
from turnlock.models.run import Limits
from turnlock.models.values import ABSENT, NO_ARGUMENTS, Absent, FrozenDict, FrozenList, Json

from .strategies import make


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class OtherColour(StrEnum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


@record
class Sample(Record):
    """A class with one field for each check."""

    id: Any = field(default="x", validator=identifier)
    text: Any = field(default="", validator=any_text)
    flag: Any = field(default=True, validator=flag)
    whole: Any = field(default=0, validator=whole)
    count: Any = field(default=0, validator=count)
    instant: Any = field(default=0.0, validator=instant)
    seconds: Any = field(default=0.0, validator=seconds)
    maybe: Any = field(default=None, validator=optional(identifier))
    one: Any = field(default=Number.ONE, validator=instance(Number))
    many: Any = field(default=(), validator=instances(Number))
    json: Json = field(default=None, converter=json_value)
    object: Any = field(default=NO_ARGUMENTS, converter=json_object)
    maybe_object: Mapping[str, Json] | None = field(default=None, converter=optional_json_object)
    given: Json | Absent = field(default=ABSENT, converter=json_or_absent)
    colour: Any = field(default="red", converter=choice(Colour))


BIG = 10**400
HUGE = 10**5_000

ACCEPTED: list[tuple[str, list[Any]]] = [
    ("id", ["x", " ", "a/b", "é", "\x00"]),
    ("text", ["", "x", "\n"]),
    ("flag", [True, False]),
    ("whole", [0, -1, 2**70]),
    ("count", [0, 1, 2**70]),
    ("instant", [0, -1, -0.5, 1e300, 2**60]),
    ("seconds", [0, 0.0, -0.0, 1.5, 2**60]),
    ("maybe", [None, "x"]),
    ("one", [Number.ONE]),
    ("many", [(), (Number.ONE, Number.ONE)]),
    ("json", [None, 0, "", False, [], {}, [1, {"a": None}]]),
    ("object", [{}, {"a": [1]}]),
    ("maybe_object", [None, {}, {"a": 1}]),
    ("given", [ABSENT, None, 0, [], {}]),
    ("colour", [Colour.RED, "blue", OtherColour.RED]),
]


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in ACCEPTED for value in values]
)
def test_what_fits_is_kept_as_it_is(name: str, value: Any) -> None:
    kept = getattr(make(Sample, **{name: value}), name)

    assert kept == value
    if name not in {"json", "object", "maybe_object", "given", "colour"}:
        assert kept is value


A_TEXT = "give a text"
A_WHOLE = "give a whole number"
A_NUMBER = "give a number"
FINITE = "give a finite number"
A_COLOUR = "give one of red, blue"

REFUSED: list[tuple[str, Any, str, str, str]] = [
    ("id", "", "id", "is empty", "give a non-empty text"),
    ("id", None, "id", "None is not a text", A_TEXT),
    ("id", 5, "id", "5 is not a text", A_TEXT),
    ("id", b"x", "id", "b'x' is not a text", A_TEXT),
    ("id", "\ud800", "id", "holds a lone surrogate at character 0", "replace it"),
    ("text", None, "text", "None is not a text", A_TEXT),
    ("text", "a\udfff", "text", "holds a lone surrogate at character 1", "replace it"),
    ("flag", 1, "flag", "1 is not true or false", "give true or false"),
    ("flag", 0, "flag", "0 is not true or false", "give true or false"),
    ("flag", "true", "flag", "'true' is not true or false", "give true or false"),
    ("flag", None, "flag", "None is not true or false", "give true or false"),
    ("whole", True, "whole", "True is not a whole number", A_WHOLE),
    ("whole", 1.0, "whole", "1.0 is not a whole number", A_WHOLE),
    ("whole", "1", "whole", "'1' is not a whole number", A_WHOLE),
    ("whole", Number.ONE, "whole", "is not a whole number", A_WHOLE),
    ("count", -1, "count", "-1 is negative", "give 0 or more"),
    ("count", -BIG, "count", "is negative", "give 0 or more"),
    ("count", -HUGE, "count", "at most 8192 bits", "give an integer of at most 8192 bits"),
    ("whole", HUGE, "whole", "at most 8192 bits", "give an integer of at most 8192 bits"),
    ("count", False, "count", "False is not a whole number", A_WHOLE),
    ("count", 0.0, "count", "0.0 is not a whole number", A_WHOLE),
    ("instant", "0", "instant", "'0' is not a number", A_NUMBER),
    ("instant", True, "instant", "True is not a number", A_NUMBER),
    ("instant", Number.ONE, "instant", "is not a number", A_NUMBER),
    ("instant", math.nan, "instant", "nan is not finite", FINITE),
    ("instant", -math.inf, "instant", "-inf is not finite", FINITE),
    ("instant", BIG, "instant", "is not finite", FINITE),
    ("instant", HUGE, "instant", "that cannot be shown is not finite", FINITE),
    ("seconds", -1, "seconds", "-1 is negative", "give 0 s or more"),
    ("seconds", -5e-324, "seconds", "-5e-324 is negative", "give 0 s or more"),
    ("seconds", None, "seconds", "None is not a number", A_NUMBER),
    ("seconds", math.inf, "seconds", "inf is not finite", FINITE),
    ("seconds", -BIG, "seconds", "is not finite", FINITE),
    ("maybe", "", "maybe", "is empty", "give a non-empty text"),
    ("maybe", 5, "maybe", "5 is not a text", A_TEXT),
    ("one", 1, "one", "1 is not a Number", "give a Number"),
    ("one", None, "one", "None is not a Number", "give a Number"),
    ("many", [1], "many", "[1] is not a tuple of Number", "give a tuple of Number"),
    ("many", None, "many", "None is not a tuple of Number", "give a tuple of Number"),
    ("many", (Number.ONE, 1), "many[1]", "1 is not a Number", "give a Number"),
    ("json", [{"a": math.nan}], "json[0].a", "nan is no JSON number", "send a finite number"),
    ("json", b"", "json", "b'' is a bytes, not a JSON value", "use None, bool"),
    ("object", [], "object", "[] is not a JSON object", "give a JSON object"),
    ("object", None, "object", "None is not a JSON object", "give a JSON object"),
    ("object", {"a": {1: 0}}, "object.a", "has the key 1, which is no text", "use text keys"),
    ("maybe_object", 0, "maybe_object", "0 is not a JSON object", "give a JSON object"),
    ("maybe_object", {"a": {1}}, "maybe_object.a", "is a set, not a JSON value", "use None"),
    ("given", [ABSENT], "given[0]", "ABSENT is a Absent, not a JSON value", "use None"),
    ("colour", "green", "colour", "'green' is not one of red, blue", A_COLOUR),
    ("colour", None, "colour", "None is not one of red, blue", A_COLOUR),
    ("colour", ["red"], "colour", "['red'] is not one of red, blue", A_COLOUR),
]


@pytest.mark.parametrize(
    ("name", "value", "place", "cause", "fix"),
    REFUSED,
    ids=[f"{row[0]}{n}" for n, row in enumerate(REFUSED)],
)
def test_what_does_not_fit_is_refused(
    name: str, value: Any, place: str, cause: str, fix: str
) -> None:
    with pytest.raises(InvalidValue) as raised:
        make(Sample, **{name: value})

    assert raised.value.place == place
    assert cause in raised.value.cause
    assert raised.value.fix.startswith(fix)


class Likeness(Limits):
    """Limits as a caller may derive them: what they answer is the caller's."""


@record
class Holder(Record):
    """A class whose fields hold records of ours, and such as are derived from them."""

    own: Any = field(default=Limits(), validator=instance(Limits))
    owns: Any = field(default=(), validator=instances(Limits))
    any: Any = field(default=Limits(), validator=instance(Limits, below=True))
    anys: Any = field(default=(), validator=instances(Limits, below=True))


def test_a_record_that_is_derived_from_ours_is_refused_where_ours_is_asked_for() -> None:
    """Else it could answer otherwise each time: approved with one argument, run with another."""
    like = Likeness()

    for name, value, place in (("own", like, "own"), ("owns", (like,), "owns[0]")):
        with pytest.raises(InvalidValue) as raised:
            make(Holder, **{name: value})
        assert raised.value.place == place
        assert raised.value.fix == "give a Limits"
    assert make(Holder, any=like, anys=(like,)).any is like


def test_an_optional_check_sees_what_any_check_sees() -> None:
    """The record, too: a check may hold one field to another."""
    seen: list[tuple[Any, ...]] = []
    sample = make(Sample)
    field = fields_of(Sample)[0]

    def note(*given: Any) -> None:
        seen.append(given)

    check = optional(note)
    check(sample, field, None)
    check(sample, field, 5)

    assert seen == [(sample, field, 5)]


def test_json_is_frozen_on_the_way_in() -> None:
    sample = make(Sample, json=[{}], object={"a": []}, maybe_object={"a": []}, given={"a": []})

    assert type(sample.json) is FrozenList
    assert type(sample.json[0]) is FrozenDict
    assert [type(it["a"]) for it in (sample.object, sample.maybe_object, sample.given)] == (
        [FrozenList] * 3
    )


def test_a_choice_becomes_the_member_of_its_own_list() -> None:
    assert type(make(Sample, colour=OtherColour.RED).colour) is Colour
    assert make(Sample, colour="blue").colour is Colour.BLUE


def test_a_number_becomes_a_float_at_the_place_named() -> None:
    assert (number(2, place="now"), type(number(2, place="now"))) == (2.0, float)
    assert number(-0.5, place="now") == -0.5
    with pytest.raises(InvalidValue, match=r"^now: 'x' is not a number; give a number$"):
        number("x", place="now")


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize("name", ["id", "flag", "whole", "instant", "one", "many", "colour"])
def test_whatever_the_value_it_is_an_invalid_value(name: str) -> None:
    """Not even a value that cannot be shown raises anything else."""
    for value in (deep(), (HUGE,), object(), ABSENT):
        with pytest.raises(InvalidValue) as raised:
            make(Sample, **{name: value})
        assert raised.value.place.startswith(name)
        assert len(str(raised.value)) < 300
