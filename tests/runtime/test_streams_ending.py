"""Who looks on no more is forgotten at once, and who looks on is not cut off for one large turn."""

# Looks inside: what is held, and who waits.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio

import pytest

from turnlock import Run
from turnlock.models.record import changed
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.settings import Settings
from turnlock.runtime.streams import Streams, Subscription

from .test_runtime import World, calls
from .test_streams import Stage
from .virtual import run, settled

RUN = Run(run_id="r")


async def read_out(looking: Subscription) -> list[int]:
    """Read until nothing more comes."""
    return [fact.sequence async for fact in looking]


def test_a_closed_subscription_is_kept_by_nobody() -> None:
    """A console that comes and goes while a run waits for days leaves nothing behind."""

    async def play() -> None:
        streams = Streams(journal=MemoryJournal(), bound=9)
        for _ in range(3):
            facts, told = streams.subscribe("r", after=0), streams.diagnostics("r")
            await facts.aclose()
            await told.aclose()
            await facts.aclose()
        assert not streams._facts
        assert not streams._diagnostics

        streams.subscribe("r", after=0)
        streams.close()
        assert not streams._facts

    run(play())


def test_a_subscription_that_is_never_read_is_kept_by_nobody() -> None:
    """It gets nothing more; whoever holds it and reads again misses nothing, to the end."""

    async def play() -> None:
        stage = Stage(bound=3)
        await stage.begin()
        slow = stage.streams.subscribe("r", after=0)
        await stage.happen(1)
        await anext(slow)
        reading = asyncio.ensure_future(anext(slow))
        await settled()
        await stage.happen(1)
        await reading
        await stage.happen(10)

        assert not stage.streams._facts
        stage.streams.close()
        assert await read_out(slow) == list(range(3, stage.at + 1))

    run(play())


@pytest.mark.parametrize("replaying", [True, False])
def test_closing_ends_the_iteration_of_another_task_at_once(*, replaying: bool) -> None:
    """Nothing more comes out, neither of a page nor of the buffer."""

    async def play() -> None:
        stage = Stage()
        await stage.begin()
        await stage.happen(5)
        looking = stage.streams.subscribe("r", after=0)
        await anext(looking)
        if not replaying:
            for _ in range(stage.at - 1):
                await anext(looking)
        waiting = asyncio.ensure_future(anext(looking)) if not replaying else None
        await settled()
        await looking.aclose()
        with pytest.raises(StopAsyncIteration):
            await (anext(looking) if waiting is None else waiting)

    run(play())


def test_a_turn_larger_than_the_buffer_cuts_nobody_off() -> None:
    """Who has read all there was is not slow: the large turn is read from the journal."""

    async def play() -> None:
        world = World()
        settings = Settings(buffer=10)
        async with world.process(world.tool("pay", approval=True), settings=settings) as runtime:
            await runtime.open_run(RUN)
            looking = runtime.subscribe("r")
            task = asyncio.ensure_future(read_out(looking))
            await settled()
            many = [changed(*calls("pay"), invocation_id=f"call {number}") for number in range(50)]
            await runtime.open_turn("r", many, turn_id="t1")
            await settled()
            await runtime.deny("r", turn_id="t1", invocation_id="call 1")
            await settled()
        assert await task == list(range(1, 53))

    run(play())
