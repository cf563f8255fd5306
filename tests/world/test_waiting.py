"""Members that wait for people, are stopped by them, or run where nobody is (W-27, W-44, W-69)."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from turnlock import FactType
from turnlock.agent import Prompt
from turnlock.runtime import Policy, ToolContext, tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.world import Host, Stands, Stop
from turnlock.world.entries import body_of
from turnlock.world.passing import ToolLogged, listen

from ..runtime.virtual import run, settled
from .playing import Played, Playing, Process, calls, killed, play, says

DONE: Counter[str] = Counter()


@tool(approval=True)
async def pay(to: str = "ann") -> str:
    """Pay somebody."""
    DONE[to] += 1
    return f"paid {to}"


@tool
async def look(context: ToolContext) -> str:
    """Look around."""
    context.log("looking")
    return "all is well"


@tool(policy=Policy(lease=60.0))
async def ponder() -> str:
    """Take long."""
    await asyncio.sleep(50.0)
    return "42"


TOOLS = Toolbox([pay, look, ponder])


async def paying(**more: Any) -> tuple[Played, Playing, Playing]:
    alice, bob = says(calls("pay", "look"), "Paid."), says("Noon.")
    spec = {"tools": ("pay", "look", "ponder"), **more}
    return await play({"alice": (alice, spec), "bob": bob}), alice, bob


async def until_it_waits(host: Host, *, stands: Stands = Stands.APPROVAL) -> None:
    """Wait until a member waits for a person, and nothing goes on."""
    for _ in range(1_000):
        standing = await host.standing("plan")
        if any(it.stands is stands for it in standing.members):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(await host.standing("plan"))


def test_w_27_a_member_that_waits_holds_up_nobody_else() -> None:
    """What is said to it meanwhile waits in the log; the other goes on; then all is heard."""

    async def it() -> None:
        DONE.clear()
        played, alice, bob = await paying()
        async with played.host(toolboxes=TOOLS) as host:
            await played.chat.say("human", "@alice pay", message_id="m1")
            await until_it_waits(host)
            standing = await host.standing("plan")
            assert standing.waits_for_people
            assert not host.is_idle("plan")
            await played.chat.say("human", "hello?", message_id="m2")
            await host.until(lambda: len(bob.asked) == 1)
            await settled()
            assert len(alice.asked) == 1, "W-26: no prompt between a call and its result"
            (waiting,) = host.runtime.pending("demo/plan/alice")
            await host.runtime.approve(
                waiting.run_id,
                turn_id=waiting.turn_id,
                invocation_id=waiting.invocation_id,
                arguments_digest=waiting.arguments_digest,
            )
            await host.idle("plan")
        assert alice.results == ["paid ann", "all is well"]
        assert alice.told == ["human: @alice pay", "human: @alice pay", "human: hello?"]
        assert DONE == {"ann": 1}
        assert (await played.said())[2:] == ["bob: Noon.", "alice: Paid.", "alice: Paid."]

    run(it())


def test_w_45_a_decision_while_nobody_is_there_is_gone_on_with() -> None:
    """Judged where no host lives; the next one runs it, once, and asks nothing again."""

    async def it() -> None:
        DONE.clear()
        played, alice, _ = await paying()
        async with played.host(toolboxes=TOOLS) as host:
            await played.chat.say("human", "@alice pay", message_id="m1")
            await until_it_waits(host)
        view = await view_of(played)
        (waiting,) = view.waiting
        request = f"request/demo%2Fplan%2Falice/{waiting.turn_id}/{waiting.invocation_id}"
        judged = await played.chat.decide(
            request, approved=True, arguments_digest=waiting.arguments_digest, decided_by="me"
        )
        assert judged.accepted
        async with played.host(toolboxes=TOOLS) as host:
            await host.idle("plan")
        assert alice.results == ["paid ann", "all is well"]
        assert DONE == {"ann": 1}
        assert (await played.said())[-1] == "alice: Paid."
        assert len(alice.asked) == 2

    run(it())


async def view_of(played: Played) -> Any:
    from turnlock.runtime import Runtime  # noqa: PLC0415 - to look at it

    async with Runtime(journal=played.journal, kind="world") as runtime:
        return await runtime.view("demo/plan/alice")


def test_w_69_where_nobody_decides_requests_are_denied() -> None:
    """At once, with the reason; the member goes on, and the chat is idle."""

    async def it() -> None:
        DONE.clear()
        played, alice, _ = await paying()
        async with played.host(toolboxes=TOOLS, headless=True) as host:
            await played.chat.say("human", "@alice pay", message_id="m1")
            await host.idle("plan")
        assert DONE == {}
        facts = [it.type async for it in played.journal.facts("demo/plan/alice")]
        assert facts.count(FactType.TOOL_DENIED) == 1
        assert (await played.said())[-1] == "alice: Paid."
        assert len(alice.asked) == 2

    run(it())


def test_a_person_stops_a_model_that_only_speaks() -> None:
    """By an entry of the chat, from any process: nothing of the answer is published."""

    async def it() -> None:
        played = await play({"alice": says("Long.", slow=100.0)})
        async with played.host() as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await until_it_waits(host, stands=Stands.SPEAKING)
            await played.chat.interrupt("alice", reason="enough", by="human")
            await host.idle("plan")
            assert asyncio.get_running_loop().time() < 10.0
            assert await played.said() == ["human: @alice go"]
        async with played.host() as host:
            await host.idle("plan")
        assert await played.said() == ["human: @alice go"]

    run(it())


def test_w_28_a_person_stops_a_model_that_is_asked_again() -> None:
    """It has said nothing, and is asked once more: that is an answer that is owed, too."""

    async def it() -> None:
        played = await play({"alice": says("", "Long.", slow=5.0)})
        async with played.host() as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await asyncio.sleep(7.0)
            assert (await played.chat.interrupt("alice", reason="enough")).accepted
            await host.idle("plan")
        assert await played.said() == ["human: @alice go"]
        assert list(map(type, await played.chat.memory("alice"))) == [Prompt]

    run(it())


def test_w_14_a_stop_counts_in_its_own_chat_alone() -> None:
    """What another chat's log says of a member stops nobody."""

    async def it() -> None:
        played = await play({"alice": says("Long.", slow=5.0)})
        other = await played.world.open_chat("other")
        async with played.host() as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await until_it_waits(host, stands=Stands.SPEAKING)
            stop = Stop(run="demo/plan/alice", said=1, by="human")
            await played.journal.append_entry(other.log, "x", body_of(stop), at=1.0)
            await host.idle("plan")
        assert await played.said() == ["human: @alice go", "alice: Long."]

    run(it())


def test_what_was_stopped_while_no_host_ran_is_not_asked() -> None:
    """The next host keeps that it was stopped before it asks anything."""

    async def it() -> None:
        model = says("Long.", slow=100.0)
        played = await play({"alice": model})
        async with played.host() as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await until_it_waits(host, stands=Stands.SPEAKING)
        asked = len(model.asked)
        await played.chat.interrupt("alice", reason="enough", by="human")
        async with played.host() as host:
            await host.idle("plan")
            assert len(model.asked) == asked
            await played.chat.say("human", "@alice again", message_id="m2")
            await host.idle("plan")
        assert (await played.said())[-1] == "alice: Long."

    run(it())


def test_a_host_stops_a_member_and_its_calls() -> None:
    """K-53: the turn is interrupted, and the member hears the next word."""

    async def it() -> None:
        alice = says(calls("ponder"), "Well.")
        played = await play({"alice": (alice, {"tools": ("ponder",)})})
        async with played.host(toolboxes=TOOLS) as host:
            assert not await host.interrupt("plan", "alice")
            await played.chat.say("human", "@alice go", message_id="m1")
            await until_it_waits(host, stands=Stands.RUNNING)
            assert await host.interrupt("plan", "alice", reason="enough", grace=0.1)
            await host.idle("plan")
            await played.chat.say("human", "@alice and?", message_id="m2")
            await host.idle("plan")
        assert await played.said() == ["human: @alice go", "human: @alice and?", "alice: Well."]

    run(it())


def test_w_43_what_a_tool_writes_goes_by_in_the_chat() -> None:
    async def it() -> None:
        played = await play({"alice": (says(calls("look"), "Well."), {"tools": ("look",)})})
        listener = listen(played.journal, "demo/plan")
        async with played.host(toolboxes=TOOLS) as host:
            await played.chat.say("human", "@alice go", message_id="m1")
            await host.idle("plan")
        passed = [it.what for it in listener.take()]
        logs = [it for it in passed if isinstance(it, ToolLogged)]
        assert [it.text for it in logs] == ["looking"]
        assert {it.kind for it in passed} >= {"start", "chunk", "end", "log"}

    run(it())


def test_a_member_in_doubt_waits_for_people_and_rests_for_nobody() -> None:
    """Its standing says so, in any process; the call is not run again."""

    async def it() -> None:
        alice = says(calls("ponder"), "Well.")
        played = await play({"alice": (alice, {"tools": ("ponder",)})})
        process, before = Process(played.journal), asyncio.all_tasks()
        host = played.host(toolboxes=TOOLS, journal=process)
        await host.__aenter__()
        await played.chat.say("human", "@alice go", message_id="m1")
        await until_it_waits(host, stands=Stands.RUNNING)
        await killed(process, asyncio.all_tasks() - before)
        async with played.host(toolboxes=TOOLS) as host:
            await until_it_waits(host, stands=Stands.DOUBT)
            standing = await host.standing("plan")
            assert standing.waits_for_people
            assert not standing.is_idle
            facts = [it.type async for it in played.journal.facts("demo/plan/alice")]
            assert facts.count(FactType.TOOL_EXECUTION_STARTED) == 1

    run(it())
