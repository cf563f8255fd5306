"""A whole server in this process, a token for each role, and clients of others that ask it.

async with serving(tmp_path) as it:
    answer = await it.client(Role.RUN, Role.DECIDE).post("/v1/agui", json={…})
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx

from turnlock.agent.loop import Agent
from turnlock.agent.messages import ToolCall
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.server.app import App
from turnlock.server.face import Face, ServerSettings
from turnlock.server.opening import Options, opened
from turnlock.server.routing import Role
from turnlock.server.tokens import Token

from ..agent.speakers import Piece, Speaker, by_answers, speech
from .faces import BASE, Streaming

TOKENS: Mapping[str, frozenset[Role]] = {
    "all": frozenset({Role.RUN, Role.DECIDE}),
    "bob": frozenset({Role.DECIDE}),
    "asker": frozenset({Role.RUN}),
    "looker": frozenset({Role.LOOK}),
}
"""The tokens that there are, by their names; a secret is `secret-of-NAME`."""


@attrs.define
class Ledger:
    """What tools really did."""

    done: Counter[str] = attrs.field(factory=Counter[str])
    """How often each call ran, by its idempotency key."""
    paid: list[int] = attrs.field(factory=list[int])

    def tools(self) -> list[Tool]:
        """One that asks, and one that does not."""

        @tool(approval=True)
        async def pay(context: ToolContext, amount: int) -> str:
            """Pay; it needs approval."""
            self.done[context.idempotency_key] += 1
            self.paid.append(amount)
            return f"paid {amount}"

        @tool(safe_to_repeat=True)
        async def look(context: ToolContext) -> dict[str, Any]:
            """Look at the balance."""
            self.done[context.idempotency_key] += 1
            return {"balance": 100}

        return [pay, look]


def paying(ledger: Ledger, *calls: ToolCall, text: str = "I pay now.") -> Agent:
    """An agent that asks for these calls at each prompt, and then says that it is done."""
    return speaking(ledger, speech(text, *calls), speech("All is done."))


def speaking(ledger: Ledger, *speeches: list[Piece]) -> Agent:
    """An agent that says these to each prompt, one after another."""
    count = len(speeches)
    model = Speaker(speeches, which=lambda it, question: by_answers(it, question) % count)
    return Agent(model=model, tools=ledger.tools())


@attrs.frozen(kw_only=True)
class Served:
    """A server that is open."""

    face: Face
    app: App
    clients: list[httpx.AsyncClient] = attrs.field(factory=list[httpx.AsyncClient])

    @property
    def journal(self) -> Journal:
        """Where its runs are kept."""
        return self.face.journal

    def client(self, name: str = "all") -> httpx.AsyncClient:
        """A client with the token of this name."""
        made = httpx.AsyncClient(
            transport=Streaming(self.app),
            base_url=BASE,
            headers={"Authorization": f"Bearer secret-of-{name}"},
            timeout=30.0,
        )
        self.clients.append(made)
        return made

    async def facts(self, run_id: str) -> list[Any]:
        """All facts of a run."""
        return [fact async for fact in self.journal.facts(run_id)]


@asynccontextmanager
async def serving(
    folder: Path, agent: Agent, *, others: Mapping[str, Agent] | None = None, **more: Any
) -> AsyncGenerator[Served]:
    """Serve one agent, or some, on a journal of this folder, until the block is left."""
    lines = [Token.of(name, roles, f"secret-of-{name}").line() for name, roles in TOKENS.items()]
    (folder / "tokens").write_text("\n".join(lines))
    options = Options(
        db=more.pop("db", str(folder / "journal.db")),
        agents={"payer": agent, **(others or {})},
        settings=ServerSettings(answer=0.3, drain=1.0),
        listen=("127.0.0.1",),
        tokens=folder / "tokens",
        **more,
    )
    async with opened(options) as it:
        served = Served(face=it.face, app=App(it.face))
        try:
            yield served
        finally:
            for client in served.clients:
                await client.aclose()
