"""The body of a request as it came: JSON by its name, within its time and its bounds (F-3)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .problems import Problem

if TYPE_CHECKING:  # an extra's
    from starlette.requests import Request


async def read_body(request: Request, *, longest: int, within: float) -> bytes:
    """Return the bytes of a body that is named JSON. Raises `Problem`."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise Problem("unsupported_media_type", "send Content-Type: application/json")
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > longest:
        raise _too_large(longest)
    raw = bytearray()
    try:
        async with asyncio.timeout(within):
            async for chunk in request.stream():
                raw += chunk
                if len(raw) > longest:
                    raise _too_large(longest)
    except TimeoutError:
        raise Problem("bad_request", f"the body did not come within {within:g} s") from None
    return bytes(raw)


def _too_large(longest: int) -> Problem:
    return Problem("too_large", f"this body has at most {longest:,} bytes")
