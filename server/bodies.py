"""Bodies of requests: frozen attrs classes, read strictly, and their JSON Schema (F-3).

A field is text, a flag, a number, a choice (an enumeration or `Literal`), JSON (`Json`), an object
of JSON, another such class, or a tuple of these; ``| None`` admits null, and ``| Absent`` tells a
field that was left out from null. One whose name is another in JSON is made by `named`.

A class that says ``FOREIGN = True`` is a body of another protocol: fields that it does not know are
let be.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import attrs

from ..models.errors import InvalidValue, shown
from ..models.strict_json import examine
from ..models.values import ABSENT, Absent, check_text, freeze
from .problems import Problem

T = TypeVar("T")

LIMIT: Final = 1024 * 1024
"""Bytes that a body may have (F-3)."""
FOREIGN_LIMIT: Final = 16 * LIMIT
"""Bytes that one of another protocol may have (F-3)."""

_INTEGER: Final = 2**53 - 1
"""Whole numbers beyond are not the same in every language."""


def parse(kind: type[T], raw: bytes) -> T:
    """Return the body that a text says.

    Raises `Problem` (`invalid_json`) for what is no JSON, and `InvalidValue` with the path of the
    field for an unknown, repeated, missing or wrong one.
    """
    try:
        value, fault = examine(raw)
    except InvalidValue as error:
        raise Problem("invalid_json", f"{error.cause}; {error.fix}", at=error.place) from None
    if fault is not None:
        raise fault
    return cast("T", _object_of(kind, value, place=""))


def named(name: str, **options: Any) -> Any:  # noqa: ANN401 - as attrs types its own
    """Return a field that has this name in JSON; the options are those of `attrs.field`."""
    return attrs.field(metadata={_NAME: name}, **options)


_NAME: Final = "name"


@cache
def _fields(kind: type) -> Mapping[str, attrs.Attribute[Any]]:
    """Return the fields of a body by their names in JSON."""
    return {it.metadata.get(_NAME, it.name): it for it in attrs.fields(kind)}


def _is_foreign(kind: type) -> bool:
    return getattr(kind, "FOREIGN", False) is True


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _wrong(place: str, value: object, wanted: str) -> InvalidValue:
    cause = "is missing" if value is ABSENT else f"{shown(value)} is not {wanted}"
    return InvalidValue(place=place, cause=cause, fix=f"give {wanted}")


def _object_of(kind: type, value: object, *, place: str) -> object:
    if not isinstance(value, dict):
        raise _wrong(place, value, "an object")
    given = cast("dict[str, object]", value)
    fields = _fields(kind)
    inside = f"{place}." if place else ""
    for name in given:
        if name not in fields and not _is_foreign(kind):
            raise InvalidValue(
                place=f"{inside}{name}",
                cause="is no field of this body",
                fix=f"leave it out; it has {', '.join(fields) or 'none'}",
            )
    found: dict[str, Any] = {}
    for name, field in fields.items():
        if name in given:
            hint = _hints(kind)[field.name]
            found[field.name] = _value_of(hint, given[name], place=f"{inside}{name}")
        elif field.default is attrs.NOTHING:
            raise _wrong(f"{inside}{name}", ABSENT, _named(_hints(kind)[field.name]))
    try:
        return kind(**found)
    except InvalidValue as error:
        raise (error.inside(place) if place else error) from None


def _value_of(hint: Any, value: Any, *, place: str) -> Any:  # noqa: ANN401, PLR0911 - any type; a way out for each kind
    """Return the value of a field, or raise `InvalidValue`."""
    if _is_json(hint):
        return freeze(value, place=place)
    origin, options = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        if value is None and type(None) in options:
            return None
        return _value_of(_option(options), value, place=place)
    if hint is str and isinstance(value, str):
        return check_text(value, place=place)
    if hint in _PLAIN and _PLAIN[hint](value):
        return hint(value)
    if isinstance(hint, type) and attrs.has(hint):
        return _object_of(hint, value, place=place)
    if isinstance(value, str) and value in _choices(hint):
        return value if origin is Literal else hint(value)
    if origin is tuple and isinstance(value, list):
        items = cast("list[object]", value)
        return tuple(
            _value_of(options[0], item, place=f"{place}[{index}]")
            for index, item in enumerate(items)
        )
    if origin is Mapping and isinstance(value, dict):
        return freeze(cast("dict[str, object]", value), place=place)
    raise _wrong(place, value, _named(hint))


def _is_json(hint: Any) -> bool:  # noqa: ANN401 - any type
    """Say whether a field takes any JSON: `Json`, whose forward references may be resolved."""
    return {bool, int, float, str} <= set(get_args(hint))


def _option(options: tuple[Any, ...]) -> Any:  # noqa: ANN401 - any type
    """Return what a field takes that may be null or left out."""
    (only,) = (it for it in options if it not in {type(None), Absent})
    return only


def _choices(hint: Any) -> tuple[str, ...]:  # noqa: ANN401 - any type
    """Return the texts of an enumeration or a `Literal`; none of anything else."""
    if isinstance(hint, type) and issubclass(hint, Enum):
        return tuple(it.value for it in hint)
    return get_args(hint) if get_origin(hint) is Literal else ()


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float holds
        return False


_UNIONS: Final = (Union, types.UnionType)
_PLAIN: Final[Mapping[Any, Callable[[Any], bool]]] = {
    bool: lambda it: type(it) is bool,
    int: lambda it: type(it) is int and abs(it) <= _INTEGER,
    float: lambda it: type(it) in {int, float} and _is_finite(it),
}


def _named(hint: Any) -> str:  # noqa: ANN401 - any type
    """Say what a field takes, in words."""
    if _is_json(hint):
        return "any JSON"
    origin, options = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        return _named(_option(options))
    choices = _choices(hint)
    if choices:
        return f"one of {', '.join(choices)}"
    words = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}
    return "a list" if origin is tuple else words.get(hint, "an object")


def schema(kind: type) -> dict[str, Any]:
    """Return the JSON Schema of a body, as OpenAPI 3.1 takes it."""
    fields = _fields(kind)
    made: dict[str, Any] = {
        "type": "object",
        "additionalProperties": _is_foreign(kind),
        "properties": {
            name: _schema_of(_hints(kind)[field.name]) for name, field in fields.items()
        },
    }
    required = [name for name, field in fields.items() if field.default is attrs.NOTHING]
    return {**made, "required": required} if required else made


def _schema_of(hint: Any) -> dict[str, Any]:  # noqa: ANN401 - any type
    if _is_json(hint):
        return {}
    origin, options = get_origin(hint), get_args(hint)
    if origin in _UNIONS:
        only = _schema_of(_option(options))
        return {"anyOf": [only, {"type": "null"}]} if type(None) in options else only
    if choices := _choices(hint):
        return {"enum": list(choices)}
    if isinstance(hint, type) and attrs.has(hint):
        return schema(hint)
    if origin is tuple:
        return {"type": "array", "items": _schema_of(options[0])}
    plain: dict[Any, dict[str, Any]] = {
        str: {"type": "string"},
        bool: {"type": "boolean"},
        int: {"type": "integer", "minimum": -_INTEGER, "maximum": _INTEGER},
        float: {"type": "number"},
    }
    return dict(plain.get(hint, {"type": "object"}))
