"""Stopping and leaving an agent at awkward moments, and what is said of it then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import attrs
import pytest

from turnlock.agent import Agent, Answer, CallEnded, HookFailed, Question, Said
from turnlock.runtime import RunFenced, Runtime
from turnlock.runtime.journal.memory import MemoryJournal

from ..runtime.faulty_journal import Fault, FaultyJournal
from ..runtime.kept_notes import bodies
from ..runtime.virtual import LoopClock, run
from .speakers import Speaker as ClosingSpeaker
from .speakers import speech
from .talks import BRIEF
from .test_agent import Speaker, calls, made, pay
from .test_early import LONG, SEA, SKY, Play


@attrs.define
class Stopping:
    """A model that is stopped just when it closes its second call, so many ticks later."""

    speaker: ClosingSpeaker
    ticks: int
    agent: Agent | None = None
    stopping: asyncio.Task[bool] | None = None

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        async for said in self.speaker.speak(question):
            if isinstance(said, CallEnded) and said.place == 1:
                self.stopping = asyncio.create_task(self._stop())
            yield said

    async def _stop(self) -> bool:
        for _ in range(self.ticks):
            await asyncio.sleep(0)
        assert self.agent is not None
        return await self.agent.interrupt(grace=0.01)

    async def close(self) -> None: ...


@pytest.mark.parametrize("ticks", range(6))
def test_a_prompt_that_is_being_said_can_be_stopped(ticks: int) -> None:
    """K-53: however soon after `run` was begun: the model is not asked, or not listened to."""

    async def play() -> None:
        async with made(Speaker(slow=LONG)) as agent:
            work = asyncio.ensure_future(agent.run("go"))
            for _ in range(ticks):
                await asyncio.sleep(0)
            assert await agent.interrupt()
            assert (await work).interrupted
            assert asyncio.get_running_loop().time() < LONG
            assert not await agent.interrupt()
            assert str(await agent.run("and now?")) == "done: and now?"

    run(play())


def test_a_prompt_whose_note_takes_long_can_be_stopped() -> None:
    """K-53: the interrupt waits until it is kept."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal(), {("note", 1): Fault.HELD})
        speaker = Speaker(slow=LONG)
        async with made(speaker, journal=journal) as agent:
            work = asyncio.ensure_future(agent.run("go"))
            await asyncio.sleep(1)
            stop = asyncio.ensure_future(agent.interrupt())
            await asyncio.sleep(1)
            assert not stop.done()
            journal.gate.set()
            assert await stop
            assert (await work).interrupted

    run(play())


@pytest.mark.parametrize("ticks", range(12))
def test_w_58_what_was_noted_of_an_answer_stands_when_it_is_stopped(ticks: int) -> None:
    """A part that waits to be kept is kept first: the answer has all the calls of its parts."""

    async def play() -> None:
        it = Play.of(speech("I look", SKY, SEA), speech("so be it"))
        speaker = Stopping(it.speaker, ticks)
        async with it.agent(model=speaker) as agent:
            speaker.agent = agent
            assert (await agent.run("go")).interrupted
            assert speaker.stopping is not None
            assert await speaker.stopping
            await agent.run("and now?")
            parts = [name for name in await bodies(it.journal) if name.startswith("part/")]
            said = agent.conversation.said
            (answer,) = [one for one in said if isinstance(one, Answer) and one.calls]
        assert len(answer.calls) == len(parts) > 0
        assert len(it.told()[0].results) == len(parts)

    run(play())


def test_the_same_prompt_after_a_hook_failed_is_not_said_twice() -> None:
    """The last answer is kept, and nothing is owed: its result is returned, once."""

    async def play() -> None:
        heard: list[Answer] = []

        def fail(answer: Answer) -> None:
            heard.append(answer)
            if len(heard) == 1:
                raise ValueError("no idea")

        speaker = Speaker()
        async with made(speaker, after_answer=fail) as agent:
            with pytest.raises(HookFailed):
                await agent.run("go")
            assert str(await agent.run("go")) == "done: go"
            assert (len(speaker.asked), len(heard)) == (1, 1)
            await agent.run("go")
            assert (len(speaker.asked), len(heard)) == (2, 2)

    run(play())


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("tool_name", [None, "pay"])
def test_who_waits_while_the_agent_is_left_is_told_so(shared: bool, tool_name: str | None) -> None:
    """RunFenced, whatever it waited for: the model, a person, or its turn in the line."""

    async def play() -> None:
        speaker = Speaker([calls(tool_name)] if tool_name else (), slow=0.0 if tool_name else LONG)
        journal = MemoryJournal()
        async with Runtime(journal=journal, settings=BRIEF, clock=LoopClock()) as runtime:
            on_it = Agent(model=speaker, tools=[pay], runtime=runtime)
            async with on_it if shared else made(speaker) as agent:
                waiting = [asyncio.ensure_future(agent.run(it)) for it in ("go", "and then?")]
                await asyncio.sleep(1)
            for work in waiting:
                with pytest.raises(RunFenced, match="'agent' is not performed here any more"):
                    await work

    run(play())
