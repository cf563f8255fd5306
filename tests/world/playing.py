"""Worlds for tests: agents that say what they are told to say, and hosts on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import attrs

from turnlock.agent import Answer, Ended, Prompt, Question, Results, Said, Stop, Text, Tokens
from turnlock.agent.messages import ToolCall
from turnlock.agent.speaking import Model
from turnlock.runtime import Settings
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.world import AgentSpec, Chat, Host, World
from turnlock.world.entries import Handoff, Message, Notice, read_entry

from ..runtime.faulty_journal import WrappedJournal
from ..runtime.virtual import LoopClock

BRIEF = Settings(ownership=3.0)
"""A lease that is over soon; a host looks for it three times in that."""

Reply: TypeAlias = str | Answer | BaseException | Callable[[Question], str | Answer]
"""What a model says: an exception is raised."""


def calls(*names: str, text: str | None = None, **arguments: str) -> Answer:
    """An answer that asks for these tools, with the same arguments each."""
    asked = tuple(ToolCall(call_id=None, tool_name=it, arguments=arguments) for it in names)
    return Answer(text=text, calls=asked, stop=Stop.CALLS, tokens=Tokens(input=7, output=3))


def told(question: Question) -> str:
    """What the latest prompt says."""
    return [it.text for it in question.messages if isinstance(it, Prompt)][-1]


@attrs.define
class Playing:
    """A model that gives these answers, in order, and then the last one again and again."""

    replies: Sequence[Reply]
    slow: float = 0.0
    asked: list[Question] = attrs.field(factory=list[Question])
    at_once: int = 0
    most_at_once: int = 0

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        reply = self.replies[min(len(self.asked), len(self.replies) - 1)]
        self.asked.append(question)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.slow)
            if callable(reply):
                reply = reply(question)
            if isinstance(reply, BaseException):
                raise reply
            answer = Answer(text=reply) if isinstance(reply, str) else reply
            if answer.text:
                yield Text(answer.text)
            yield Ended(answer)
        finally:
            self.at_once -= 1

    @property
    def told(self) -> list[str]:
        """The latest prompt of each question."""
        return [told(it) for it in self.asked]

    @property
    def results(self) -> list[object]:
        """What became of the calls, as it was told last."""
        found = [it for it in self.asked[-1].messages if isinstance(it, Results)]
        return [it.result for results in found for it in results.results]

    async def close(self) -> None: ...


def says(*replies: Reply, slow: float = 0.0) -> Playing:
    """A model that says this."""
    return Playing(replies, slow=slow)


@attrs.define
class Played:
    """A world, its chat `plan`, and the models of its agents."""

    world: World
    chat: Chat
    models: Mapping[str, Model]

    @property
    def journal(self) -> Journal:
        return self.world.journal

    def host(self, *, journal: Journal | None = None, **more: Any) -> Host:
        """A host of it, perhaps with a journal object of its own."""
        given: dict[str, Any] = {"models": self.models, "settings": BRIEF, "clock": LoopClock()}
        if "runtime" in more:
            del given["settings"], given["clock"]
        return Host(journal or self.journal, "demo", **{**given, **more})

    async def said(self) -> list[str]:
        """Who said what: messages as `alice: …`, handoffs and notices marked."""
        return await said(self.journal, self.chat.log)


async def said(journal: Journal, log: str) -> list[str]:
    """Who said what in a chat."""
    lines: list[str] = []
    for entry in await journal.entries(log):
        read = read_entry(entry)
        if isinstance(read, Message):
            lines.append(f"{read.sender}: {read.text}")
        elif isinstance(read, Handoff):
            lines.append(f"{read.sender} hands over: {read.text}")
        elif isinstance(read, Notice):
            lines.append(f"notice: {read.text}")
    return lines


async def ids(journal: Journal, log: str) -> list[str]:
    """The ids of a log's entries."""
    return [it.entry_id for it in await journal.entries(log)]


async def play(
    agents: Mapping[str, Playing | tuple[Playing, Mapping[str, Any]]],
    *,
    journal: Journal | None = None,
    members: Iterable[str] | None = None,
) -> Played:
    """A world of these agents, each with its model and what else its spec says."""
    world = World(journal or MemoryJournal(), "demo", clock=LoopClock())
    await world.make(title="Demo")
    models: dict[str, Model] = {}
    for agent, given in agents.items():
        model, more = given if isinstance(given, tuple) else (given, cast("dict[str, Any]", {}))
        models[f"test:{agent}"] = model
        await world.put_agent(agent, AgentSpec(model=f"test:{agent}", **more))
    chat = await world.open_chat("plan", members=members)
    return Played(world, chat, models)


class Process(WrappedJournal):
    """A journal as one process has it; once that is killed nothing more is written or read."""

    def kill(self) -> None:
        self.inner = cast("Journal", _Dead())


class _Dead:
    """What a killed process has of its journal."""

    clock = None

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def ask(*_: object, **__: object) -> Any:
            raise JournalError(f"{name}: this process was killed")

        return ask


async def killed(process: Process, tasks: set[asyncio.Task[Any]]) -> None:
    """End a process without a word, and these tasks of it."""
    process.kill()
    while tasks:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=1.0)
        tasks = {it for it in tasks if not it.done()}
