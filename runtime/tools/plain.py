"""Hints of Python's own types, which need no library: what fits them, and their JSON Schema.

They are Any, None, bool, int, float, str, list, dict with text keys, Literal of those that are no
containers, and unions of all these. Checking them runs nobody's code.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias, Union, cast

from ...models.errors import shown
from ...models.values import canonical
from .errors import BadArguments, path

Steps: TypeAlias = tuple[str | int, ...]
"""The way to a place inside arguments."""

_NONE: Final = type(None)
KINDS: Final[Mapping[type, str]] = {
    _NONE: "null",
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    list: "array",
    dict: "object",
}
"""What the values of JSON are called in messages."""
_JSON_TYPES: Final[Mapping[Any, str]] = {
    _NONE: "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def is_plain(hint: Any) -> bool:  # noqa: ANN401 - a type hint
    """Whether a hint is one of these."""
    return all(map(_is_plain_member, _members(hint)))


def schema_of(hint: Any) -> dict[str, Any]:  # noqa: ANN401 - a type hint
    """Return the JSON Schema of a plain hint."""
    members = _members(hint)
    if Any in members:
        return {}
    schemas = [_schema_of_member(member) for member in members]
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def fitted(hint: Any, value: Any, steps: Steps) -> Any:  # noqa: ANN401 - a type hint, any JSON
    """Return a JSON value as a plain hint wants it, nothing converted but int to float.

    Raises `BadArguments` at the place of what does not fit.
    """
    members = _members(hint)
    if Any in members or any(_is_exactly(member, value) for member in members):
        return value
    if type(value) is int and float in members:
        with suppress(OverflowError):
            return float(value)
        raise BadArguments(
            place=path(steps), cause=f"{shown(value)} is too large", fix="give a smaller number"
        )
    containers = [it for it in members if _bare(it) is type(value) and type(value) in {list, dict}]
    if len(containers) == 1:
        return _fitted_inside(containers[0], value, steps)
    for container in containers:
        with suppress(BadArguments):
            return _fitted_inside(container, value, steps)
    raise _misfit(hint, value, steps)


def wrong_kind(value: object, rights: Sequence[str], steps: Steps) -> BadArguments:
    """Return the error of a value of another kind than any that would be right."""
    return BadArguments(
        place=path(steps) or "arguments",
        cause=f"{shown(value)} is {KINDS[type(value)]}",
        fix=f"give {' | '.join(dict.fromkeys(rights))}",
    )


def _misfit(hint: Any, value: object, steps: Steps) -> BadArguments:  # noqa: ANN401 - a type hint
    rights = [kind for member in _members(hint) for kind in _kinds(member)]
    if KINDS[type(value)] not in rights:
        return wrong_kind(value, rights, steps)
    return BadArguments(
        place=path(steps),
        cause=f"{shown(value)} does not fit",
        fix=f"give what fits {canonical(schema_of(hint))}",
    )


def _members(hint: Any) -> list[Any]:  # noqa: ANN401 - a type hint
    """Return what a union is made of; None stands for its type in hints."""
    if typing.get_origin(hint) in {Union, types.UnionType}:
        return [it for member in typing.get_args(hint) for it in _members(member)]
    return [_NONE if hint is None else hint]


def _bare(member: Any) -> Any:  # noqa: ANN401 - a type hint
    return typing.get_origin(member) or member


def _is_plain_member(member: Any) -> bool:  # noqa: ANN401 - a type hint
    kind, inside = _bare(member), typing.get_args(member)
    if kind is Literal:
        return all(type(it) in {_NONE, bool, int, str} for it in inside)
    if kind is dict and inside and inside[0] is not str:
        return False
    if kind in {list, dict}:
        return all(is_plain(it) for it in inside)
    return member is Any or (isinstance(member, type) and member in KINDS)


def _kinds(member: Any) -> list[str]:  # noqa: ANN401 - a type hint
    if _bare(member) is Literal:
        return [KINDS[type(it)] for it in typing.get_args(member)]
    return [KINDS[_bare(member)]]


def _schema_of_member(member: Any) -> dict[str, Any]:  # noqa: ANN401 - a type hint
    kind, inside = _bare(member), typing.get_args(member)
    if kind is Literal:
        return {"enum": list(inside)}
    schema: dict[str, Any] = {"type": _JSON_TYPES[kind]}
    if kind is list and inside:
        schema["items"] = schema_of(inside[0])
    if kind is dict and inside:
        schema["additionalProperties"] = schema_of(inside[1])
    return schema


def _is_exactly(member: Any, value: object) -> bool:  # noqa: ANN401 - a type hint
    if _bare(member) is Literal:
        return any(type(it) is type(value) and it == value for it in typing.get_args(member))
    return member is type(value) and type(value) not in {list, dict}


def _fitted_inside(container: Any, value: Any, steps: Steps) -> Any:  # noqa: ANN401 - as above
    inside = typing.get_args(container)
    if not inside:
        return value
    if isinstance(value, list):
        items = enumerate(cast("Sequence[Any]", value))
        return [fitted(inside[0], it, (*steps, number)) for number, it in items]
    return {key: fitted(inside[1], it, (*steps, key)) for key, it in value.items()}
