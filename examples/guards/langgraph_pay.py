"""A LangChain agent under a guard: what langgraph_bare.py does twice is done once.

    python examples/guards/langgraph_pay.py agent.db

The model is a script, there is no key, and no money moves.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from turnlock.guards import At, Guard, InDoubt, Resolution
from turnlock.guards.langgraph import GuardMiddleware

PAID: list[int] = []
STOPS = [7]
"""What is booked when somebody presses Ctrl-C."""


def pay(amount: int) -> str:
    """Pay somebody."""
    PAID.append(amount)
    if amount in STOPS:  # the first time
        STOPS.remove(amount)
        raise KeyboardInterrupt
    return f"paid {amount}"


def look_up(at: At) -> str:
    """Ask the bank what became of a call."""
    return f"paid {PAID[-1]}, says the bank of {at.call}"


class Script(GenericFakeChatModel):
    """A model that says what it was told to."""

    def bind_tools(self, *_: object, **__: object) -> Script:
        """Know its tools already."""
        return self


def answers(amount: int) -> Iterator[AIMessage]:
    """Yield what the model says: it asks to pay, and then it is done, as often as it is asked."""
    yield AIMessage("", tool_calls=[ToolCall(name="pay", args={"amount": amount}, id="c1")])
    while True:
        yield AIMessage("It is settled.")


def agent_of(guard: Guard, amount: int) -> Any:  # noqa: ANN401 - a compiled graph
    """Return an agent whose payments need approval."""
    model = Script(messages=answers(amount))
    saver = InMemorySaver()
    return create_agent(
        model,
        tools=[pay],
        checkpointer=saver,
        middleware=[GuardMiddleware(guard, gate={"pay"}, records_model=True)],
    )


def approved_twice(guard: Guard) -> None:
    """Answer one question twice: the second is told what came of the first."""
    agent = agent_of(guard, 5)
    config: RunnableConfig = {"configurable": {"thread_id": f"order-{uuid4()}"}}
    asked = agent.invoke({"messages": [("user", "pay 5")]}, config)["__interrupt__"][0].value
    pinned = agent.get_state(config).config  # as a user interface keeps it with the question
    answer = {"approved": True, "digest": asked["digest"], "by": "ada"}
    agent.invoke(Command(resume=answer), pinned)
    told = agent.invoke(Command(resume=answer), pinned)
    print(f"one approval, sent twice: paid {len(PAID)} times; {told['messages'][-2].content}")


def killed_in_the_tool(guard: Guard) -> None:
    """Stop in the tool: nobody knows whether it happened, until somebody says so."""
    PAID.clear()
    agent = agent_of(guard, 7)
    config: RunnableConfig = {"configurable": {"thread_id": f"order-{uuid4()}"}}
    asked = agent.invoke({"messages": [("user", "pay 7")]}, config)["__interrupt__"][0].value
    try:
        agent.invoke(Command(resume={**asked, "approved": True}), config)
    except KeyboardInterrupt:
        print("stopped in the tool")
    try:
        agent.invoke(None, config)
    except InDoubt as doubt:
        guard.resolve(doubt.at, Resolution.RESULT, result=look_up(doubt.at))
    told = agent.invoke(None, config)
    print(f"one call, resumed twice: paid {len(PAID)} times; {told['messages'][-2].content}")


if __name__ == "__main__":
    if not sys.argv[1:]:
        print("usage: python examples/guards/langgraph_pay.py agent.db", file=sys.stderr)
        sys.exit(2)
    with Guard.open(sys.argv[1]) as opened:
        approved_twice(opened)
        killed_in_the_tool(opened)
