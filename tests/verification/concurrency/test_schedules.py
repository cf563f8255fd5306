"""Schedules are enumerated, once each, by what they cost; tasks and coroutines run as they say."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from math import comb

import pytest

from turnlock.verification.errors import HarnessFailed

from .event_loop import ControlledLoop
from .schedules import Schedule, explored
from .tasks import Point, Task, run_tasks


def writing(seen: list[str], name: str, steps: int) -> Task:
    for step in range(steps):
        if step:
            yield None
        seen.append(name)


def orders(bound: int, steps: int = 3) -> list[str]:
    """The orders in which two tasks can write, each in so many steps."""

    def run(schedule: Schedule) -> str:
        seen: list[str] = []
        run_tasks([writing(seen, "a", steps), writing(seen, "b", steps)], schedule)
        return "".join(seen)

    return list(explored(run, bound=bound))


def test_without_preemption_one_task_follows_the_other() -> None:
    assert sorted(orders(bound=0)) == ["aaabbb", "bbbaaa"]


def test_one_preemption_leaves_a_task_once() -> None:
    """Each order of two tasks with at most one task left while it could go on."""
    assert sorted(orders(bound=1)) == sorted(
        ["aaabbb", "bbbaaa", "abbbaa", "aabbba", "baaabb", "bbaaab"]
    )


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_without_a_bound_every_interleaving_is_run_once(steps: int) -> None:
    """As many as there are ways to choose whose steps come where."""
    found = orders(bound=99, steps=steps)

    assert len(found) == len(set(found)) == comb(2 * steps, steps)


def test_who_waits_is_not_run_and_leaving_him_costs_nothing() -> None:
    seen: list[str] = []

    def waiting() -> Generator[Point, None, None]:
        yield lambda: "b" in seen
        seen.append("a")

    run_tasks([waiting(), writing(seen, "b", 1)], Schedule())

    assert seen == ["b", "a"]


def test_tasks_that_wait_for_each_other_are_the_harness_s_fault() -> None:
    def stuck() -> Generator[Point, None, None]:
        yield lambda: False

    with pytest.raises(HarnessFailed, match=r"tasks \[0, 1\] wait for each other"):
        run_tasks([stuck(), stuck()], Schedule())


def awaited_orders(bound: int) -> list[str]:
    def run(schedule: Schedule) -> str:
        seen: list[str] = []

        async def write(name: str) -> None:
            for _ in range(2):
                seen.append(name)
                await asyncio.sleep(0)

        ControlledLoop(schedule).run_all([write("a"), write("b")])
        return "".join(seen)

    return list(explored(run, bound=bound))


def test_an_event_loop_without_departures_does_as_asyncio_does() -> None:
    async def both() -> str:
        seen: list[str] = []

        async def write(name: str) -> None:
            for _ in range(2):
                seen.append(name)
                await asyncio.sleep(0)

        await asyncio.gather(write("a"), write("b"))
        return "".join(seen)

    assert awaited_orders(bound=0) == [asyncio.run(both())] == ["abab"]


def test_departures_reach_every_order() -> None:
    few = set(awaited_orders(bound=1))

    assert {"abab"} < few < set(awaited_orders(bound=9))
    assert set(awaited_orders(bound=9)) == {"aabb", "abab", "abba", "baab", "baba", "bbaa"}


def test_what_a_coroutine_raises_is_raised() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("of its own")

    with pytest.raises(ValueError, match="of its own"):
        ControlledLoop(Schedule()).run_all([fails()])


def test_coroutines_that_wait_for_ever_are_the_harness_s_fault() -> None:
    async def stuck() -> None:
        await asyncio.Event().wait()

    with pytest.raises(HarnessFailed, match="coroutines wait"):
        ControlledLoop(Schedule()).run_all([stuck()])
