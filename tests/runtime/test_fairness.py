"""Load: who goes first when many want a slot, and what a run pays for others that wait."""

# Looks inside: the order of the slots is switched off for the controls.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Any

import pytest

from turnlock import Call, Run
from turnlock.runtime import Settings
from turnlock.runtime.slots import IN_A_ROW, Limiter, Place

from .test_runtime import World, calls
from .virtual import VirtualLoop, run, settled

AT_ONCE = 4


def numbered(tool_name: str, count: int) -> list[Call]:
    """Calls of one tool."""
    return [
        Call(
            invocation_id=f"{tool_name} {number}",
            tool_name=tool_name,
            arguments={},
            requires_approval=False,
        )
        for number in range(count)
    ]


def started_before(flood: int) -> int:
    """Return how many calls of a run that floods start before the one call of another."""
    order: list[str] = []

    async def play() -> None:
        world = World()

        def begin(name: str) -> Awaitable[None]:
            order.append(name)
            return asyncio.sleep(1)

        slow, one = (world.tool(name, partial(begin, name)) for name in ("slow", "one"))
        settings = Settings(executions=AT_ONCE, executions_of_run=AT_ONCE)
        async with world.process(slow, one, settings=settings) as runtime:
            await runtime.open_run(Run(run_id="flood"))
            await runtime.open_run(Run(run_id="other"))
            await runtime.open_turn("flood", numbered("slow", flood), turn_id="t1")
            await runtime.open_turn("other", calls("one"), turn_id="t1")
            await asyncio.sleep(flood)
            assert len(world.told) == 2

    run(play())
    return order.index("one")


def test_a_run_that_floods_lets_others_in() -> None:
    """A thousand calls are ready before it, and a few go first: four at once, eight in a row."""
    assert started_before(1_000) == AT_ONCE + IN_A_ROW


def test_the_flood_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line for all, the call of the other run is the last of all."""
    in_turn = Limiter._place

    def first_come(limiter: Limiter, run_id: str) -> Place:
        return 0, in_turn(limiter, run_id)[1]

    monkeypatch.setattr(Limiter, "_place", first_come)
    assert started_before(200) == 200


class Counting(VirtualLoop):
    """A loop that counts what it is asked to do."""

    asked = 0

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        self.asked += 1
        return super().call_soon(callback, *args, context=context)


def asked_for_a_start(others: int) -> int:
    """Return the callbacks between an approval and its tool, beside others that wait for slots."""
    loop_asked: list[int] = []

    async def play() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Counting)
        world = World()
        held = world.tool("held", lambda: asyncio.sleep(5), concurrency=1)
        pay = world.tool("pay", lambda: loop_asked.append(loop.asked), approval=True)
        async with world.process(held, pay, settings=Settings(drain=0.1)) as runtime:
            for number in range(others):
                await runtime.open_run(Run(run_id=f"r{number}"))
                await runtime.open_turn(f"r{number}", calls("held"), turn_id="t1")
            await runtime.open_run(Run(run_id="payer"))
            await runtime.open_turn("payer", calls("pay"), turn_id="t1")
            await settled()
            loop_asked.append(loop.asked)
            await runtime.approve("payer", turn_id="t1", invocation_id="pay")
            await settled()
            assert loop.time() < 1

    with asyncio.Runner(loop_factory=Counting) as runner:
        runner.run(play())
    before, after = loop_asked
    return after - before


def test_what_an_approval_waits_for_does_not_grow_with_runs_that_wait() -> None:
    """From the approval to the tool nothing is done for the others, however many they are."""
    assert asked_for_a_start(1) == asked_for_a_start(500)
