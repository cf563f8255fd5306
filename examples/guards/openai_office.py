"""An agent of the OpenAI Agents SDK that is a tool of another, under a guard.

    python examples/guards/openai_office.py agent.db

The models are scripts, there is no key, and no money moves.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any
from uuid import uuid4

from agents import Agent, Runner, RunState, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from turnlock.guards import Guard
from turnlock.guards.openai_agents import GuardHooks, approve, guarded_tool

PAID: list[int] = []


async def pay(amount: int) -> str:
    """Pay somebody."""
    PAID.append(amount)
    return f"paid {amount}"


def office(guard: Guard) -> Agent[Any]:
    """Return a clerk who has a till, which is an agent that pays."""
    asks = [function_call("pay", {"amount": 5}, call_id="c1")]
    paid = [assistant_message("It is paid.")]
    till: Agent[Any] = Agent(
        name="till",
        model=ScriptedModel([asks, paid, paid]),
        tools=[guarded_tool(guard, pay, needs_approval=True)],
    )
    tool = till.as_tool("till", "Pays bills.", hooks=GuardHooks(guard))
    sends = [function_call("till", {"input": "pay 5"}, call_id="t1")]
    done = [assistant_message("It is settled.")]
    return Agent(
        name="clerk",
        model=ScriptedModel([sends, done, done]),
        tools=[guarded_tool(guard, tool)],
    )


async def main(db: str) -> None:
    """Ask the clerk, approve what the till asks for, and go on twice."""
    set_tracing_disabled(disabled=True)  # it would call home
    async with Guard.open(db) as guard:
        clerk, hooks = office(guard), GuardHooks(guard)
        context = {"turnlock_run": f"order-{uuid4()}"}
        asked = await Runner.run(clerk, "settle the bill", hooks=hooks, context=context)
        state = asked.to_state()
        await approve(guard, state, asked.interruptions[0], by="ada")
        saved = state.to_string()
        for _ in range(2):
            restored: RunState[Any] = await RunState.from_string(clerk, saved)
            await Runner.run(clerk, restored, hooks=hooks)
        print(f"the tool of a tool, resumed twice: paid {len(PAID)} times")


if __name__ == "__main__":
    if not sys.argv[1:]:
        print("usage: python examples/guards/openai_office.py agent.db", file=sys.stderr)
        sys.exit(2)
    asyncio.run(main(*sys.argv[1:]))
