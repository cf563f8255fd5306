"""Sync tools that hang starve nobody; beyond a bound calls are refused, in words, before a claim.

Threads cannot be had in virtual time: these tests wait out a real grace.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest

from turnlock import Call, CallResult, FactType, Run, Status
from turnlock.models.facts import ToolExecutionFailed
from turnlock.models.lifecycle_facts import FailureCause
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.threads import Lease
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox

SOON = 0.1
"""Seconds that the slow tool may take."""
ONE = str(uuid.UUID(int=1))


@attrs.define
class Host:
    """A runtime with few threads, whose slow tools wait at one gate."""

    runtime: Runtime
    journal: MemoryJournal
    told: dict[str, asyncio.Future[Continuation]]
    gate: threading.Event

    async def turn(self, number: int, *names: str) -> tuple[CallResult, ...]:
        """Play a turn with a call of each tool; return what the model is told."""
        calls = [
            Call(invocation_id=f"{n}{name}", tool_name=name, arguments={}, requires_approval=False)
            for n, name in enumerate(names)
        ]
        turn_id = f"t{number}"
        self.told[turn_id] = asyncio.get_running_loop().create_future()
        await self.runtime.open_turn("r", calls, turn_id=turn_id, epoch=number)
        return (await asyncio.wait_for(self.told[turn_id], 10)).results

    async def types(self) -> list[FactType]:
        return [fact.type async for fact in self.journal.facts("r")]


def tools(gate: threading.Event) -> tuple[Tool, ...]:
    @tool(timeout=SOON, in_doubt=InDoubt.FAIL)
    def slow() -> str:
        gate.wait(20)
        return "late"

    @tool
    def quick() -> str:
        return "done"

    @tool(processors=(lambda value, _: f"{value} and processed",))
    async def processed() -> str:
        return "done"

    @tool
    async def on_loop() -> Any:
        return uuid.UUID(int=1)  # reading it takes a thread of its own

    return slow, quick, processed, on_loop


@asynccontextmanager
async def host(*, lost_threads: int) -> AsyncGenerator[Host]:
    """Begin one; its gate is opened at the end."""
    told: dict[str, asyncio.Future[Continuation]] = {}
    journal, gate = MemoryJournal(), threading.Event()

    async def on_continue(continuation: Continuation) -> None:
        told[continuation.turn_id].set_result(continuation)

    runtime = Runtime(
        journal=journal,
        tools=Toolbox(tools(gate)),
        on_continue=on_continue,
        settings=Settings(executions=2, lost_threads=lost_threads),
    )
    try:
        async with runtime:
            await runtime.open_run(Run(run_id="r"))
            yield Host(runtime, journal, told, gate)
            gate.set()
    finally:
        gate.set()


def test_lost_threads_are_replaced_and_what_comes_next_begins() -> None:
    """As many hang as tools run at once, and more: the next tools run as if nothing were."""

    async def play() -> None:
        async with host(lost_threads=4) as it:
            hung = await it.turn(1, "slow", "slow", "slow")
            assert [one.status for one in hung] == [Status.FAILED] * 3
            after = await it.turn(2, "quick", "processed", "on_loop")
            assert [one.result for one in after] == ["done", "done and processed", ONE]

    asyncio.run(play())


def test_beyond_the_bound_calls_are_refused_with_a_reason_that_all_can_read() -> None:
    """Before a claim: nothing has begun. It is a fact, so whoever reads the journal sees it.

    Async tools that need no thread are not affected; and a thread that ends after all is lent
    again.
    """

    async def play() -> None:
        async with host(lost_threads=2) as it:
            await it.turn(1, "slow", "slow")
            before = len(await it.types())
            results = await it.turn(2, "quick", "processed", "on_loop")

            assert [one.status for one in results[:2]] == [Status.FAILED] * 2
            assert results[2].result == ONE
            facts = [fact async for fact in it.journal.facts("r", after=before)]
            refused = [fact for fact in facts if isinstance(fact, ToolExecutionFailed)]
            assert [fact.cause for fact in refused] == [FailureCause.REJECTED] * 2
            for fact in refused:
                assert "no thread is left: 2 hang since" in fact.error
                assert "slow (2); Settings.lost_threads allows 2" in fact.error
            started = [fact for fact in facts if fact.type is FactType.TOOL_EXECUTION_STARTED]
            assert len(started) == 1

            it.gate.set()
            await asyncio.sleep(0.2)
            (again,) = await it.turn(3, "quick")
            assert again.result == "done"

    asyncio.run(play())


def late(_: Lease) -> None:
    """Take no thread yet."""


def test_without_the_thread_before_the_claim_it_is_claimed_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Negative control: the check is there, but it comes too late."""
    monkeypatch.setattr(Lease, "take", late)

    async def play() -> None:
        async with host(lost_threads=1) as it:
            await it.turn(1, "slow")
            (result,) = await it.turn(2, "quick")
            assert result.status is Status.FAILED
            assert (await it.types()).count(FactType.TOOL_EXECUTION_STARTED) == 2

    asyncio.run(play())
