"""What goes wrong in an agent of the OpenAI Agents SDK without a guard: it pays twice, and more.

    python examples/guards/openai_bare.py

The gate is the SDK's own. The model is a script, there is no key, and no money moves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agents import Agent, Runner, RunState, function_tool, set_tracing_disabled
from agents.items import TResponseOutputItem
from agents.testing import ScriptedModel, assistant_message, function_call

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


def asks(amount: int, call_id: str = "c1") -> Sequence[TResponseOutputItem]:
    """Return an answer of the model that asks to pay."""
    return [function_call("pay", {"amount": amount}, call_id=call_id)]


DONE = [assistant_message("It is settled.")]


def agent_of(*answers: Sequence[TResponseOutputItem]) -> Agent[Any]:
    """Return an agent whose payments need approval, and whose model gives these answers."""
    tool = function_tool(pay, needs_approval=True)
    return Agent(name="till", model=ScriptedModel(answers), tools=[tool])


async def approved(agent: Agent[Any], *, always: bool = False) -> str:
    """Ask the agent, approve what it asks for, and return the state as a host keeps it."""
    asked = await Runner.run(agent, "pay")
    state = asked.to_state()
    state.approve(asked.interruptions[0], always_approve=always)
    return state.to_string()


async def go_on(agent: Agent[Any], saved: str) -> None:
    """Go on from what was kept."""
    state: RunState[Any] = await RunState.from_string(agent, saved)
    await Runner.run(agent, state)


async def approved_twice() -> None:
    """Send one approval twice: two tabs, two workers, a request that was tried again."""
    agent = agent_of(asks(5), DONE, DONE)
    saved = await approved(agent)
    await go_on(agent, saved)
    await go_on(agent, saved)
    print(f"one approval, sent twice: paid {len(PAID)} times")


async def stopped_in_the_tool() -> None:
    """Stop while the bank is silent, as a timeout or a shutdown does, and go on."""
    PAID.clear()
    PAYING.clear()
    agent = agent_of(asks(7), DONE)
    saved = await approved(agent)
    going_on = asyncio.create_task(go_on(agent, saved))
    await PAYING.wait()
    going_on.cancel()
    await asyncio.wait([going_on])
    await go_on(agent, saved)
    print(f"one call, stopped and resumed: paid {len(PAID)} times")


async def approved_for_ever() -> None:
    """Approve 5 with `always_approve`, which looks at no arguments."""
    PAID.clear()
    agent = agent_of(asks(5), asks(5_000, "c2"), DONE)
    await go_on(agent, await approved(agent, always=True))
    print(f"5 approved for always: paid {' and '.join(map(str, PAID))}")


async def main() -> None:
    """Show each."""
    set_tracing_disabled(disabled=True)  # it would call home
    await approved_twice()
    await stopped_in_the_tool()
    await approved_for_ever()


if __name__ == "__main__":
    asyncio.run(main())
