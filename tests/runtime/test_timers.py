"""One timer for all runs."""

# Looks inside: what is held, and who waits.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from turnlock.runtime.scheduling import LONGEST, STALE, Timers

from .virtual import START, LoopClock, run


def test_it_rings_at_the_time_that_was_set_last() -> None:
    """Setting again moves the time, None takes it away; each fires once."""

    async def play() -> None:
        fired: list[tuple[str, float]] = []
        clock = LoopClock()
        timers = Timers(clock=clock, fired=lambda name: fired.append((name, clock.now() - START)))
        timers.set("a", START + 10)
        timers.set("b", START + 5)
        timers.set("a", START + 20)
        timers.set("c", START + 7)
        timers.set("c", None)
        await asyncio.sleep(15)
        assert fired == [("b", 5.0)]
        await asyncio.sleep(100)
        assert fired == [("b", 5.0), ("a", 20.0)]

    run(play())


def test_a_time_that_passed_while_the_machine_slept_rings_soon() -> None:
    """The loop's clock stood still meanwhile: its timer was set for an hour, as it seemed."""

    class Slept(LoopClock):
        slept = 0.0

        def now(self) -> float:
            return super().now() + self.slept

    async def play() -> None:
        fired: list[str] = []
        clock = Slept()
        Timers(clock=clock, fired=fired.append).set("a", START + 3_600.0)
        await asyncio.sleep(1)
        clock.slept = 7_200.0
        await asyncio.sleep(LONGEST)
        assert fired == ["a"]
        assert LONGEST < 60

    run(play())


def test_a_time_that_has_passed_rings_at_once() -> None:
    """After a recovery deadlines may lie in the past."""

    async def play() -> None:
        fired: list[str] = []
        Timers(clock=LoopClock(), fired=fired.append).set("a", START - 1e6)
        await asyncio.sleep(0.001)
        assert fired == ["a"]

    run(play())


def test_a_deadline_beyond_all_time_needs_no_timer_of_that_length() -> None:
    """A float that no loop could wait for is waited for in pieces."""

    async def play() -> None:
        fired: list[str] = []
        timers = Timers(clock=LoopClock(), fired=fired.append)
        timers.set("a", 1.7976931348623157e308)
        await asyncio.sleep(10_000)
        assert fired == []
        timers.close()

    run(play())


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50) | st.none()), max_size=400))
def test_the_heap_is_bounded_and_every_run_rings_at_its_last_time(
    settings: list[tuple[str, int | None]],
) -> None:
    """However often times are set again (K-6)."""

    async def play() -> None:
        fired: dict[str, float] = {}
        clock = LoopClock()
        timers = Timers(clock=clock, fired=lambda name: fired.update({name: clock.now() - START}))
        for name, at in settings:
            timers.set(name, None if at is None else START + 1 + at)
            assert len(timers._heap) <= 2 * len(timers._due) + STALE
        await asyncio.sleep(100)
        last = dict(settings)
        assert fired == {name: 1.0 + at for name, at in last.items() if at is not None}

    run(play())
