"""JSON text read strictly: nothing guessed, nothing dropped, every fault with its place."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.models.codec import fact_from_json
from turnlock.models.errors import InvalidValue
from turnlock.models.strict_json import examine, parse
from turnlock.models.values import DEPTH

from .strategies import json_values


def refusal(text: str | bytes) -> InvalidValue:
    """What `parse` raises; `examine` says the same, or raises it where there is no value."""
    with pytest.raises(InvalidValue) as raised:
        parse(text)
    error = raised.value
    try:
        _, found = examine(text)
    except InvalidValue as other:
        found = other
    assert found is not None
    assert (found.place, found.cause, found.fix) == (error.place, error.cause, error.fix)
    assert error.cause
    assert error.fix
    return error


@given(json_values)
def test_what_json_writes_is_read_back(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        for form in (text, text.encode()):
            assert json.dumps(parse(form)) == json.dumps(value)
            assert examine(form)[1] is None


@given(st.binary(max_size=40) | st.text('[]{}":,\\u0d8 \n-.eE123NaInfity', max_size=40))
def test_whatever_the_text_it_is_a_value_or_refused(text: bytes | str) -> None:
    """As the standard parser has it, but for what it guesses."""
    try:
        parse(text)
    except InvalidValue as error:
        assert error.cause  # noqa: PT017 - it may raise or not
    else:
        json.loads(text if isinstance(text, str) else text.decode())


@pytest.mark.parametrize(
    ("text", "place", "cause"),
    [
        ("", "line 1 column 1", "is no JSON (Expecting value)"),
        ("  \n", "line 2 column 1", "is no JSON (Expecting value)"),
        ("{", "line 1 column 2", "is no JSON (Expecting property name"),
        ("[1 2]", "line 1 column 4", "is no JSON"),
        ('{"a":1}x', "line 1 column 8", "is no JSON (Extra data)"),
        ("1 2", "line 1 column 3", "is no JSON (Extra data)"),
        ("{}\n{}", "line 2 column 1", "is no JSON (Extra data)"),
        ('["a\tb"]', "line 1 column 4", "is no JSON (Invalid control character"),
        ('["a\x00"]', "line 1 column 4", "is no JSON (Invalid control character"),
        ('["\\x"]', "line 1 column 3", "is no JSON (Invalid \\escape)"),
        ('["\\ud8"]', "line 1 column 4", "is no JSON (Invalid \\uXXXX escape)"),
        ("['a']", "line 1 column 2", "is no JSON (Expecting value)"),
        ("{a:1}", "line 1 column 2", "is no JSON (Expecting property name"),
        ("[01]", "line 1 column 3", "is no JSON"),
        ("[+1]", "line 1 column 2", "is no JSON"),
        ("[.5]", "line 1 column 2", "is no JSON"),
        ("[5.]", "line 1 column 3", "is no JSON"),
        ("nan", "line 1 column 1", "is no JSON (Expecting value)"),
        ("// x", "line 1 column 1", "is no JSON (Expecting value)"),
        ("\ufeff{}", "line 1 column 1", "is no JSON"),
        ('{\n "é": \n  tru}', "line 3 column 3", "is no JSON (Expecting value)"),
        ("[1 2]\n\n", "line 1 column 4", "is no JSON"),
        ("\n[1 2]", "line 2 column 4", "is no JSON"),
    ],
)
def test_what_is_no_json_is_refused_with_line_and_column(text: str, place: str, cause: str) -> None:
    for form in (text, text.encode()):
        error = refusal(form)
        assert error.place == place
        assert cause in error.cause
        assert error.fix == "send one valid JSON value"


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("%s", "line 1 column 1"),
        ("[1, %s]", "line 1 column 5"),
        ('{"NaN": "-Infinity \\" NaN",\n "a": [%s, NaN]}', "line 2 column 8"),
        ('{"a": {"b": 1, "b": 2}, "c": %s}', "line 1 column 30"),
        ('["\\\\", "é", %s', "line 1 column 13"),
    ],
)
def test_nan_and_infinities_are_no_json(name: str, text: str, place: str) -> None:
    error = refusal(text % name)

    assert error.place == place
    assert error.cause == f"{name} is no JSON number"
    assert error.fix == "send a finite number or null"


@pytest.mark.parametrize("text", ["1e999", "-1e999"])
def test_a_number_too_large_for_a_float_is_refused_by_its_field(text: str) -> None:
    """It is JSON; what it becomes is no number that a record holds."""
    assert math.isinf(parse(text))
    line = '{"type":"TURN_SEALED","run_id":"r","sequence":1,"commit":1,"turn_id":"T","at":%s}'
    with pytest.raises(InvalidValue, match=r"^at: -?inf is not finite"):
        fact_from_json(line % text)


@pytest.mark.parametrize(
    ("text", "place", "key"),
    [
        ('{"a": 1, "a": 1}', "a", "a"),
        ('{"a": 1, "b": 2, "b": 3, "a": 4}', "a", "a"),
        ('{"a": {"b": [0, {"c": 1, "d": 2, "c": 3}]}}', "a.b[1].c", "c"),
        ('[{"a": 1}, {"a": 1, "\\u0061": 2}]', "[1].a", "a"),
        ('{"a": [{"x": 1, "x": 2}], "b": {"y": 1, "y": 2}}', "a[0].x", "x"),
        ('{"a": {"x": 1, "x": 2}, "a": 1}', "a", "a"),
        ('{"": 1, "": 2}', "", ""),
        ('{"scripts": [[{"type": "tick", "type": "tick"}]]}', "scripts[0][0].type", "type"),
    ],
)
def test_a_key_that_stands_twice_is_refused_at_its_path(text: str, place: str, key: str) -> None:
    """At any depth, the first in reading order, written out or escaped."""
    error = refusal(text)

    assert error.place == place
    assert error.cause == f"the key {key!r} stands twice"
    assert error.fix == "send each key once"


def test_an_unreadable_text_is_told_before_a_repeated_key() -> None:
    """Where the text is no JSON it has no fields, and no paths."""
    assert refusal('{"a": 1, "a": 2').place == "line 1 column 16"
    assert refusal('[{"a": 1, "a": 2}, tru]').place == "line 1 column 20"


@pytest.mark.parametrize("sign", ["", "-"])
def test_an_integer_of_too_many_digits_is_refused_at_its_path(sign: str) -> None:
    """Where the interpreter draws the line; it would take quadratic time."""
    error = refusal(f'{{"a": [1, {sign}{"9" * 5_000}], "b": 2}}')

    assert error.place == "a[1]"
    assert error.cause == "is an integer of 5000 digits"
    assert error.fix == "send it as text"


def test_the_value_can_still_be_examined_beside_the_fault() -> None:
    value, fault = examine(f'{{"id": 7, "b": 1, "b": 2, "c": {"9" * 5_000}}}')

    assert fault is not None
    assert fault.place == "b"
    assert value["id"] == 7


@pytest.mark.parametrize("pair", ["[]", "{}"])
@pytest.mark.parametrize("closed", [True, False])
def test_deep_nesting_is_refused_at_the_first_level_that_is_too_deep(
    pair: str, closed: bool
) -> None:
    start = {"[]": "[", "{}": '{"a":'}[pair]
    text = '["[[[", [[]],\n' + start * 100_000 + "0" + pair[1] * (100_000 if closed else 0) + "]"

    error = refusal(text)

    assert error.place == f"line 2 column {1 + (DEPTH - 1) * len(start)}"
    assert error.cause == "is nested too deeply"
    assert error.fix == "send it flatter"


def test_nesting_is_refused_whatever_else_is_wrong() -> None:
    assert refusal('{"a": 1, "a": ' + "[" * 100_000).cause == "is nested too deeply"


def test_where_the_stack_is_short_even_a_flat_text_is_refused() -> None:
    """A caller near the end of its stack gets an answer, not a RecursionError."""
    text = "[" * DEPTH + "]" * DEPTH

    def at_the_end(room: int) -> str:
        try:
            return at_the_end(room)
        except RecursionError:
            return tried()

    def tried() -> str:
        try:
            parse(text)
        except InvalidValue as error:
            return error.place
        raise RecursionError

    assert at_the_end(0) == "line 1 column 1"


@pytest.mark.parametrize(
    ("raw", "place", "byte"),
    [
        (b"\xff", "line 1 column 1", "0xff"),
        (b'{"a":\n "\xc3\xa9\xe9"}', "line 2 column 4", "0xe9"),
        (b'["\xed\xa0\x80"]', "line 1 column 3", "0xed"),
        (b"\xff\xfe{\x00}\x00", "line 1 column 1", "0xff"),
        (b'["\xc3', "line 1 column 3", "0xc3"),
        (b'["\xf0\x9f\x98\x80\xc0\xaf"]', "line 1 column 4", "0xc0"),
    ],
)
def test_what_is_no_utf_8_is_refused_with_line_and_column(
    raw: bytes, place: str, byte: str
) -> None:
    """Columns count characters, as they do everywhere."""
    error = refusal(raw)

    assert error.place == place
    assert error.cause == f"is no UTF-8 (byte {byte})"
    assert error.fix == "encode the text as UTF-8"


def test_a_lone_surrogate_escape_is_left_to_the_field() -> None:
    """As JSON it is allowed; the record that would hold it says where."""
    assert parse(r'{"a": "\ud800"}') == {"a": "\ud800"}
    line = r'{"type":"TURN_SEALED","run_id":"\udfff","sequence":1,"commit":1,"turn_id":"T","at":0}'
    with pytest.raises(InvalidValue, match=r"^run_id: holds a lone surrogate at character 0"):
        fact_from_json(line)


def test_a_surrogate_pair_is_one_character() -> None:
    assert parse(r'"\ud83d\ude00"') == "\U0001f600"


def test_bytes_and_text_are_read_alike() -> None:
    assert parse('{"é": "\u2028"}') == parse('{"é": "\u2028"}'.encode()) == {"é": "\u2028"}
