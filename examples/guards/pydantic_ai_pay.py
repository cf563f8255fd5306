"""An agent of Pydantic AI under a guard: what pydantic_ai_bare.py does twice is done once.

    python examples/guards/pydantic_ai_pay.py agent.db

The model is a script, there is no key, and no money moves.
"""

from __future__ import annotations

import asyncio
import sys

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

from turnlock.guards import At, Differs, Guard, InDoubt, Resolution
from turnlock.guards.pydantic_ai import GuardCapability, decide

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


async def look_up(at: At) -> str:
    """Ask the bank what became of a call."""
    return f"paid {PAID[-1]}, says the bank of {at.call}"


def answers(amount: int) -> FunctionModel:
    """Return a model that asks to pay, and then is done, as often as it is asked."""

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if any(isinstance(it, ModelResponse) for it in messages):
            return ModelResponse(parts=[TextPart("It is settled.")])
        return ModelResponse(parts=[ToolCallPart("pay", {"amount": amount}, "c1")])

    return FunctionModel(answer)


Till = Agent[None, str | DeferredToolRequests]


def agent_of(guard: Guard, amount: int) -> Till:
    """Return an agent whose payments need approval."""
    return Agent(
        answers(amount),
        tools=[Tool(pay, requires_approval=True)],
        output_type=[str, DeferredToolRequests],
        capabilities=[GuardCapability(guard)],
    )


async def answered(
    guard: Guard, agent: Till, prompt: str, *, approved: bool = True
) -> tuple[bytes, DeferredToolResults]:
    """Ask the agent; return the history as a host keeps it, and what a person answered."""
    asked = await agent.run(prompt)
    if not isinstance(asked.output, DeferredToolRequests):
        raise TypeError(f"nothing waits: {asked.output}")
    told = await decide(guard, asked.all_messages(), asked.output, {"c1": approved}, by="ada")
    return asked.all_messages_json(), told


async def go_on(agent: Till, saved: bytes, told: DeferredToolResults) -> AgentRunResult[object]:
    """Go on from what was kept, with a person's answers."""
    history = ModelMessagesTypeAdapter.validate_json(saved)
    return await agent.run(message_history=history, deferred_tool_results=told)


def said(result: AgentRunResult[object]) -> object:
    """Return what the model was told of its call."""
    parts = [part for it in result.all_messages() for part in it.parts]
    return next(it.content for it in parts if isinstance(it, ToolReturnPart))


async def approved_twice(guard: Guard) -> None:
    """Send one approval twice: the second is told what came of the first."""
    agent = agent_of(guard, 5)
    saved, told = await answered(guard, agent, "pay 5")
    await go_on(agent, saved, told)
    result = await go_on(agent, saved, told)
    print(f"one approval, sent twice: paid {len(PAID)} times; {said(result)}")


async def stopped_in_the_tool(guard: Guard) -> None:
    """Stop while the bank is silent: nobody knows whether it has paid, until somebody says so."""
    PAID.clear()
    PAYING.clear()
    agent = agent_of(guard, 7)
    saved, told = await answered(guard, agent, "pay 7")
    going_on = asyncio.create_task(go_on(agent, saved, told))
    await PAYING.wait()
    going_on.cancel()
    await asyncio.wait([going_on])
    print("stopped in the tool")
    try:
        await go_on(agent, saved, told)
    except InDoubt as doubt:
        booked = await look_up(doubt.at)
        await guard.aresolve(doubt.at, Resolution.RESULT, result=booked)
    result = await go_on(agent, saved, told)
    print(f"one call, resumed twice: paid {len(PAID)} times; {said(result)}")


async def denied_and_told_otherwise(guard: Guard) -> None:
    """Deny a call, and give a result of it as well: the model is not asked."""
    PAID.clear()
    agent = agent_of(guard, 9)
    saved, told = await answered(guard, agent, "pay 9", approved=False)
    told.calls["c1"] = "paid 9"
    try:
        await go_on(agent, saved, told)
    except Differs:
        print(f"denied, and paid {len(PAID)} times: the model is told no success")


async def main(db: str) -> None:
    """Do each again, with a guard."""
    async with Guard.open(db) as guard:
        await approved_twice(guard)
        await stopped_in_the_tool(guard)
        await denied_and_told_otherwise(guard)


if __name__ == "__main__":
    if not sys.argv[1:]:
        print("usage: python examples/guards/pydantic_ai_pay.py agent.db", file=sys.stderr)
        sys.exit(2)
    asyncio.run(main(*sys.argv[1:]))
