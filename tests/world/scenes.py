"""A chat in which tests have things happen: what is said, and what members' runs come to."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import attrs

from turnlock.models.calls import Call
from turnlock.models.deliveries import (
    Claim,
    Decide,
    Delivery,
    Interrupt,
    Lose,
    OpenTurn,
    Report,
    Resolution,
    Resolve,
    Scope,
)
from turnlock.models.run import Run
from turnlock.models.verdicts import Verdict
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.submitting import SharedRun
from turnlock.views.live import calls_of
from turnlock.world import AgentSpec, Chat, World
from turnlock.world.events import ChatEvent, EntryEvent, ProjectionEvent
from turnlock.world.names import KIND, MemberName
from turnlock.world.requests import Projections

from ..runtime.virtual import LoopClock

SPEC = AgentSpec(model="script:x")
AGENTS = ("alice", "bob", "carol")


@attrs.define
class Scene:
    """A chat `demo/plan`, and the runs of its members as nobody performs them."""

    journal: Journal
    world: World
    chat: Chat
    runs: dict[str, SharedRun] = attrs.field(factory=dict[str, SharedRun])
    said: int = 0
    turns: dict[str, int] = attrs.field(factory=lambda: defaultdict[str, int](int))

    @classmethod
    async def begin(cls, *agents: str, journal: Journal | None = None) -> Scene:
        """Open the chat with these agents."""
        world = World(journal or MemoryJournal(), "demo", clock=LoopClock())
        await world.make(title="Demo")
        for agent in agents or ("alice",):
            await world.put_agent(agent, SPEC)
        chat = await world.open_chat("plan")
        return cls(world.journal, world, chat)

    async def member(self, agent: str) -> MemberName | None:
        return (await self.world.configuration()).member("plan", agent)

    async def say(self, text: str = "hello") -> None:
        self.said += 1
        await self.chat.say("human", text, message_id=f"{self.said}")

    async def run_of(self, agent: str) -> SharedRun:
        """The run of a member as it is now, declared when it is asked for first."""
        member = await self.member(agent)
        assert member is not None
        run_id = member.run_id
        if run_id not in self.runs:
            await self.journal.declare(
                Run(run_id=run_id, agent_id=agent, agent_name=agent, kind=KIND)
            )
            self.runs[run_id] = await SharedRun.open(
                self.journal, run_id, policies={}, clock=LoopClock()
            )
        return self.runs[run_id]

    async def submit(self, agent: str, *deliveries: Delivery) -> tuple[Verdict, ...]:
        return await (await self.run_of(agent)).submit(*deliveries)

    async def ask(
        self, agent: str, *arguments: Mapping[str, Any], gated: bool = True, tool: str = "pay"
    ) -> str:
        """Open a turn with a call for each of these arguments; return its id."""
        run = await self.run_of(agent)
        run_id = run.kernel.run.run_id
        turn_id = f"t{self.turns[run_id] + 1}"
        calls = tuple(
            Call(
                invocation_id=f"i{place}",
                tool_name=tool,
                arguments=given,
                requires_approval=gated,
            )
            for place, given in enumerate(arguments or ({},))
        )
        (verdict,) = await run.submit(OpenTurn(turn_id=turn_id, calls=calls))
        if verdict.accepted:
            self.turns[run_id] += 1
        return turn_id

    async def go_on(self, agent: str, way: int) -> None:
        """Have something happen to the first unfinished call of a member, if there is one."""
        run = await self.run_of(agent)
        await run.refresh()
        call = next(calls_of(run.kernel), None)
        if call is None:
            await self.ask(agent, *({"n": it} for it in range(1 + way % 3)), gated=way % 2 == 0)
            return
        at: dict[str, Any] = {"turn_id": call.turn_id, "invocation_id": call.invocation_id}
        ways: list[Delivery]
        if call.gated:
            ways = [
                Decide(**at, approved=False, reason="no"),
                Decide(**at, approved=True),
                Decide(**at, approved=True, scope=Scope.TURN),
            ]
        elif call.in_doubt:
            ways = [
                Resolve(**at, attempt=1, resolution=Resolution.RESULT, result=[1]),
                Resolve(**at, attempt=1, resolution=Resolution.ERROR, error="gone"),
            ]
        elif call.attempt == 0:
            ways = [Claim(**at, attempt=1), Interrupt(turn_id=call.turn_id)]
        else:
            ways = [
                Report(**at, result={"ok": True}),
                Report(**at, error="failed"),
                Lose(**at),
            ]
        await run.submit(ways[way % len(ways)])

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def sources(self) -> dict[str, list[tuple[float, str]]]:
        """What each source has to tell, in its order, found without any stream."""
        log = await self.journal.entries(self.chat.log)
        found = {"": [(it.at, f"entry {it.number}") for it in log]}
        for run_id in sorted(self.runs):
            fold = Projections()
            found[run_id] = [
                (fact.at, f"{fact.sequence} {told.id}")
                async for fact in self.journal.facts(run_id)
                for told in fold.take(fact)
            ]
        return found


def name_of(event: ChatEvent) -> tuple[str, str]:
    """The source of an event, and what it is there; as `Scene.sources` has it."""
    if isinstance(event, EntryEvent):
        return "", f"entry {event.entry.number}"
    assert isinstance(event, ProjectionEvent)
    projection = event.projection
    return projection.call.run_id, f"{projection.sequence} {projection.id}"
