"""Messages of JSON-RPC as a proxy sees them: one line each, passed on as it came where it may be.

What a client says must have one meaning: an object that names a member twice, or an array of
messages, could be one thing for us and another for the server, and a call would pass unguarded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn, TypeAlias, cast

import attrs

Id: TypeAlias = int | str
Body: TypeAlias = Mapping[str, Any]

PARSE_ERROR: Final = -32_700
INVALID_REQUEST: Final = -32_600
INVALID_PARAMS: Final = -32_602
INTERNAL_ERROR: Final = -32_603

RAN_NOTHING: Final = frozenset({INVALID_REQUEST, -32_601, INVALID_PARAMS, PARSE_ERROR})
"""Errors by which a server says that it could not even begin; any other leaves a doubt."""
GONE: Final = -32_000
"""As the official client says that the connection was closed before the answer came."""


class Unreadable(ValueError):
    """A line that is no message; `code` is what JSON-RPC calls that."""

    def __init__(self, told: str, *, code: int = PARSE_ERROR) -> None:
        """Keep the code."""
        super().__init__(told)
        self.code = code


@attrs.frozen
class Message:
    """A request, a notification or a response; `line` is how it came, if it may go on like that."""

    body: Body
    line: bytes | None = attrs.field(default=None, repr=False)

    @property
    def method(self) -> str | None:
        """What is asked or told; None: it is a response."""
        method = self.body.get("method")
        return method if isinstance(method, str) else None

    @property
    def id(self) -> Id | None:
        """Which request it is, or answers; None: a notification, or nobody knows which."""
        found = self.body.get("id")
        return found if isinstance(found, int | str) and not isinstance(found, bool) else None

    @property
    def params(self) -> Body:
        """Its parameters, or none."""
        return member(self.body, "params")

    @property
    def is_response(self) -> bool:
        """Whether it answers something."""
        return "method" not in self.body and ("result" in self.body or "error" in self.body)

    def written(self) -> bytes:
        """Return it as a line."""
        if self.line is not None:
            return self.line + b"\n"
        return json.dumps(self.body, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def member(of: Body, name: str) -> Body:
    """Return a member that is an object; an empty one if it is not there, or is none."""
    found = of.get(name)
    return cast("Body", found) if isinstance(found, Mapping) else {}


def messages_of(line: bytes, *, strict: bool) -> list[Message]:
    """Read a line: a message, or several of them as a batch of 2025-03-26, each then on its own.

    Raises `Unreadable`; `strict` refuses what another reader may understand otherwise.
    """
    line = line.strip()
    try:
        value = json.loads(
            line.decode(),
            object_pairs_hook=_each_once if strict else None,
            parse_constant=_no_number if strict else None,
        )
    except Unreadable:
        raise
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"this is no JSON: {error}") from None
    if isinstance(value, list):
        several = cast("Sequence[object]", value)
        return [_message(it, None) for it in several]
    return [_message(value, line)]


def result(of: Id | None, value: object) -> Message:
    """Answer a request."""
    return Message({"jsonrpc": "2.0", "id": of, "result": value})


def error(of: Id | None, code: int, told: str, data: object = None) -> Message:
    """Answer a request that cannot be answered."""
    said: dict[str, object] = {"code": code, "message": told}
    if data is not None:
        said["data"] = data
    return Message({"jsonrpc": "2.0", "id": of, "error": said})


def request(of: Id, method: str, params: Body) -> Message:
    """Ask for something."""
    return Message({"jsonrpc": "2.0", "id": of, "method": method, "params": params})


def cancelled(of: Id, why: str) -> Message:
    """Tell that nobody waits for the answer to a request any more."""
    params = {"requestId": of, "reason": why}
    return Message({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def _message(value: object, line: bytes | None) -> Message:
    if not isinstance(value, dict):
        raise Unreadable("a message is a JSON object", code=INVALID_REQUEST)
    return Message(cast("Body", value), line)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unreadable("an object names a member twice", code=INVALID_REQUEST)
    return found


def _no_number(name: str) -> NoReturn:
    raise Unreadable(f"{name} is no JSON")
