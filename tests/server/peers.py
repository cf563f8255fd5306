"""Servers of sessions in this process: a model with a script, tools with a ledger, and kills."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import attrs

from turnlock.adapters.contract import RuntimeAdapter, SessionSpec
from turnlock.adapters.own import OwnAdapter
from turnlock.agent.errors import ModelError
from turnlock.agent.loop import Agent
from turnlock.agent.messages import Answer, Prompt, Stop, ToolCall
from turnlock.agent.speaking import Ended, Question, Said, Text
from turnlock.agent.transients import Transient
from turnlock.models.run import Run
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.ledger import Domain, Noted
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.server.bounds import SessionSettings
from turnlock.server.sessions import Sessions
from turnlock.views.call_view import CallView

from ..agent.talks import end
from ..runtime.faulty_journal import WrappedJournal
from ..runtime.virtual import LoopClock, settled

BRIEF: Final = Settings(ownership=1.0, takes_over=False)
"""A runtime whose runs are free two seconds after its process was killed."""


@attrs.define
class World:
    """What outlives a server: what its tools really did, and what its model was asked."""

    done: Counter[str] = attrs.field(factory=Counter[str])
    """How often each call was run, by its idempotency key."""
    asked: list[str] = attrs.field(factory=list[str])
    """The prompts that the model was asked to answer, each time."""
    silent: int = 0
    """How often the model fails from now on."""
    gate: asyncio.Event | None = None
    """What tools and model wait for; None: nothing."""

    def tools(self) -> list[Tool]:
        """Return one that runs at once, one that needs approval, and one that must not repeat."""

        @tool(safe_to_repeat=True, in_doubt=InDoubt.RETRY_IF_SAFE)
        async def look(context: ToolContext) -> str:
            """Look around."""
            return await self._did(context)

        @tool(approval=True)
        async def pay(context: ToolContext, to: str = "ann") -> str:
            """Pay somebody."""
            return f"{to}: {await self._did(context)}"

        @tool(in_doubt=InDoubt.ASK)
        async def send(context: ToolContext) -> str:
            """Send a letter, which nobody can take back."""
            return await self._did(context)

        return [look, pay, send]

    async def _did(self, context: ToolContext) -> str:
        self.done[context.idempotency_key] += 1
        if self.gate is not None:
            await self.gate.wait()
        await asyncio.sleep(0.01)
        return "done"

    def agent(self, **more: Any) -> Agent:
        """An agent that calls the tools that a prompt names, and then says that it is done."""
        return Agent(model=Reader(self), tools=self.tools(), **more)


@attrs.frozen
class Reader:
    """A model that does what it reads: ``pay`` calls pay, ``look look`` looks twice."""

    world: World
    spec: str = "test:reader"

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        """Answer the last prompt: its calls first, and then that it is done."""
        prompts = [it for it in question.messages if isinstance(it, Prompt)]
        text = prompts[-1].text
        last = question.messages[-1]
        self.world.asked.append(text)
        await asyncio.sleep(0.01)
        if self.world.silent:
            self.world.silent -= 1
            raise ModelError("the model is not there")
        if text == "wait" and self.world.gate is not None:
            await self.world.gate.wait()
        names = [it for it in text.split() if it in {"look", "pay", "send"}]
        if isinstance(last, Prompt) and names:
            calls = tuple(ToolCall(call_id=None, tool_name=it, arguments={}) for it in names)
            yield Ended(Answer(calls=calls, stop=Stop.CALLS))
            return
        yield Text(f"done: {text}")
        yield Ended(Answer(text=f"done: {text}"))

    async def close(self) -> None:
        """Do nothing."""


@attrs.define
class Served:
    """A server's sessions, until it is closed or killed."""

    sessions: Sessions
    runtime: Runtime
    own: OwnAdapter
    heard: list[tuple[str, Transient]]

    async def close(self) -> None:
        """End as a server does."""
        await self.sessions.stop()
        await self.runtime.__aexit__(None, None, None)
        await self.own.close()

    async def kill(self) -> None:
        """End without a word, and let the leases run out: nothing more is written or performed."""
        life = self.sessions.life
        life.stopping = True
        for runtime in life.runtimes.values():
            await end(runtime)
        await life.tasks.cancel()
        for performed in tuple(life.active.values()):
            await performed.cease()
        await asyncio.sleep(2 * BRIEF.ownership)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something to hold, a while of the loop's time."""
        async with asyncio.timeout(60):
            while not holds():  # noqa: ASYNC110 - of many things, few of which tell
                await asyncio.sleep(0.01)

    def pending(self, run_id: str = "r") -> tuple[CallView, ...]:
        """The calls that wait for a person."""
        runtime = self.sessions.runtime_of(run_id)
        return () if runtime is None else runtime.pending(run_id)

    async def asked(self, run_id: str = "r") -> CallView:
        """The first call that waits for a person, once there is one."""
        await self.until(lambda: bool(self.pending(run_id)))
        return self.pending(run_id)[0]

    async def approve(self, run_id: str = "r") -> None:
        """Approve what waits first."""
        call = await self.asked(run_id)
        runtime = self.sessions.runtime_of(run_id)
        assert runtime is not None
        await runtime.approve(
            run_id,
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            arguments_digest=call.arguments_digest,
        )

    async def idle(self, run_id: str = "r") -> None:
        """Wait until nothing is owed, and nothing waits; or the process is dead."""
        active = self.sessions.life.active
        await self.until(lambda: self.dead or (run_id in active and active[run_id].idle))

    @property
    def dead(self) -> bool:
        """Whether its journal says that its process was killed."""
        journal = self.sessions.journal
        return isinstance(journal, MortalJournal) and journal.died.is_set()


async def serve(
    journal: Journal,
    world: World | None = None,
    *,
    others: Sequence[RuntimeAdapter] = (),
    settings: SessionSettings | None = None,
    agents: Mapping[str, Agent] | None = None,
    real: bool = False,
    **more: Any,
) -> Served:
    """Begin to serve: to be closed, or killed. On a `real` loop time is the machine's own."""
    clock = None if real else LoopClock()
    heard: list[tuple[str, Transient]] = []
    runtime = Runtime(journal=journal, settings=BRIEF, clock=clock)
    await runtime.__aenter__()
    given = {"reader": (world or World()).agent()} if agents is None else agents
    own = OwnAdapter(runtime=runtime, agents=given)
    sessions = Sessions(
        journal=journal,
        adapters=[own, *others],
        settings=settings,
        pass_on=lambda run_id, it: heard.append((run_id, it)),
        runtime_settings=BRIEF,
        clock=clock,
        **more,
    )
    await sessions.__aenter__()
    return Served(sessions=sessions, runtime=runtime, own=own, heard=heard)


@asynccontextmanager
async def serving(
    journal: Journal | None = None, world: World | None = None, **more: Any
) -> AsyncGenerator[Served]:
    """Serve, and close at the end."""
    served = await serve(journal or MemoryJournal(), world, **more)
    try:
        yield served
    finally:
        await served.close()


def spec(run_id: str = "r", **more: Any) -> SessionSpec:
    """What a run is to be."""
    return SessionSpec(run_id=run_id, **more)


class Dead(JournalError):
    """The process that writes was killed."""


class MortalJournal(WrappedJournal):
    """A journal whose process is killed after its n-th write, before or after that is kept."""

    def __init__(self, inner: Journal, *, writes: int, kept: bool = True) -> None:
        super().__init__(inner)
        self.left = writes
        self.kept = kept
        self.died = asyncio.Event()

    async def _write(self, write: Callable[[], Any]) -> Any:
        if self.died.is_set():
            raise Dead("killed before")
        self.left -= 1
        if self.left > 0:
            return await write()
        self.died.set()
        if self.kept:
            with suppress(JournalError):
                await write()
        raise Dead("killed")

    async def declare(self, run: Run) -> None:
        """Declare, or die."""
        await self._write(lambda: self.inner.declare(run))

    async def own(self, run_id: str, **more: Any) -> int:
        """Own, or die."""
        fence: int = await self._write(lambda: self.inner.own(run_id, **more))
        return fence

    async def append(self, run_id: str, **more: Any) -> Any:
        """Append, or die."""
        return await self._write(lambda: self.inner.append(run_id, **more))

    async def note(self, run_id: str, **more: Any) -> Any:
        """Keep notes, or die."""
        return await self._write(lambda: self.inner.note(run_id, **more))

    async def release(self, run_id: str, *, fence: int) -> None:
        """Release, unless it is dead."""
        if not self.died.is_set():
            await self.inner.release(run_id, fence=fence)

    async def answer(self, run_id: str, number: int, receipt: Mapping[str, Any]) -> None:
        """Answer a post, unless it is dead."""
        if self.died.is_set():
            raise Dead("killed before")
        await self.inner.answer(run_id, number, receipt)


async def messages(journal: Journal, run_id: str = "r", *kinds: str) -> list[Noted]:
    """The messages of a run, or those of some kinds."""
    notes = await journal.notes(run_id, domain=Domain.MESSAGE)
    return [it for it in notes if not kinds or it.note.kind in kinds]


async def said(journal: Journal, run_id: str = "r") -> list[str]:
    """What was said to a run and by it, as texts: a prompt as it is, an answer behind ``>``."""
    found: list[str] = []
    for noted in await messages(journal, run_id, "user", "assistant"):
        text = str(noted.note.body.get("text"))
        found.append(text if noted.note.kind == "user" else f"> {text}")
    return found


async def steps(journal: Journal, run_id: str = "r") -> list[str]:
    """The kinds of a run's manifest, in order."""
    return [it.note.kind for it in await journal.notes(run_id, domain=Domain.SESSION)]


__all__ = [
    "BRIEF", "Dead", "MortalJournal", "Reader", "Served", "World", "messages", "said", "serve",
    "serving", "settled", "spec", "steps",
]  # fmt: skip
