"""A face in this process: journal, runtime, a scripted agent, a token for each role, and clients.

async with opened() as it:
    answer = await it.client(Role.DECIDE).post("/v1/runs/r1/decisions", json={…})
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import httpx

from turnlock.agent.loop import Agent
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.tools.tool import tool
from turnlock.server.app import App
from turnlock.server.face import Face, ServerSettings
from turnlock.server.routing import Endpoint, Role
from turnlock.server.tokens import Token, Tokens

from ..agent.speakers import Speaker, asked, by_answers, speech

BASE = "http://127.0.0.1:8420"

SECRETS = {role: f"secret-of-{role}" for role in Role}
"""The token of each role; its name is the role's."""


def tokens() -> Tokens:
    """One token for each role."""
    return Tokens(Token.of(str(role), [role], secret) for role, secret in SECRETS.items())


@tool(approval=True)
async def pay(amount: int) -> str:
    """Pay; it needs approval."""
    return f"paid {amount}"


def paying(runtime: Runtime, run_id: str = "r1") -> Agent:
    """An agent that asks to pay at each prompt, and then says that it is done."""
    speeches = [speech("I pay.", asked("pay", call_id="c1", amount=12)), speech("Done.")]
    model = Speaker(speeches, which=lambda it, question: by_answers(it, question) % 2)
    return Agent(model=model, tools=[pay], run=run_id, runtime=runtime)


@attrs.frozen(kw_only=True)
class Opened:
    """A face that is open, and its application."""

    face: Face
    app: App
    journal: Journal
    runtime: Runtime
    clients: list[httpx.AsyncClient] = attrs.field(factory=list[httpx.AsyncClient])

    def client(self, role: Role | None = Role.LOOK, **headers: str) -> httpx.AsyncClient:
        """A client with the token of a role, or with none. It can read streams, too."""
        given = {} if role is None else {"Authorization": f"Bearer {SECRETS[role]}"}
        made = httpx.AsyncClient(
            transport=Streaming(self.app), base_url=BASE, headers={**given, **headers}
        )
        self.clients.append(made)
        return made


@asynccontextmanager
async def opened(
    *,
    journal: Journal | None = None,
    endpoints: Iterable[Endpoint] | None = None,
    hub: Any = None,
    sessions: Any = None,
    settings: ServerSettings | None = None,
    known: Tokens | None = None,
    hosts: Mapping[str, Any] | None = None,
) -> AsyncGenerator[Opened]:
    """A face on a journal, in memory unless given one, which is the caller's to close."""
    kept = journal or MemoryJournal()
    async with Runtime(journal=kept) as runtime:
        face = Face(
            journal=kept,
            hub=hub,
            sessions=sessions,
            runtime=runtime,
            tokens=known or tokens(),
            settings=settings or ServerSettings(),
            hosts=hosts or {},
        )
        it = Opened(face=face, app=App(face, endpoints), journal=kept, runtime=runtime)
        try:
            yield it
        finally:
            for client in it.clients:
                await client.aclose()


@attrs.frozen
class Streaming(httpx.AsyncBaseTransport):
    """As httpx.ASGITransport, but an answer can be read while it is still written."""

    app: App

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        content = await request.aread()
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "scheme": request.url.scheme,
            "path": request.url.path,
            "raw_path": request.url.raw_path.partition(b"?")[0],
            "query_string": request.url.query,
            "server": (request.url.host, request.url.port),
            "client": ("127.0.0.1", 50_000),
            "root_path": "",
        }
        sent: asyncio.Queue[MutableMapping[str, Any] | None] = asyncio.Queue(1)
        gone = asyncio.Event()
        parts = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> MutableMapping[str, Any]:
            if parts:
                return parts.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def serve() -> None:
            try:
                await self.app(scope, receive, sent.put)
            finally:
                await sent.put(None)

        task = asyncio.create_task(serve())
        start = await sent.get()
        if start is None:
            await task
            raise AssertionError("the application answered nothing")
        return httpx.Response(
            start["status"], headers=start["headers"], stream=_Body(sent, gone, task)
        )


@attrs.frozen
class _Body(httpx.AsyncByteStream):
    sent: asyncio.Queue[MutableMapping[str, Any] | None]
    gone: asyncio.Event
    task: asyncio.Task[None]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (message := await self.sent.get()) is not None:
            yield message.get("body", b"")
            if not message.get("more_body", False):
                break

    async def aclose(self) -> None:
        """The client has gone: the application is told, and has to end by itself."""
        self.gone.set()
        while not self.task.done():
            while not self.sent.empty():
                self.sent.get_nowait()
            await asyncio.wait({self.task}, timeout=0.01)
        await self.task
