"""JSON-RPC as A2A 1.0 has it: requests read strictly, and errors with their reasons."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, cast

import attrs

from ....models.errors import InvalidValue, TurnlockError
from ....models.strict_json import examine
from ....models.values import check_text
from ....runtime.log import logger
from ...problems import Problem, problem_of

_log = logger(__name__)

Id: TypeAlias = "str | int | None"
Body: TypeAlias = "Mapping[str, Any]"

PARSE_ERROR: Final = -32_700
INVALID_REQUEST: Final = -32_600
METHOD_NOT_FOUND: Final = -32_601
INVALID_PARAMS: Final = -32_602
INTERNAL_ERROR: Final = -32_603
TASK_NOT_FOUND: Final = -32_001
TASK_NOT_CANCELABLE: Final = -32_002
PUSH_NOT_SUPPORTED: Final = -32_003
UNSUPPORTED_OPERATION: Final = -32_004
CONTENT_TYPE_NOT_SUPPORTED: Final = -32_005
NO_EXTENDED_CARD: Final = -32_007
VERSION_NOT_SUPPORTED: Final = -32_009

_REASONS: Final[Mapping[int, str]] = {
    PARSE_ERROR: "JSON_PARSE_ERROR",
    INVALID_REQUEST: "INVALID_REQUEST",
    METHOD_NOT_FOUND: "METHOD_NOT_FOUND",
    INVALID_PARAMS: "INVALID_PARAMS",
    INTERNAL_ERROR: "INTERNAL_ERROR",
    TASK_NOT_FOUND: "TASK_NOT_FOUND",
    TASK_NOT_CANCELABLE: "TASK_NOT_CANCELABLE",
    PUSH_NOT_SUPPORTED: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    UNSUPPORTED_OPERATION: "UNSUPPORTED_OPERATION",
    CONTENT_TYPE_NOT_SUPPORTED: "CONTENT_TYPE_NOT_SUPPORTED",
    NO_EXTENDED_CARD: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    VERSION_NOT_SUPPORTED: "VERSION_NOT_SUPPORTED",
}
_INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"
_DOMAINS: Final = ("a2a-protocol.org", "turnlock")
_LONGEST: Final = 256
"""Characters of a request's id."""


class Refused(TurnlockError):
    """What is answered instead of a result; `told` are texts for programs."""

    def __init__(self, code: int, text: str, **told: str) -> None:
        """Say which error of the protocol it is, and why in words for people."""
        super().__init__(text)
        self.code = code
        self.told = told


@attrs.frozen(kw_only=True)
class Request:
    """One request."""

    id: Id
    method: str
    params: Body


def read(raw: bytes) -> tuple[Id, Request | Refused]:
    """Return a request and its id, or why it is none. Raises `Problem` for what is no JSON."""
    try:
        value, fault = examine(raw)
    except InvalidValue as error:
        return None, Refused(PARSE_ERROR, f"{error.place}: {error.cause}; {error.fix}")
    if not isinstance(value, dict):
        return None, Refused(INVALID_REQUEST, "send one request, an object")
    told = cast("dict[str, Any]", value)
    name = told.get("id")
    is_name = isinstance(name, str | int) and not isinstance(name, bool)
    found: Id = name if is_name and len(str(name)) <= _LONGEST else None
    if fault is not None:
        return found, Refused(INVALID_REQUEST, f"{fault.place}: {fault.cause}; {fault.fix}")
    method, params = told.get("method"), told.get("params", {})
    if told.get("jsonrpc") != "2.0" or found is None or not isinstance(method, str):
        return found, Refused(INVALID_REQUEST, 'a request has "jsonrpc": "2.0", an id and a method')
    if not isinstance(params, dict):
        return found, Refused(INVALID_PARAMS, "params is an object")
    return found, Request(id=found, method=method, params=cast("Body", params))


def result(name: Id, value: object) -> dict[str, Any]:
    """Return the response that has a result."""
    return {"jsonrpc": "2.0", "id": name, "result": value}


def failure(name: Id, error: Refused) -> dict[str, Any]:
    """Return the response that has an error."""
    of_protocol = not error.told
    info = {
        "@type": _INFO,
        "reason": _REASONS[error.code] if of_protocol else error.told["reason"].upper(),
        "domain": _DOMAINS[0] if of_protocol else _DOMAINS[1],
        "metadata": error.told,
    }
    told = {"code": error.code, "message": str(error), "data": [info]}
    return {"jsonrpc": "2.0", "id": name, "error": told}


def refused(problem: Problem) -> Refused:
    """Return a problem of ours as the protocol's error: who asks is wrong, or we are (F-5)."""
    code = _CODES.get(problem.code, INVALID_PARAMS)
    at = {} if problem.at is None else {"at": problem.at}
    return Refused(code, str(problem), reason=problem.code, **at)


def is_of_request(error: Exception) -> bool:
    """Whether a request is refused as a whole, whatever it asks: that is HTTP's to say."""
    return not isinstance(error, Refused) and problem_of(error).status in _OF_REQUEST


def refused_by(error: Exception) -> Refused:
    """Return what an error is told as; one that is a mistake of ours stands in the log (F-5)."""
    if isinstance(error, Refused):
        return error
    problem = problem_of(error)
    if problem.code != "internal_error":
        return refused(problem)
    name = secrets.token_hex(8)
    _log.error("error %s", name, exc_info=error)
    return Refused(INTERNAL_ERROR, f"{problem}: {name}", reason=problem.code)


def text_of(params: Body, name: str, *, needed: bool = True) -> str:
    """Return a text among parameters; left out, as ProtoJSON has it, it is empty."""
    found = params.get(name, "")
    if not isinstance(found, str) or (needed and not found):
        raise Refused(
            INVALID_PARAMS, f"{name} is a text" + (" that is not empty" if needed else "")
        )
    return check_text(found, place=name)


def object_of(params: Body, name: str) -> Body:
    """Return an object among parameters; left out it is empty."""
    found = params.get(name)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise Refused(INVALID_PARAMS, f"{name} is an object")
    return cast("Body", found)


def number_of(params: Body, name: str, default: int | None, *, least: int, most: int) -> int | None:
    """Return a whole number among parameters."""
    found = params.get(name)
    if found is None:
        return default
    if type(found) is not int or not least <= found <= most:
        raise Refused(INVALID_PARAMS, f"{name} is a whole number from {least} to {most}")
    return found


def flag_of(params: Body, name: str) -> bool:
    """Return a flag among parameters; left out it is false."""
    found = params.get(name, False)
    if not isinstance(found, bool):
        raise Refused(INVALID_PARAMS, f"{name} is true or false")
    return found


def written_time(at: float) -> str:
    """Return a Unix time as the protocol writes it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_OF_REQUEST: Final = frozenset({401, 403, 413, 415, 421, 429, 503})
_CODES: Final[Mapping[str, int]] = {
    "unknown_run": TASK_NOT_FOUND,
    "capability_unsupported": UNSUPPORTED_OPERATION,
}
