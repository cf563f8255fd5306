"""Arguments against a given JSON Schema: nothing is fetched, mistakes are told with their place."""

from __future__ import annotations

import builtins
import functools
import socket
from typing import Any

import pytest

from turnlock.models.errors import InvalidValue, TurnlockError
from turnlock.runtime.tools.arguments import check
from turnlock.runtime.tools.errors import BadArguments
from turnlock.runtime.tools.tool import Tool, tool


def takes(schema: Any) -> Tool:
    @tool(name="f", parameters=schema)
    def f(**arguments: Any) -> None: ...

    return f


NESTED = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": {"$ref": "#/$defs/item"}, "maxItems": 2},
        "when": {"type": "string", "format": "date"},
    },
    "required": ["items"],
    "additionalProperties": False,
    "$defs": {
        "item": {"type": "object", "properties": {"price": {"type": "number", "minimum": 0}}}
    },
}


def test_what_fits_comes_through_unchanged() -> None:
    """A schema converts nothing, and a format is only a remark, as the standard has it."""
    arguments: Any = {"items": [{"price": 1, "note": ["kept"]}], "when": "soon"}
    assert check(takes(NESTED), arguments) == arguments


MISFITS: list[tuple[Any, str, str, str]] = [
    ({"items": [{}, {"price": "x"}]}, "items[1].price", "'x' is not of type", "type: 'number'"),
    ({"items": [{"price": -1}]}, "items[0].price", "-1 is less than", "minimum: 0"),
    ({}, "arguments", "'items' is a required property", "required: ["),
    ({"items": [], "q": 1}, "arguments", "'q' was unexpected", "additionalProperties: False"),
    ({"items": [{}, {}, {}]}, "items", "is too long", "maxItems: 2"),
]


@pytest.mark.parametrize(("arguments", "place", "cause", "fix"), MISFITS)
def test_what_does_not_fit_is_told(arguments: Any, place: str, cause: str, fix: str) -> None:
    """Place, cause and what the schema demands there."""
    with pytest.raises(BadArguments) as told:
        check(takes(NESTED), arguments)
    assert told.value.place == place
    assert cause in told.value.cause
    assert fix in told.value.fix


def test_what_is_repeated_is_bounded() -> None:
    with pytest.raises(BadArguments) as told:
        check(takes(NESTED), {"items": "x" * 100_000})
    assert len(str(told.value)) < 500


BAD_SCHEMAS: list[tuple[Any, str, str]] = [
    ({"type": "objct"}, "parameters.type", "is not valid"),
    ({"type": "array"}, "parameters.type", "always an object"),
    ({"properties": {"a": {"pattern": "("}}}, "parameters.properties.a.pattern", "regex"),
    ({"properties": {"a": {"minimum": "x"}}}, "parameters.properties.a.minimum", "number"),
    ({"$schema": "urn:nothing"}, "parameters.$schema", "no known dialect"),
    ({"$schema": 7}, "parameters.$schema", "no known dialect"),
    ({"$ref": "#"}, "parameters.$ref", "refers to itself without end"),
    ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "parameters.$ref", "leads nowhere"),
    ({"properties": {"a": {"$ref": "http://localhost/x"}}}, "parameters.$ref", "leads nowhere"),
    ({"properties": {"a": {"$ref": "file:///etc/passwd"}}}, "parameters.$ref", "leads nowhere"),
    (
        {"properties": {"a": {"$ref": "#/parts/b"}}, "parts": {"b": {"$ref": "http://x/y"}}},
        "parameters.$ref",
        "'http://x/y' leads nowhere",
    ),
    ({"default": float("inf")}, "parameters.default", "no JSON number"),
    (True, "parameters", "no JSON Schema"),
]


@pytest.mark.parametrize(("schema", "place", "cause"), BAD_SCHEMAS)
def test_a_bad_schema_is_refused_where_it_is_declared(schema: Any, place: str, cause: str) -> None:
    """Not when the first call comes; and the message names the tool and the place."""
    with pytest.raises(InvalidValue) as told:
        takes(schema)
    assert told.value.place == f"tool f.{place}"
    assert cause in told.value.cause


def test_nothing_is_ever_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a declaration nor a check opens a socket, whatever the schema refers to."""

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "socket", forbidden)
    monkeypatch.setattr(socket, "create_connection", forbidden)
    with pytest.raises(InvalidValue, match="nothing is fetched"):
        takes({"$ref": "http://json-schema.org/draft-07/schema#"})
    words: Any = {"const": {"$ref": "http://localhost/only-a-value"}}
    assert check(takes({"properties": {"a": words}}), {"a": words["const"]})


def test_references_within_bundled_ids_are_followed() -> None:
    """A relative reference counts from the id around it."""
    schema = {
        "$id": "https://example.com/a",
        "properties": {"n": {"$ref": "b"}},
        "$defs": {"b": {"$id": "https://example.com/b", "type": "integer"}},
    }
    assert check(takes(schema), {"n": 3}) == {"n": 3}
    with pytest.raises(BadArguments, match="'x' is not of type"):
        check(takes(schema), {"n": "x"})


def test_the_dialect_that_a_schema_names_counts() -> None:
    """In draft 4 exclusiveMinimum is a flag; today it is a number."""
    old: Any = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"n": {"minimum": 1, "exclusiveMinimum": True}},
    }
    with pytest.raises(BadArguments, match="n: 1 is"):
        check(takes(old), {"n": 1})
    with pytest.raises(InvalidValue, match="exclusiveMinimum"):
        takes({"properties": old["properties"]})


def test_a_recursive_schema_bears_the_deepest_arguments() -> None:
    """What is too deep to be checked is bad arguments, not a crash."""
    schema = {"properties": {"a": {"$ref": "#"}}, "additionalProperties": False}
    deep: dict[str, Any] = {}
    for _ in range(20):
        deep = {"a": deep}
    assert check(takes(schema), deep) == deep
    chain: dict[str, Any] = {}
    for _ in range(95):
        chain = {"a": chain}
    wordy: Any = {"properties": {"a": {"$ref": "#"}}}
    for _ in range(4):
        wordy = {"allOf": [wordy]}
    with pytest.raises(BadArguments, match="arguments: are nested too deeply"):
        check(takes(wordy), chain)
    many: Any = {"allOf": [{"$ref": "#/$defs/s"}], "$defs": {"s": {}}}
    for _ in range(400):
        many = {"allOf": [many]}
    with pytest.raises((BadArguments, InvalidValue)):
        check(takes(many), {})


def test_a_schema_and_its_function_must_fit() -> None:
    """A name that the function does not take, or one that it demands and nobody may give."""

    def f(a: int, b: int = 0) -> None: ...

    with pytest.raises(InvalidValue, match=r"properties\.c: is no parameter .* one of a, b"):
        tool(parameters={"properties": {"a": {}, "c": {}}})(f)
    with pytest.raises(InvalidValue, match="leave out a, which the function demands"):
        tool(parameters={"properties": {"b": {}}})(f)
    open_schema = tool(parameters={"properties": {"a": {}}})(f)
    with pytest.raises(BadArguments, match=r"c: is not taken here; .* a, b"):
        check(open_schema, {"a": 1, "c": 2})
    with pytest.raises(BadArguments, match="a: is missing"):
        check(open_schema, {})


def test_a_model_cannot_replace_what_partial_has_given() -> None:
    def send(api_key: str, **fields: Any) -> None: ...

    bound = tool(name="send", parameters={})(functools.partial(send, api_key="secret"))
    assert check(bound, {"text": "hello"}) == {"text": "hello"}
    with pytest.raises(BadArguments, match="api_key: is not taken here"):
        check(bound, {"api_key": "mine"})


def test_without_jsonschema_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("jsonschema"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(TurnlockError, match=r"pip install 'turnlock\[runtime\]'"):
        takes({})
