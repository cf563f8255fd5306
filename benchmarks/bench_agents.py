"""Many agents that wait: what they cost on one runtime, and on a runtime each.

All are entered, on one SQLite journal, and half of them wait for an approval; then nothing happens.
A runtime looks for posts, renews what it owns and watches what waits, whether it performs one run
or many. Times are of a processor's core, for each second that passes.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from time import process_time
from typing import Final

from timing import QUICK, Line, measured

from turnlock.agent import Agent, Answer, Ended, Question, Said, Stop, ToolCall
from turnlock.runtime import Runtime, open_journal, tool

AGENTS: Final = 400
QUICK_AGENTS: Final = 20
SECONDS: Final = 5.0
QUICK_SECONDS: Final = 0.5
RATIO: Final = 0.1
"""What one runtime may cost of what a runtime each costs."""


class Payer:
    """A model that wants to pay."""

    async def speak(self, question: Question) -> AsyncIterator[Said]:  # noqa: ARG002 - as Model
        """Ask for the one call."""
        call = ToolCall(call_id=None, tool_name="pay", arguments={})
        yield Ended(Answer(calls=(call,), stop=Stop.CALLS))

    async def close(self) -> None:
        """Nothing is open."""


@tool(approval=True)
async def pay() -> None:
    """Pay."""


async def _idle(agents: int, seconds: float, *, shared: bool) -> float:
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            journal = await stack.enter_async_context(await open_journal(Path(folder, "a.db")))
            if shared:
                runtime = await stack.enter_async_context(Runtime(journal=journal))
                made = partial(Agent, runtime=runtime)
            else:
                made = partial(Agent, journal=journal)
            working: list[asyncio.Task[object]] = []
            for number in range(agents):
                agent = made(model=Payer(), tools=[pay], run=f"agent {number}")
                await stack.enter_async_context(agent)
                if number % 2:
                    working.append(asyncio.ensure_future(agent.run("go")))
            await asyncio.sleep(1.0)
            gc.collect()
            began = process_time()
            await asyncio.sleep(seconds)
            spent = process_time() - began
            for task in working:
                task.cancel()
            await asyncio.wait(working)
    return spent / seconds


def measure(rounds: int) -> list[Line]:
    """Measure both ways, in turn."""
    quick = rounds <= QUICK
    agents, seconds = (QUICK_AGENTS, QUICK_SECONDS) if quick else (AGENTS, SECONDS)
    samples = measured(
        rounds,
        {
            "one": lambda: asyncio.run(_idle(agents, seconds, shared=True)),
            "each": lambda: asyncio.run(_idle(agents, seconds, shared=False)),
        },
    )
    one, each = samples["one"], samples["each"]
    return [
        one.line(f"{agents} agents, one runtime", "%", scale=100),
        each.line(f"{agents} agents, a runtime each", "%", scale=100),
        one.over(each, "one runtime / a runtime each", bound=None if quick else RATIO),
    ]
