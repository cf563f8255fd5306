"""Every way to drive an agent: a guarded tool runs once in each, and nothing else changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import (
    Agent,
    AgentRunResultEvent,
    DeferredToolRequests,
    DeferredToolResults,
    ToolOutput,
)
from pydantic_ai.messages import ModelMessage

from turnlock.guards import NotApproved
from turnlock.guards.guard import Guard
from turnlock.guards.pydantic_ai import decide

from .bank import Bank, Script, agent_of, bare, call, guarded, kept, returned, text

Drive = Callable[..., Awaitable[tuple[Any, list[ModelMessage]]]]


async def run(agent: Agent[None, Any], *prompt: str, **given: Any) -> Any:
    result = await agent.run(*prompt, **given)
    return result.output, result.all_messages()


async def run_stream(agent: Agent[None, Any], *prompt: str, **given: Any) -> Any:
    async with agent.run_stream(*prompt, **given) as streamed:
        output = await streamed.get_output()
    return output, streamed.all_messages()


async def run_stream_events(agent: Agent[None, Any], *prompt: str, **given: Any) -> Any:
    async with agent.run_stream_events(*prompt, **given) as events:
        last = [event async for event in events][-1]
    assert isinstance(last, AgentRunResultEvent)
    return last.result.output, last.result.all_messages()


async def iterate(agent: Agent[None, Any], *prompt: str, **given: Any) -> Any:
    async with agent.iter(*prompt, **given) as walk:
        async for _ in walk:
            pass
    assert walk.result is not None
    return walk.result.output, walk.result.all_messages()


async def in_a_thread(agent: Agent[None, Any], *prompt: str, **given: Any) -> Any:
    """A loop of its own in another thread, as `run_sync` has it."""
    return await asyncio.to_thread(lambda: asyncio.run(run(agent, *prompt, **given)))


DRIVES = [run, run_stream, run_stream_events, iterate, in_a_thread]


@pytest.mark.parametrize("drive", DRIVES)
@pytest.mark.parametrize("said", [[], [text("let me see")]])
def test_asked_answered_and_resumed_twice(tmp_path: Path, drive: Drive, said: list[Any]) -> None:
    async def story(guard: Guard | None) -> Any:
        bank = Bank()
        agent = agent_of(guard, bank, Script([*said, call("c1"), call("c2", 6)]))
        requests, history = await drive(agent, "pay twice")
        if not isinstance(requests, DeferredToolRequests):  # a text was enough for `run_stream`
            assert drive is run_stream
            return bank.paid, returned(history)
        told = DeferredToolResults(approvals={"c1": True, "c2": False})
        if guard is not None:
            with pytest.raises(NotApproved):
                await drive(agent, message_history=kept(history), deferred_tool_results=told)
            told = await decide(guard, history, requests, {"c1": True, "c2": False})
        messages = history
        for _ in range(2):
            output, messages = await drive(
                agent, message_history=kept(history), deferred_tool_results=told
            )
            assert output == "done"
        return bank.paid, returned(messages)

    paid, told = bare(story)
    once, guarded_told = guarded(tmp_path, story)
    assert guarded_told == told
    assert once == paid[:1]


@pytest.mark.parametrize("drive", DRIVES)
@pytest.mark.parametrize("said", [[], [text("let me see")]])
def test_tools_that_need_no_approval_run_as_without(
    tmp_path: Path, drive: Drive, said: list[Any]
) -> None:
    """With a text before the calls `run_stream` runs tools before any hook has seen the answer."""

    async def story(guard: Guard | None) -> Any:
        bank = Bank()
        script = Script([*said, call("c1"), call("c2", 6)], [call("c1")])
        output, messages = await drive(agent_of(guard, bank, script, asks=False), "pay")
        return sorted(bank.paid), output, returned(messages)  # they are paid side by side

    assert guarded(tmp_path, story) == bare(story)


def test_a_text_before_the_calls_and_a_resumption_of_that_answer(tmp_path: Path) -> None:
    """What `run_stream` has run by itself is replayed from a history without its results."""

    async def story(guard: Guard | None) -> list[int]:
        bank = Bank()
        agent = agent_of(guard, bank, Script([text("let me see"), call()]), asks=False)
        _, messages = await run_stream(agent, "pay")
        assert returned(messages) == [("success", "paid 5")]
        await agent.run(message_history=messages[:-1])
        return bank.paid

    assert bare(story) == [5, 5]
    assert guarded(tmp_path, story) == [5]


@pytest.mark.parametrize("mode", ["parallel", "sequential", "parallel_ordered_events"])
def test_parallel_and_sequential_calls(tmp_path: Path, mode: Any) -> None:
    async def story(guard: Guard | None) -> Any:
        bank = Bank()
        agent = agent_of(guard, bank, Script([call(f"c{it}", it) for it in range(5)]), asks=False)
        with agent.parallel_tool_call_execution_mode(mode):
            result = await agent.run("pay 5 times")
        return sorted(bank.paid), returned(result.all_messages())

    assert guarded(tmp_path, story) == bare(story)


def test_output_tools_between_are_no_forks(tmp_path: Path) -> None:
    async def story(guard: Guard | None) -> Any:
        bank = Bank()
        over = call("o1", 1, "final_result")
        script = Script([call()], [over], [call()], [call("c9", 9), over], [call()], [over])

        def total(amount: int) -> int:
            return amount

        agent = agent_of(guard, bank, script, asks=False, output_type=ToolOutput(total))
        first = await agent.run("pay")
        second = await agent.run("pay more", message_history=kept(first.all_messages()))
        third = await agent.run("pay more", message_history=kept(second.all_messages()))
        return bank.paid, returned(third.all_messages())

    assert guarded(tmp_path, story) == bare(story)
