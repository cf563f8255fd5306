"""turnlock: a tool that needs approval, an `Agent` on a SQLite journal, and nothing else."""

from shop import ASKED
from shop import pay as pay_for_good
from shop import weather as look

from turnlock import CallView
from turnlock.agent import Agent
from turnlock.runtime import tool


@tool(safe_to_repeat=True)
def weather(city: str) -> str:
    """Tell the weather in a city."""
    return look(city)


@tool(approval=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody an amount in euros."""
    return pay_for_good(to, amount)


def ask(call: CallView) -> bool:
    """Ask the person at the terminal."""
    return input(f"{call.tool_name} {call.arguments}? ") == "y"


agent = Agent(model="openai:gpt-5-mini", tools=[weather, pay], journal="agent.db", approve=ask)
print(agent.run_sync(ASKED))
