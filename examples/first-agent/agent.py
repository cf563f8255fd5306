"""An agent with two tools, one of which needs a person: docs/first-agent.md kills it, too."""

from tools import pay

from turnlock import CallView
from turnlock.agent import Agent
from turnlock.runtime import tool


@tool(safe_to_repeat=True)
def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"rain in {city}"


def ask(call: CallView) -> bool:
    """Ask the person at the terminal."""
    return input(f"{call.tool_name} {call.arguments}? ") == "y"


agent = Agent(model="openai:gpt-5-mini", tools=[weather, pay], journal="talk.db", approve=ask)
print(agent.run_sync("What is the weather in Oslo? If it rains, pay Ada 5 euros for an umbrella."))
