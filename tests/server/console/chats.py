"""Worlds for the console's tests: a host beside a real server, and models that do as they are told.

What a model says is chosen by the last prompt, so that tests do not hang on how many there were;
where it is to be watched while it speaks it waits for a gate that the test opens.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

import attrs
from playwright.sync_api import Locator, Page, expect

from turnlock import Delivery, OpenTurn, Run
from turnlock.agent import Answer, Ended, Question, Results, Said, Stop, Text, Thought, Tokens
from turnlock.agent.messages import ToolCall
from turnlock.agent.speaking import CallBegan, CallText
from turnlock.runtime import Settings
from turnlock.runtime.submitting import SharedRun
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.world import AgentSpec, Host, World
from turnlock.world.entries import Message, Role, body_of
from turnlock.world.entries import Question as Asked
from turnlock.world.names import KIND, member_run, question_id

from ...world.playing import told
from .served import Served, began, free, lost

PAID: Final = list[int]()
"""What the tool below has paid."""


@tool(approval=True)
async def pay(amount: int) -> str:
    """Pay; it needs approval."""
    PAID.append(amount)
    return f"paid {amount}"


@attrs.define
class Told:
    """A model that pays, speaks in steps, breaks off or repeats, as its last prompt says."""

    gate: asyncio.Event = attrs.field(factory=asyncio.Event)
    tries: int = 0

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        prompt = told(question)
        if "pay" in prompt and not isinstance(question.messages[-1], Results):
            amount = int(prompt.rsplit(" ", 1)[-1])
            call = ToolCall(call_id=None, tool_name="pay", arguments={"amount": amount})
            yield Text("I pay.")
            yield Ended(Answer(text="I pay.", calls=(call,), stop=Stop.CALLS, tokens=Tokens()))
        elif "slowly" in prompt:
            async for said in self._slowly():
                yield said
        else:
            text = "It is paid." if "pay" in prompt else f"You said: {prompt}"
            yield Text(text)
            yield Ended(Answer(text=text, stop=Stop.DONE, tokens=Tokens()))

    async def _slowly(self) -> AsyncIterator[Said]:
        self.tries += 1
        yield Thought("Let me think of it.")
        yield Text("Half of " if self.tries == 1 else "All of ")
        yield CallBegan(0, "look")
        yield CallText(0, '{"at": 1}')
        await self.gate.wait()
        self.gate.clear()
        if self.tries == 1:
            yield Ended(Answer(stop=Stop.CUT))
            return
        yield Text("the answer.")
        yield Ended(Answer(text="All of the answer.", stop=Stop.DONE, tokens=Tokens()))

    async def close(self) -> None: ...


class Worlds:
    """The worlds of a server, in its loop: `demo` is performed, others are made as they stand."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.model = Told()
        self._stack = AsyncExitStack()
        server.call(self._begin())

    async def _begin(self) -> None:
        world = World(self.server.face.journal, "demo")
        await world.make(title="Demo")
        for agent in ("alice", "bob"):
            hears = {} if agent == "alice" else {"hears": "addressed"}
            await world.put_agent(agent, AgentSpec.from_json(_spec(agent, **hears)))
        await self.open()

    async def open(self) -> None:
        """Have a host perform the world."""
        hub = self.server.face.hub
        host = Host(
            self.server.face.journal,
            "demo",
            models={"test:alice": self.model, "test:bob": self.model},
            toolboxes=(Toolbox([pay]),),
            settings=Settings(ownership=3.0, poll=0.02),
            hear=hub.pass_on,
        )
        await self._stack.enter_async_context(host)

    def close(self) -> None:
        self.server.call(self._stack.aclose())

    def step(self) -> None:
        """Let the model say what comes next."""

        async def step() -> None:
            self.model.gate.set()

        self.server.call(step())

    def chat(self, name: str, *members: str, world: str = "demo") -> None:
        async def opened() -> None:
            it = World(self.server.face.journal, world)
            if not await it.exists():
                await it.make(title="")
                await it.put_agent("alice", AgentSpec.from_json(_spec("alice")))
            await it.open_chat(name, members=members or ("alice",))

        self.server.call(opened())

    def say(self, chat: str, sender: str, *texts: str, world: str = "demo", **more: Any) -> None:
        """Have messages stand in a log, whoever says them."""

        async def said() -> None:
            for number, text in enumerate(texts):
                entry = Message(role=Role.AGENT, sender=sender, text=text, **more)
                await self.enter(
                    f"{world}/{chat}", f"{sender}-{number}-{len(text)}", body_of(entry)
                )

        self.server.call(said())

    async def enter(self, log: str, name: str, body: Mapping[str, Any]) -> None:
        await self.server.face.journal.append_entry(log, name, body, at=1_700_000_000.0)

    def entered(self, chat: str, name: str, body: Mapping[str, Any], world: str = "demo") -> None:
        self.server.call(self.enter(f"{world}/{chat}", name, body))

    def waits(self, chat: str, *deliveries: Delivery, world: str) -> str:
        """Have the run of a member that nobody performs judge this."""
        run_id = member_run(world, chat, "alice")

        async def submit() -> None:
            run = Run(run_id=run_id, agent_id="alice", agent_name="alice", kind=KIND)
            await self.server.face.journal.declare(run)
            shared = await SharedRun.open(self.server.face.journal, run_id, policies={})
            verdicts = await shared.submit(*deliveries)
            assert all(it.accepted for it in verdicts), verdicts

        self.server.call(submit())
        return run_id

    def doubts(self, chat: str, *, world: str = "quiet") -> str:
        """Have a call of which nobody knows whether it happened."""
        call = free("c1", "ship", parcel=81)
        opens = OpenTurn(turn_id="t1", calls=(call,))
        return self.waits(chat, opens, began("c1"), lost("c1"), world=world)

    def asks(self, chat: str, schema: Mapping[str, Any] | None, *, world: str = "quiet") -> str:
        """Have a running tool ask a person; returns the question's id."""
        call = free("c1", "book__room")
        opens = OpenTurn(turn_id="t1", calls=(call,))
        run_id = self.waits(chat, opens, began("c1"), world=world)
        name = question_id(run_id, "t1", "c1", 1, 1)
        entry = Asked(
            run=run_id,
            turn="t1",
            invocation="c1",
            attempt=1,
            server="book",
            text="Which room?",
            schema=schema,
        )
        self.entered(chat, name, body_of(entry), world=world)
        return name

    def log(self, chat: str, world: str = "demo") -> list[Any]:
        """The bodies of a chat's entries."""

        async def read() -> list[Any]:
            return [it.body for it in await self.server.face.journal.entries(f"{world}/{chat}")]

        return self.server.call(read())


def _spec(agent: str, **more: Any) -> Mapping[str, Any]:
    return {"model": f"test:{agent}", "instructions": "Be kind.", "tools": ["pay"], **more}


def there(page: Page, chat: str, world: str = "demo") -> Page:
    """Open a chat, and wait until all of it is shown."""
    page.goto(f"/console/worlds#world={world}&chat={chat}")
    expect(page.locator("#badge")).to_contain_text("live")
    return page


def talk(page: Page) -> Locator:
    return page.get_by_role("log", name="Chat")


def press(page: Page, words: str) -> None:
    """Press a button of a card, once it can be pressed."""
    button = page.locator("article.card").get_by_role("button", name=words, exact=True)
    expect(button).to_have_attribute("aria-disabled", "false")
    button.click()


def says(page: Page, text: str) -> None:
    page.get_by_label("Message").fill(text)
    page.get_by_label("Message").press("Control+Enter")
