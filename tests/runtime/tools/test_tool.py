"""Tools: what a declaration says to models, and what cannot be declared."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from turnlock.models.errors import InvalidValue
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.tool import Tool, tool


@dataclasses.dataclass
class Item:
    price: Annotated[float, Field(ge=0)]
    kind: Literal["book", "toy"] = "book"


@tool
def pay(items: list[Item], context: ToolContext, note: str | None = None) -> str:
    """Pay for some items.

    At once.
    """
    return f"{len(items)} {note} {context}"


def test_a_declaration_says_what_the_function_says() -> None:
    """Name, description and parameters are the function's; the context is no parameter."""
    assert pay.as_function_schema() == {
        "type": "function",
        "function": {
            "name": "pay",
            "description": "Pay for some items.\n\nAt once.",
            "parameters": {
                "type": "object",
                "properties": {
                    "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
                    "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                },
                "required": ["items"],
                "additionalProperties": False,
                "$defs": {
                    "Item": {
                        "title": "Item",
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {
                            "price": {"type": "number", "minimum": 0},
                            "kind": {
                                "enum": ["book", "toy"],
                                "default": "book",
                                "type": "string",
                            },
                        },
                        "required": ["price"],
                    }
                },
            },
        },
    }


def test_what_is_given_replaces_what_the_function_says() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}

    @tool(name="other", description="Do it.", parameters=schema)
    def f(x: Any) -> None: ...

    assert f.as_function_schema()["function"] == {
        "name": "other",
        "description": "Do it.",
        "parameters": schema,
    }


def test_no_docstring_is_no_description() -> None:
    @tool
    def f() -> None: ...

    assert "description" not in f.as_function_schema()["function"]


def test_a_default_that_json_cannot_hold_is_not_shown_and_still_counts() -> None:
    @tool
    def f(at: Any = object) -> None: ...

    assert f.parameters["properties"] == {"at": {}}


def test_a_tool_can_be_called_like_its_function() -> None:
    @tool
    def double(x: int) -> int:
        return 2 * x

    assert double(4) == 8


def test_a_method_and_an_object_that_can_be_called_are_tools() -> None:
    class Shop:
        def buy(self, what: str) -> str:
            return what

        async def __call__(self, number: int) -> int:
            return number

    assert tool(Shop().buy).parameters["required"] == ["what"]
    called = Tool(name="shop", call=Shop())
    assert called.parameters["required"] == ["number"]
    assert called.is_async


def test_what_partial_has_given_is_not_the_models_to_give() -> None:
    """A secret bound by functools.partial is neither shown nor taken."""

    def send(text: str, *, api_key: str) -> str:
        return text + api_key

    bound = tool(name="send")(functools.partial(send, api_key="secret"))
    assert bound.parameters["properties"] == {"text": {"type": "string"}}


class NoJson:
    pass


def star(*names: str) -> None: ...
def positional(name: str, /) -> None: ...
def anything(**fields: Any) -> None: ...
def two_contexts(a: ToolContext, b: ToolContext | None) -> None: ...
def untellable(x: NoJson) -> None: ...
def unknown_name(x: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - the point
def generator() -> Iterator[int]:
    yield 1


UNCALLABLE: list[tuple[Any, str, str]] = [
    (star, "parameter names", "no name that a model could give"),
    (positional, "parameter name", "no name that a model could give"),
    (anything, "call", "takes **kwargs"),
    (two_contexts, "parameter b", "second ToolContext"),
    (untellable, "parameter x", "nothing that a model could give"),
    (unknown_name, "call", "NameError: name 'Missing' is not defined"),
    (generator, "call", "yields"),
    (NoJson, "call", "is not a function"),
    (getattr, "call", "does not say what it takes"),
    (3, "name", "has no name"),
    (lambda: None, "name", "has no name"),
]


@pytest.mark.parametrize(("call", "place", "cause"), UNCALLABLE)
def test_what_a_model_could_not_call_is_refused(call: Any, place: str, cause: str) -> None:
    """The error names the tool, the parameter, and what would be right."""
    with pytest.raises(InvalidValue) as told:
        tool(call)
    name = getattr(call, "__name__", "")
    assert told.value.place in {f"tool {name}.{place}", place}
    assert cause in told.value.cause
    assert told.value.fix


def test_a_tool_is_declared_once() -> None:
    with pytest.raises(InvalidValue, match="tool pay: is a tool already"):
        tool(pay)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "a\ud800"},
        {"policy": {}},
        {"preprocessors": [len]},
        {"processors": (3,)},
        {"parameters": []},
        {"description": 3},
    ],
)
def test_a_field_that_cannot_be_is_refused_by_name(fields: dict[str, Any]) -> None:
    (field,) = fields
    declare: Any = functools.partial(tool, name="f")
    with pytest.raises(InvalidValue) as told:
        declare(**fields)(lambda: None)
    assert told.value.place.split(".")[-1].startswith(field)
