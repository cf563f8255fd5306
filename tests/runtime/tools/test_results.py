"""Results as JSON: what is plain comes through, what is no JSON is told with its place."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import pathlib
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.models.errors import InvalidValue
from turnlock.models.values import DEPTH, FrozenDict, canonical
from turnlock.runtime.tools.results import as_json

TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_json_comes_through_unchanged(value: Any) -> None:
    """Equal, of the same types, and frozen; at exactly its size, and not at one byte less."""
    size = len(canonical(value).encode())
    got = as_json(value, limit=size)
    assert canonical(got) == canonical(value)
    assert isinstance(got, FrozenDict) is isinstance(cast("object", value), dict)
    with pytest.raises(InvalidValue, match=f"{size - 1:,} bytes of JSON"):
        as_json(value, limit=size - 1)


BAD: st.SearchStrategy[Any] = st.sampled_from(
    [b"bytes", {1, 2}, float("nan"), float("-inf"), "\ud800", object(), {1: 2}, 1 << 9000, print]
)


@st.composite
def planted(draw: st.DrawFn) -> tuple[Any, str]:
    """Return a value with one thing in it that is no JSON, and the place of it."""
    value, place = draw(BAD), ""
    for _ in range(draw(st.integers(0, 5))):
        before = draw(st.lists(JSON, max_size=2))
        if draw(st.booleans()):
            value, place = [*before, value], f"[{len(before)}]{place}"
        else:
            name = draw(st.sampled_from(["a", "b c", "ü"]))
            value, place = {name: value}, f".{name}{place}"
    return value, f"result{place}"


@given(planted())
def test_what_is_no_json_is_told_with_its_place(case: tuple[Any, str]) -> None:
    value, place = case
    with pytest.raises(InvalidValue) as told:
        as_json(value)
    assert told.value.place == place
    assert told.value.fix


@dataclasses.dataclass
class Item:
    price: float
    when: dt.date


@attrs.frozen
class Box:
    items: tuple[Item, ...]


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Wire(msgspec.Struct):
    box: Box


class Model:
    """What a pydantic model looks like from here."""

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        return {"mode": mode}


class Point(NamedTuple):
    x: int
    y: int


class Celsius(float):
    pass


RECORDS: list[tuple[Any, Any]] = [
    (
        Wire(Box((Item(1.5, dt.date(2026, 1, 2)),))),
        {"box": {"items": [{"price": 1.5, "when": "2026-01-02"}]}},
    ),
    ([Colour.RED, Level.HIGH, Celsius(3)], ["red", 3, 3.0]),
    (dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC), "2026-01-02T03:00:00+00:00"),
    (dt.time(3, 4), "03:04:00"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (decimal.Decimal("1.10"), "1.10"),
    (pathlib.PurePosixPath("/a/b"), "/a/b"),
    (Model(), {"mode": "json"}),
    (OrderedDict(a=(1, 2)), {"a": [1, 2]}),
    (Point(1, 2), [1, 2]),
    (True, True),
]


@pytest.mark.parametrize(("value", "expected"), RECORDS)
def test_records_become_objects_and_names_become_text(value: Any, expected: Any) -> None:
    got = as_json(value)
    assert got == expected
    assert type(got) is not bool or got is True


def test_what_contains_itself_is_told_and_what_is_there_twice_is_not() -> None:
    loop: list[Any] = [1]
    loop.append({"again": loop})
    with pytest.raises(InvalidValue, match=r"result\[1\]\.again: contains itself"):
        as_json(loop)
    shared = [1]
    assert as_json([shared, shared]) == [[1], [1]]


def test_depth_has_its_bound() -> None:
    def deep(levels: int) -> Any:
        value: Any = 1
        for _ in range(levels):
            value = [value]
        return value

    assert as_json(deep(DEPTH)) == deep(DEPTH)
    with pytest.raises(InvalidValue, match=f"deeper than {DEPTH} levels"):
        as_json(deep(DEPTH + 1))


def _doubled() -> Any:
    value: Any = [1]
    for _ in range(80):
        value = [value, value]
    return value


class Endless(dict[str, int]):
    def items(self) -> Any:
        number = 0
        while True:
            number += 1
            yield f"{number}", number


@pytest.mark.parametrize("make", [_doubled, Endless, lambda: ["x" * 60_000] * 2])
def test_what_would_grow_without_end_is_stopped(make: Callable[[], Any]) -> None:
    """What is small in memory and huge as JSON costs no more than the bound."""
    with pytest.raises(InvalidValue, match="100,000 bytes of JSON"):
        as_json(make(), limit=100_000)


def test_a_class_is_no_record() -> None:
    for kind in (Item, Box, Wire, Model):
        with pytest.raises(InvalidValue, match="not a JSON value"):
            as_json(kind)
