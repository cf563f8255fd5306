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
from ...models.values import Json, canonical
from .errors import CAUSE, BadArguments, bounded, path

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


class PlainHint:
    """One of these hints, taken apart once."""

    def __init__(self, hint: Any) -> None:  # noqa: ANN401 - a type hint
        """Take it apart."""
        members = _members(hint)
        literals = [it for it in members if _bare(it) is Literal]
        self._takes_any: Final = Any in members
        self._literals: Final = tuple(it for one in literals for it in typing.get_args(one))
        self._kinds: Final = tuple(_bare(it) for it in members if it not in literals)
        self._scalars: Final = frozenset(self._kinds) - {list, dict}
        self._inside: Final = tuple(
            (_bare(it), PlainHint((typing.get_args(it) or (Any,))[-1]))
            for it in members
            if _bare(it) in {list, dict}
        )
        self.schema: Final = {} if self._takes_any else _any_of(self._schemas())
        """The JSON Schema of what fits."""

    def fitted(self, value: Any, steps: Steps) -> Any:  # noqa: ANN401 - any JSON
        """Return a JSON value as it is wanted: nothing is converted but an int to a float.

        Raises `BadArguments` at the place of what does not fit.
        """
        try:
            return self.fit(value)
        except Misfit as found:
            raise found.hint.error(found.value, (*steps, *reversed(found.steps))) from None

    def error(self, value: Any, steps: Steps) -> BadArguments:  # noqa: ANN401 - any JSON
        """Return what is wrong with a value that does not fit."""
        rights = [KINDS[it] for it in (*self._kinds, *map(type, self._literals))]
        if KINDS[type(value)] not in rights and not (type(value) is int and float in self._kinds):
            return wrong_kind(value, rights, steps)
        return BadArguments(
            place=path(steps),
            cause=f"{shown(value)} does not fit",
            fix=bounded(f"give what fits {canonical(cast('Json', self.schema))}", limit=CAUSE),
        )

    def fit(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """Return a value as it is wanted, or raise `Misfit`."""
        kind = type(cast("object", value))
        if kind in self._scalars or self._takes_any:
            return value
        if any(type(it) is kind and it == value for it in self._literals):
            return value
        if kind is int and float in self._scalars:
            with suppress(OverflowError):
                return float(value)
        insides = [inside for container, inside in self._inside if container is kind]
        if len(insides) == 1:
            return insides[0].fit_inside(value)
        for inside in insides:
            with suppress(Misfit):
                return inside.fit_inside(value)
        raise Misfit(self, value)

    def fit_inside(self, container: list[Any] | dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return a container with all that is in it as it is wanted, or raise `Misfit`."""
        if isinstance(container, list):
            items: list[Any] = []
            try:
                for it in container:
                    items.append(self.fit(it))  # noqa: PERF401 - its length says where it failed
            except Misfit as found:
                found.steps.append(len(items))
                raise
            return items
        fields: dict[str, Any] = {}
        try:
            for key, it in container.items():
                fields[key] = self.fit(it)
        except Misfit as found:
            found.steps.append(next(key for key in container if key not in fields))
            raise
        return fields

    def _schemas(self) -> list[dict[str, Any]]:
        insides = iter(self._inside)
        schemas: list[dict[str, Any]] = []
        for kind in self._kinds:
            schema: dict[str, Any] = {"type": _JSON_TYPES[kind]}
            if kind in {list, dict}:
                inside = next(insides)[1]
                schema["items" if kind is list else "additionalProperties"] = inside.schema
            schemas.append(schema)
        return [*schemas, {"enum": list(self._literals)}] if self._literals else schemas


class Misfit(Exception):
    """A value that does not fit; the way to it is put together on the way out, innermost first."""

    def __init__(self, hint: PlainHint, value: Any) -> None:  # noqa: ANN401 - any JSON
        """Begin where it is."""
        self.hint = hint
        self.value = value
        self.steps: list[str | int] = []


def _any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def wrong_kind(value: object, rights: Sequence[str], steps: Steps) -> BadArguments:
    """Return the error of a value of another kind than any that would be right."""
    return BadArguments(
        place=path(steps) or "arguments",
        cause=f"{shown(value)} is {KINDS[type(value)]}",
        fix=f"give {' | '.join(sorted({*rights}))}",  # unions that are equal may be one object
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
