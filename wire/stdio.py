"""`turnlock stdio`: serves the wire on two byte streams, one answer for each line (section 12)."""

from __future__ import annotations

from typing import IO, Final

from .answers import answer
from .known_parts import RequestReader
from .receipts import encode
from .requests import WireError

MAX_LINE: Final = 64 * 1024 * 1024
"""Bytes of one request line. A longer one is answered with an error and skipped (K-6)."""


def serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Answer each line of `source` with one line on `sink`, until the input ends.

    Whatever a line holds, it is answered and the next one is served.
    """
    reader = RequestReader()
    while line := source.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE and not line.endswith(b"\n"):
            _skip_line(source)
            message = f"a line has at most {MAX_LINE} bytes; send fewer scripts"
            reply = _error("line_too_long", message, f"line 1 column {MAX_LINE + 1}")
        else:
            reply = _answered(line, reader)
        sink.write(reply + b"\n")
        sink.flush()


def _answered(line: bytes, reader: RequestReader) -> bytes:
    try:
        return answer(line, reader.read)
    except Exception as error:  # noqa: BLE001 - our own mistake must not cost the next request
        message = f"turnlock failed ({type(error).__name__}): please report it"
        return _error("internal_error", message, "line 1 column 1")


def _error(code: str, message: str, at: str) -> bytes:
    return encode(WireError(request_id=None, code=code, message=message, at=at).answer())


def _skip_line(source: IO[bytes]) -> None:
    while rest := source.readline(MAX_LINE):
        if rest.endswith(b"\n"):
            return
