"""F-112: a client of A2A that loses its connection after each event, of both requests.

It says again what it said; the task, its artifacts and its words are those of an uncut one, and the
tool has run once.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Any

import attrs
import httpx
import pytest
from a2a.utils.errors import A2AError, UnsupportedOperationError

from ..served import Clients
from .talking import Talking, Told, decision, facts_of, play, talking

DEEP = os.environ.get("TURNLOCK_CRASHES") == "deep"
"""`make crash`: what is denied is cut, too."""


@attrs.define
class Cutting(httpx.AsyncBaseTransport):
    """A connection that breaks once so many parts of streams have come: heads and chunks."""

    left: int
    inner: httpx.AsyncHTTPTransport = attrs.field(factory=httpx.AsyncHTTPTransport)
    has_cut: bool = False

    def step(self) -> None:
        """Count what comes, and break."""
        if self.has_cut:
            return
        if self.left == 0:
            self.has_cut = True
            raise httpx.ReadError("cut")
        self.left -= 1

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        found = await self.inner.handle_async_request(request)
        if request.method != "POST":
            return found
        try:
            self.step()
        except httpx.ReadError:
            await found.aclose()
            raise
        stream = _Cut(self, found)
        return httpx.Response(found.status_code, headers=found.headers, stream=stream)

    async def aclose(self) -> None:
        await self.inner.aclose()


@attrs.frozen
class _Cut(httpx.AsyncByteStream):
    by: Cutting
    response: httpx.Response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self.response.aiter_raw():
            for event in chunk.split(b"\n\n"):
                if event:
                    yield event + b"\n\n"
                    self.by.step()

    async def aclose(self) -> None:
        await self.response.aclose()


async def cut(server: Clients, at: int, do: Callable[[Talking], Awaitable[Told]]) -> bool:
    """Do it, and lose the connection after so many events; False: it had ended before."""
    cutting = Cutting(at)
    async with talking(server, transport=cutting) as it:
        with suppress(Exception):
            await do(it)
    return cutting.has_cut


def shape(task: dict[str, Any], amount: int) -> Any:
    """What a task says, but for what names it."""
    artifacts = [(it["artifactId"], it["name"]) for it in task["artifacts"]]
    words = [
        (it["role"], it["parts"][0]["text"].replace(str(amount), "N")) for it in task["history"]
    ]
    return task["status"]["state"], artifacts, words


@pytest.mark.parametrize("approved", [True, False] if DEEP else [True])
def test_f_112_cut_after_every_event_of_both_requests(approved: bool, server: Clients) -> None:
    base = 3_000 if approved else 4_000

    async def played(amount: int, first: int | None, second: int | None) -> tuple[bool, Any]:
        """Play a task, cut in its first or its second request; say whether it was."""
        said = f"m{amount}"
        was_cut = False
        if first is not None:
            was_cut = await cut(server, first, lambda it: it.say(f"pay {amount}", message_id=said))
        async with talking(server) as it:
            asked = await it.say(f"pay {amount}", message_id=said)
            yes = decision(asked.asks[0], approved=approved)
            if second is not None:
                was_cut = await cut(server, second, lambda it: it.answer(asked, yes))
            with suppress(A2AError):
                await it.answer(asked, yes)
            with suppress(UnsupportedOperationError):  # it has ended by now
                await it.subscribe(asked.id)
            task = await it.get(asked.id)
        assert [one["artifactId"] for one in task["artifacts"]] == facts_of(server, asked.id)
        assert server.did[f"pay {amount}"] == (1 if approved else 0)
        return was_cut, shape(task, amount)

    async def work() -> None:
        _, uncut = await played(base, None, None)
        assert uncut[0] == "TASK_STATE_COMPLETED"
        amounts = count(base + 1)
        cuts = [0, 0]
        for request in range(2):
            was_cut = True
            while was_cut:
                where = (cuts[request], None) if request == 0 else (None, cuts[request])
                was_cut, found = await played(next(amounts), *where)
                assert found == uncut
                cuts[request] += was_cut
        assert min(cuts) >= 2  # the control: each was cut, and in more than one place

    play(work())
