"""What a field may hold, checked where a caller builds a record (K-8). Nothing is ever coerced."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NoReturn, TypeAlias, cast

import attrs

from .errors import InvalidValue, shown
from .values import INTEGER_BITS, Absent, Json, check_text, freeze

Check: TypeAlias = "Callable[[Any, attrs.Attribute[Any], Any], None]"


def identifier(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept non-empty text that UTF-8 can hold."""
    _text(field.name, value)
    if not value:
        raise InvalidValue(place=field.name, cause="is empty", fix="give a non-empty text")


def any_text(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept text that UTF-8 can hold, the empty one too."""
    _text(field.name, value)


def _text(place: str, value: object) -> None:
    if type(value) is not str:
        _wrong(place, value, "a text")
    check_text(value, place=place)


def flag(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept True and False."""
    if value is not True and value is not False:
        _wrong(field.name, value, "true or false")


def whole(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept an integer of any sign: whether it is the right one is for the kernel to say."""
    _whole(field.name, value)


def count(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept an integer of at least zero."""
    if _whole(field.name, value) < 0:
        raise InvalidValue(
            place=field.name, cause=f"{shown(value)} is negative", fix="give 0 or more"
        )


def _whole(place: str, value: object) -> int:
    if type(value) is not int:
        _wrong(place, value, "a whole number")
    if value.bit_length() > INTEGER_BITS:  # it could not even be printed
        _wrong(place, value, f"an integer of at most {INTEGER_BITS} bits")
    return value


def instant(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept a finite number: Unix time in seconds."""
    number(value, place=field.name)


def seconds(_: object, field: attrs.Attribute[Any], value: object) -> None:
    """Accept a finite number of seconds that is not negative."""
    if number(value, place=field.name) < 0:
        raise InvalidValue(place=field.name, cause=f"{value} is negative", fix="give 0 s or more")


def number(value: object, *, place: str) -> float:
    """Return a finite number as a float, or raise at `place`."""
    if type(value) is not float and type(value) is not int:
        _wrong(place, value, "a number")
    try:
        as_float = float(value)
    except OverflowError:
        as_float = math.inf
    if not math.isfinite(as_float):
        raise InvalidValue(
            place=place, cause=f"{shown(value)} is not finite", fix="give a finite number"
        )
    return as_float


def optional(check: Check) -> Check:
    """Accept None, too: an optional field that is null is absent (kernel.md section 3)."""

    def check_unless_none(record: object, field: attrs.Attribute[Any], value: object) -> None:
        if value is not None:
            check(record, field, value)

    return check_unless_none


def instance(kind: type, *, below: bool = False) -> Check:
    """Accept instances of one class of ours; with `below`, of its subclasses too.

    Else a subclass could answer otherwise each time it is asked (K-32).
    """

    def check_instance(_: object, field: attrs.Attribute[Any], value: object) -> None:
        _instance(field.name, value, kind, below=below)

    return check_instance


def instances(kind: type, *, below: bool = False) -> Check:
    """Accept a tuple of instances of one class of ours; with `below`, of its subclasses too."""

    def check_instances(_: object, field: attrs.Attribute[Any], value: object) -> None:
        if type(value) is not tuple:
            _wrong(field.name, value, f"a tuple of {kind.__name__}")
        for index, item in enumerate(cast("tuple[object, ...]", value)):
            _instance(f"{field.name}[{index}]", item, kind, below=below)

    return check_instances


def _instance(place: str, value: object, kind: type, *, below: bool) -> None:
    if type(value) is not kind and not (below and isinstance(value, kind)):
        _wrong(place, value, f"a {kind.__name__}")


def _wrong(place: str, value: object, right: str) -> NoReturn:
    raise InvalidValue(place=place, cause=f"{shown(value)} is not {right}", fix=f"give {right}")


def _json_value(value: object, field: attrs.Attribute[Any]) -> Json:
    frozen: Json = freeze(value, place=field.name)
    return frozen


def _json_object(value: object, field: attrs.Attribute[Any]) -> Mapping[str, Json]:
    if not isinstance(value, Mapping):
        _wrong(field.name, value, "a JSON object")
    frozen: Mapping[str, Json] = freeze(cast("object", value), place=field.name)
    return frozen


def _optional_json_object(value: object, field: attrs.Attribute[Any]) -> Mapping[str, Json] | None:
    return None if value is None else _json_object(value, field)


def _json_or_absent(value: object, field: attrs.Attribute[Any]) -> Json | Absent:
    return value if isinstance(value, Absent) else _json_value(value, field)


json_value = attrs.Converter(_json_value, takes_field=True)
json_object = attrs.Converter(_json_object, takes_field=True)
optional_json_object = attrs.Converter(_optional_json_object, takes_field=True)
json_or_absent = attrs.Converter(_json_or_absent, takes_field=True)


def choice(kind: type[StrEnum]) -> Any:  # noqa: ANN401 - the converter type differs in each checker
    """Turn a text into the member of a closed list that has it, or say what the list holds."""
    members = {str(member): member for member in kind}

    def choose(value: object, field: attrs.Attribute[Any]) -> StrEnum:
        member = members.get(value) if isinstance(value, str) else None
        if member is None:
            _wrong(field.name, value, "one of " + ", ".join(members))
        return member

    return attrs.Converter(choose, takes_field=True)
