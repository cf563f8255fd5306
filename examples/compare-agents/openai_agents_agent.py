"""OpenAI Agents SDK: `needs_approval`, a SQLite session, the `RunState` stored (its guides)."""

# ruff: noqa: ASYNC240, ASYNC250 - it waits for a person, as the guide to approvals does

import asyncio
from pathlib import Path

from agents import Agent, Runner, RunState, SQLiteSession, function_tool, set_default_openai_api
from shop import ASKED
from shop import pay as pay_for_good
from shop import weather as look

set_default_openai_api("chat_completions")


@function_tool
def weather(city: str) -> str:
    """Tell the weather in a city."""
    return look(city)


@function_tool(needs_approval=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody an amount in euros."""
    return pay_for_good(to, amount)


async def main() -> None:
    """Begin, or go on from what is stored."""
    agent = Agent(name="helper", model="gpt-5-mini", tools=[weather, pay])
    session = SQLiteSession("talk", "agent.db")
    stored = Path("state.json")
    begin = await RunState.from_string(agent, stored.read_text()) if stored.exists() else ASKED
    result = await Runner.run(agent, begin, session=session)
    while result.interruptions:
        state = result.to_state()
        stored.write_text(state.to_string())
        for asked in result.interruptions:
            if input(f"{asked.name} {asked.arguments}? ") == "y":
                state.approve(asked)
            else:
                state.reject(asked)
        stored.write_text(state.to_string())
        result = await Runner.run(agent, state, session=session)
    stored.unlink(missing_ok=True)
    print(result.final_output)


asyncio.run(main())
