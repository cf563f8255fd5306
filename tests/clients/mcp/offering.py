"""A real server that offers tools at `/mcp`, and the official client, in one loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

import attrs
import httpx
import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from turnlock.guards.mcp.asking import KEY
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.server.app import App
from turnlock.server.clients.mcp import answers
from turnlock.server.face import Face, ServerSettings
from turnlock.server.opening import Options, opened
from turnlock.server.routing import Role
from turnlock.server.tokens import Token

from ...server.listeners import listening
from ..served import ANNA, APP, PEOPLE, RUNNER, secret_of

LOOKER: Final = "looker"
ROLES: Final = {**PEOPLE, LOOKER: (Role.LOOK,)}
ERAS: Final[Mapping[str, str]] = {"2025-11-25": "legacy", "2026-07-28": "auto"}
"""The modes of the official client that speak each protocol."""

YES: Final = types.ElicitResult(action="accept", content={"approved": True})
NO: Final = types.ElicitResult(action="accept", content={"approved": False})
DECLINE: Final = types.ElicitResult(action="decline")
CANCEL: Final = types.ElicitResult(action="cancel")
Says = Callable[[str], types.ElicitResult | Coroutine[Any, Any, types.ElicitResult]]
"""What a person says to a question."""


@attrs.define
class Offering:
    """The server, and what its tools have done."""

    face: Face
    url: str
    http: httpx.AsyncClient
    ledger: list[str]

    async def ask(
        self, method: str, path: str, body: Any = None, who: str = ANNA
    ) -> httpx.Response:
        """Ask as somebody, as a console does."""
        sent = {} if body is None else {"json": body}
        return await self.http.request(
            method,
            f"{self.url}{path}",
            headers={"Authorization": f"Bearer {secret_of(who)}"},
            **sent,
        )

    async def waiting(self, count: int = 1) -> list[dict[str, Any]]:
        """The calls that wait for a person, once there are so many; each with its run."""
        async with asyncio.timeout(30):
            while True:
                runs = (await self.ask("GET", "/v1/runs?waiting=1")).json()["runs"]
                if len(runs) >= count:
                    return [await self.call(it["run_id"]) for it in runs]
                await asyncio.sleep(0.02)

    async def call(self, run_id: str) -> dict[str, Any]:
        """The call of a run, in its open turn, and the run's id."""
        path = f"/v1/runs/{run_id.replace('/', '%2F')}"
        turn = (await self.ask("GET", path)).json()["turn"]
        return {**turn["calls"][0], "run_id": run_id}

    async def decide(
        self, call: Mapping[str, Any], *, approved: bool, **more: Any
    ) -> httpx.Response:
        """Decide a call elsewhere, as it is shown there."""
        named = ("turn_id", "invocation_id", "arguments_digest")
        body = {**{it: call[it] for it in named}, "approved": approved, **more}
        path = f"/v1/runs/{call['run_id'].replace('/', '%2F')}/decisions"
        return await self.ask("POST", path, body)

    async def facts(self, run_id: str, kind: str = "") -> list[dict[str, Any]]:
        """The facts of a run, of one type or of all."""
        path = f"/v1/runs/{run_id.replace('/', '%2F')}/events?limit=1000"
        events = (await self.ask("GET", path)).json()["events"]
        facts = [it["fact"] for it in events if "fact" in it]
        return [it for it in facts if not kind or it["type"] == kind]

    async def runs(self) -> list[str]:
        """All runs."""
        return [it["run_id"] for it in (await self.ask("GET", "/v1/runs")).json()["runs"]]


def tools_of(ledger: list[str]) -> Toolbox:
    """Tools that write down how often they have run."""

    @tool
    async def look(what: str = "around") -> str:
        """Look; nobody is asked."""
        ledger.append(f"look {what}")
        return f"saw {what}"

    @tool(approval=True)
    async def pay(to: str, amount: int) -> dict[str, Any]:
        """Pay; it needs approval."""
        ledger.append(f"pay {to} {amount}")
        return {"to": to, "paid": amount}

    @tool
    async def fail(why: str) -> str:
        """Raise."""
        ledger.append(f"fail {why}")
        raise RuntimeError(why)

    return Toolbox.of(look, pay, fail)


@asynccontextmanager
async def offering(
    folder: Path,
    *,
    tools: Toolbox | None = None,
    wait: float = 30.0,
    origins: tuple[str, ...] = (),
    **more: Any,
) -> AsyncGenerator[Offering]:
    """Serve until the block is left; the same folder goes on."""
    ledger: list[str] = []
    people = [Token.of(name, roles, secret_of(name)) for name, roles in ROLES.items()]
    (folder / "tokens").write_text("\n".join(it.line() for it in people))
    options = Options(
        db=str(folder / "agent.db"),
        agents={},
        settings=ServerSettings(answer=5.0, drain=1.0, undecided=wait, origins=origins),
        listen=("127.0.0.1",),
        tokens=folder / "tokens",
        mcp=tools or tools_of(ledger),
        **more,
    )
    async with (
        opened(options) as it,
        listening(App(it.face)) as listener,
        httpx.AsyncClient(timeout=30.0) as http,
    ):
        yield Offering(it.face, f"http://127.0.0.1:{listener.port}", http, ledger)


@attrs.define
class Talking:
    """An official client, and the questions that its person was asked."""

    client: Client
    asked: list[str]

    async def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, key: str | None = None
    ) -> types.CallToolResult:
        """Call a tool."""
        meta = cast("Any", None if key is None else {KEY: key})
        return await self.client.call_tool(name, dict(arguments or {}), meta=meta)


@asynccontextmanager
async def talking(
    url: str,
    era: str,
    says: Says | types.ElicitResult | None = YES,
    *,
    who: str = APP,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> AsyncGenerator[Talking]:
    """Connect as somebody, whose person says this; None: nobody can be asked there."""
    asked: list[str] = []

    async def elicited(context: Any, params: Any) -> types.ElicitResult | types.ErrorData:
        asked.append(params.message)
        said = says(params.message) if callable(says) else says
        return await said if asyncio.iscoroutine(said) else cast("types.ElicitResult", said)

    headers = {"Authorization": f"Bearer {secret_of(who)}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30.0, transport=transport) as http:
        client = Client(
            streamable_http_client(f"{url}/mcp", http_client=http),
            mode=ERAS[era],
            cache=None,
            elicitation_callback=None if says is None else elicited,
        )
        async with client:
            yield Talking(client, asked)


def told(result: types.CallToolResult) -> str:
    """The text of a result."""
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


def run_of(result: types.CallToolResult) -> str:
    """The run of a call."""
    return str((result.meta or {})[answers.RUN])


async def refused(work: Coroutine[Any, Any, Any]) -> MCPError:
    """The error that a call is answered with."""
    try:
        found = await work
    except MCPError as error:
        return error
    raise AssertionError(found)


def play(work: Coroutine[Any, Any, None]) -> None:
    """Play a test to its end; what fails in it comes out of the client's groups of tasks."""
    try:
        asyncio.run(asyncio.wait_for(work, 120))
    except BaseExceptionGroup as group:
        raise _only(group) from None


def _only(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    if isinstance(first, BaseExceptionGroup):
        return _only(cast("BaseExceptionGroup[BaseException]", first))
    return first


__all__ = [
    "ANNA", "APP", "CANCEL", "DECLINE", "ERAS", "LOOKER", "NO", "RUNNER", "YES", "Offering",
    "Talking", "offering", "play", "refused", "run_of", "talking", "told", "tools_of",
]  # fmt: skip
