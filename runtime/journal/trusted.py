"""Facts from JSON that is known to be ours: built without asking their constructors again.

For a line that `to_json` wrote and whose checksum fits, this returns what `fact_from_json` returns
(tests/runtime/test_stored_facts.py) in a fraction of its time (measured by
benchmarks/bench_journal.py). For anything else use that: here a wrong value is not noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final, cast, get_args, get_origin, get_type_hints

import msgspec

from ...models.calls import Call
from ...models.codec import VERSION, fact_from_json, nested_records
from ...models.fact import Fact
from ...models.facts import FACTS
from ...models.record import Record, fields_of, mint
from ...models.values import FrozenDict, FrozenList, arguments_digest

Raw = dict[str, Any]
Convert = Callable[[Any], Any]

UNREADABLE: Final = (LookupError, TypeError, ValueError, RecursionError, msgspec.MsgspecError)
"""What is met in a line that `to_json` did not write."""

_CONTAINERS: Final = frozenset({dict, list})
_decode: Final = msgspec.json.Decoder().decode


def trusted_fact(line: bytes) -> Fact:
    """Build a fact from a line that `to_json` wrote; an older version's goes through the codec.

    Raises one of `UNREADABLE` for a line that is none.
    """
    raw = _decode(line)
    if raw.pop("version") != VERSION:
        return fact_from_json(line)
    return cast("Fact", _BUILDERS[raw.pop("type")](raw))


def _builder(cls: type[Record]) -> Convert:
    """Return the function that builds a record of this class from its JSON, which it uses up."""
    make: Callable[..., Any] = mint(cls)
    converters = tuple(_converters(cls).items())

    def build(raw: Raw) -> Any:  # noqa: ANN401 - an instance of cls
        for name, convert in converters:
            value = raw.get(name)
            if value is not None:
                raw[name] = convert(value)
        return make(**raw)

    return build


def _converters(cls: type[Record]) -> dict[str, Convert]:
    """Return, by field, what makes of a JSON value what the record holds; most hold it as it is."""
    nested = nested_records(cls)
    hints = get_type_hints(cls)
    found: dict[str, Convert] = {}
    for field in fields_of(cls):
        options = (hints[field.name], *get_args(hints[field.name]))
        enums = [kind for kind in options if isinstance(kind, type) and issubclass(kind, StrEnum)]
        if field.name in nested:
            found[field.name] = _calls if nested[field.name].many else _call
        elif enums:
            found[field.name] = enums[0]
        elif any(get_origin(kind) is Mapping for kind in options):
            found[field.name] = _frozen
    return found


def _frozen(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Freeze a value that `freeze` has checked before it was stored; twice as fast as that."""
    kind = type(cast("object", value))
    if kind is dict:
        for key, item in value.items():
            if type(item) in _CONTAINERS:
                value[key] = _frozen(item)
        frozen_dict: FrozenDict = FrozenDict.__new__(FrozenDict)
        super(FrozenDict, frozen_dict).update(value)
        return frozen_dict
    if kind is list:
        frozen_list: FrozenList = FrozenList.__new__(FrozenList)
        super(FrozenList, frozen_list).extend(map(_frozen, value))
        return frozen_list
    return value


def _calls(raws: list[Raw]) -> tuple[Call, ...]:
    return tuple(map(_call, raws))


def _call(raw: Raw) -> Call:
    if raw["requires_approval"]:  # the digest follows from the arguments, so it is not stored
        raw["arguments_digest"] = arguments_digest(raw["arguments"])
    return cast("Call", _build_call(raw))


_build_call: Final = _builder(Call)
_BUILDERS: Final = {str(cls.type): _builder(cls) for cls in FACTS}
