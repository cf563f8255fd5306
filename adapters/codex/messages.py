"""The messages of ``codex app-server``, as they come: one JSON object a line, read where used.

Unknown fields are kept, and an unknown method is a message like any other (S-13). A line that is no
message ends its process: nobody knows what else was lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import attrs
import msgspec

RequestId: TypeAlias = int | str
"""As JSON has it: `0` and `"0"` are two requests (S-34)."""


class NotAMessage(ValueError):
    """A line that is no message of the protocol: its process is ended (S-13)."""


@attrs.frozen
class Notified:
    """Something that it says."""

    method: str
    params: Mapping[str, Any]


@attrs.frozen
class Asked:
    """A request of its: it waits for an answer under this id."""

    id: RequestId
    method: str
    params: Mapping[str, Any]


@attrs.frozen
class Answered:
    """What it answers to a request of ours: a result, or an error."""

    id: RequestId
    result: Any = None
    error: Mapping[str, Any] | None = None


Message: TypeAlias = Notified | Asked | Answered

_decode: Final = msgspec.json.Decoder().decode

DEEP: Final = 90
"""Levels of nesting that are kept as they are; what lies deeper is kept as its JSON text, because a
journal holds `values.DEPTH` levels of what is said, and of what is made of it."""
_DIGITS: Final = 2_466
"""Digits of the longest number that a journal holds (`values.INTEGER_BITS`)."""
_long: Final = re.compile(rb"[0-9]{%d}" % (_DIGITS + 1)).search


def read(line: bytes) -> Message:
    """Return the message of a line. Raises `NotAMessage`, and says what is wrong with it."""
    try:
        told = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotAMessage(f"a line that is no JSON: {error}") from error
    if len(line) > _DIGITS and _has_long_number(line):
        raise NotAMessage(f"a number of more than {_DIGITS:,} digits, which nothing here can hold")
    if line.count(b"[") + line.count(b"{") > DEEP:
        told = _flat(told, DEEP)
    found = object_or_none(told)
    if found is None:
        raise NotAMessage(f"a line that is no JSON object but {type(told).__name__}")
    method, request = found.get("method"), found.get("id")
    if "id" in found and (isinstance(request, bool) or not isinstance(request, int | str)):
        raise NotAMessage(f"an id that is neither a number nor a text: {type(request).__name__}")
    if method is None and request is not None and ("result" in found or "error" in found):
        return Answered(request, found.get("result"), object_or_none(found.get("error")))
    if not isinstance(method, str):
        raise NotAMessage("a line that is neither a notification, nor a request, nor an answer")
    given = object_of(found.get("params"))
    return Notified(method, given) if request is None else Asked(request, method, given)


def object_or_none(value: object) -> Mapping[str, Any] | None:
    """Return a JSON object; None for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def object_of(value: object) -> Mapping[str, Any]:
    """Return a JSON object, and an empty one for anything else."""
    return object_or_none(value) or {}


def list_of(value: object) -> Sequence[Any] | None:
    """Return a JSON array; None for anything else."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else None


def _has_long_number(line: bytes) -> bool:
    """Whether a run of so many digits stands in a line; one of every so many bytes is looked at."""
    return line[_DIGITS::_DIGITS].translate(None, b"0123456789") != line[_DIGITS::_DIGITS] and (
        _long(line) is not None
    )


def _flat(value: object, depth: int) -> Any:  # noqa: ANN401 - any JSON
    named, listed = object_or_none(value), list_of(value)
    if named is None and listed is None:
        return value
    if depth == 0:
        return msgspec.json.encode(named if listed is None else listed).decode()
    if named is not None:
        return {name: _flat(it, depth - 1) for name, it in named.items()}
    return [_flat(it, depth - 1) for it in listed or ()]
