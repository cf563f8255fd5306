"""F-112: a client that loses its connection after each event that it receives, of both requests.

It asks again with the key that it gave: the outcome is that of an uncut call, and the tool has run
once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import attrs
import httpx2
import mcp_types as types
import pytest

from .offering import ERAS, NO, YES, Offering, offering, play, run_of, talking

DEEP = os.environ.get("TURNLOCK_CRASHES") == "deep"
"""`make crash`: what is denied is cut, too."""
ANN = {"to": "ann", "amount": 3}
SOON = 3.0
"""Seconds in which a client that was cut notices it, or gives up by itself."""


@attrs.define
class Cutting(httpx2.AsyncBaseTransport):
    """A connection that breaks once so many parts of answers have come: heads and chunks."""

    left: int
    inner: httpx2.AsyncHTTPTransport = attrs.field(factory=httpx2.AsyncHTTPTransport)
    has_cut: bool = False
    calls: bool = False
    """Whether a call was sent: what comes before is not counted."""

    def step(self) -> None:
        """Count what comes, and break."""
        if not self.calls or self.has_cut:
            return
        if self.left == 0:
            self.has_cut = True
            raise httpx2.ReadError("cut")
        self.left -= 1

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        self.calls |= b'"tools/call"' in body
        found = await self.inner.handle_async_request(request)
        counts = request.method == "POST"
        try:
            if counts:
                self.step()
        except httpx2.ReadError:
            await found.aclose()
            raise
        stream = _Cut(self, found, counts=counts)
        return httpx2.Response(found.status_code, headers=found.headers, stream=stream)

    async def aclose(self) -> None:
        await self.inner.aclose()


@attrs.frozen
class _Cut(httpx2.AsyncByteStream):
    by: Cutting
    response: httpx2.Response
    counts: bool

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self.response.aiter_raw():
            yield chunk
            if self.counts:
                self.by.step()

    async def aclose(self) -> None:
        await self.response.aclose()


async def cut(it: Offering, era: str, at: int, says: types.ElicitResult) -> bool:
    """Call, cut after so many parts; False: the call had ended before."""
    cutting = Cutting(at)
    with suppress(Exception):
        async with talking(it.url, era, says, transport=cutting) as client:
            await asyncio.wait_for(client.call("pay", ANN, key=f"k{at}"), SOON)
    return cutting.has_cut


@pytest.mark.parametrize("says", [YES, NO] if DEEP else [YES], ids=lambda it: str(it.content))
@pytest.mark.parametrize("era", ERAS)
def test_f_112_cut_after_every_event_the_call_has_run_once(
    era: str, says: types.ElicitResult, tmp_path: Path
) -> None:
    async def work() -> None:
        async with offering(tmp_path) as it:
            async with talking(it.url, era, says) as client:
                uncut = await client.call("pay", ANN, key="uncut")
            at, was_cut = 0, True
            while was_cut:
                was_cut = await cut(it, era, at, says)
                async with talking(it.url, era, says) as client:
                    again = await client.call("pay", ANN, key=f"k{at}")
                assert again.content == uncut.content
                assert again.is_error == uncut.is_error
                assert len(await it.facts(run_of(again), "TURN_OPENED")) == 1
                at += 1
            runs = at + 1
            assert at > 3  # the control: it was cut, and in more than one place
            assert it.ledger == ([] if uncut.is_error else ["pay ann 3"] * runs)
            assert len(await it.runs()) == runs

    play(work())
