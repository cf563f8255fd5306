"""A tool that is declared otherwise is another: no grant covers it (section 12 of world.md).

W-4, W-60, K-41: the kernel covers a tool by its name; a member revokes what was given for another.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.agent import Answer, CallEnded, Ended, Question, Said, Stop
from turnlock.agent.granted import DIGEST, declaration_of, declarations
from turnlock.agent.messages import as_note, from_note
from turnlock.models.deliveries import Match, Scope
from turnlock.models.errors import InvalidValue
from turnlock.models.facts import GrantRevoked
from turnlock.runtime import Policy, Toolbox
from turnlock.runtime.journal.contract import Appended, Journal
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import ToolsOf
from turnlock.toolkits.mcp import McpServer, McpServers
from turnlock.world import Chat, Host, ProjectionEvent
from turnlock.world.requests import Request

from ..runtime.virtual import run
from ..toolkits.mcp.hosting import play as play_really
from .playing import Played, Playing, Process, calls, killed, play, says

ALICE = "demo/plan/alice"
PAY = calls("pay", to="bob")


def schema(*more: str) -> dict[str, Any]:
    """Say whom to pay, and what else there is to say."""
    properties = {it: {"type": "string"} for it in ("to", *more)}
    return {"type": "object", "properties": properties, "required": ["to"]}


def pays(paid: list[str], *more: str, description: str = "Pay.") -> Tool:
    """A tool of this schema, as a server may have it."""

    @tool(name="pay", description=description, parameters=schema(*more), approval=True)
    async def pay(**arguments: str) -> str:
        paid.append(arguments["to"])
        return "paid"

    return pay


@attrs.define
class Shop:
    """A world in which alice pays, with a toolbox that changes."""

    played: Played
    model: Playing
    paid: list[str] = attrs.field(factory=list[str])
    box: Toolbox = attrs.field(factory=Toolbox)
    numbers: Iterator[int] = attrs.field(factory=lambda: iter(range(1, 100)))

    def __attrs_post_init__(self) -> None:
        self.have()

    def have(self, *more: str, description: str = "Pay.") -> None:
        """Have the tool be of this schema, made anew even where nothing changes."""
        self.box = Toolbox([pays(self.paid, *more, description=description)])

    def host(self, **more: Any) -> Host:
        return self.played.host(toolboxes=self.tools, **more)

    def tools(self, _: str) -> Toolbox:
        """What there is now."""
        return self.box

    async def say(self) -> None:
        await self.played.chat.say("human", "pay", message_id=f"{next(self.numbers)}")

    async def approve(self, nth: int = 1, match: Match = Match.TOOL) -> None:
        """Approve the latest request for the session, once so many are there."""
        asked = await asked_for(self.played.chat, nth)
        judged = await self.played.chat.decide(
            asked.id,
            approved=True,
            decided_by="me",
            arguments_digest=asked.call.arguments_digest,
            scope=Scope.SESSION,
            match=match,
        )
        assert judged.accepted

    async def waits(self, host: Host) -> bool:
        """Whether, once nothing goes on, a person is asked."""
        await asyncio.sleep(20)
        return (await host.standing("plan")).waits_for_people

    async def revoked(self) -> int:
        return sum([isinstance(it, GrantRevoked) async for it in self.played.journal.facts(ALICE)])


async def asked_for(chat: Chat, nth: int) -> Request:
    """Wait until so much was asked for, and return the last of it."""
    found: list[Request] = []
    async with chat.events() as events:
        async for it in events:
            if isinstance(it, ProjectionEvent) and isinstance(it.projection, Request):
                found.append(it.projection)
            if len(found) == nth:
                break
    return found[-1]


async def shop(*replies: Any, **spec: Any) -> Shop:
    model = says(*(replies or (PAY, "Done.", PAY, "Done.", PAY, "Done.")))
    return Shop(await play({"alice": (model, {"tools": ("pay",), **spec})}), model)


Change = Callable[[Shop], None]


def nothing(it: Shop) -> None:
    """The same, in an object of its own."""
    it.have()


def another_schema(it: Shop) -> None:
    it.have("account")


def another_description(it: Shop) -> None:
    it.have(description="Pay, from whatever account has the most.")


def gone(it: Shop) -> None:
    it.box = Toolbox()


CHANGES = [another_schema, another_description]


@pytest.mark.parametrize("match", [*Match])
@pytest.mark.parametrize("change", CHANGES)
def test_w_4_a_tool_that_changes_under_a_grant_waits_for_a_person(
    change: Change, match: Match
) -> None:
    """Section 12: also with these arguments alone; what is given then holds for the new one."""

    async def it() -> None:
        world = await shop()
        async with world.host() as host:
            await world.say()
            await world.approve(match=match)
            await host.idle("plan")
            change(world)
            await world.say()
            assert await world.waits(host)
            assert (world.paid, await world.revoked()) == (["bob"], 1)
            await world.approve(2, match=match)
            await host.idle("plan")
            await world.say()
            await host.idle("plan")
            assert (world.paid, await world.revoked()) == (["bob"] * 3, 1)

    run(it())


@pytest.mark.parametrize("match", [*Match])
@pytest.mark.parametrize("again", [True, False])
def test_w_4_a_tool_that_stays_the_same_runs_under_its_grant(match: Match, *, again: bool) -> None:
    """Whatever object it is, and in whatever process."""

    async def it() -> None:
        world = await shop()
        async with world.host() as host:
            await world.say()
            await world.approve(match=match)
            await host.idle("plan")
            nothing(world)
            if not again:
                await world.say()
                await host.idle("plan")
        if again:
            async with world.host() as host:
                await world.say()
                await host.idle("plan")
        assert (world.paid, await world.revoked()) == (["bob", "bob"], 0)

    run(it())


def test_without_the_comparison_the_grant_covers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the tests above: the kernel goes by the name."""

    def never(*_: object) -> Iterator[str]:
        return iter(())

    monkeypatch.setattr("turnlock.agent.talk.outdated", never)

    async def it() -> None:
        world = await shop()
        async with world.host() as host:
            await world.say()
            await world.approve()
            await host.idle("plan")
            another_schema(world)
            await world.say()
            await host.idle("plan")
        assert world.paid == ["bob", "bob"]

    run(it())


@pytest.mark.parametrize("change", CHANGES)
def test_w_4_a_grant_given_while_no_host_lives_is_for_what_was_asked_for(change: Change) -> None:
    """What the tool was then stands in the answer, whoever decides, and whenever."""

    async def it() -> None:
        world = await shop(calls("pay", to="bob"), PAY, "Done.")
        async with world.host():
            await world.say()
            await asked_for(world.played.chat, 1)
        await world.approve()
        change(world)
        async with world.host() as host:
            assert await world.waits(host)
            assert (world.paid, await world.revoked()) == (["bob"], 1)

    run(it())


def test_w_4_a_tool_that_changes_between_two_hosts() -> None:
    async def it() -> None:
        world = await shop()
        async with world.host() as host:
            await world.say()
            await world.approve()
            await host.idle("plan")
        another_schema(world)
        async with world.host() as host:
            await world.say()
            assert await world.waits(host)
        assert (world.paid, await world.revoked()) == (["bob"], 1)

    run(it())


@pytest.mark.parametrize("start", ["whole", "early"])
def test_w_4_a_tool_that_changes_while_the_model_speaks(start: str) -> None:
    """Before the calls of an answer begin it is looked at again."""
    made: list[Shop] = []

    def late(_: object) -> Any:
        another_schema(made[0])
        return PAY

    async def it() -> None:
        made.append(await shop(PAY, "Done.", late, "Done.", start=start))
        (world,) = made
        async with world.host() as host:
            await world.say()
            await world.approve()
            await host.idle("plan")
            await world.say()
            assert await world.waits(host)
        assert (world.paid, await world.revoked()) == (["bob"], 1)

    run(it())


class Slowly:
    """A model that closes one call, and another of the same tool once it may; then it is done."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        if len(question.messages) > 1:
            yield Ended(Answer(text="Done."))
            return
        asked = calls("pay", "pay", to="bob").calls
        yield CallEnded(0, asked[0])
        await self.goes_on.wait()
        yield CallEnded(1, asked[1])
        yield Ended(Answer(calls=asked, stop=Stop.CALLS))

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("changed", [True, False])
def test_w_58_a_tool_that_changes_between_two_calls_of_an_answer(*, changed: bool) -> None:
    """The first has begun, and was approved for the session, while the model still speaks."""

    async def it() -> None:
        world, model = await shop(start="early"), Slowly()
        async with world.host(models={"test:alice": model}) as host:
            await world.say()
            await world.approve()
            (another_schema if changed else nothing)(world)
            model.goes_on.set()
            if changed:
                assert await world.waits(host)
                assert (world.paid, await world.revoked()) == (["bob"], 1)
            else:
                await host.idle("plan")
                assert (world.paid, await world.revoked()) == (["bob", "bob"], 0)

    run(it())


def test_w_4_a_tool_that_is_gone_takes_its_grant_along() -> None:
    """It is asked for again where it comes back, though it is what it was."""

    async def it() -> None:
        world = await shop(PAY, "Done.", "Nothing to do.", PAY, "Done.")
        async with world.host() as host:
            await world.say()
            await world.approve()
            await host.idle("plan")
            gone(world)
            await world.say()
            await host.idle("plan")
            nothing(world)
            await world.say()
            assert await world.waits(host)
        assert (world.paid, await world.revoked()) == (["bob"], 1)

    run(it())


@pytest.mark.parametrize("kept", [True, False])
def test_w_4_killed_before_and_after_the_revocation(*, kept: bool) -> None:
    """It is done again, or found done: nothing of the run comes before it."""

    async def it() -> None:
        world = await shop()
        journal = world.played.journal
        async with world.host() as host:
            await world.say()
            await world.approve()
            await host.idle("plan")
        another_schema(world)
        process = Mortal(journal, kept=kept)
        before = asyncio.all_tasks()
        living = world.host(journal=process)
        await living.__aenter__()
        await world.say()
        await process.died.wait()
        await killed(process, asyncio.all_tasks() - before)
        assert await world.revoked() == kept
        async with world.host() as host:
            assert await world.waits(host)
        assert (world.paid, await world.revoked()) == (["bob"], 1)

    run(it())


class Mortal(Process):
    """A journal of a process that dies at its first revocation."""

    def __init__(self, inner: Journal, *, kept: bool) -> None:
        super().__init__(inner)
        self.kept = kept
        self.died = asyncio.Event()

    async def append(self, run_id: str, **more: Any) -> Appended:
        """Die before it is kept, or after."""
        if any(isinstance(it, GrantRevoked) for it in more["facts"]):
            if self.kept:
                await super().append(run_id, **more)
            self.kill()
            self.died.set()
        return await super().append(run_id, **more)


SERVER = """
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("shop", log_level="ERROR")


@server.tool()
def pay(to: str) -> str:
    "Pay."
    return "paid"


@server.tool()
async def change(ctx: Context) -> str:
    "Have another tool of the same name."

    def pay(to: str, account: str = "all") -> str:
        "Pay."
        return "paid"

    server.remove_tool("pay")
    server.add_tool(pay)
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "changed"


server.run()
"""


def test_w_64_a_server_of_ours_that_changes_its_tool_under_a_grant(tmp_path: Path) -> None:
    """An MCP server of the SDK, in one process with one host: the second call waits."""
    (tmp_path / "server.py").write_text(SERVER)
    policies = {"pay": Policy(approval=True), "change": Policy()}
    command = [sys.executable, str(tmp_path / "server.py")]

    async def work() -> None:
        pay = calls("shop__pay", to="bob")
        model = says(pay, "Done.", pay, "Done.", calls("shop__change"), "Done.", pay, "Done.")
        played = await play({"alice": (model, {"tools": ("shop__*",)})})
        world = Shop(played, model)
        shop = McpServer(command=command, policies=policies)
        async with (
            McpServers({"shop": shop}) as servers,
            played.host(toolboxes=now(servers), clock=None) as host,
        ):
            await world.say()
            await world.approve()
            await host.idle("plan")
            await world.say()
            await host.idle("plan")
            assert (model.results[-1], await world.revoked()) == ("paid", 0)
            before = servers.toolbox()
            await world.say()
            await host.idle("plan")
            assert model.results[-1] == "changed"
            while servers.toolbox() is before:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.01)
            await world.say()
            await asked_for(played.chat, 2)
            await host.until(lambda: bool(host.runtime.pending(ALICE)))
            assert await world.revoked() == 1

    play_really(work())


def now(servers: McpServers) -> ToolsOf:
    def tools(_: str) -> Toolbox:
        return servers.toolbox()

    return tools


@given(st.text(), st.text())
def test_two_descriptions_are_two_tools(one: str, other: str) -> None:
    """And one is one, as often as it is declared, whatever it says."""
    try:
        first, second, again = (pays([], description=it) for it in (one, other, one))
    except InvalidValue:
        return  # no text
    assert (declaration_of(first) == declaration_of(second)) == (one == other)
    assert declaration_of(first) == declaration_of(again)


@given(st.lists(st.sampled_from(["pay", "look", "none"])))
def test_w_34_an_answer_keeps_what_the_tools_that_it_calls_are(names: list[str]) -> None:
    """Nothing of others, and of none that there is not; its note says it again."""
    tools = Toolbox([pays([]), Tool(name="look", call=pays([]).call, parameters=schema())])
    answer = calls(*names, to="bob")
    declared = declarations(answer.calls, tools)
    assert {*declared} == {*names} - {"none"}
    assert all(len(it) == DIGEST for it in declared.values())
    kept = attrs.evolve(answer, declared=declared or None)
    assert from_note(as_note(kept, name="said/1")) == kept
    assert ("declared" in as_note(kept).body) == bool(declared)
