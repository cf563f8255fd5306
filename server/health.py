"""Whether the server turns, and whether its journal answers: ``/healthz``, ``/readyz`` (F-35)."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, Response

from ..runtime.journal.contract import Journal
from .problems import Problem
from .routing import Asked, Endpoint, Handler

if TYPE_CHECKING:
    from .face import Face

FRESH: Final = 1.0
"""Seconds for which an answer of the journal counts: however often it is asked here, the journal
is asked once."""


class Readiness:
    """Asks the journal, one question at a time for all who want to know."""

    def __init__(self, journal: Journal, *, within: float) -> None:
        """Have it answer within so many seconds."""
        self._journal: Final = journal
        self._within: Final = within
        self._answered = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    async def check(self) -> None:
        """Raise `Problem` (`journal_failed`) unless the journal has answered in time."""
        if time.monotonic() - self._answered < FRESH:
            return
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        asking = self._asking
        done, _ = await asyncio.wait({asking}, timeout=self._within)
        if not done or asking.exception() is not None:
            raise Problem("journal_failed", f"the journal gave no answer in {self._within:g} s")

    def forget(self) -> None:
        """Ask anew next time."""
        self._answered = float("-inf")

    async def close(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})

    async def _ask(self) -> None:
        await self._journal.runs(limit=1)
        self._answered = time.monotonic()


async def _alive(_: Face, __: Asked) -> Response:
    return JSONResponse({"status": "ok"})


async def _ready(face: Face, asked: Asked) -> Response:
    if face.standing.is_stopping:
        raise Problem("shutting_down", "this server ends")
    await face.readiness.check()
    return await _alive(face, asked)


def _both(path: str, handler: Handler, summary: str, codes: tuple[str, ...] = ()) -> list[Endpoint]:
    return [
        Endpoint(
            method=method, path=path, handler=handler, role=None, summary=summary, codes=codes
        )
        for method in ("GET", "HEAD")
    ]  # fmt: skip


ENDPOINTS: Final = (
    *_both("/healthz", _alive, "Say that the server turns."),
    *_both("/readyz", _ready, "Say that the journal answers.", ("journal_failed", "shutting_down")),
)
