"""Hints that pydantic reads: classes, enums, dates, constraints … (extra `tools`).

It is imported where a tool is declared that has such a hint. Nothing is converted that JSON could
say itself (strict), and no field is taken that a class does not have, at any depth: somebody may
have approved it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NotRequired, Required, cast

import pydantic
from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict

from ...models.errors import InvalidValue, shown
from ...models.values import Json, canonical
from .arguments import Fitting, missing, not_taken
from .errors import CAUSE, BadArguments, bounded, path, said
from .losses import check_parameter
from .plain import KINDS, Steps, wrong_kind
from .schemas import part_at
from .signature import Parameter
from .typed_dicts import fix_of, with_readable_dicts

_MISSING: Final = frozenset({
    "missing", "missing_argument", "missing_keyword_only_argument",
    "missing_positional_only_argument",
})  # fmt: skip
_NOT_TAKEN: Final = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
_RIGHT: Final = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "int"),
    **dict.fromkeys(("float_type", "float_parsing"), "float"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "bool"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "array"),
    **dict.fromkeys(
        ("dict_type", "model_type", "model_attributes_type", "dataclass_type"), "object"
    ),
    "string_type": "str",
    "none_required": "null",
}
"""What pydantic misses where the kind of value is another, as messages call it."""
_KEY: Final = "[key]"
"""What pydantic says at the end of a place where the key is wrong."""
FLOAT_BITS: Final = 1_023
"""Bits of integers that are taken: pydantic makes larger ones infinite where a float is wanted."""


class Typed(Fitting):
    """Arguments as pydantic reads them from the hints of a function."""

    is_plain = False

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        """Make it, or raise `InvalidValue` at the parameter that pydantic cannot read."""
        fields: dict[str, Any] = {}
        for it in parameters:
            with _told_at(f"parameter {it.name}"):
                hint = with_readable_dicts(it.hint)
                check_parameter(it.name, hint)
                TypeAdapter(hint).json_schema()
            fields[it.name] = (Required if it.required else NotRequired)[hint]
        made: Any = cast("Any", TypedDict)("Arguments", fields)
        with _told_at("call"):
            self._adapter: TypeAdapter[Any] = TypeAdapter(made)
            schema = self._adapter.json_schema(schema_generator=_Untitled)
        schema.pop("title", None)
        self.schema = cast("dict[str, Any]", _closed(schema))

    def fitted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return what the function is called with. Code of its types may run."""
        _check_numbers(arguments, ())
        text = canonical(cast("Json", arguments))
        try:
            made: dict[str, Any] = self._adapter.validate_json(text, strict=True, extra="forbid")
        except ValidationError as error:
            raise self._misfit(error, arguments) from None
        except Exception as error:  # noqa: BLE001 - code of the author's may raise anything
            raise BadArguments(
                place="arguments",
                cause=bounded(said(error), limit=CAUSE),
                fix="give what the tool's types take",
            ) from None
        return made

    def _misfit(self, error: ValidationError, arguments: dict[str, Any]) -> BadArguments:
        """Say what pydantic found deepest: of a union that is the member which was meant."""
        found = [
            (_steps(it["loc"], arguments, ends_in_name=it["type"] in _MISSING), it)
            for it in error.errors(include_url=False, include_context=False, include_input=False)
        ]
        depth = max(len(steps) for steps, _ in found)
        steps, first = next(it for it in found if len(it[0]) == depth)
        if first["type"] in _MISSING:
            return missing(steps)
        if first["type"] in _NOT_TAKEN:
            return not_taken(steps, part_at(self.schema, steps[:-1]).get("properties", ()))
        here = [it for at, it in found if at == steps and it["type"] not in _MISSING | _NOT_TAKEN]
        value = _value_at(arguments, steps)
        if first["loc"][-1:] == (_KEY,):
            return BadArguments(
                place=path(steps[:-1]) or "arguments",
                cause=f"has the wrong key {shown(steps[-1])}: {bounded(first['msg'], limit=CAUSE)}",
                fix="give keys that fit",
            )
        rights = [_RIGHT[it["type"]] for it in here if it["type"] in _RIGHT]
        if len(rights) == len(here) and KINDS[type(value)] not in rights:
            return wrong_kind(value, rights, steps)
        odd = next((it for it in here if it["type"] not in _RIGHT), first)
        return BadArguments(
            place=path(steps) or "arguments",
            cause=f"{shown(value)} does not fit: {bounded(odd['msg'], limit=CAUSE)}",
            fix=bounded(f"give what fits {canonical(part_at(self.schema, steps))}", limit=CAUSE),
        )


class _Untitled(GenerateJsonSchema):
    """Writes no titles that only repeat the name of a field."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002 - as pydantic has it
        return False


@contextmanager
def _told_at(place: str) -> Generator[None]:
    """Tell what pydantic cannot read as an error at a place of the declaration."""
    try:
        yield
    except InvalidValue:
        raise
    except Exception as error:  # noqa: BLE001 - pydantic's own errors, and what a type's own hook raises
        mixin = pydantic.errors.PydanticErrorMixin
        told = error.message if isinstance(error, mixin) else said(error)
        raise InvalidValue(
            place=place,
            cause=f"its type is nothing that a model could give: {told.splitlines()[0]}",
            fix=fix_of(error)
            or "write a dataclass or a BaseModel, or give the tool parameters=, a JSON Schema",
        ) from None


_OF_SCHEMAS: Final = ("properties", "$defs", "patternProperties")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONE: Final = ("items", "additionalProperties", "contains", "propertyNames", "not")


_WORDS: Final = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
}
"""What pydantic writes into a schema of a constraint behind a validator, and what it is there."""


def _closed(schema: Any) -> Any:  # noqa: ANN401 - a JSON Schema, or true or false
    """Return the schema in JSON Schema's words, each object that has fields closed to others."""
    if not isinstance(schema, dict):
        return schema
    closed: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        if key in _OF_SCHEMAS:
            closed[key] = {name: _closed(it) for name, it in value.items()}
        elif key in _LISTS:
            closed[key] = [_closed(it) for it in value]
        else:
            closed[_WORDS.get(key, key)] = _closed(value) if key in _ONE else value
    if "properties" in closed:
        closed.setdefault("additionalProperties", False)
    return closed


def _check_numbers(value: object, steps: Steps) -> None:
    if isinstance(value, int) and value.bit_length() > FLOAT_BITS:
        raise BadArguments(
            place=path(steps), cause=f"{shown(value)} is too large", fix="give a smaller number"
        )
    if isinstance(value, dict):
        for key, it in cast("dict[str, object]", value).items():
            _check_numbers(it, (*steps, key))
    elif isinstance(value, list):
        for number, it in enumerate(cast("list[object]", value)):
            _check_numbers(it, (*steps, number))


def _steps(loc: Sequence[str | int], arguments: object, *, ends_in_name: bool) -> Steps:
    """Return the steps that are in the arguments; pydantic names members of unions among them."""
    steps: list[str | int] = []
    value: Any = arguments
    for number, step in enumerate(loc):
        with suppress(LookupError, TypeError):
            value = value[step]
            steps.append(step)
            continue
        if ends_in_name and number == len(loc) - 1:
            steps.append(step)
    return tuple(steps)


def _value_at(value: Any, steps: Steps) -> Any:  # noqa: ANN401 - any JSON
    for step in steps:
        value = value[step]
    return value
