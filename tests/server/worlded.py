"""Worlds behind a real server on the loopback, people with tokens, and calls that wait there.

async with served() as it:
    await it.made("alice")
    answer = await it.as_("ada").post("/v1/worlds/demo/chats/plan/messages", json={…})
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs
import httpx

from turnlock import Call, OpenTurn, Run
from turnlock.models.values import Json, arguments_digest
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server.app import App
from turnlock.server.bounds import SessionSettings
from turnlock.server.face import Face, ServerSettings
from turnlock.server.hub import Hub, HubSettings
from turnlock.server.routing import Role
from turnlock.server.sessions import Sessions
from turnlock.server.tokens import Token, Tokens
from turnlock.world.names import KIND, MemberName, request_id
from turnlock.world.publishing import World
from turnlock.world.spec import AgentSpec

from . import faces
from .listeners import listening
from .runs import shared

ALL: Final = tuple(Role)
PEOPLE: Final[Mapping[str, tuple[Role, ...]]] = {
    "ada": ALL,
    "ben": ALL,
    "eve": (Role.LOOK,),
    "decider": (Role.DECIDE,),
    "runner": (Role.RUN,),
    "keeper": (Role.ADMIN,),
    # who is called like somebody else (W-10)
    "alice": ALL,
    "ALICE": ALL,
    "runtime": ALL,
    "grant": ALL,
    "world": ALL,
    "system": ALL,
}
"""Tokens: their names, and what they may."""
SPEC: Final = AgentSpec(model="scripted:one", instructions="Be kind.")
CHAT: Final = "/v1/worlds/demo/chats/plan"


def secret_of(name: str) -> str:
    return f"secret-of-{name}"


def tokens() -> Tokens:
    return Tokens(Token.of(name, roles, secret_of(name)) for name, roles in PEOPLE.items())


@attrs.frozen(kw_only=True)
class Served:
    """A server that listens, and its clients."""

    face: Face
    app: App
    hub: Hub
    port: int
    clients: dict[str, httpx.AsyncClient] = attrs.field(factory=dict[str, httpx.AsyncClient])

    @property
    def journal(self) -> Journal:
        return self.face.journal

    @property
    def world(self) -> World:
        return World(self.journal, "demo")

    def as_(self, name: str) -> httpx.AsyncClient:
        """A client with the token of a person."""
        if name not in self.clients:
            self.clients[name] = httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{self.port}",
                headers={"Authorization": f"Bearer {secret_of(name)}"},
                timeout=20,
            )
        return self.clients[name]

    @property
    def ada(self) -> httpx.AsyncClient:
        return self.as_("ada")

    async def made(self, *agents: str, chat: str = "plan") -> World:
        """The world `demo` with these agents, and a chat of them."""
        world = self.world
        await world.make(title="Demo")
        for agent in agents:
            await world.put_agent(agent, SPEC)
        await world.open_chat(chat)
        return world

    async def waits(self, *calls: Call, agent: str = "alice", chat: str = "plan") -> str:
        """Have calls of a member wait for a person, nobody performing it; returns its run."""
        run_id = MemberName(world="demo", chat=chat, agent=agent).run_id
        run = Run(run_id=run_id, agent_id=agent, agent_name=agent, kind=KIND)
        await shared(self.journal, OpenTurn(turn_id="t1", calls=calls or (pays(),)), run=run)
        return run_id


def pays(name: str = "c1", **arguments: Json) -> Call:
    """A call that waits for a person."""
    return Call(
        invocation_id=name,
        tool_name="pay",
        arguments=arguments or {"amount": 12},
        requires_approval=True,
    )


def approval(run_id: str, call: Call | None = None, turn: str = "t1", **more: Json) -> Any:
    """The body of an approval of a request as it was shown."""
    shown = call or pays()
    return {
        "request_id": request_id(run_id, turn, shown.invocation_id),
        "approved": True,
        "arguments_digest": arguments_digest(shown.arguments),
        **more,
    }


@asynccontextmanager
async def served(
    journal: Journal | None = None,
    *,
    hosts: Mapping[str, Any] | None = None,
    hub_settings: HubSettings | None = None,
    settings: ServerSettings | None = None,
) -> AsyncGenerator[Served]:
    """A server on a journal, in memory unless given one, which is the caller's to close."""
    kept = journal or MemoryJournal()
    async with (
        Hub(journal=kept, settings=hub_settings or HubSettings(poll=0.02)) as hub,
        Sessions(journal=kept, adapters=[], settings=SessionSettings(preload=False)) as sessions,
        faces.opened(
            journal=kept, hub=hub, sessions=sessions, known=tokens(), settings=settings, hosts=hosts
        ) as it,
        listening(it.app) as listener,
    ):
        for host in (hosts or {}).values():
            hub.attend(host.runtime)
        found = Served(face=it.face, app=it.app, hub=hub, port=listener.port)
        try:
            yield found
        finally:
            for client in found.clients.values():
                await client.aclose()
