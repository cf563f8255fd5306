"""Cancelling the caller, at every step of the loop: nothing runs on that nobody knows of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.performing import perform, prepare, probe
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.results import Happened, Succeeded
from turnlock.runtime.tools.tool import Tool, tool

from .scene import SHORT, Gate, context, play, threads

STEPS = 25
"""Turns of the loop, more than any of these calls needs when nothing waits for a thread."""


class Ledger:
    """What began and what ended, counted where it happens."""

    def __init__(self) -> None:
        self.began = 0
        self.ended = 0

    def sync(self, *_: Any) -> Any:
        """Work, at once."""
        self.began += 1
        self.ended += 1
        return {}

    async def on_loop(self, *_: Any) -> Any:
        """Work, over some turns of the loop."""
        self.began += 1
        try:
            for _step in range(3):
                await asyncio.sleep(0)
            return {}
        finally:
            self.ended += 1

    async def sync_probe(self, *_: Any) -> Any:
        """Work like a probe."""
        return Happened(await self.on_loop())


Work = Callable[[ToolContext, ThreadPoolExecutor, set[asyncio.Task[Any]]], Coroutine[Any, Any, Any]]


def of_tool(it: Tool) -> Work:
    return lambda ctx, pool, abandoned: perform(it, ctx, {}, threads=pool, abandoned=abandoned)


def works(ledger: Ledger) -> dict[str, Work]:
    async def call_on_loop() -> Any:
        return await ledger.on_loop()

    def call() -> Any:
        return ledger.sync()

    processed = Tool(name="f", call=call_on_loop, processors=(ledger.on_loop, ledger.sync))
    prepares = Tool(name="f", call=call, preprocessors=(ledger.on_loop, ledger.sync))
    probes = tool(in_doubt=InDoubt.PROBE, probe=ledger.sync_probe)(call)
    return {
        "async tool": of_tool(Tool(name="f", call=call_on_loop)),
        "sync tool": of_tool(Tool(name="f", call=call)),
        "processed tool": of_tool(processed),
        "prepare": lambda ctx, pool, abandoned: prepare(
            prepares, ctx, {}, threads=pool, abandoned=abandoned
        ),
        "probe": lambda ctx, pool, abandoned: probe(probes, ctx, threads=pool, abandoned=abandoned),
    }


async def _cancelled_at(pool: ThreadPoolExecutor, *, work: Work, step: int, times: int) -> bool:
    """Cancel the work after so many turns of the loop; say whether it ended by that."""
    abandoned: set[asyncio.Task[Any]] = set()
    it = context()
    task = asyncio.ensure_future(work(it, pool, abandoned))
    for _ in range(step):
        await asyncio.sleep(0)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait({task})
    if task.cancelled() and step:
        assert it.cancelled  # a tool that still runs can see it
    await asyncio.gather(*abandoned, return_exceptions=True)
    return task.cancelled()


@pytest.mark.parametrize("name", works(Ledger()))
@pytest.mark.parametrize("times", [1, 2])
def test_whenever_the_caller_is_cancelled_everything_has_ended_after_it(
    name: str, times: int
) -> None:
    """At each step, once or twice in a row: what began has ended, and no task is left behind."""
    cancelled = 0
    for step in range(STEPS):
        ledger = Ledger()
        work = works(ledger)[name]
        cancelled += play(partial(_cancelled_at, work=work, step=step, times=times))
        assert ledger.began == ledger.ended
    assert cancelled


def test_a_caller_cancelled_while_a_thread_runs_leaves_it_known() -> None:
    """It waits for the grace, and what goes on is among the abandoned until it ends."""
    gate = Gate()

    @tool
    def f(ctx: ToolContext) -> bool:
        gate.pass_through()
        return ctx.cancelled

    async def scene(pool: ThreadPoolExecutor) -> None:
        abandoned: set[asyncio.Task[Any]] = set()
        work = perform(f, context(), {}, threads=pool, grace=SHORT, abandoned=abandoned)
        task = asyncio.ensure_future(work)
        await gate.wait_until_reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (left,) = abandoned
        gate.open.set()
        assert await left == Succeeded(True)
        assert not abandoned

    play(scene)


def test_a_caller_cancelled_while_a_call_waits_for_a_thread_takes_it_back() -> None:
    """What never began never begins."""
    gate, ledger = Gate(), Ledger()

    @tool
    def f() -> Any:
        return ledger.sync()

    async def scene(_: ThreadPoolExecutor) -> None:
        with threads(1) as one:
            one.submit(gate.pass_through)
            task = asyncio.ensure_future(perform(f, context(), {}, threads=one))
            for _turn in range(3):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            gate.open.set()
        assert not ledger.began

    play(scene)
