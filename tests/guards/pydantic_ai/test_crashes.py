"""Hosts that give up in a tool, and what stands beside it (guards.md section 1)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext, capture_run_messages

from turnlock.guards import At, InDoubt, Resolution, Stale, StillRunning
from turnlock.guards.claimed import Claimed
from turnlock.guards.guard import Guard
from turnlock.guards.pydantic_turns import turn_in
from turnlock.lifecycle.phases import Phase

from .bank import PAYS, Bank, Script, agent_of, answered, bare, call, guarded, returned


def test_g_3_host_timeout_in_the_tool_then_retry(tmp_path: Path) -> None:
    async def story(guard: Guard | None) -> tuple[list[int], list[Any]]:
        bank = Bank()
        agent = agent_of(guard, bank, Script(*PAYS))
        first = await agent.run("pay 5")
        told = await answered(guard, first, {"c1": True})

        def resumed() -> Any:
            return agent.run(message_history=first.all_messages(), deferred_tool_results=told)

        bank.hangs = True
        host = asyncio.create_task(resumed())
        await bank.began.wait()
        host.cancel()
        with pytest.raises(asyncio.CancelledError):
            await host
        bank.hangs = False
        if guard is not None:
            with pytest.raises(InDoubt) as doubt:
                await resumed()
            await guard.aresolve(doubt.value.at, Resolution.RESULT, result="paid 5")
        return bank.paid, returned((await resumed()).all_messages())

    assert bare(story) == ([5, 5], [("success", "paid 5")])
    assert guarded(tmp_path, story) == ([5], [("success", "paid 5")])


def test_a_history_that_says_interrupted_of_what_is_in_doubt(tmp_path: Path) -> None:
    """The framework would tell the model so, which asks again, with another id."""

    async def story(guard: Guard | None) -> tuple[list[int], int]:
        bank, script = Bank(), Script([call("c1")], [call("c2")])
        agent = agent_of(guard, bank, script, asks=False)
        bank.hangs = True
        with capture_run_messages() as history:
            host = asyncio.create_task(agent.run("pay 5"))
            await bank.began.wait()
            host.cancel()
            with pytest.raises(asyncio.CancelledError):
                await host
        bank.hangs = False
        again = agent.run("and now?", message_history=history)
        if guard is None:
            await again
        else:
            with pytest.raises(InDoubt):
                await again
        return bank.paid, script.asked

    assert bare(story) == ([5, 5], 3)
    assert guarded(tmp_path, story) == ([5], 1)


def test_what_is_in_doubt_does_not_put_its_siblings_in_doubt(tmp_path: Path) -> None:
    """The framework cancels the siblings of a tool that raises: a refusal waits for them."""

    async def story(guard: Guard) -> Any:
        shipped: list[int] = []
        agent = agent_of(guard, Bank(), Script([call("c1"), call("c2", tool="ship")]), asks=False)

        @agent.tool_plain
        async def ship(amount: int) -> str:
            for _ in range(20):
                await asyncio.sleep(0.01)
            shipped.append(amount)
            return "shipped"

        async with agent.iter("pay and ship") as run:
            async for node in run:
                if Agent.is_call_tools_node(node):
                    break  # a host that dies when the answer is there
            history = run.all_messages()
        at = At(run.conversation_id, None, "c1")
        held = await guard.aclaim(at, "pay", {"amount": 5})
        assert isinstance(held, Claimed)
        await held.alost()
        with pytest.raises(InDoubt):
            await agent.run(message_history=history)
        return shipped, (await guard.alook(At(at.run, turn_in(history), "c2"))).phase

    assert guarded(tmp_path, story) == ([5], Phase.SUCCEEDED)


def test_g_2_what_another_host_of_the_loop_runs_is_refused_while_it_runs(tmp_path: Path) -> None:
    """It may never end, so a refusal does not wait for it as it does for the calls beside it."""

    async def story(guard: Guard) -> list[int]:
        bank = Bank()
        agent = agent_of(guard, bank, Script(*PAYS))
        first = await agent.run("pay 5")
        told = await answered(guard, first, {"c1": True})

        def resumed() -> Any:
            return agent.run(message_history=first.all_messages(), deferred_tool_results=told)

        bank.hangs = True
        host = asyncio.create_task(resumed())
        await bank.began.wait()
        with pytest.raises(StillRunning):
            await resumed()
        assert not host.done()
        host.cancel()
        await asyncio.wait([host])
        return bank.paid

    assert guarded(tmp_path, story) == [5]


def test_what_a_tool_dispatches_does_not_wait_for_the_tool(tmp_path: Path) -> None:
    """No answer asked for it, so no turn has it: it is refused, and the tool is not waited for."""

    async def story(guard: Guard) -> Phase:
        agent = agent_of(guard, Bank(), Script([call("c1", tool="send")]), asks=False)

        @agent.tool
        async def send(ctx: RunContext[None], amount: int) -> object:
            assert ctx.tool_manager is not None
            return await ctx.tool_manager.handle_call(call("inner", amount))

        with pytest.raises(Stale) as refused:
            await agent.run("send 5", conversation_id="r1")
        assert refused.value.at.call == "inner"
        return (await guard.alook(At("r1", None, "c1"))).phase

    assert guarded(tmp_path, story) == Phase.IN_DOUBT
