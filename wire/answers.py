"""Answers: one line of the wire in, one line out (kernel.md section 12)."""

from __future__ import annotations

from collections.abc import Callable

from .receipts import encode
from .requests import Request, WireError, read_request
from .scripts import play


def answer(line: bytes, read: Callable[[bytes], Request] = read_request) -> bytes:
    """Return the answer to one line, without its end: receipts of its scripts, or an error."""
    try:
        return _receipts(read(line))
    except WireError as error:
        return encode(error.answer())


def _receipts(request: Request) -> bytes:
    played: list[bytes] = []
    for script in request.scripts:
        try:
            played.append(encode(play(request.run, script)))
        except Exception as error:
            raise WireError(
                request_id=request.id,
                code="internal_error",
                message=f"turnlock failed ({type(error).__name__}): please report it",
                at=f"scripts[{len(played)}]",
            ) from error
    return b"".join((b'{"id":', encode(request.id), b',"scripts":[', b",".join(played), b"]}"))
