"""K-57: what could wait for ever is ended by the runtime, and its run goes on."""

from __future__ import annotations

import asyncio

from turnlock import FactType, Run, Status
from turnlock.runtime import InDoubt
from turnlock.runtime.settings import Settings

from .test_runtime import World, calls, crash
from .virtual import run, settled

RUN = Run(run_id="r")


def test_a_turn_that_nobody_seals_is_interrupted() -> None:
    """The host died while the model spoke, and another owner has the run."""

    async def play() -> None:
        world = World()
        async with world.process(
            world.tool("pay", approval=True), settings=Settings(unsealed=100.0)
        ) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay"), turn_id="t1", sealed=False)
            await asyncio.sleep(95)
            assert FactType.TURN_INTERRUPTED not in await world.facts()
            await asyncio.sleep(30)

        assert (await world.facts())[-1] is FactType.TURN_INTERRUPTED

    run(play())


def test_a_sealed_turn_may_wait_for_its_approvals() -> None:
    """These have a bound of their own, if any."""

    async def play() -> None:
        world = World()
        brief = Settings(unsealed=10.0, unclaimed=10.0, unresolved=10.0)
        async with world.process(world.tool("pay", approval=True), settings=brief) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay"), turn_id="t1")
            await asyncio.sleep(10_000)
            assert len(runtime.pending("r")) == 1

    run(play())


def test_a_call_that_gets_no_slot_is_rejected() -> None:
    """The one that holds it may take as long as it likes."""

    async def play() -> None:
        world = World()
        slow = world.tool("slow", lambda: asyncio.sleep(1_000))
        settings = Settings(executions=1, unclaimed=100.0)
        async with world.process(slow, world.tool("act"), settings=settings) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("slow", "act"), turn_id="t1")
            await asyncio.sleep(1_010)

        assert [one.status for one in world.told[0].results] == [Status.SUCCEEDED, Status.FAILED]
        assert "no executor took it within 100 s" in (world.told[0].results[1].error or "")
        assert world.ledger == {"slow": 1}

    run(play())


def test_a_doubt_that_nobody_settles_has_failed_in_the_end() -> None:
    """The model is told what is known, and that is that nobody knows."""

    async def play() -> None:
        world = World()
        first = world.process(world.tool("act", lambda: asyncio.sleep(3_600)))
        await first.__aenter__()
        await first.open_run(RUN)
        await first.open_turn("r", calls("act"), turn_id="t1")
        await settled()
        await crash(first)
        await asyncio.sleep(31)
        async with world.process(
            world.tool("act"), settings=Settings(unresolved=1_000.0)
        ) as runtime:
            await asyncio.sleep(950)
            assert world.told == []
            assert (await runtime.status("r")).status == "in_doubt"
            await asyncio.sleep(200)
            assert (await runtime.status("r")).status == "idle"

        assert world.told[0].results[0].status is Status.FAILED
        assert world.ledger == {"act": 1}

    run(play())


def test_an_authorised_retry_that_gets_no_slot_has_failed_in_the_end() -> None:
    """It is in doubt still: nobody can say that it was never started (K-31, K-60)."""

    async def play() -> None:
        world = World()
        safe = {"in_doubt": InDoubt.RETRY_IF_SAFE, "safe_to_repeat": True}
        tools = [
            world.tool("slow", lambda: asyncio.sleep(3_600), **safe),
            world.tool("act", lambda: asyncio.sleep(3_600), **safe),
        ]
        first = world.process(*tools)
        await first.__aenter__()
        await first.open_run(RUN)
        await first.open_turn("r", calls("slow", "act"), turn_id="t1")
        await settled()
        await crash(first)
        await asyncio.sleep(31)
        settings = Settings(executions=1, unclaimed=100.0, unresolved=1_000.0)
        async with world.process(*tools, settings=settings):
            await asyncio.sleep(1_200)
            assert FactType.RETRY_AUTHORISED in await world.facts()
            assert FactType.TOOL_EXECUTION_FAILED in await world.facts()
            await asyncio.sleep(3_000)

        statuses = [one.status for one in world.told[0].results]
        assert statuses == [Status.SUCCEEDED, Status.FAILED]
        assert world.ledger == {"slow": 2, "act": 1}

    run(play())
