"""The messages of ``codex app-server``, as they come: one JSON object a line, read where used.

Unknown fields are kept, and an unknown method is a message like any other (S-13). A line that is no
message ends its process: nobody knows what else was lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

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


def read(line: bytes) -> Message:
    """Return the message of a line. Raises `NotAMessage`, and says what is wrong with it."""
    try:
        told = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise NotAMessage(f"a line that is no JSON: {error}") from error
    if not isinstance(told, dict):
        raise NotAMessage(f"a line that is no JSON object but {type(told).__name__}")
    method, request = told.get("method"), told.get("id")
    if "id" in told and (isinstance(request, bool) or not isinstance(request, int | str)):
        raise NotAMessage(f"an id that is neither a number nor a text: {type(request).__name__}")
    if method is None and request is not None and ("result" in told or "error" in told):
        wrong = told.get("error")
        return Answered(request, told.get("result"), wrong if isinstance(wrong, dict) else None)
    if not isinstance(method, str):
        raise NotAMessage("a line that is neither a notification, nor a request, nor an answer")
    params = told.get("params")
    given: Mapping[str, Any] = params if isinstance(params, dict) else {}
    return Notified(method, given) if request is None else Asked(request, method, given)
