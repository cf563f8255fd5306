"""Whether arguments fit a tool; if not, exactly where, what is wrong, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

import attrs
import msgspec
import msgspec.inspect

from ...models.errors import InvalidValue, shown
from ...models.values import Json, canonical, freeze
from .errors import BadArguments, bounded, path, said
from .schemas import CAUSE, Schema, part_at
from .tool import Tool

MISSING: Final = "is missing"
NOT_TAKEN: Final = "is not taken here"
"""What is wrong with arguments, said without a value of theirs, as MISSING."""
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


def misfit(tool: Tool, arguments: Mapping[str, Json]) -> BadArguments | None:
    """Return what is wrong with arguments, None if they fit; code of the tool's types may run."""
    try:
        check(tool, arguments)
    except BadArguments as error:
        place = "arguments" if error.place == "arguments" else f"arguments.{error.place}"
        return BadArguments(place=place, cause=error.cause, fix=error.fix)
    except BaseException as error:  # noqa: BLE001 - a type's own __post_init__ may even exit
        return BadArguments(
            place="arguments", cause=said(error), fix="give what the tool's types take"
        )
    return None


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
            raise BadArguments(place=parameter.name, cause=MISSING, fix="give it")
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
        cause=NOT_TAKEN,
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
        return BadArguments(place=path((*steps, missing["name"])), cause=MISSING, fix="give it")
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


Steps: TypeAlias = tuple[str | int, ...]

KEPT_TYPES: Final = 1_024
"""Descriptions of argument types kept for the next call; a tool has one."""


@attrs.frozen(kw_only=True)
class Unknown:
    """A field that does not exist, and the names of those that do."""

    steps: Steps
    known: tuple[str, ...]


@lru_cache(KEPT_TYPES)
def _described(kind: type[msgspec.Struct]) -> Any:  # noqa: ANN401 - one of msgspec's descriptions
    return msgspec.inspect.type_info(kind)


def first_unknown(value: object, kind: type[msgspec.Struct]) -> Unknown | None:
    """Return the first field in a JSON value that the type does not have, at any depth.

    msgspec drops those of dataclasses and typed dicts silently; somebody may have approved them.
    """
    return _search(value, _described(kind), ())


def _search(value: object, info: Any, steps: Steps) -> Unknown | None:  # noqa: ANN401 - as above
    """Search where value and type agree; where they do not, the check itself will say so."""
    if isinstance(info, msgspec.inspect.Metadata):
        return _search(value, info.type, steps)
    if isinstance(info, msgspec.inspect.UnionType):
        member = _member(value, info.types)
        return None if member is None else _search(value, member, steps)
    if isinstance(value, dict):
        return _search_object(cast("dict[str, Any]", value), info, steps)
    if isinstance(value, list):
        return _search_array(cast("Sequence[Any]", value), info, steps)
    return None


def _member(value: object, members: Iterable[Any]) -> Any:  # noqa: ANN401 - as above
    """Pick the one member of a union that the value can be: msgspec allows no doubt about it."""
    bare: list[Any] = [
        it.type if isinstance(it, msgspec.inspect.Metadata) else it for it in members
    ]
    if isinstance(value, list):
        return next((it for it in bare if _is_array(it)), None)
    if not isinstance(value, dict):
        return None
    tag = cast("dict[str, Any]", value).get
    for it in bare:
        tag_field = getattr(it, "tag_field", None)
        if _is_object(it) and (tag_field is None or tag(tag_field) == it.tag):
            return it
    return None


def _is_array(info: Any) -> bool:  # noqa: ANN401 - as above
    items = hasattr(info, "item_type") or hasattr(info, "item_types")
    named = isinstance(info, msgspec.inspect.NamedTupleType)
    return items or named or getattr(info, "array_like", False)


def _is_object(info: Any) -> bool:  # noqa: ANN401 - as above
    return not _is_array(info) and (hasattr(info, "value_type") or hasattr(info, "fields"))


def _search_object(value: dict[str, Any], info: Any, steps: Steps) -> Unknown | None:  # noqa: ANN401 - as above
    if not _is_object(info):
        return None
    if hasattr(info, "value_type"):
        return _first((item, info.value_type, (*steps, key)) for key, item in value.items())
    fields = {field.encode_name: field.type for field in info.fields}
    tag_field = getattr(info, "tag_field", None)
    for key in value:
        if key not in fields and key != tag_field:
            return Unknown(steps=(*steps, key), known=tuple(fields))
    return _first(
        (item, fields[key], (*steps, key)) for key, item in value.items() if key in fields
    )


def _search_array(value: Sequence[Any], info: Any, steps: Steps) -> Unknown | None:  # noqa: ANN401 - as above
    if not _is_array(info):
        return None
    if hasattr(info, "item_type"):
        kinds: Sequence[Any] = [info.item_type] * len(value)
    elif hasattr(info, "item_types"):
        kinds = info.item_types
    else:
        tag = [] if getattr(info, "tag", None) is None else [None]
        kinds = [*tag, *(field.type for field in info.fields)]
    return _first(
        (item, kind, (*steps, number))
        for number, (item, kind) in enumerate(zip(value, kinds, strict=False))
    )


def _first(places: Iterable[tuple[object, Any, Steps]]) -> Unknown | None:
    for item, info, steps in places:
        found = _search(item, info, steps)
        if found is not None:
            return found
    return None
