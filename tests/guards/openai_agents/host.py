"""A host of an agent, twice in one process, bare and guarded: `host.py FOLDER [hang]`.

Both go on with the approved states in FOLDER. It says `there` when both are at their tool, and
waits for a line; then what is paid is a line in FOLDER. With `hang` it says `paid`, and never ends.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from agents import Agent, AgentHooks, Runner, RunState, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message

from turnlock.guards.guard import Guard
from turnlock.guards.openai_agents import GuardHooks, guarded_tool

HOW = ("bare", "guarded")


class Meets(AgentHooks[Any]):
    """Has the hosts of an agent wait for each other where a tool begins."""

    def __init__(self, there: Callable[[], Awaitable[object]]) -> None:
        self._there = there

    async def on_tool_start(self, *_: object, **__: object) -> None:
        await self._there()


async def host(folder: Path, guard: Guard | None, meets: Meets, after: asyncio.Barrier) -> str:
    how = HOW[guard is not None]

    async def pay(amount: int) -> str:
        with (folder / f"{how}.paid").open("a", encoding="utf-8") as ledger:
            ledger.write(f"{amount}\n")
        if "hang" in sys.argv:
            if await after.wait() == 0:
                print("paid", flush=True)
            await asyncio.Event().wait()
        return f"paid {amount}"

    hooks = None if guard is None else GuardHooks(guard)
    wrapped: Any = function_tool if guard is None else partial(guarded_tool, guard)
    agent: Agent[Any] = Agent(
        name="till",
        model=ScriptedModel([[assistant_message("done")]]),
        tools=[wrapped(pay, needs_approval=True)],
        hooks=meets,
    )
    state: RunState[Any] = await RunState.from_string(
        agent, (folder / f"{how}.json").read_text(encoding="utf-8")
    )
    return str((await Runner.run(agent, state, hooks=hooks)).final_output)


async def hosts(folder: Path) -> None:
    set_tracing_disabled(disabled=True)
    both, after = asyncio.Barrier(2), asyncio.Barrier(2)

    async def there() -> None:
        if await both.wait() == 0:
            print("there", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
        await both.wait()

    async with Guard.open(folder / "agent.db") as guard:
        said = await asyncio.gather(
            *(host(folder, it, Meets(there), after) for it in (None, guard))
        )
    print(*said)


if __name__ == "__main__":
    asyncio.run(hosts(Path(sys.argv[1])))
