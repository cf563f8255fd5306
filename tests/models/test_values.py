"""JSON values as the kernel keeps them: checked, finite, frozen, with one text and one digest."""

# pyright: reportPrivateUsage=false
# ruff: noqa: S301 - what is unpickled here was pickled here

from __future__ import annotations

import copy
import hashlib
import json
import math
import pickle
import re
import sys
from collections import OrderedDict, UserDict
from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import given

from turnlock.models import values
from turnlock.models.errors import InvalidValue, shown
from turnlock.models.values import (
    ABSENT,
    DEPTH,
    INTEGER_BITS,
    LARGE,
    NO_ARGUMENTS,
    Absent,
    FrozenDict,
    FrozenList,
    arguments_digest,
    canonical,
    freeze,
    same_json,
)

from .strategies import json_objects, json_values


def refusal(value: object) -> InvalidValue:
    """What `freeze` raises for a value at the place ``arguments``."""
    with pytest.raises(InvalidValue) as raised:
        freeze(value, place="arguments")
    return raised.value


def nested(levels: int) -> Any:
    """Lists in lists, so many levels of them."""
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


# ------------------------------------------------------------------------------------- freezing


@given(json_values)
def test_what_is_frozen_is_equal_to_what_was_given(value: Any) -> None:
    frozen = freeze(value, place="x")

    assert frozen == value
    assert canonical(frozen) == canonical(value)


@given(json_values)
def test_freezing_again_changes_nothing(value: Any) -> None:
    frozen = freeze(value, place="x")

    assert freeze(frozen, place="x") is frozen


def test_a_frozen_value_shares_nothing_that_its_caller_can_change() -> None:
    """Arguments that somebody approved are those that run (K-32)."""
    inner = [1]
    given = {"a": inner, "b": {"c": inner}}
    frozen = freeze(given, place="x")

    inner.append(2)
    given["d"] = []

    assert frozen == {"a": [1], "b": {"c": [1]}}


def test_every_level_is_frozen() -> None:
    innermost: dict[str, Any] = {}
    given = {"a": [{"b": (innermost,)}]}
    frozen = freeze(given, place="x")

    assert type(frozen) is FrozenDict
    assert type(frozen["a"]) is FrozenList
    assert type(frozen["a"][0]) is FrozenDict
    assert type(frozen["a"][0]["b"]) is FrozenList
    assert type(frozen["a"][0]["b"][0]) is FrozenDict


class Pair(NamedTuple):
    one: int
    other: int


CONTAINERS: list[tuple[Any, Any]] = [
    (OrderedDict(a=1), {"a": 1}),
    (UserDict({"a": 1}), {"a": 1}),
    (Pair(1, 2), [1, 2]),
    ((1, [2]), [1, [2]]),
]


@pytest.mark.parametrize(("value", "equal"), CONTAINERS)
def test_subclasses_of_containers_become_plain_frozen_ones(value: object, equal: Any) -> None:
    frozen = freeze(value, place="x")

    assert frozen == equal
    assert type(frozen) in {FrozenDict, FrozenList}


class Colour(StrEnum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


class Loud(str):
    __slots__ = ()


class Exact(float):
    __slots__ = ()


@pytest.mark.parametrize(
    "value", [Colour.RED, Number.ONE, Loud("x"), Exact(1), b"x", {1}, object(), 1j, ABSENT, int]
)
def test_nothing_is_coerced(value: object) -> None:
    """Subclasses of scalars are no JSON values either: what they mean is not for us to guess."""
    error = refusal({"a": [value]})

    assert error.place == "arguments.a[0]"
    assert f"is a {type(value).__name__}, not a JSON value" in error.cause
    assert error.fix == "use None, bool, int, float, str, list or dict"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_are_finite(number: float) -> None:
    error = refusal({"a": {"b": [0, number]}})

    assert error.place == "arguments.a.b[1]"
    assert error.cause == f"{number} is no JSON number"
    assert error.fix == "send a finite number or null"


@pytest.mark.parametrize("key", [1, None, True, (1,), Colour.RED, Loud("x"), b"a"])
def test_keys_are_texts(key: object) -> None:
    error = refusal({"a": [{key: 0}]})

    assert error.place == "arguments.a[0]"
    assert error.cause == f"has the key {shown(key)}, which is no text"
    assert error.fix == "use text keys"


def test_a_lone_surrogate_is_no_text() -> None:
    """Neither UTF-8 nor a digest can hold it."""
    error = refusal(["", "ok \ud83d"])

    assert error.place == "arguments[1]"
    assert error.cause == "holds a lone surrogate at character 3"
    assert "U+FFFD" in error.fix


def test_a_lone_surrogate_is_no_key() -> None:
    error = refusal({"a": {"\udc80": 0}})

    assert error.place == "arguments.a (a key)"
    assert error.cause == "holds a lone surrogate at character 0"


def test_a_surrogate_pair_is_text() -> None:
    assert freeze(json.loads(r'"\ud83d\ude00"'), place="x") == "\U0001f600"


def test_the_depth_has_a_bound() -> None:
    freeze(nested(DEPTH), place="x")

    error = refusal(nested(DEPTH + 1))

    assert error.place == "arguments" + "[0]" * DEPTH
    assert error.cause == f"is nested deeper than {DEPTH} levels"
    assert error.fix == "send it flatter"


def test_objects_count_as_levels() -> None:
    value: Any = {}
    for _ in range(DEPTH):
        value = {"a": value}

    assert refusal(value).place == "arguments" + ".a" * DEPTH


def test_a_frozen_value_may_not_hide_depth() -> None:
    """What came out of one record may go into another, but not ever deeper."""
    deepest = freeze(nested(DEPTH), place="x")

    assert freeze(deepest, place="x") is deepest
    assert refusal([deepest]).place == "arguments" + "[0]" * DEPTH
    assert refusal({"a": deepest}).place == "arguments.a" + "[0]" * (DEPTH - 1)


@pytest.mark.parametrize("sign", [1, -1])
def test_integers_have_a_bound(sign: int) -> None:
    """Beyond it CPython refuses to print them, and nothing could be written."""
    largest = sign * (2**INTEGER_BITS - 1)
    assert freeze(largest, place="x") == largest
    assert json.loads(canonical(largest)) == largest

    error = refusal([sign * 2**INTEGER_BITS])

    assert error.place == "arguments[0]"
    assert error.cause == f"is an integer of {INTEGER_BITS + 1} bits"
    assert error.fix == f"send at most {INTEGER_BITS} bits, or send it as text"


def test_a_long_key_costs_nothing_for_what_stands_below_it() -> None:
    """Places are put together for what is refused alone: this would else copy 40 GB."""
    frozen = freeze({"k" * 400_000: [0] * 100_000}, place="x")

    assert len(frozen["k" * 400_000]) == 100_000


# ---------------------------------------------------------------------------------- immutability

OBJECT_MUTATORS: list[Callable[[Any], object]] = [
    lambda it: it.__setitem__("a", 2),
    lambda it: it.__delitem__("a"),
    lambda it: it.__ior__({"b": 2}),
    lambda it: it.clear(),
    lambda it: it.pop("a"),
    lambda it: it.pop("b", None),
    lambda it: it.popitem(),
    lambda it: it.setdefault("a", 2),
    lambda it: it.setdefault("b", 2),
    lambda it: it.update({"a": 2}),
    lambda it: it.update(a=2),
]
ARRAY_MUTATORS: list[Callable[[Any], object]] = [
    lambda it: it.__setitem__(0, 2),
    lambda it: it.__setitem__(slice(None), []),
    lambda it: it.__delitem__(0),
    lambda it: it.__iadd__([2]),
    lambda it: it.__imul__(2),
    lambda it: it.append(2),
    lambda it: it.extend([2]),
    lambda it: it.insert(0, 2),
    lambda it: it.pop(),
    lambda it: it.remove(1),
    lambda it: it.clear(),
    lambda it: it.sort(),
    lambda it: it.reverse(),
]


@pytest.mark.parametrize("mutate", OBJECT_MUTATORS)
def test_no_method_changes_an_object(mutate: Callable[[Any], object]) -> None:
    frozen = freeze({"a": 1}, place="x")

    with pytest.raises(TypeError, match=re.escape("copy it with dict() or list() first")):
        mutate(frozen)

    assert frozen == {"a": 1}


@pytest.mark.parametrize("mutate", ARRAY_MUTATORS)
def test_no_method_changes_an_array(mutate: Callable[[Any], object]) -> None:
    frozen = freeze([1], place="x")

    with pytest.raises(TypeError, match=re.escape("copy it with dict() or list() first")):
        mutate(frozen)

    assert frozen == [1]


READING = {
    *("__class__", "__class_getitem__", "__contains__", "__copy__", "__deepcopy__", "__dir__"),
    *("__doc__", "__eq__", "__format__", "__ge__", "__getattribute__", "__getitem__", "__gt__"),
    *("__getstate__", "__hash__", "__init_subclass__", "__iter__", "__le__", "__len__"),
    *("__lt__", "__module__", "__ne__", "__new__", "__or__", "__reduce__", "__reduce_ex__"),
    *("__repr__", "__reversed__", "__ror__", "__sizeof__", "__slots__", "__str__"),
    *("__subclasshook__", "__add__", "__mul__", "__rmul__", "__setattr__", "__delattr__"),
    *("copy", "fromkeys", "get", "items", "keys", "values", "count", "index"),
    *("__orig_bases__", "__static_attributes__", "__firstlineno__"),
}
"""What dict and list offer for reading, and what makes something new."""


def refused_by(kind: type) -> set[str]:
    """The methods of a class that are the one which refuses."""
    refuse = vars(FrozenDict)["clear"]
    return {name for name in dir(kind) if getattr(kind, name) is refuse}


@pytest.mark.parametrize("kind", [FrozenDict, FrozenList])
def test_every_method_either_reads_or_refuses(kind: type) -> None:
    """A mutator that a later Python gives to dict or list fails here."""
    assert set(dir(kind)) - READING == refused_by(kind)


@pytest.mark.parametrize("value", [{"a": 1}, [1]])
def test_there_is_no_room_for_attributes(value: Any) -> None:
    frozen = freeze(value, place="x")

    with pytest.raises(AttributeError):
        frozen.note = "changed"


def test_augmented_assignment_is_refused() -> None:
    one, other = freeze({}, place="x"), freeze([], place="x")

    with pytest.raises(TypeError):
        one |= {"a": 1}
    with pytest.raises(TypeError):
        other += [1]
    with pytest.raises(TypeError):
        other *= 2


def test_what_is_made_from_a_frozen_value_can_be_changed() -> None:
    frozen = freeze({"a": [1]}, place="x")

    assert frozen | {"b": 2} == {"a": [1], "b": 2}
    assert type(frozen | {}) is dict
    assert type(frozen.copy()) is dict
    assert type(frozen["a"].copy()) is list
    assert [*frozen["a"], 2] == [1, 2]
    assert frozen == {"a": [1]}


@pytest.mark.parametrize("value", [{}, [], {"a": [1, {"b": None}]}, [[1], {"a": {}}]])
def test_copies_are_as_frozen(value: Any) -> None:
    """copy and deepcopy give the very value, pickle one as frozen at every level."""
    frozen = freeze(value, place="x")
    thawed = pickle.loads(pickle.dumps(frozen))

    assert copy.copy(frozen) is frozen
    assert copy.deepcopy(frozen) is frozen
    assert thawed == frozen
    assert types_in(thawed) == types_in(frozen)


def types_in(value: Any) -> list[type]:
    """The types of a value and of everything in it."""
    inner: list[Any] = []
    if hasattr(value, "values"):
        inner += value.values()
    elif hasattr(value, "append"):
        inner += value
    return [type(value), *(kind for item in inner for kind in types_in(item))]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_pickle_protocol_serves(protocol: int) -> None:
    frozen = freeze({"a": [1]}, place="x")

    assert pickle.loads(pickle.dumps(frozen, protocol)) == frozen


def test_absent_is_one_and_says_its_name() -> None:
    assert repr(ABSENT) == "ABSENT"
    assert copy.deepcopy(ABSENT) is ABSENT
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT
    assert list(Absent) == [ABSENT]


def test_no_arguments_is_an_empty_object() -> None:
    assert NO_ARGUMENTS == {}
    assert type(NO_ARGUMENTS) is FrozenDict


# ----------------------------------------------------------------------------- canonical, digest


def test_canonical_text_is_sorted_tight_and_unescaped() -> None:
    assert canonical({"b": [1, 1.0, True, None], "a": "é\u2028"}) == (
        '{"a":"é\u2028","b":[1,1.0,true,null]}'
    )


@given(json_objects)
def test_k_32_the_digest_is_what_its_definition_says(arguments: dict[str, Any]) -> None:
    """With the very call of the rule, of the frozen value and of the plain one."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()

    assert arguments_digest(arguments) == digest
    assert arguments_digest(freeze(arguments, place="x")) == digest


@pytest.mark.parametrize("missing", [(), ("_sha256",), ("_sha256", "_sha2")])
@pytest.mark.parametrize("size", [0, LARGE - 11, LARGE - 10, 100 * LARGE])
def test_k_32_the_digest_is_the_same_whoever_counts_it(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...], size: int
) -> None:
    """The interpreter's own or OpenSSL, on either side of the bound, and where there is no own."""
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    values._sha256.cache_clear()
    text = canonical({"text": "x" * size})
    try:
        assert arguments_digest({"text": "x" * size}) == hashlib.sha256(text.encode()).hexdigest()
    finally:
        values._sha256.cache_clear()


def test_the_digest_is_the_one_that_the_examples_publish() -> None:
    """That of {"n": 1}, in docs/spec/wire-examples.jsonl."""
    published = "2bfd14f43d17fc7cea24e0917a8879b4b2f880b8baeec1b9d90fbaad655e71bd"

    assert arguments_digest({"n": 1}) == published
    assert arguments_digest({"n": 1.0}) != published
    assert arguments_digest({"n": True}) != published


def test_the_digest_does_not_see_the_order_of_keys() -> None:
    assert arguments_digest({"a": 1, "b": 2}) == arguments_digest({"b": 2, "a": 1})


def test_no_canonical_text_holds_a_number_that_is_not_finite() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(math.nan)


@given(json_values, json_values)
def test_same_json_is_the_same_canonical_text(one: Any, other: Any) -> None:
    assert same_json(one, other) is (canonical(one) == canonical(other))
    assert same_json(one, copy.deepcopy(one))


PAIRS: list[tuple[Any, Any, bool]] = [
    (1, 1.0, False),
    (1, True, False),
    (0, False, False),
    (0, None, False),
    ("", None, False),
    ("1", 1, False),
    ("a", "a", True),
    ("a", "b", False),
    (0.0, -0.0, False),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    ({"a": [1]}, {"a": [1.0]}, False),
    ([{}], [{}], True),
    ([], {}, False),
]


@pytest.mark.parametrize(("one", "other", "same"), PAIRS)
def test_same_json_tells_apart_what_python_does_not(one: Any, other: Any, same: bool) -> None:
    assert same_json(one, other) is same
    assert same_json(other, one) is same


@pytest.mark.parametrize("kind", [FrozenDict, FrozenList])
def test_nobody_else_makes_one(kind: Any) -> None:
    """K-32: what calls itself frozen was checked and copied by `freeze`, or it does not exist."""
    with pytest.raises(TypeError):
        kind([])
    with pytest.raises(TypeError):
        freeze({} if kind is FrozenDict else [], place="x").__init__([("a", float("nan"))])
