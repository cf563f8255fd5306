"""Fields that no type has a place for, at any depth.

msgspec drops those of dataclasses and typed dicts silently, and somebody may have approved them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

import attrs
import msgspec
import msgspec.inspect

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
    """Return the first field in a JSON value that the type does not have, at any depth."""
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
