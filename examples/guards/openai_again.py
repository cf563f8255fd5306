"""An agent of the OpenAI Agents SDK whose model is asked again, by accident and on purpose.

    python examples/guards/openai_again.py agent.db

The model is a script, there is no key, and no money moves.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from agents import Agent, Runner, set_tracing_disabled
from agents.items import TResponseOutputItem
from agents.testing import ScriptedModel, assistant_message, function_call

from turnlock.guards import Forked, Guard
from turnlock.guards.openai_agents import GuardHooks, approve, guarded_tool

PAID: list[int] = []


async def pay(amount: int) -> str:
    """Pay somebody."""
    PAID.append(amount)
    return f"paid {amount}"


def asks(call_id: str) -> Sequence[TResponseOutputItem]:
    """Return an answer of the model that asks to pay 5; each answer has ids of its own."""
    return [function_call("pay", {"amount": 5}, call_id=call_id)]


DONE = [assistant_message("It is settled.")]


async def crashed_and_asked_again(guard: Guard) -> None:
    """Lose the connection when it has paid, and begin anew: the model asks to pay again."""
    model = ScriptedModel([asks("c1"), ConnectionError("gone"), asks("c2"), asks("c3"), DONE])
    agent: Agent[Any] = Agent(name="till", model=model, tools=[guarded_tool(guard, pay)])
    run, hooks = f"order-{uuid4()}", GuardHooks(guard)
    with suppress(ConnectionError):
        await Runner.run(agent, "pay 5", hooks=hooks, context={"turnlock_run": run})
    try:
        await Runner.run(agent, "pay 5", hooks=hooks, context={"turnlock_run": run})
    except Forked:
        print(f"the model was asked again: refused, paid {len(PAID)} times")
    await Runner.run(agent, "pay 5", hooks=hooks, context={"turnlock_run": f"{run}-again"})
    print(f"a fork that is meant: paid {len(PAID)} times")


async def two_hosts(guard: Guard) -> None:
    """Go on twice from one state: it pays once anyway; with `one_continuation` one asks on."""
    model = ScriptedModel([asks("c1"), DONE, DONE])
    tool = guarded_tool(guard, pay, needs_approval=True)
    agent: Agent[Any] = Agent(name="till", model=model, tools=[tool])
    run, hooks = f"order-{uuid4()}", GuardHooks(guard, one_continuation=True)
    asked = await Runner.run(agent, "pay 5", hooks=hooks, context={"turnlock_run": run})
    first, second = asked.to_state(), asked.to_state()
    await approve(guard, first, asked.interruptions[0], by="ada")
    await approve(guard, second, asked.interruptions[0], by="ada")
    await Runner.run(agent, first, hooks=hooks)
    try:
        await Runner.run(agent, second, hooks=hooks)
    except Forked:
        print(f"two hosts went on: {len(model.calls) - 1} of them has asked the model")


async def main(db: str) -> None:
    """Show each."""
    set_tracing_disabled(disabled=True)  # it would call home
    async with Guard.open(db) as guard:
        await crashed_and_asked_again(guard)
        await two_hosts(guard)


if __name__ == "__main__":
    if not sys.argv[1:]:
        print("usage: python examples/guards/openai_again.py agent.db", file=sys.stderr)
        sys.exit(2)
    asyncio.run(main(*sys.argv[1:]))
