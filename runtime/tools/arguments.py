"""Whether arguments fit a tool; if not, exactly where, what is wrong, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from ...models.errors import InvalidValue, shown
from ...models.values import Json, canonical, freeze
from .errors import BadArguments
from .messages import bounded, path
from .schemas import CAUSE, Schema, part_at
from .tool import Tool
from .unknown_fields import Steps, Unknown, first_unknown

TRIED_KEYS: Final = 1_000
"""Keys of an object that are tried one by one to say which is wrong; msgspec does not say."""
SOME_KEY: Final = "…"
"""Stands in a place for a key that was not found out."""


def check(tool: Tool, arguments: Mapping[str, Json]) -> dict[str, Any]:
    """Return the keyword arguments to call the tool with, its context not among them.

    They share nothing with `arguments`. What is not given is left out, so that the function's
    default counts. Raises `BadArguments`.
    """
    try:
        frozen = freeze(arguments, place="")
    except InvalidValue as error:
        raise BadArguments(
            place=error.place.removeprefix(".") or "arguments", cause=error.cause, fix=error.fix
        ) from None
    if not isinstance(frozen, dict):
        raise BadArguments(
            place="arguments", cause=f"{shown(arguments)} is no object", fix="give a JSON object"
        )
    plain: dict[str, Any] = _thawed(cast("Json", frozen))
    if tool.arguments_struct is not None:
        return _by_hints(tool, tool.arguments_struct, plain)
    return _by_schema(tool, cast("Schema", tool.schema), plain)


def _thawed(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Copy a frozen value into plain lists and dicts, which a tool may change."""
    if isinstance(value, dict):
        return {key: _thawed(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_thawed(item) for item in cast("Sequence[Any]", value)]
    return value


def _by_schema(tool: Tool, schema: Schema, plain: dict[str, Any]) -> dict[str, Any]:
    schema.check(plain)
    for name in plain:
        if not tool.signature.takes(name):
            known = tuple(parameter.name for parameter in tool.signature.parameters)
            raise _unknown(Unknown(steps=(name,), known=known))
    for parameter in tool.signature.parameters:
        if parameter.required and parameter.name not in plain:
            raise BadArguments(place=parameter.name, cause="is missing", fix="give it")
    return plain


def _by_hints(tool: Tool, struct: type[msgspec.Struct], plain: dict[str, Any]) -> dict[str, Any]:
    unknown = first_unknown(plain, struct)
    if unknown is not None:
        raise _unknown(unknown)
    try:
        made = _converted(plain, struct)
    except msgspec.ValidationError as error:
        raise _misfit(str(error), plain, tool, struct) from None
    except Exception as error:  # noqa: BLE001 - a hint's own __post_init__ or converter may raise
        raise BadArguments(
            place="arguments",
            cause=bounded(f"{type(error).__name__}: {error}", limit=CAUSE),
            fix="give what the tool's types take",
        ) from None
    given = {
        parameter.name: getattr(made, f"argument_{number}")
        for number, parameter in enumerate(tool.signature.parameters)
    }
    return {name: value for name, value in given.items() if value is not msgspec.UNSET}


def _converted(plain: object, struct: type[msgspec.Struct]) -> msgspec.Struct:
    """Make what the hints say; keys are always text in JSON, so ``dict[int, …]`` reads them."""
    return msgspec.convert(plain, struct, strict=True, str_keys=True)


def _unknown(unknown: Unknown) -> BadArguments:
    names = ", ".join(unknown.known)
    return BadArguments(
        place=path(unknown.steps),
        cause="is not taken here",
        fix=bounded(f"leave it out, or give one of: {names}", limit=CAUSE)
        if names
        else "leave it out",
    )


_WITH_PLACE: Final = re.compile(r"(?s)(?P<said>.*) - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`")
_STEP: Final = re.compile(r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+)\]|(?P<some>\[\.\.\.\])")
_EXPECTED: Final = re.compile(r"Expected `(?P<right>.*)`, got `(?P<got>.*)`")
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>.*)`")


def _misfit(
    text: str, plain: dict[str, Any], tool: Tool, struct: type[msgspec.Struct]
) -> BadArguments:
    """Say what msgspec found, in terms of places and values."""
    placed = _WITH_PLACE.fullmatch(text)
    said = placed["said"] if placed else text
    steps = _exact_steps(_steps(placed["path"]) if placed else (), text, plain, struct)
    if placed and placed["key"]:
        said = f"has a wrong key: {said}"
    if missing := _MISSING.fullmatch(said):
        return BadArguments(
            place=path((*steps, missing["name"])), cause="is missing", fix="give it"
        )
    value = _value_at(plain, steps)
    place = path(steps) or "arguments"
    if expected := _EXPECTED.fullmatch(said):
        return BadArguments(
            place=place,
            cause=f"{shown(value)} is {expected['got']}",
            fix=f"give {expected['right']}",
        )
    return BadArguments(
        place=place,
        cause=f"{shown(value)} does not fit: {bounded(said, limit=CAUSE)}",
        fix=bounded(f"give what fits {canonical(part_at(tool.parameters, steps))}", limit=CAUSE),
    )


def _steps(text: str) -> Steps:
    return tuple(
        int(step["index"]) if step["index"] else step["name"] or SOME_KEY
        for step in _STEP.finditer(text)
    )


def _exact_steps(
    steps: Steps, text: str, plain: dict[str, Any], struct: type[msgspec.Struct]
) -> Steps:
    """Find the keys that msgspec leaves open: the one with which alone it says the same."""
    found: list[str | int] = list(steps)
    tries = TRIED_KEYS
    for number, step in enumerate(steps):
        held = _value_at(plain, found[:number])
        if step != SOME_KEY or not isinstance(held, dict):
            continue
        for key, item in cast("dict[str, Any]", held).items():
            tries -= 1
            narrowed = _with(plain, found[:number], {key: item})
            if tries >= 0 and _complaint(narrowed, struct) == text:
                found[number], plain = key, cast("dict[str, Any]", narrowed)
                break
    return tuple(found)


def _complaint(plain: object, struct: type[msgspec.Struct]) -> str | None:
    try:
        _converted(plain, struct)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
        return str(error)
    return None


def _with(value: Any, steps: Sequence[str | int], item: object) -> object:  # noqa: ANN401 - any JSON
    """Return a JSON value like this one with another item at the end of the steps."""
    if not steps:
        return item
    step, *rest = steps
    copy = value.copy()
    copy[step] = _with(value[step], rest, item)
    return copy


def _value_at(value: Any, steps: Sequence[str | int]) -> Any:  # noqa: ANN401 - any JSON
    for step in steps:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value
