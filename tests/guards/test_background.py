"""A loop of its own: asked from any thread and any loop, cancelled, closed, forked."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from turnlock.guards.background import Background, Work
from turnlock.models.errors import InvalidValue
from turnlock.runtime.errors import Closed

from .forking import forked

BOUND = 60.0
"""Seconds after which something hangs."""


class Resource:
    """What lives in the loop: counts, and can be held up."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.pid = os.getpid()
        self.gate = asyncio.Event()
        self.waits = 0
        self.count = 0
        self.handed_back: list[object] = []
        self.closed = 0

    async def add(self, number: int) -> int:
        assert threading.get_ident() == self.thread
        await asyncio.sleep(0)
        self.count += number
        return self.count

    async def held_up(self) -> str:
        """End once the gate is open."""
        self.waits += 1
        await self.gate.wait()
        return "through"

    async def stubborn(self) -> str:
        """Return something in spite of a cancellation, as what is committed already."""
        self.waits += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            return "committed"
        return "through"

    async def open_gate(self) -> None:
        self.gate.set()

    async def waiting(self) -> int:
        return self.waits

    async def unwanted(self, given: object) -> None:
        await asyncio.sleep(0)
        self.handed_back.append(given)

    async def close(self) -> None:
        self.closed += 1


@contextmanager
def background() -> Generator[tuple[Background[Resource], list[Resource]]]:
    made: list[Resource] = []

    async def make() -> Resource:
        made.append(Resource())
        return made[-1]

    found = Background("the test's", make=make, unmake=Resource.close)
    try:
        yield found, made
    finally:
        found.close()


def until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < give_up, "it never came"
        time.sleep(0.001)


def test_nothing_is_begun_before_something_is_asked() -> None:
    with background() as (asked, made):
        assert not made
        assert asked.run(lambda it: it.add(1)) == 1
        assert asked.run(lambda it: it.add(1)) == 2
        assert len(made) == 1
        assert made[0].thread != threading.get_ident()
    assert made[0].closed == 1


def test_threads_and_several_loops_ask_the_same_one() -> None:
    """Each loop is told in its own thread; nothing is lost, nothing is done twice."""

    async def many(asked: Background[Resource]) -> None:
        await asyncio.gather(*(asked.arun(lambda it: it.add(1)) for _ in range(20)))

    with background() as (asked, made), ThreadPoolExecutor(8) as pool:
        loops = [pool.submit(asyncio.run, many(asked)) for _ in range(4)]
        plain = [pool.submit(asked.run, lambda it: it.add(1)) for _ in range(40)]
        for it in (*loops, *plain):
            it.result(BOUND)
        assert len(made) == 1
        assert made[0].count == 120


def test_what_is_raised_comes_out_where_it_was_asked() -> None:
    async def fail(_: Resource) -> None:
        raise LookupError("not here")

    with background() as (asked, _):
        with pytest.raises(LookupError, match="not here"):
            asked.run(fail)
        with pytest.raises(LookupError, match="not here"):
            asyncio.run(asked.arun(fail))
        assert asked.run(lambda it: it.add(1)) == 1


def test_what_cannot_be_made_is_told_and_tried_again() -> None:
    tries: list[int] = []

    async def make() -> Resource:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("no such folder")
        return Resource()

    asked = Background("the test's", make=make, unmake=Resource.close)
    with pytest.raises(OSError, match="no such folder"):
        asked.run(lambda it: it.add(1))
    assert asked.run(lambda it: it.add(1)) == 1
    asked.close()


def test_from_its_own_loop_it_is_an_error_and_no_deadlock() -> None:
    with background() as (asked, _):

        async def deadlock(_: Resource) -> int:
            return asked.run(lambda it: it.add(1))

        async def close(_: Resource) -> None:
            asked.close()

        for wrong in (deadlock, close):
            with pytest.raises(InvalidValue, match="its own loop"):
                asked.run(wrong)

        async def awaited(_: Resource) -> int:
            return await asked.arun(lambda it: it.add(1))

        assert asked.run(awaited) == 1


def test_what_was_begun_goes_on_though_its_caller_is_cancelled() -> None:
    """And the cancellation comes out when it is over, not before."""
    with background() as (asked, made):

        async def play() -> None:
            waiting = asyncio.create_task(asked.arun(Resource.held_up))
            while not made or not made[0].waits:  # noqa: ASYNC110 - another thread's
                await asyncio.sleep(0.001)
            for _ in range(3):
                waiting.cancel()
                await asyncio.sleep(0.01)
                assert not waiting.done()
            await asked.arun(Resource.open_gate)
            with pytest.raises(asyncio.CancelledError):
                await waiting

        asyncio.run(asyncio.wait_for(play(), BOUND))


@pytest.mark.parametrize(("do", "given_back"), [("held_up", []), ("stubborn", ["committed"])])
def test_what_may_be_stopped_is_and_what_it_brought_all_the_same_is_handed_back(
    do: str, given_back: list[object]
) -> None:
    with background() as (asked, made):

        async def play() -> None:
            waiting = asyncio.create_task(
                asked.arun(lambda it: getattr(it, do)(), unwanted=Resource.unwanted)
            )
            while not made or not made[0].waits:  # noqa: ASYNC110 - another thread's
                await asyncio.sleep(0.001)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert made[0].handed_back == given_back

        asyncio.run(asyncio.wait_for(play(), BOUND))


def test_what_has_ended_when_its_caller_is_cancelled_is_handed_back() -> None:
    """It is done in the one loop, and before the other learns of it, the caller is cancelled."""
    with background() as (asked, made):
        asked.run(lambda it: it.add(0))

        async def play() -> None:
            waiting = asyncio.create_task(
                asked.arun(lambda it: it.add(7), unwanted=Resource.unwanted)
            )
            await asyncio.sleep(0)
            until(lambda: made[0].count == 7)
            asked.run(lambda it: it.add(0))  # its end was told by now, and this loop has not looked
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert made[0].handed_back == [7]

        asyncio.run(asyncio.wait_for(play(), BOUND))


def test_a_keyboard_interrupt_comes_out_of_a_waiting_call() -> None:
    """What may be stopped is stopped, and what it brought is handed back, before it comes out."""
    with background() as (asked, made):

        def interrupt() -> None:
            until(lambda: bool(made and made[0].waits))
            os.kill(os.getpid(), signal.SIGINT)

        other = threading.Thread(target=interrupt)
        other.start()
        with pytest.raises(KeyboardInterrupt):
            asked.run(Resource.stubborn, unwanted=Resource.unwanted)
        other.join()
        assert made[0].handed_back == ["committed"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("may_be_stopped", [True, False])
def test_a_keyboard_interrupt_while_it_is_begun_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, when: str, may_be_stopped: bool
) -> None:
    """Interrupted before the loop has it, nothing is waited for; after, all is as ever."""
    ended: list[str] = []

    async def do(it: Resource) -> str:
        ended.append(await it.stubborn())
        return ended[-1]

    with background() as (asked, made):
        asked.run(lambda it: it.add(0))
        hand_over = asyncio.SelectorEventLoop.call_soon_threadsafe
        interrupting = [True]

        def interrupted(loop: asyncio.SelectorEventLoop, /, *given: Any, **named: Any) -> Any:
            if not interrupting:
                return hand_over(loop, *given, **named)
            interrupting.clear()
            if when == "after":
                hand_over(loop, *given, **named)
                until(lambda: made[0].waits == 1)
                if not may_be_stopped:
                    hand_over(loop, made[0].gate.set)
            raise KeyboardInterrupt

        monkeypatch.setattr(asyncio.SelectorEventLoop, "call_soon_threadsafe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            asked.run(do, unwanted=Resource.unwanted if may_be_stopped else None)
        assert not interrupting
        came = [] if when == "before" else ["committed" if may_be_stopped else "through"]
        assert ended == came
        assert made[0].handed_back == (came if may_be_stopped else [])
        assert asked.run(lambda it: it.add(1)) == 1


def test_a_close_tells_those_that_wait_and_what_is_asked_later() -> None:
    """From any thread, twice at once, while calls are under way."""
    with background() as (asked, made), ThreadPoolExecutor(8) as pool:
        waiting = [
            pool.submit(asked.run, Resource.held_up, unwanted=Resource.unwanted) for _ in range(3)
        ]
        until(lambda: bool(made) and made[0].waits == 3)
        closing = [pool.submit(asked.close) for _ in range(3)]
        for closed in closing:
            closed.result(BOUND)
        for it in waiting:
            with pytest.raises(Closed, match="the test's was closed"):
                it.result(BOUND)
        with pytest.raises(Closed, match="open another"):
            asked.run(lambda it: it.add(1))
        with pytest.raises(Closed, match="open another"):
            asyncio.run(asked.arun(lambda it: it.add(1)))
        asyncio.run(asked.aclose())
    assert made[0].closed == 1
    assert not any(it.name == "the test's" for it in threading.enumerate())


def test_what_was_begun_is_let_end_by_a_close() -> None:
    ended: list[str] = []
    with background() as (asked, made):

        async def write(it: Resource) -> None:
            await it.held_up()
            ended.append("written")

        other = threading.Thread(target=asked.run, args=(write,))
        other.start()
        until(lambda: bool(made) and made[0].waits == 1)
        asked.spawn(Resource.open_gate)
        asked.close()
        assert ended == ["written"]
        other.join()


def test_a_loop_that_was_closed_meanwhile_is_not_told() -> None:
    """Its caller is gone; nobody else is disturbed by that."""
    with background() as (asked, made):
        loop = asyncio.new_event_loop()
        waiting = asked.start(Work(stoppable=False), Resource.held_up)
        telling = loop.create_task(waiting.ended())
        loop.run_until_complete(asyncio.sleep(0))
        telling.cancel()
        loop.run_until_complete(asyncio.wait([telling]))
        loop.close()
        asked.run(Resource.open_gate)
        waiting.wait()
        assert waiting.result() == "through"
        assert made[0].waits == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")
def test_a_child_begins_a_life_of_its_own_and_the_parent_goes_on() -> None:
    """While the parent is asked from threads all the time: whatever lock they hold."""
    with background() as (asked, made), ThreadPoolExecutor(2) as pool:
        asked.run(lambda it: it.add(5))
        stop = threading.Event()

        def ask_on() -> None:
            while not stop.is_set():
                asked.run(lambda it: it.add(0))

        busy = [pool.submit(ask_on) for _ in range(2)]

        def child() -> tuple[int, bool]:
            count = asked.run(lambda it: it.add(1))
            asyncio.run(asked.arun(lambda it: it.add(1)))
            asked.close()
            return count, made[-1].pid == os.getpid()

        try:
            for _ in range(5):
                assert forked(child) == (1, True)
        finally:
            stop.set()
        for it in busy:
            it.result(BOUND)
        assert asked.run(lambda it: it.add(0)) == 5
        assert len(made) == 1


SCRIPT = """
import asyncio, sys, threading
from turnlock.guards.background import Background, Work

async def make():
    return 1

async def unmake(_):
    print("closed", flush=True)

asked = Background("the script's", make=make, unmake=unmake)

async def for_ever(_):
    await asyncio.Event().wait()

async def plain(_):
    return "asked"

print(asked.run(plain))
threading.Thread(target=lambda: asked.run(for_ever, unwanted=plain), daemon=True).start()
"""


def test_an_interpreter_that_exits_is_not_held_up() -> None:
    """It is closed by then, and says nothing of tasks that were destroyed."""
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", SCRIPT],
        check=False,
        capture_output=True,
        text=True,
        timeout=BOUND,
    )
    assert ended.stdout == "asked\nclosed\n"
    assert "destroyed" not in ended.stderr
    assert "unclosed" not in ended.stderr
    assert ended.returncode == 0
