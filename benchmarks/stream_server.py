"""The server that `bench_streams` measures, in a process of its own: our face, and a bare one.

Both are served by the same uvicorn. ``GET /bare`` is Starlette's own way: one generator for each
connection, which takes the same bytes from a queue. ``GET /control/…`` is how it is driven.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import parse_qsl

import uvicorn
from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from turnlock import Acknowledge, Call, Claim, Fact, Kernel, OpenTurn, Report, Run
from turnlock.runtime.journal.ledger import Cursor
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.runtime import Runtime
from turnlock.server.app import App
from turnlock.server.connections import HttpConnection, WebSocketConnection
from turnlock.server.envelope import Envelopes
from turnlock.server.face import Face
from turnlock.server.hub import Hub, HubSettings
from turnlock.server.routing import Role
from turnlock.server.sse import ENDPOINTS
from turnlock.server.tokens import Token, Tokens

SECRET: Final = "secret-of-the-benchmark"  # noqa: S105 - nobody else is let in by it
TOGETHER: Final = 500
"""Appends of one tick, while the past is written."""


class _Told:
    """A runtime that only tells when a run has grown."""

    runs: tuple[str, ...] = ("live",)

    def __init__(self) -> None:
        self.heeds: list[Callable[[str], None]] = []

    def when_kept(self, heed: Callable[[str], None]) -> Callable[[], None]:
        self.heeds.append(heed)
        return lambda: self.heeds.remove(heed)


class _Run:
    """A run whose facts are made one turn after the other."""

    def __init__(self, journal: SqliteJournal, run_id: str) -> None:
        self.run_id = run_id
        self._journal = journal
        self._kernel = Kernel(Run(run_id=run_id))
        self._fence = 0
        self._turns = 0
        self._made: list[list[Fact]] = []

    async def open(self) -> None:
        await self._journal.declare(Run(run_id=self.run_id))
        self._fence = await self._journal.own(self.run_id, owner="o", now=0.0, lease=1e9)

    def _commit(self) -> list[Fact]:
        """Return the facts of the next delivery."""
        if not self._made:
            turn_id = f"turn-{self._turns}"
            self._turns += 1
            call = Call(
                invocation_id="call-1",
                tool_name="list_files",
                arguments={"path": "/srv/data"},
                requires_approval=False,
            )
            for delivery in (
                OpenTurn(turn_id=turn_id, calls=(call,)),
                Claim(turn_id=turn_id, invocation_id="call-1", attempt=1, worker="w/0123456789"),
                Report(turn_id=turn_id, invocation_id="call-1", result={"files": ["a", "b"]}),
                Acknowledge(turn_id=turn_id),
            ):
                self._made.append(list(self._kernel.receive(delivery, time.time()).facts))
        return self._made.pop(0)

    async def keep(self) -> list[Fact]:
        """Have one delivery's facts kept."""
        facts = self._commit()
        after = facts[0].sequence - 1
        await self._journal.append(
            self.run_id, fence=self._fence, after=after, facts=facts, busy=False
        )
        return facts

    async def fill(self, count: int) -> None:
        """Keep so many facts, in appends as a runtime makes them."""
        kept = 0
        while kept < count:
            made = await asyncio.gather(*(self.keep() for _ in range(TOGETHER)))
            kept = made[-1][-1].sequence


class _Bare:
    """Starlette's own way."""

    def __init__(self) -> None:
        self.queues: set[asyncio.Queue[bytes]] = set()

    def publish(self, data: bytes) -> None:
        for queue in self.queues:
            queue.put_nowait(data)

    async def stream(self) -> AsyncGenerator[bytes]:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self.queues.add(queue)
        try:
            yield b"event: hello\ndata: {}\n\n"
            while True:
                yield await queue.get()
        finally:
            self.queues.discard(queue)


def _resident() -> int:
    """Return the bytes that this process has in memory."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Served:
    """The application."""

    def __init__(self, journal: SqliteJournal, hub: Hub, told: _Told, face: App) -> None:
        """Serve these."""
        self._journal = journal
        self._hub = hub
        self._told = told
        self._face = face
        self._bare = _Bare()
        self._live = _Run(journal, "live")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = scope.get("path", "")
        if path == "/bare":
            answer = StreamingResponse(self._bare.stream(), media_type="text/event-stream")
            await answer(scope, receive, send)
        elif path.startswith("/control/"):
            query = dict(parse_qsl(scope["query_string"].decode()))
            told = await getattr(self, path.removeprefix("/control/"))(**query)
            await JSONResponse(told)(scope, receive, send)
        else:
            await self._face(scope, receive, send)

    async def open(self) -> None:
        """Begin the run that is live."""
        await self._live.open()
        await self._live.keep()

    async def stand(self) -> dict[str, float]:
        """Say what the process has and has used, and who listens."""
        gc.collect()
        resident = _resident()
        count = self._hub.subscribers + len(self._bare.queues)
        return {"cpu": time.process_time(), "resident": resident, "subscribers": count}

    async def emit(self, count: str, pause: str, bare: str = "0") -> dict[str, Any]:
        """Keep some facts one by one, and pass them on; say when, and what it cost."""
        envelopes = Envelopes("live")
        times: list[float] = []
        cost = 0.0
        for _ in range(int(count)):
            facts = await self._live.keep()
            times.append(time.monotonic())
            began = time.process_time()
            if bare == "1":
                after = Cursor(facts[0].sequence - 1)
                page = await self._journal.ledger("live", after=after)
                self._bare.publish(b"".join(it.sse for it in envelopes.of(page, after=after)))
            else:
                for heed in self._told.heeds:
                    heed("live")
            await asyncio.sleep(float(pause))
            cost += time.process_time() - began
        return {"times": times, "cost": cost}


async def main() -> None:
    """Serve until standard input ends."""
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    async with await SqliteJournal.open(folder / "streams.db") as journal:
        past = _Run(journal, "past")
        await past.open()
        await past.fill(count)
        told = _Told()
        bounds = HubSettings(subscribers=5_000, of_a_run=5_000)
        runtime = cast("Runtime", told)
        async with Hub(journal=journal, runtime=runtime, settings=bounds) as hub:
            tokens = Tokens([Token.of("bench", [Role.LOOK], SECRET)])
            nobody = cast("Any", None)
            face = Face(journal=journal, hub=hub, sessions=nobody, runtime=None, tokens=tokens)
            served = Served(journal, hub, told, App(face, ENDPOINTS))
            await served.open()
            config = uvicorn.Config(
                served,
                port=0,
                log_level="error",
                access_log=False,
                lifespan="off",
                http=HttpConnection,
                ws=WebSocketConnection,
                backlog=4_096,
                timeout_graceful_shutdown=1,
            )
            server = uvicorn.Server(config)
            serving = asyncio.create_task(server.serve())
            while not server.started:  # noqa: ASYNC110 - uvicorn tells it no other way
                await asyncio.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            print(json.dumps({"port": port}), flush=True)
            await asyncio.to_thread(sys.stdin.read)
            hub.close()
            server.should_exit = True
            await serving


if __name__ == "__main__":
    asyncio.run(main())
