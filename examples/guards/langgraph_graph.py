"""A LangGraph graph that is made by hand, under a guard; and a fork of it that is meant.

python examples/guards/langgraph_graph.py agent.db
"""

from __future__ import annotations

import sys
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import (  # pyright: ignore[reportMissingTypeStubs]
    START,
    MessagesState,
    StateGraph,
)
from langgraph.prebuilt import ToolNode, tools_condition

from turnlock.guards import Forked, Guard
from turnlock.guards.langgraph import GuardMiddleware

PAID: list[int] = []


def pay(amount: int) -> str:
    """Pay somebody."""
    PAID.append(amount)
    return f"paid {amount}"


def model(state: MessagesState) -> dict[str, Any]:
    """Ask to pay, once; each answer has an id of its own, as a provider gives it."""
    if state["messages"][-1].type == "tool":
        return {"messages": [AIMessage("It is settled.", id=f"answer-{uuid4()}")]}
    call = ToolCall(name="pay", args={"amount": 5}, id=f"call-{uuid4()}")
    return {"messages": [AIMessage("", id=f"answer-{uuid4()}", tool_calls=[call])]}


def graph_of(guard: Guard) -> Any:  # noqa: ANN401 - a compiled graph
    """Return a graph whose tools are guarded."""
    guarded = GuardMiddleware(guard)
    builder: Any = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("opened", guarded.after_model)
    builder.add_node(
        "tools",
        ToolNode(
            [pay],
            wrap_tool_call=guarded.wrap_tool_call,
            awrap_tool_call=guarded.awrap_tool_call,
        ),
    )
    builder.add_edge(START, "model")
    builder.add_edge("model", "opened")
    builder.add_conditional_edges("opened", tools_condition)
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=InMemorySaver())


def main(db: str) -> None:
    """Converse; go back to the beginning, which is refused; then as a conversation of its own."""
    with Guard.open(db) as guard:
        graph = graph_of(guard)
        thread = f"order-{uuid4()}"
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        graph.invoke({"messages": [("user", "pay 5")]}, config)
        *_, start, _ = graph.get_state_history(config)
        try:
            graph.invoke(None, start.config)
        except Forked:
            print(f"the model was asked again: refused, paid {len(PAID)} times")
        fork = {**start.config["configurable"], "turnlock_run": f"{thread}-again"}
        graph.invoke(None, {"configurable": fork})
        print(f"a fork that is meant: paid {len(PAID)} times")


if __name__ == "__main__":
    if not sys.argv[1:]:
        print("usage: python examples/guards/langgraph_graph.py agent.db", file=sys.stderr)
        sys.exit(2)
    main(sys.argv[1])
