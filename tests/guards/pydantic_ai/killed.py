"""A process that asks, is answered, and is killed in the tool: `killed.py FOLDER`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, Tool
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from turnlock.guards.guard import Guard
from turnlock.guards.pydantic_ai import GuardCapability, decide


def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    asked = any(isinstance(it, ModelResponse) for it in messages)
    part = TextPart("done") if asked else ToolCallPart("pay", {"amount": 5}, "c1")
    return ModelResponse(parts=[part])


async def host(folder: Path, name: str, guard: Guard | None) -> None:
    async def pay(amount: int) -> str:
        with (folder / name).open("a") as ledger:
            ledger.write(f"{amount}\n")
        await asyncio.Event().wait()
        return "never"

    agent = Agent(
        FunctionModel(answer),
        output_type=[str, DeferredToolRequests],
        tools=[Tool(pay, requires_approval=True)],
        capabilities=[] if guard is None else [GuardCapability(guard)],
    )
    first = await agent.run("pay 5")
    (folder / f"{name}.json").write_bytes(first.all_messages_json())
    assert isinstance(first.output, DeferredToolRequests)
    told = DeferredToolResults(approvals={"c1": True})
    if guard is not None:
        told = await decide(guard, first.all_messages(), first.output, {"c1": True})
    history = ModelMessagesTypeAdapter.validate_json(first.all_messages_json())
    await agent.run(message_history=history, deferred_tool_results=told)


async def hosts(folder: Path) -> None:
    with Guard.open(folder / "agent.db") as guard:
        await asyncio.gather(host(folder, "bare", None), host(folder, "guarded", guard))


if __name__ == "__main__":
    asyncio.run(hosts(Path(sys.argv[1])))
