"""A whole small world at random: people, agents with whims, hosts that come, go, die and stall.

Everything is in one memory journal on a virtual clock. Each process has a way to it of its own, so
that nothing but the journal leads from one to another. What must hold is told by `violations`, from
rules of its own: no mention is parsed here as the world does it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from hashlib import blake2b
from typing import Any, Final

import attrs

from turnlock.agent.messages import Prompt, Results
from turnlock.agent.speaking import Question, Said
from turnlock.engine.kernel import Kernel
from turnlock.lifecycle.phases import Phase
from turnlock.models.deliveries import Resolution
from turnlock.models.errors import UnknownRun
from turnlock.models.values import arguments_digest
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.settings import Settings
from turnlock.runtime.submitting import Unanswered
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.errors import OutcomeUnknown
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.runtime.writer import fold_run
from turnlock.world import AgentSpec, Host, World
from turnlock.world.names import doubt_id, request_id
from turnlock.world.standing import member_standing

from ..agent.speakers import Pause, Piece, Speaker, asked, speech
from ..runtime.crash.life import LIFE, Life
from ..runtime.faulty_journal import WrappedJournal
from ..runtime.virtual import LoopClock
from .crash.living import LivingJournal, PersonsJournal

AGENTS: Final = ("ada", "bo", "cy")
CHAT: Final = "plan"
LOG: Final = f"w/{CHAT}"
TURNS: Final = 2
SETTINGS: Final = Settings(ownership=3.0, poll=0.25, retry_first=0.05, retry_longest=0.5)
HOSTS: Final = 2
"""Processes that may host the world at once."""
PATIENCE: Final = 2_000.0
"""Seconds of virtual time in which a world must come to rest once people answer everything."""


@attrs.frozen
class Whim:
    """A model that says anything, but always the same to the same question."""

    name: str
    seed: int

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        last = question.messages[-1]
        heard = last.text if isinstance(last, Prompt) else type(last).__name__
        told = f"{self.seed} {self.name} {len(question.messages)} {heard}"
        draw = blake2b(told.encode(), digest_size=2).digest()
        pieces = self._speech(draw, calls=not isinstance(last, Results))
        async for said in Speaker([[Pause(draw[1] / 256), *pieces]]).speak(question):
            yield said

    def _speech(self, draw: bytes, *, calls: bool) -> Sequence[Piece]:
        others = [it for it in AGENTS if it != self.name]
        one = others[draw[1] % len(others)]
        texts = [
            "fine",
            f"@{one} go on",
            f"@{others[0]} @{others[1]} both",
            "@human help",
            f"maybe @{one} knows",
            "<world>PASS</world>",
            f"<world>TO: {one}</world> you",
            f"@{self.name} I",
            "",
        ]
        wants = [("pay",), ("look",), ("pay", "look"), ("ship",), ("pay", "pay")]
        which = draw[0] % (len(texts) + (len(wants) if calls else 0))
        if which < len(texts):
            return speech(texts[which] or None)
        named = wants[which - len(texts)]
        return speech(None, *(asked(it, at=f"{place}") for place, it in enumerate(named)))

    async def close(self) -> None:
        """Nothing is open."""


class Mortal(Life):
    """A process that can be stopped at any moment; stopped for good, it is dead."""

    def __init__(self, number: int) -> None:
        super().__init__(number=number)

    def stop(self) -> None:
        """Have nothing of it go on."""
        if self._resumed is None:
            self._resumed = asyncio.get_running_loop().create_future()


@attrs.frozen
class Hosting:
    """A host at work."""

    life: Mortal
    enough: asyncio.Event
    task: asyncio.Task[None]


@attrs.frozen
class Open:
    """A call that is not settled."""

    run_id: str
    turn_id: str
    invocation_id: str
    phase: Phase
    attempt: int
    arguments: Any
    gated: bool
    tool_name: str


class Small:
    """The world, and who is at work in it."""

    def __init__(self, seed: int) -> None:
        self.seed: Final = seed
        self.kept: Final = MemoryJournal()
        self.clock: Final = LoopClock()
        self.world: Final = World(_own_way(self.kept), "w", clock=self.clock)
        self.ran: Final[list[tuple[str, str]]] = []
        """Executions: the tool, and the key."""
        self.hosts: Final[dict[int, Hosting]] = {}
        self.lives: Final[list[Mortal]] = []
        self.ended: Final[dict[str, float]] = {}
        """Runs that are over, by cleared memories and agents that were removed, and since when."""
        self.failed: Final[list[str]] = []
        self._said = 0

    async def make(self) -> None:
        """Have the world be there."""
        await self.world.make(title="W")
        for name in AGENTS:
            await self.put(name)
        await self.world.open_chat(CHAT)
        await self.world.title(CHAT, "A plan", by="me")

    async def put(self, name: str) -> None:
        """Put an agent."""
        spec = AgentSpec(model=f"test:{name}", tools=("pay", "look", "ship"), turn_limit=TURNS)
        await self.world.put_agent(name, spec)

    async def says(self, sender: str, text: str) -> None:
        """Have a person say something."""
        self._said += 1
        await self.world.chat(CHAT).say(sender, text, message_id=f"m{self._said}")

    async def removes(self, name: str) -> None:
        """Remove an agent, if it is there."""
        configuration = await self.world.configuration()
        for member in configuration.members(CHAT):
            if member.agent == name:
                await self.world.remove_agent(name)
                self.ended[member.run_id] = self.clock.now()

    async def clears(self, name: str) -> None:
        """Clear a member's memory, if it is one."""
        configuration = await self.world.configuration()
        for member in configuration.members(CHAT):
            if member.agent == name:
                await self.world.clear(CHAT, name)
                self.ended[member.run_id] = self.clock.now()

    async def interrupts(self, name: str) -> None:
        """Stop what a member does, if it is one."""
        configuration = await self.world.configuration()
        if name in {it.agent for it in configuration.members(CHAT)}:
            with suppress(Unanswered):
                await self.world.chat(CHAT).interrupt(name, reason="stop", by="me")

    async def answers(self, choose: Callable[[int], int]) -> None:
        """Have people answer what waits; `choose` draws one of so many."""
        with suppress(Unanswered):  # its host is dead or stands still: it is judged later
            await self._answers(choose)

    async def _answers(self, choose: Callable[[int], int]) -> None:
        chat = self.world.chat(CHAT)
        for it in await self.open_calls():
            if it.gated and it.phase is Phase.REQUESTED:
                await chat.decide(
                    request_id(it.run_id, it.turn_id, it.invocation_id),
                    approved=bool(choose(2)),
                    arguments_digest=arguments_digest(it.arguments),
                    decided_by="me",
                )
            elif it.phase is Phase.IN_DOUBT and it.tool_name != "look":
                how = (Resolution.RETRY, Resolution.ERROR)[choose(2)]
                error = "it was not done" if how is Resolution.ERROR else None
                doubt = doubt_id(it.run_id, it.turn_id, it.invocation_id, it.attempt)
                await chat.resolve(doubt, resolution=how, error=error)

    async def open_calls(self) -> Sequence[Open]:
        """Return the calls of all members that are not settled."""
        found: list[Open] = []
        async for entry in self.kept.run_entries():
            kernel = await fold_run(entry.run, self.kept)
            found += _open_calls(kernel)
        return found

    def begins(self, place: int) -> None:
        """Begin a host, unless there is one."""
        if place in self.hosts:
            return
        life, enough = Mortal(len(self.lives) + 1), asyncio.Event()
        self.lives.append(life)
        context = copy_context()
        context.run(LIFE.set, life)
        work = self._hosts(LivingJournal(self.kept, life=life), life, enough)
        task = asyncio.get_running_loop().create_task(work, context=context)
        self.hosts[place] = Hosting(life, enough, task)

    async def ends(self, place: int) -> None:
        """End a host cleanly, if there is one."""
        hosting = self.hosts.pop(place, None)
        if hosting is not None:
            hosting.enough.set()
            await asyncio.wait({hosting.task}, timeout=PATIENCE)
            self._look_at(hosting)

    def dies(self, place: int) -> None:
        """Kill a host, if there is one."""
        hosting = self.hosts.pop(place, None)
        if hosting is not None:
            hosting.life.stop()

    async def rests(self, choose: Callable[[int], int]) -> None:
        """Have people answer everything, until every member rests and nobody hosts any more."""
        self.begins(0)
        idle = asyncio.ensure_future(self._idle())
        began = self.clock.now()
        while not idle.done() and self.clock.now() < began + PATIENCE:
            await self.answers(choose)
            await asyncio.wait({idle}, timeout=1.0)
        if not idle.done():
            idle.cancel()
            self.failed.append("it does not come to rest")
        for place in tuple(self.hosts):
            await self.ends(place)

    async def _idle(self) -> None:
        while not await self.is_idle():  # noqa: ASYNC110 - it is looked at from outside
            await asyncio.sleep(1.0)

    async def is_idle(self) -> bool:
        """Whether nobody owes anything, as whoever looks at the journal sees it."""
        configuration = await self.world.configuration()
        for member in configuration.ended():
            with suppress(UnknownRun):
                if (await self.kept.entry(member.run_id)).busy:
                    return False
        return all(
            [
                (
                    await member_standing(
                        self.world.journal, member, begins=configuration.begins_at(member)
                    )
                ).is_idle
                for member in configuration.members(CHAT)
            ]
        )

    async def _hosts(self, journal: LivingJournal, life: Mortal, enough: asyncio.Event) -> None:
        models = {f"test:{name}": Whim(name, self.seed) for name in AGENTS}
        async with Host(
            journal,
            "w",
            models=models,
            toolboxes=Toolbox(self._tools(life)),
            settings=SETTINGS,
            clock=self.clock,
        ):
            await enough.wait()

    def _look_at(self, hosting: Hosting) -> None:
        task = hosting.task
        if not task.done():
            self.failed.append("a host does not end")
        elif (error := task.exception()) is not None:
            self.failed.append(f"a host raised {error!r}")

    def _tools(self, life: Mortal) -> list[Tool]:
        async def does(name: str, context: ToolContext) -> str:
            assert not life.dead
            self.ran.append((name, context.idempotency_key))
            await asyncio.sleep(0.3)
            return f"{name} done"

        @tool(approval=True, in_doubt=InDoubt.ASK)
        async def pay(context: ToolContext, at: str) -> str:
            """Pay."""
            return await does(f"pay {at}", context)

        @tool(safe_to_repeat=True, in_doubt=InDoubt.RETRY_IF_SAFE)
        async def look(context: ToolContext, at: str) -> str:
            """Look."""
            return await does(f"look {at}", context)

        @tool(in_doubt=InDoubt.ASK)
        async def ship(context: ToolContext, at: str) -> str:
            """Ship; the line breaks."""
            raise OutcomeUnknown(await does(f"ship {at}", context))

        return [pay, look, ship]


class Everybody(Life):
    """All processes of a world, as what is buried at the end."""

    def __init__(self, small: Small) -> None:
        super().__init__()
        self._small = small

    def bury(self) -> None:
        """Close what they left suspended."""
        for life in self._small.lives:
            life.bury()


def _own_way(kept: MemoryJournal) -> WrappedJournal:
    """A process's way to the journal, by which nobody else's appends are told."""
    return PersonsJournal(kept)


def _open_calls(kernel: Kernel) -> Iterator[Open]:
    turn = kernel.turn
    if turn is None:
        return
    for it in tuple(turn.members.values()):
        yield Open(
            run_id=kernel.run.run_id,
            turn_id=turn.turn_id,
            invocation_id=it.invocation_id,
            phase=it.phase,
            attempt=it.attempt,
            arguments=it.arguments,
            gated=it.gated,
            tool_name=it.tool_name,
        )
