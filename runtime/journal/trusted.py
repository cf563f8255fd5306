"""Facts of a journal as they were written, without the checks of the codec.

What bears its checksum was written by `to_json`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache, partial
from typing import Any, Final, cast, get_args, get_origin, get_type_hints

import attrs
import msgspec

from ...models.calls import Call
from ...models.codec import VERSION, Nested, fact_from_json, nested_records
from ...models.fact import Fact
from ...models.facts import FACTS
from ...models.record import Record, fields_of, unchecked_maker_from
from ...models.values import FrozenDict, FrozenList, arguments_digest

Raw = dict[str, Any]
Convert = Callable[[Any], Any]

UNREADABLE: Final = (LookupError, TypeError, ValueError, RecursionError, msgspec.MsgspecError)
"""What is met in a line that `to_json` did not write."""

_CONTAINERS: Final = frozenset({dict, list})
_update: Final = cast("Callable[[FrozenDict, Any], None]", vars(dict)["update"])
_extend: Final = cast("Callable[[FrozenList, Any], None]", vars(list)["extend"])
decoded: Final = msgspec.json.Decoder().decode


def trusted_fact(line: bytes) -> Fact:
    """Build a fact from a line that `to_json` wrote; an older version's goes through the codec.

    Raises one of `UNREADABLE` for a line that is none.
    """
    raw = decoded(line)
    if raw["version"] != VERSION:
        return fact_from_json(line)
    fact: Fact = _BUILDERS[raw["type"]](raw)
    return fact


def _builder(cls: type[Record]) -> Convert:
    """Return the function that builds a record of this class from its JSON.

    It reads each field off the JSON itself: handing them over by keyword took three times as long.
    An optional field that is null is absent (kernel.md section 3).
    """
    hints = get_type_hints(cls)
    nested = nested_records(cls)
    converters: dict[str, Convert] = {}
    sources: dict[str, str] = {}
    for field in fields_of(cls):
        name = field.name
        value = f"raw[{name!r}]"
        convert = _digest if not field.init else _converter(nested.get(name), hints[name])
        if convert is not None:
            converters[f"to_{name}"] = convert
            value = f"to_{name}({value if field.init else 'raw'})"
        is_optional = field.init and field.default is not attrs.NOTHING
        if is_optional:
            value = f"{field.default!r} if raw.get({name!r}) is None else {value}"
        sources[name] = value
    make = unchecked_maker_from(cls, context=(*converters, "raw"), shorthand={}, fields=sources)
    return partial(make, *converters.values())


def _converter(nested: Nested | None, hint: object) -> Convert | None:
    """Return what makes of a JSON value what a field holds; None where it holds it as it is."""
    if nested is not None:
        return _calls if nested.many else _call_builder()
    options = (hint, *get_args(hint))
    if any(get_origin(kind) is Mapping for kind in options):
        return frozen_json
    return next(
        (kind for kind in options if isinstance(kind, type) and issubclass(kind, StrEnum)), None
    )


def frozen_json(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Freeze a value that `freeze` has checked before it was stored, without checking again."""
    kind = type(cast("object", value))
    if kind is dict:
        for key, item in value.items():
            if type(item) in _CONTAINERS:
                value[key] = frozen_json(item)
        frozen_dict: FrozenDict = FrozenDict.__new__(FrozenDict)
        _update(frozen_dict, value)
        return frozen_dict
    if kind is list:
        frozen_list: FrozenList = FrozenList.__new__(FrozenList)
        _extend(frozen_list, map(frozen_json, value))
        return frozen_list
    return value


def _digest(raw: Raw) -> str | None:
    """Return the one thing that is not stored, because it follows from a call's arguments."""
    return arguments_digest(raw["arguments"]) if raw["requires_approval"] else None


def _calls(raws: list[Raw]) -> tuple[Any, ...]:
    return tuple(map(_call_builder(), raws))


@cache
def _call_builder() -> Convert:
    return _builder(Call)


class _Builders(dict[str, Convert]):
    """The function for each type of facts, made when the type is first met."""

    def __missing__(self, kind: str) -> Convert:
        made = self[kind] = _builder(_CLASSES[kind])
        return made


_CLASSES: Final[dict[str, type[Fact]]] = {str(cls.type): cls for cls in FACTS}
_BUILDERS: Final = _Builders()
