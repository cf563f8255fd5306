"""A refusal waits for the calls beside it, and for no others."""

from __future__ import annotations

import asyncio

import pytest

from turnlock.guards import At, Stale
from turnlock.guards.siblings import beside

REFUSED = Stale("no", at=At("r", "t", "c"), reason="late")
BOUND = 60.0
"""Seconds that a story may last at most, on however loaded a machine."""


async def some_turns_of_the_loop() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def story(other: str, *, raises: Exception = REFUSED) -> tuple[bool, bool]:
    """Have one call raise beside another in a place; whether it waited, and came out then."""
    go, begun = asyncio.Event(), asyncio.Event()

    async def runs() -> None:
        async with beside(other):
            begun.set()
            await go.wait()

    async def raised() -> None:
        await begun.wait()
        async with beside("here"):
            raise raises

    async with asyncio.timeout(BOUND):
        running, refused = asyncio.create_task(runs()), asyncio.create_task(raised())
        await begun.wait()
        await some_turns_of_the_loop()
        waited = not refused.done()
        go.set()
        await running
        with pytest.raises(type(raises)):
            await refused
        return waited, refused.done()


def test_a_refusal_waits_for_the_call_beside_it() -> None:
    assert asyncio.run(story("here")) == (True, True)


def test_what_runs_elsewhere_is_not_waited_for() -> None:
    """Another host in the same loop, whose tool may never end."""
    assert asyncio.run(story("there")) == (False, True)


def test_what_a_tool_raises_does_not_wait() -> None:
    """It comes out as it would without a guard."""
    assert asyncio.run(story("here", raises=ValueError("no money"))) == (False, True)


def test_two_that_are_refused_do_not_wait_for_each_other() -> None:
    async def refused(barrier: asyncio.Barrier) -> None:
        async with beside("here"):
            await barrier.wait()
            raise REFUSED

    async def both() -> list[object]:
        barrier = asyncio.Barrier(2)
        async with asyncio.timeout(BOUND):
            return list(
                await asyncio.gather(refused(barrier), refused(barrier), return_exceptions=True)
            )

    assert asyncio.run(both()) == [REFUSED, REFUSED]
