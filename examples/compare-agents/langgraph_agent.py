"""LangGraph: `create_agent`, an `interrupt()` in the tool, a SQLite checkpointer (its guides)."""

from langchain.agents import create_agent
from langchain.messages import HumanMessage
from langchain.tools import tool
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt
from shop import ASKED
from shop import pay as pay_for_good
from shop import weather as look


@tool
def weather(city: str) -> str:
    """Tell the weather in a city."""
    return look(city)


@tool
def pay(to: str, amount: int) -> str:
    """Pay somebody an amount in euros."""
    if not interrupt(f"pay {amount} to {to}"):
        return "denied"
    return pay_for_good(to, amount)


config: RunnableConfig = {"configurable": {"thread_id": "talk"}}
with SqliteSaver.from_conn_string("agent.db") as saver:
    agent = create_agent("openai:gpt-5-mini", [weather, pay], checkpointer=saver)
    if agent.get_state(config).values:
        agent.invoke(None, config, durability="sync")
    else:
        agent.invoke({"messages": [HumanMessage(ASKED)]}, config, durability="sync")
    while asked := agent.get_state(config).interrupts:
        agreed = input(f"{asked[0].value}? ") == "y"
        agent.invoke(Command(resume=agreed), config, durability="sync")
    print(agent.get_state(config).values["messages"][-1].content)
