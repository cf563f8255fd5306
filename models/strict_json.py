"""JSON text, read strictly: nothing guessed, nothing dropped, every fault with its place.

The standard parser accepts NaN and lets the last of two equal keys win. Here both are refused.
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from .errors import InvalidValue, shown

_TOO_DEEP = "is nested too deeply"


def parse(text: str | bytes) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON value of a text, or raise `InvalidValue` with its line and column.

    Refused: what is no JSON or no UTF-8, NaN and infinities, an object with one key twice, nesting
    beyond the interpreter's depth, integers beyond its digits.
    """
    if isinstance(text, bytes):
        text = _decoded(text)
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise InvalidValue(
            place=place, cause=f"is no JSON ({error.msg})", fix="send one valid JSON value"
        ) from None
    except RecursionError:
        raise InvalidValue(place="line 1", cause=_TOO_DEEP, fix="send it flatter") from None
    except ValueError as error:
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue(
            place="line 1",
            cause=f"holds a number that is too long ({error})",
            fix="send it as text",
        ) from None


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise InvalidValue(
            place=f"line {line} column {column}",
            cause=f"is no UTF-8 (byte {raw[error.start]:#04x})",
            fix="encode the text as UTF-8",
        ) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidValue(
            place=twice, cause=f"the key {shown(twice)} stands twice", fix="send each key once"
        )
    return value


def _constant(name: str) -> NoReturn:
    raise InvalidValue(
        place=name, cause=f"{name} is no JSON number", fix="send a finite number or null"
    )


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
