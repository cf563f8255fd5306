"""Reading requests of the wire, strictly (kernel.md section 12).

A request is judged whole before any of it runs: one malformed delivery and the answer is an error
with the path of the field, nothing else.
"""

from __future__ import annotations

from typing import Any, cast

import attrs

from ..models.codec import Raw, read, read_delivery
from ..models.errors import InvalidValue, TurnlockError, shown
from ..models.record import number
from ..models.run import Run
from ..models.strict_json import examine, parse
from ..models.values import check_text, freeze
from .plain import HARNESS
from .scripts import Step

_REQUEST_FIELDS = ("id", "run", "scripts")


@attrs.frozen
class Request:
    """A line that can be answered: `id` is echoed, each script starts from a fresh `run`."""

    id: Any
    run: Run
    scripts: list[list[Step]]


class WireError(TurnlockError):
    """A line that is no valid request; `code` is for programs, `at` the path of the field."""

    def __init__(self, *, request_id: Any, code: str, message: str, at: str) -> None:  # noqa: ANN401
        """Keep what the answer needs."""
        super().__init__(message)
        self.request_id = request_id
        self.code = code
        self.at = at

    def answer(self) -> Raw:
        """Return the answer that a line of this kind gets."""
        error = {"code": self.code, "message": _printable(str(self)), "at": _printable(self.at)}
        return {"id": self.request_id, "error": error}


def _printable(text: str) -> str:
    """Return a text that JSON can carry even if it repeats a lone surrogate from the input."""
    return text.encode(errors="backslashreplace").decode()


def read_request(line: bytes) -> Request:
    """Read one line, or raise `WireError`."""
    try:
        raw, fault = examine(line.rstrip(b"\r\n"))
    except InvalidValue as error:
        raise WireError(
            request_id=None, code="invalid_json", message=str(error), at=error.place
        ) from None
    if not isinstance(raw, dict):
        raise WireError(
            request_id=None,
            code="invalid_request",
            message=f"a request is a JSON object, not {shown(raw)}",
            at="line 1 column 1",
        )
    request = cast("Raw", raw)
    request_id = None if fault and fault.place == "id" else _echoed(request.get("id"))
    try:
        if fault:
            raise fault
        return Request(request_id, *_parts(request))
    except InvalidValue as error:
        raise WireError(
            request_id=request_id, code="invalid_value", message=str(error), at=error.place
        ) from None


def _parts(raw: Raw) -> tuple[Run, list[list[Step]]]:
    for name in raw:
        if name not in _REQUEST_FIELDS:
            raise InvalidValue(
                place=name,
                cause="is no known field of a request",
                fix="leave it out; known are " + ", ".join(_REQUEST_FIELDS),
            )
    _check_id(raw.get("id"))
    for name in ("run", "scripts"):
        if raw.get(name) is None:
            raise InvalidValue(place=name, cause="is missing", fix="give this field")
    run = read(Run, raw["run"], place="run")
    scripts = _array(raw["scripts"], "scripts")
    return run, [_script(script, f"scripts[{index}]") for index, script in enumerate(scripts)]


def read_id(text: bytes) -> Any:  # noqa: ANN401 - text, number or None
    """Read the id of a request, or raise `InvalidValue`."""
    request_id = parse(text)
    _check_id(request_id)
    return request_id


def read_run(text: bytes) -> Run:
    """Read the run of a request, or raise `InvalidValue`."""
    return read(Run, parse(text))


def read_step(text: bytes) -> Step:
    """Read one delivery of a script, or raise `InvalidValue`."""
    return _step(parse(text))


def _check_id(request_id: object) -> None:
    if request_id != _echoed(request_id):
        raise InvalidValue(
            place="id",
            cause=f"{shown(request_id)} cannot be an id",
            fix="give a text, a number or null",
        )


def _echoed(request_id: object) -> Any:  # noqa: ANN401 - text, number or None
    """Return the id of a request if an answer can carry it, else None."""
    try:
        if type(request_id) is str:
            return check_text(request_id, place="id")
        if type(request_id) in {int, float}:
            return freeze(request_id, place="id")
    except InvalidValue:
        return None
    return None


def _script(raw: object, place: str) -> list[Step]:
    steps: list[Step] = []
    for index, step in enumerate(_array(raw, place)):
        try:
            steps.append(_step(step))
        except InvalidValue as error:
            raise error.inside(f"{place}[{index}]") from None
    return steps


def _step(raw: object) -> Step:
    if not isinstance(raw, dict):
        raise InvalidValue(
            place="", cause=f"{shown(raw)} is no JSON object", fix="give a delivery in braces"
        )
    fields = cast("Raw", raw).copy()
    now = fields.pop("now", None)
    if fields.get("type") in HARNESS:
        unknown = fields.keys() - {"type", "run_id"}
        if unknown:
            raise InvalidValue(
                place=min(unknown),
                cause="is no known field here",
                fix="leave it out; known are run_id, now",
            )
        return str(fields["type"])
    delivery = read_delivery(fields)
    if now is None:
        raise InvalidValue(place="now", cause="is missing", fix="give Unix time in seconds")
    return delivery, number(now, place="now")


def _array(raw: object, place: str) -> list[object]:
    if not isinstance(raw, list):
        raise InvalidValue(
            place=place, cause=f"{shown(raw)} is no JSON array", fix="give a list in brackets"
        )
    return cast("list[object]", raw)
