"""What goes wrong in an agent of Pydantic AI without a guard: it pays twice, and more.

    python examples/guards/pydantic_ai_bare.py

The gate is the framework's own. The model is a script, there is no key, and no money moves.
"""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent, AgentRunResult, DeferredToolRequests, DeferredToolResults, Tool
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

PAID: list[int] = []
SILENT = [7]
"""What the bank books, and does not answer: the first time."""
PAYING = asyncio.Event()


async def pay(amount: int) -> str:
    """Pay somebody."""
    PAID.append(amount)
    PAYING.set()
    if amount in SILENT:
        SILENT.remove(amount)
        await asyncio.Event().wait()
    return f"paid {amount}"


def answers(amount: int) -> FunctionModel:
    """Return a model that asks to pay, and then is done, as often as it is asked."""

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if any(isinstance(it, ModelResponse) for it in messages):
            return ModelResponse(parts=[TextPart("It is settled.")])
        return ModelResponse(parts=[ToolCallPart("pay", {"amount": amount}, "c1")])

    return FunctionModel(answer)


Till = Agent[None, str | DeferredToolRequests]


def agent_of(amount: int) -> Till:
    """Return an agent whose payments need approval."""
    return Agent(
        answers(amount),
        tools=[Tool(pay, requires_approval=True)],
        output_type=[str, DeferredToolRequests],
    )


async def go_on(agent: Till, saved: bytes, told: DeferredToolResults) -> AgentRunResult[object]:
    """Go on from what was kept, with a person's answers."""
    history = ModelMessagesTypeAdapter.validate_json(saved)
    return await agent.run(message_history=history, deferred_tool_results=told)


async def approved_twice() -> None:
    """Send one approval twice: two tabs, two workers, a request that was tried again."""
    agent = agent_of(5)
    saved = (await agent.run("pay 5")).all_messages_json()
    for _ in range(2):
        await go_on(agent, saved, DeferredToolResults(approvals={"c1": True}))
    print(f"one approval, sent twice: paid {len(PAID)} times")


async def stopped_in_the_tool() -> None:
    """Stop while the bank is silent, as a timeout or a shutdown does, and go on."""
    PAID.clear()
    PAYING.clear()
    agent = agent_of(7)
    saved = (await agent.run("pay 7")).all_messages_json()
    told = DeferredToolResults(approvals={"c1": True})
    going_on = asyncio.create_task(go_on(agent, saved, told))
    await PAYING.wait()
    going_on.cancel()
    await asyncio.wait([going_on])
    await go_on(agent, saved, told)
    print(f"one call, stopped and resumed: paid {len(PAID)} times")


async def denied_and_told_otherwise() -> None:
    """Deny a call, and give a result of it as well: the result is told."""
    PAID.clear()
    agent = agent_of(9)
    saved = (await agent.run("pay 9")).all_messages_json()
    told = DeferredToolResults(approvals={"c1": False}, calls={"c1": "paid 9"})
    result = await go_on(agent, saved, told)
    parts = [part for it in result.all_messages() for part in it.parts]
    said = next(it for it in parts if isinstance(it, ToolReturnPart))
    print(f"denied, and paid {len(PAID)} times: the model was told {said.outcome}, {said.content}")


async def main() -> None:
    """Show each."""
    await approved_twice()
    await stopped_in_the_tool()
    await denied_and_told_otherwise()


if __name__ == "__main__":
    asyncio.run(main())
