"""An agent of Pydantic AI that waits for whoever decides, and whose model is asked again.

    python examples/guards/pydantic_ai_again.py agent.db

The model is a script, there is no key, and no money moves.
"""

from __future__ import annotations

import asyncio
import itertools
import sys

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from turnlock.guards import Forked, Guard, Policy
from turnlock.guards.pydantic_ai import GuardCapability, decide

PAID: list[int] = []
NUMBERS = itertools.count(1)


async def pay(amount: int) -> str:
    """Pay somebody."""
    PAID.append(amount)
    return f"paid {amount}"


def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Ask to pay what it is asked to, each time with an id of its own, then be done."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart("It is settled.")])
    return ModelResponse(parts=[ToolCallPart("pay", {"amount": 5}, f"c{next(NUMBERS)}")])


Till = Agent[None, str | DeferredToolRequests]


def agent_of(guard: Guard) -> Till:
    """Return an agent that pays; what needs approval, the guard's policies say."""
    return Agent(
        FunctionModel(answer),
        tools=[pay],
        output_type=[str, DeferredToolRequests],
        capabilities=[GuardCapability(guard)],
    )


async def decided_elsewhere(guard: Guard) -> None:
    """Wait for a person, wherever that person sits, who pays 4 of the 5."""
    agent = agent_of(guard)
    asked = await agent.run("pay 5")
    if not isinstance(asked.output, DeferredToolRequests):
        raise TypeError(f"nothing waits: {asked.output}")
    (waits,) = await guard.awaiting(asked.conversation_id)
    edits = {"amount": 4}
    await guard.adecide(waits.at, approved=True, digest=waits.digest, arguments=edits, by="ada")
    await guard.await_decided(waits.at, within=600.0)  # were it decided in a console
    told = await decide(guard, asked.all_messages(), asked.output)
    await agent.run(message_history=asked.all_messages(), deferred_tool_results=told)
    print(f"5 asked for, 4 approved elsewhere: paid {', '.join(map(str, PAID))}")


async def asked_again(guard: Guard) -> None:
    """Go on twice from the same history: the model asks to pay again, with another id."""
    PAID.clear()
    agent = agent_of(guard)
    begun = await agent.run("pay 5")
    history = begun.all_messages()
    await agent.run("and 5 more", message_history=history)
    try:
        await agent.run("and 5 more", message_history=history)
    except Forked:
        print(f"the model was asked again: refused, paid {len(PAID)} times")
    fork = f"{begun.conversation_id}-again"
    await agent.run("and 5 more", message_history=history, conversation_id=fork)
    print(f"a fork that is meant: paid {len(PAID)} times")


async def main(db: str) -> None:
    """Show each."""
    async with Guard.open(db, policies={"pay": Policy(approval=True)}) as guard:
        await decided_elsewhere(guard)
    async with Guard.open(db) as guard:
        await asked_again(guard)


if __name__ == "__main__":
    if not sys.argv[1:]:
        print("usage: python examples/guards/pydantic_ai_again.py agent.db", file=sys.stderr)
        sys.exit(2)
    asyncio.run(main(*sys.argv[1:]))
