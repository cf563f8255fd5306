"""Bodies, read strictly (F-3), and their schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Literal

import attrs
import jsonschema
import pytest

from turnlock.models.errors import InvalidValue
from turnlock.models.values import ABSENT, Absent, Json
from turnlock.server.bodies import named, parse, schema
from turnlock.server.problems import Problem


class Colour(StrEnum):
    RED = "red"


@attrs.frozen(kw_only=True)
class Inner:
    text: str


@attrs.frozen(kw_only=True)
class Outer:
    text: str
    flag: bool = False
    number: int | None = None
    amount: float = 0.0
    colour: Colour = Colour.RED
    word: Literal["one", "two"] | None = None
    inner: Inner | None = None
    inners: tuple[Inner, ...] = ()
    anything: Json | Absent = ABSENT
    options: Mapping[str, Json] | None = None


WHOLE = (
    b'{"text": "a", "flag": true, "number": 3, "amount": 1, "colour": "red", "word": "two",'
    b' "inner": {"text": "b"}, "inners": [{"text": "c"}], "anything": null, "options": {"x": [1]}}'
)


def test_f_3_a_body_is_what_it_says() -> None:
    found = parse(Outer, WHOLE)

    assert found == Outer(
        text="a",
        flag=True,
        number=3,
        amount=1.0,
        word="two",
        inner=Inner(text="b"),
        inners=(Inner(text="c"),),
        anything=None,
        options={"x": [1]},
    )
    assert parse(Outer, b'{"text": "a"}').anything is ABSENT


@pytest.mark.parametrize(
    ("raw", "at"),
    [
        (b'{"text": "a", "more": 1}', "more"),
        (b'{"text": "a", "text": "b"}', "text"),
        (b"{}", "text"),
        (b'{"text": null}', "text"),
        (b'{"text": 1}', "text"),
        (b'{"text": "\\ud800"}', "text"),
        (b'{"text": "a", "flag": 1}', "flag"),
        (b'{"text": "a", "number": true}', "number"),
        (b'{"text": "a", "number": 1.0}', "number"),
        (b'{"text": "a", "number": 9007199254740992}', "number"),
        (b'{"text": "a", "amount": 1e999}', "amount"),
        (b'{"text": "a", "amount": 1' + b"0" * 400 + b"}", "amount"),
        (b'{"text": "a", "amount": true}', "amount"),
        (b'{"text": "a", "colour": "blue"}', "colour"),
        (b'{"text": "a", "word": "three"}', "word"),
        (b'{"text": "a", "inner": {"text": 1}}', "inner.text"),
        (b'{"text": "a", "inner": {"text": "b", "x": 1}}', "inner.x"),
        (b'{"text": "a", "inners": [{"text": "b"}, {}]}', "inners[1].text"),
        (b'{"text": "a", "anything": 1e999}', "anything"),
        (b'{"text": "a", "options": {"x": "\\udfff"}}', "options.x"),
        (b'{"text": "a", "options": []}', "options"),
        (b'{"text": "a", "inner": {"text": "b", "text": "c"}}', "inner.text"),
        (b"[]", ""),
        (b"null", ""),
    ],
)
def test_f_3_what_is_wrong_is_told_with_its_place(raw: bytes, at: str) -> None:
    with pytest.raises(InvalidValue) as told:
        parse(Outer, raw)

    assert told.value.place == at


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"nan", b'{"amount": NaN}', b"\xff", b"[" * 100_000, b'{"a": -Infinity}']
)
def test_f_3_what_is_no_json_is_refused(raw: bytes) -> None:
    with pytest.raises(Problem) as told:
        parse(Outer, raw)

    assert (told.value.code, told.value.status) == ("invalid_json", 400)


def test_the_schema_admits_what_the_parser_admits() -> None:

    made: dict[str, Any] = schema(Outer)

    jsonschema.Draft202012Validator.check_schema(made)
    jsonschema.validate(json.loads(WHOLE), made)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"text": "a", "more": 1}, made)


@attrs.frozen(kw_only=True)
class Part:
    """A part of it, which says nothing of other fields."""

    text: str


@attrs.frozen(kw_only=True)
class OfOthers:
    """A body of another protocol."""

    FOREIGN: ClassVar[bool] = True
    thread_id: str = named("threadId")
    parts: tuple[Part, ...] = ()


def test_f_3_bodies_of_other_protocols_may_have_more() -> None:
    """Unknown fields are let be, at the place where the class says so; the rest is as strict."""
    raw = b'{"threadId": "t", "more": {"x": 1}, "parts": [{"text": "a"}]}'
    assert parse(OfOthers, raw) == OfOthers(thread_id="t", parts=(Part(text="a"),))
    for refused, place in (
        (b'{"thread_id": "t"}', "threadId"),
        (b'{"threadId": 1}', "threadId"),
        (b'{"threadId": "t", "parts": [{"text": "a", "more": 1}]}', "parts[0].more"),
    ):
        with pytest.raises(InvalidValue) as raised:
            parse(OfOthers, refused)
        assert raised.value.place == place
    made = schema(OfOthers)
    assert made["additionalProperties"] is True
    assert made["required"] == ["threadId"]
    assert made["properties"]["parts"]["items"]["additionalProperties"] is False
