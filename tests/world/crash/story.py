"""The story of section 5: what a person says and decides in another process, and how it ends.

The person may be begun anew at any moment: all that is said again has the id that it had, and what
is decided is looked up first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

import attrs

from turnlock.engine.kernel import Kernel
from turnlock.lifecycle.phases import Phase
from turnlock.models.deliveries import Resolution
from turnlock.models.ids import idempotency_key, invocation_path
from turnlock.models.values import arguments_digest
from turnlock.runtime.journal.contract import Entry, Journal
from turnlock.runtime.scheduling import Clock
from turnlock.runtime.writer import fold_run
from turnlock.world import AgentSpec, World
from turnlock.world.names import doubt_id, request_id
from turnlock.world.spec import Start

from .cast import LINES, Outside

WORLD: Final = "demo"
CHAT: Final = "plan"
LOG: Final = f"{WORLD}/{CHAT}"
TURNS: Final = 2
"""The limit of turns of both."""
LOOKING: Final = 0.2
"""Seconds between the person's looks."""
RUNS: Final = {name: f"{LOG}/{name}" for name in LINES}

ENDED: Final = (
    ("say/me/m1", "me", "@alice book it"),
    ("say/me/m2", "me", "@bob what time is it?"),
    (f"{RUNS['bob']}/said/2", "bob", "It is noon."),
    (f"{RUNS['alice']}/said/3", "alice", "@bob I have paid, ship it."),
    (f"{RUNS['bob']}/said/5", "bob", "@alice It is shipped."),
    (f"{RUNS['alice']}/said/5", "alice", "Thank you."),
    ("say/me/m3", "me", "@alice play"),
    (f"{RUNS['alice']}/said/7", "alice", "@bob ping"),
    (f"{RUNS['bob']}/said/7", "bob", "@alice pong"),
    (f"{RUNS['alice']}/said/9", "alice", "@bob ping"),
    (
        f"{RUNS['bob']}/limit/10",
        "bob",
        f"@human Turn limit reached ({TURNS}). Please take over.",
    ),
    ("say/me/m4", "me", "@bob carry on"),
    (f"{RUNS['bob']}/said/9", "bob", "pong"),
)
"""The chat's log when all is said: the one outcome there may be."""


async def prepared(
    journal: Journal, *, clock: Clock | None = None, start: Start = Start.WHOLE
) -> World:
    """Make the world; again, it is as it is."""
    world = World(journal, WORLD, clock=clock)
    await world.make(title="Demo")
    for name in LINES:
        spec = AgentSpec(
            model=f"test:{name}", tools=("pay", "look", "ship"), turn_limit=TURNS, start=start
        )
        await world.put_agent(name, spec)
    await world.open_chat(CHAT, members=tuple(LINES))
    await world.title(CHAT, "A trip", by="me")
    return world


async def person(
    journal: Journal, outside: Outside, *, clock: Clock | None = None, start: Start = Start.WHOLE
) -> None:
    """Say what there is to say, decide what waits, and settle what is in doubt."""
    world = await prepared(journal, clock=clock, start=start)
    me = Person(world, journal, outside)
    await me.says("m1", "@alice book it")
    await me.until(lambda seen: me.waits or len(seen) > 1)
    await me.says("m2", "@bob what time is it?")
    await me.until(lambda seen: said(seen, "It is noon."))
    me.decides = True
    await me.until(lambda seen: said(seen, "Thank you."))
    await me.says("m3", "@alice play")
    await me.until(lambda seen: any(_body(it)["kind"] == "handoff" for it in seen))
    await me.says("m4", "@bob carry on")
    await me.until(lambda seen: len(seen) >= len(ENDED))


def said(seen: Sequence[Entry], text: str) -> bool:
    """Whether somebody has said this."""
    return any(_body(it).get("text") == text for it in seen)


def _body(entry: Entry) -> dict[str, Any]:
    return cast("dict[str, Any]", entry.body)


@attrs.define
class Person:
    """Who looks at the chat and at what waits, and answers."""

    world: World
    journal: Journal
    outside: Outside
    decides: bool = False
    """Whether requests are answered by now."""
    waits: bool = False
    """Whether a request waited, or was decided, when somebody last looked."""

    async def says(self, message_id: str, text: str) -> None:
        """Say it, once."""
        await self.world.chat(CHAT).say("me", text, message_id=message_id)

    async def until(self, seen: Callable[[Sequence[Entry]], bool]) -> None:
        """Look, and answer what there is to answer, until this is to be seen."""
        while True:
            for run_id in RUNS.values():
                await self._answers(run_id)
            if seen(await self.journal.entries(LOG)):
                return
            await asyncio.sleep(LOOKING)

    async def _answers(self, run_id: str) -> None:
        if run_id not in {it.run.run_id for it in await self.journal.runs()}:
            return
        kernel = await fold_run((await self.journal.entry(run_id)).run, self.journal)
        chat = self.world.chat(CHAT)
        for it in _unsettled(kernel):
            self.waits = self.waits or it.tool_name == "pay"
            if it.gated and it.phase is Phase.REQUESTED and self.decides:
                await chat.decide(
                    request_id(run_id, it.turn_id, it.invocation_id),
                    approved=True,
                    arguments_digest=arguments_digest(it.arguments),
                    decided_by="me",
                )
            elif it.phase is Phase.IN_DOUBT and it.tool_name != "look":
                await self._settles(run_id, it)

    async def _settles(self, run_id: str, call: Waiting) -> None:
        done = call.key in self.outside.ended()
        result = {"pay": "paid 5 to hotel", "ship": "the bed is shipped"}[call.tool_name]
        given: dict[str, Any] = {"result": result} if done else {}
        await self.world.chat(CHAT).resolve(
            doubt_id(run_id, call.turn_id, call.invocation_id, call.attempt),
            resolution=Resolution.RESULT if done else Resolution.RETRY,
            **given,
        )


@attrs.frozen
class Waiting:
    """A call that is not settled."""

    turn_id: str
    invocation_id: str
    tool_name: str
    phase: Phase
    attempt: int
    arguments: Any
    gated: bool
    key: str


def _unsettled(kernel: Kernel) -> Iterator[Waiting]:
    turn = kernel.turn
    if turn is None:
        return
    for it in tuple(turn.members.values()):
        yield Waiting(
            turn_id=turn.turn_id,
            invocation_id=it.invocation_id,
            tool_name=it.tool_name,
            phase=it.phase,
            attempt=it.attempt,
            arguments=it.arguments,
            gated=it.gated,
            key=idempotency_key(invocation_path(turn.scope, it.invocation_id)),
        )
