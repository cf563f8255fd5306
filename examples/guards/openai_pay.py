"""An agent of the OpenAI Agents SDK under a guard: what openai_bare.py does twice is done once.

    python examples/guards/openai_pay.py agent.db

The model is a script, there is no key, and no money moves.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from agents import Agent, Runner, RunResult, RunState, ToolCallOutputItem, set_tracing_disabled
from agents.items import TResponseOutputItem
from agents.testing import ScriptedModel, assistant_message, function_call

from turnlock.guards import At, Guard, InDoubt, NotApproved, Resolution
from turnlock.guards.openai_agents import GuardHooks, approve, guarded_tool

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


def asks(amount: int, call_id: str = "c1") -> Sequence[TResponseOutputItem]:
    """Return an answer of the model that asks to pay."""
    return [function_call("pay", {"amount": amount}, call_id=call_id)]


DONE = [assistant_message("It is settled.")]


def agent_of(guard: Guard, *answers: Sequence[TResponseOutputItem]) -> Agent[Any]:
    """Return an agent whose payments need approval, and whose model gives these answers."""
    tool = guarded_tool(guard, pay, needs_approval=True)
    return Agent(name="till", model=ScriptedModel(answers), tools=[tool])


async def approved(guard: Guard, agent: Agent[Any], *, always: bool = False) -> str:
    """Ask the agent, approve what it asks for, and return the state as a host keeps it."""
    run = f"order-{uuid4()}"
    asked = await Runner.run(agent, "pay", hooks=GuardHooks(guard), context={"turnlock_run": run})
    state = asked.to_state()
    await approve(guard, state, asked.interruptions[0], by="ada")
    if always:  # in the SDK alone
        state.approve(asked.interruptions[0], always_approve=True)
    return state.to_string()


async def go_on(guard: Guard, agent: Agent[Any], saved: str) -> RunResult:
    """Go on from what was kept: twice, anywhere."""
    state: RunState[Any] = await RunState.from_string(agent, saved)
    return await Runner.run(agent, state, hooks=GuardHooks(guard))


def told(result: RunResult) -> str:
    """Return what the model was told of its call."""
    return next(str(it.output) for it in result.new_items if isinstance(it, ToolCallOutputItem))


async def approved_twice(guard: Guard) -> None:
    """Send one approval twice: the second is told what came of the first."""
    agent = agent_of(guard, asks(5), DONE, DONE)
    saved = await approved(guard, agent)
    await go_on(guard, agent, saved)
    result = await go_on(guard, agent, saved)
    print(f"one approval, sent twice: paid {len(PAID)} times; {told(result)}")


async def stopped_in_the_tool(guard: Guard) -> None:
    """Stop while the bank is silent: nobody knows whether it has paid, until somebody says so."""
    PAID.clear()
    PAYING.clear()
    agent = agent_of(guard, asks(7), DONE)
    saved = await approved(guard, agent)
    going_on = asyncio.create_task(go_on(guard, agent, saved))
    await PAYING.wait()
    going_on.cancel()
    await asyncio.wait([going_on])
    print("stopped in the tool")
    try:
        await go_on(guard, agent, saved)
    except InDoubt as doubt:
        booked = await look_up(doubt.at)
        await guard.aresolve(doubt.at, Resolution.RESULT, result=booked)
    result = await go_on(guard, agent, saved)
    print(f"one call, resumed twice: paid {len(PAID)} times; {told(result)}")


async def approved_for_ever(guard: Guard) -> None:
    """Approve 5, and in the SDK alone whatever comes: about 5000 nobody has decided."""
    PAID.clear()
    agent = agent_of(guard, asks(5), asks(5_000, "c2"), DONE)
    saved = await approved(guard, agent, always=True)
    try:
        await go_on(guard, agent, saved)
    except NotApproved as refused:
        print(f"5 approved for always: paid {PAID[0]}; {refused.arguments['amount']} waits")


async def main(db: str) -> None:
    """Do each again, with a guard."""
    set_tracing_disabled(disabled=True)  # it would call home
    async with Guard.open(db) as guard:
        await approved_twice(guard)
        await stopped_in_the_tool(guard)
        await approved_for_ever(guard)


if __name__ == "__main__":
    if not sys.argv[1:]:
        print("usage: python examples/guards/openai_pay.py agent.db", file=sys.stderr)
        sys.exit(2)
    asyncio.run(main(*sys.argv[1:]))
