"""A host of an agent, twice in one process, bare and guarded: `host.py FOLDER [hang]`.

Both go on with the answered histories in FOLDER. It says `there` when both are at their tool, and
waits for a line; then what is paid is a line in FOLDER. With `hang` it says `paid`, and never ends.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool
from pydantic_ai.capabilities import AbstractCapability, WrapToolExecuteHandler
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from turnlock.guards.guard import Guard
from turnlock.guards.pydantic_ai import GuardCapability

HOW = ("bare", "guarded")


class Meets(AbstractCapability[Any]):
    """Has the hosts of an agent wait for each other where a tool begins: before the guard."""

    def __init__(self, there: Callable[[], Awaitable[object]]) -> None:
        self._there = there

    async def wrap_tool_execute(
        self, *_: object, args: dict[str, Any], handler: WrapToolExecuteHandler, **__: object
    ) -> Any:
        await self._there()
        return await handler(args)


def done(_: list[ModelMessage], __: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart("done")])


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

    agent = Agent(
        FunctionModel(done),
        output_type=[str, DeferredToolRequests],
        tools=[Tool(pay, requires_approval=True)],
        capabilities=[meets, *([] if guard is None else [GuardCapability(guard)])],
    )
    history = ModelMessagesTypeAdapter.validate_json((folder / f"{how}.json").read_bytes())
    told = DeferredToolResults(approvals={"c1": True})
    return str((await agent.run(message_history=history, deferred_tool_results=told)).output)


async def hosts(folder: Path) -> None:
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
