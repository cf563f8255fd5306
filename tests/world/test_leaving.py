"""Who is no member any more is brought to rest, before anything else of that run (W-4, §12)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from turnlock import FactType
from turnlock.models.deliveries import Scope
from turnlock.runtime import Runtime, tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.views.run_view import RunView
from turnlock.world import AgentSpec, Host, Stands

from ..runtime.virtual import run
from .playing import Played, Playing, Process, calls, killed, play, says
from .test_waiting import until_it_waits

DONE: Counter[str] = Counter()
RUN = "demo/plan/alice"
SPEC = AgentSpec(model="test:alice", tools=("pay", "sail"))


@tool(approval=True)
async def pay(to: str = "ann") -> str:
    """Pay somebody."""
    DONE[to] += 1
    return f"paid {to}"


@tool
async def sail() -> str:
    """Take long."""
    await asyncio.sleep(100.0)
    DONE["sailed"] += 1
    return "there"


TOOLS = Toolbox([pay, sail])

LEAVES: dict[str, Callable[[Played], Awaitable[object]]] = {
    "AGENT_REMOVED": lambda played: played.world.remove_agent("alice"),
    "MEMORY_CLEARED": lambda played: played.world.clear("plan", "alice"),
    "CHAT_CLOSED": lambda played: played.world.close_chat("plan"),
}


async def paying() -> tuple[Played, Playing]:
    DONE.clear()
    model = says(calls("pay", to="ann"), "Paid.", calls("pay", to="ann"), "Paid again.")
    played = await play({"alice": (model, {"tools": ("pay", "sail")})})
    return played, model


async def approve(host: Host, *, scope: Scope = Scope.ONCE) -> None:
    await until_it_waits(host)
    (waiting,) = host.runtime.pending(RUN)
    await host.runtime.approve(
        RUN,
        turn_id=waiting.turn_id,
        invocation_id=waiting.invocation_id,
        arguments_digest=waiting.arguments_digest,
        scope=scope,
    )


async def view_of(played: Played, run_id: str = RUN) -> RunView:
    async with Runtime(journal=played.journal, kind="world") as runtime:
        return await runtime.view(run_id)


@pytest.mark.parametrize("how", LEAVES)
def test_w_4_who_leaves_with_a_turn_open_is_interrupted(how: str) -> None:
    """A request waits: it is denied with the turn, its grants are revoked, nothing is published."""

    async def it() -> None:
        played, model = await paying()
        async with played.host(toolboxes=TOOLS) as host:
            await played.chat.say("human", "@alice pay", message_id="m1")
            await approve(host, scope=Scope.SESSION)
            await host.idle("plan")
            assert (await view_of(played)).grants
            await played.chat.say("human", "@alice sail", message_id="m2")
            model.replies = [*model.replies[:2], calls("sail"), "There."]
            await until_it_waits(host, stands=Stands.RUNNING)
            await LEAVES[how](played)
            await host.until(lambda: RUN not in host.runtime.runs)
            view = await view_of(played)
            assert view.grants == ()
            assert view.turn is None
            assert (await played.said())[-1] == "human: @alice sail"
        facts = [it.type async for it in played.journal.facts(RUN)]
        assert facts.index(FactType.TURN_INTERRUPTING) < facts.index(FactType.GRANT_REVOKED)
        assert DONE == {"ann": 1}

    run(it())


@pytest.mark.parametrize("how", LEAVES)
def test_w_4_a_host_that_begins_brings_to_rest_what_nobody_performs(how: str) -> None:
    """Approved while nobody was there, and its member gone since: it never runs."""

    async def it() -> None:
        played, _ = await paying()
        async with played.host(toolboxes=TOOLS) as host:
            await played.chat.say("human", "@alice pay", message_id="m1")
            await until_it_waits(host)
        (waiting,) = (await view_of(played)).waiting
        request = f"request/demo%2Fplan%2Falice/{waiting.turn_id}/{waiting.invocation_id}"
        await played.chat.decide(
            request,
            approved=True,
            scope=Scope.SESSION,
            arguments_digest=waiting.arguments_digest,
            decided_by="me",
        )
        await LEAVES[how](played)
        async with played.host(toolboxes=TOOLS) as host:
            await host.idle()
            view = await view_of(played)
            assert view.grants == ()
            assert not view.busy
            assert host.runtime.runs == ()
        assert DONE == {}

    run(it())


def test_w_3_an_agent_that_is_put_again_goes_on_as_another_run() -> None:
    """It remembers nothing, hears nothing of before, and its approvals are gone."""

    async def it() -> None:
        played, model = await paying()
        async with played.host(toolboxes=TOOLS) as host:
            await played.chat.say("human", "@alice pay", message_id="m1")
            await approve(host, scope=Scope.SESSION)
            await host.idle("plan")
            await played.world.remove_agent("alice")
            await played.chat.say("human", "@alice anybody?", message_id="m2")
            await host.idle("plan")
            await played.world.put_agent("alice", SPEC)
            await host.idle("plan")
            assert len(model.asked) == 2
            model.replies = [*model.replies[:2], "I am new."]
            await played.chat.say("human", "@alice who are you?", message_id="m3")
            await host.idle("plan")
        assert len(model.asked[-1].messages) == 1
        entries = await played.journal.entries("demo/plan")
        assert entries[-1].entry_id == "demo/plan/alice#2/said/2"
        assert await played.said() == [
            "human: @alice pay",
            "alice: Paid.",
            "human: @alice anybody?",
            "human: @alice who are you?",
            "alice: I am new.",
        ]

    run(it())


def test_w_4_a_cleared_member_hears_what_is_said_next() -> None:
    """And not again what it had heard; a model that spoke is not listened to."""

    async def it() -> None:
        model = says("One.", "Two.", slow=5.0)
        played = await play({"alice": model})
        async with played.host() as host:
            await played.chat.say("human", "@alice one", message_id="m1")
            await until_it_waits(host, stands=Stands.SPEAKING)
            await played.world.clear("plan", "alice")
            await host.idle("plan")
            assert await played.said() == ["human: @alice one"]
            await played.chat.say("human", "@alice two", message_id="m2")
            await host.idle("plan")
        assert model.told == ["human: @alice one", "human: @alice two"]
        assert await played.said() == ["human: @alice one", "human: @alice two", "alice: Two."]

    run(it())


def test_who_leaves_while_its_host_is_dead_is_interrupted_with_what_ran() -> None:
    """What the dead process ran is lost, and never run again."""

    async def it() -> None:
        played, model = await paying()
        model.replies = [calls("sail"), "There."]
        process, before = Process(played.journal), asyncio.all_tasks()
        host = played.host(toolboxes=TOOLS, journal=process)
        await host.__aenter__()
        await played.chat.say("human", "@alice sail", message_id="m1")
        await until_it_waits(host, stands=Stands.RUNNING)
        await killed(process, asyncio.all_tasks() - before)
        await played.world.clear("plan", "alice")
        async with played.host(toolboxes=TOOLS) as host:
            await host.idle()
            view = await view_of(played)
            assert not view.busy
        assert DONE == {}
        assert len(model.asked) == 1

    run(it())
