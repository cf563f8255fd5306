"""Arguments against generated types and schemas: what fits passes, a planted misfit is found."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from pydantic.fields import FieldInfo

from turnlock.models.values import freeze, same_json
from turnlock.runtime.tools.arguments import check
from turnlock.runtime.tools.errors import BadArguments
from turnlock.runtime.tools.tool import Tool

NAMES = st.sampled_from(["a", "b", "items", "self", "class_", "argument_0", "type", "größe"])
KEYS = st.text(st.characters(codec="utf-8", exclude_characters="`"), max_size=6)


@attrs.frozen
class Case:
    """A type, as a hint and as a schema, with values that fit, and one that does not with where."""

    hint: Any
    schema: dict[str, Any]
    good: st.SearchStrategy[Any]
    bad: st.SearchStrategy[tuple[Any, str]]
    """A value with one thing wrong in it, and the place of that."""


def leaf(hint: Any, schema: dict[str, Any], good: st.SearchStrategy[Any], bad: list[Any]) -> Case:
    return Case(hint, schema, good, st.sampled_from(bad).map(lambda value: (value, "")))


LEAVES = [
    leaf(int, {"type": "integer"}, st.integers(-(1 << 60), 1 << 60), ["x", 1.5, True, None, []]),
    leaf(
        float,
        {"type": "number"},
        st.floats(allow_nan=False, allow_infinity=False),
        ["1", False, None, {}],
    ),
    leaf(str, {"type": "string"}, KEYS, [1, None, ["x"], True]),
    leaf(bool, {"type": "boolean"}, st.booleans(), [0, 1, "true", None]),
    leaf(type(None), {"type": "null"}, st.none(), [0, "", False]),
    leaf(
        Literal["red", "blue"],
        {"enum": ["red", "blue"]},
        st.sampled_from(["red", "blue"]),
        ["green", 1, None],
    ),
]


def listed(item: Case) -> Case:
    @st.composite
    def bad(draw: st.DrawFn) -> tuple[Any, str]:
        before = draw(st.lists(item.good, max_size=3))
        value, place = draw(item.bad)
        after = draw(st.lists(item.good, max_size=2))
        return [*before, value, *after], f"[{len(before)}]{place}"

    return Case(
        types.GenericAlias(list, (item.hint,)),
        {"type": "array", "items": item.schema},
        st.lists(item.good, max_size=4),
        bad(),
    )


def keyed(item: Case) -> Case:
    @st.composite
    def bad(draw: st.DrawFn) -> tuple[Any, str]:
        key = draw(KEYS)
        others = draw(
            st.dictionaries(KEYS.filter(lambda other: other != key), item.good, max_size=3)
        )
        value, place = draw(item.bad)
        pairs = draw(st.permutations([*others.items(), (key, value)]))
        return dict(pairs), f".{key}{place}"

    return Case(
        types.GenericAlias(dict, (str, item.hint)),
        {"type": "object", "additionalProperties": item.schema},
        st.dictionaries(KEYS, item.good, max_size=4),
        bad(),
    )


def maybe(item: Case) -> Case:
    refused_by_both = item.bad.filter(lambda it: it[0] is not None)
    return Case(
        item.hint | None,
        {"anyOf": [item.schema, {"type": "null"}]},
        st.none() | item.good,
        refused_by_both,
    )


NOT_NULL = [case for case in LEAVES if case.hint is not type(None)]
CASES: st.SearchStrategy[Case] = st.recursive(
    st.sampled_from(NOT_NULL),
    lambda inner: inner.map(listed) | inner.map(keyed),
    max_leaves=3,
)


@attrs.frozen
class Declared:
    """A tool made up, by hints and by schema, and its parameters."""

    by_hints: Tool
    by_schema: Tool
    by_pydantic: Tool
    """By the same hints, each with something beside it that pydantic reads."""
    parameters: dict[str, tuple[Case, bool]]
    """Case, and whether it must be given."""


def function_of(parameters: dict[str, tuple[Case, bool]], *beside: FieldInfo) -> Callable[..., Any]:
    """Return a function with this signature, with something beside each hint perhaps."""

    def f(**given: Any) -> Any:
        return given

    empty = inspect.Parameter.empty
    f.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=empty if required else "the default",
                annotation=case.hint,
            )
            for name, (case, required) in parameters.items()
        ]
    )
    f.__annotations__ = {
        name: Annotated[(case.hint, *beside)] if beside else case.hint
        for name, (case, _) in parameters.items()
    }
    return f


@st.composite
def declared(draw: st.DrawFn) -> Declared:
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=3))
    cases = CASES | CASES.map(maybe)
    parameters = {name: (draw(cases), draw(st.booleans())) for name in names}
    function = function_of(parameters)
    schema = {
        "type": "object",
        "properties": {name: case.schema for name, (case, _) in parameters.items()},
        "required": [name for name, (_, required) in parameters.items() if required],
        "additionalProperties": False,
    }
    return Declared(
        Tool(name="f", call=function),
        Tool(name="f", call=function, parameters=schema),
        Tool(name="f", call=function_of(parameters, Field(description="It."))),
        parameters,
    )


def arguments_that_fit(draw: st.DrawFn, it: Declared) -> dict[str, Any]:
    return {
        name: draw(case.good)
        for name, (case, required) in it.parameters.items()
        if required or draw(st.booleans())
    }


@st.composite
def fitting(draw: st.DrawFn) -> tuple[Declared, dict[str, Any]]:
    it = draw(declared())
    return it, arguments_that_fit(draw, it)


@given(fitting())
def test_what_fits_passes_unchanged(case: tuple[Declared, dict[str, Any]]) -> None:
    """By hints and by schema alike; and what hints say fits, the schema derived from them takes."""
    it, arguments = case
    frozen = freeze(arguments, place="arguments")
    derived = Tool(name="f", call=it.by_hints.call, parameters=it.by_hints.parameters)
    for tool in (it.by_hints, it.by_schema, it.by_pydantic, derived):
        got = check(tool, frozen)
        assert same_json(got, arguments)
        assert tool(**got) == arguments


@st.composite
def misfitting(draw: st.DrawFn) -> tuple[Declared, dict[str, Any], str]:
    it = draw(declared())
    arguments = arguments_that_fit(draw, it)
    name = draw(st.sampled_from(sorted(it.parameters)))
    value, place = draw(it.parameters[name][0].bad)
    return it, {**arguments, name: value}, f"{name}{place}"


@given(misfitting())
def test_a_planted_misfit_is_told_with_its_place(
    case: tuple[Declared, dict[str, Any], str],
) -> None:
    it, arguments, place = case
    with pytest.raises(BadArguments) as by_hints:
        check(it.by_hints, arguments)
    assert by_hints.value.place == place
    with pytest.raises(BadArguments) as by_pydantic:
        check(it.by_pydantic, arguments)
    assert by_pydantic.value.place == place
    with pytest.raises(BadArguments) as by_schema:
        check(it.by_schema, arguments)
    outer = by_schema.value.place  # a union may be told as one
    assert place.startswith(outer)


@given(fitting(), st.data())
def test_what_is_missing_or_unknown_is_told_by_name(
    case: tuple[Declared, dict[str, Any]], data: st.DataObject
) -> None:
    it, arguments = case
    with pytest.raises(BadArguments) as unknown:
        check(it.by_hints, {**arguments, "stranger": 1})
    assert unknown.value.place == "stranger"
    with pytest.raises(BadArguments, match=r"^stranger: is not taken here"):
        check(it.by_pydantic, {**arguments, "stranger": 1})
    required = sorted(name for name, (_, needed) in it.parameters.items() if needed)
    if required:
        gone = data.draw(st.sampled_from(required))
        arguments = {name: value for name, value in arguments.items() if name != gone}
        with pytest.raises(BadArguments, match=f"{gone}: is missing"):
            check(it.by_hints, arguments)
        with pytest.raises(BadArguments, match=f"{gone}: is missing"):
            check(it.by_pydantic, arguments)
        with pytest.raises(BadArguments, match="is a required property"):
            check(it.by_schema, arguments)
