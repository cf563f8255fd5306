"""Whether arguments fit a tool; if not, exactly where, what is wrong, and what would be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...models.errors import InvalidValue, shown
from ...models.values import Json, freeze
from .errors import BadArguments, said
from .tool import Tool


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
    return tool.fitting.fitted(_thawed(cast("Json", frozen)))


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
