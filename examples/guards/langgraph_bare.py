"""What goes wrong in a LangChain agent without a guard: two payments for one approval, and more.

    python examples/guards/langgraph_bare.py

The gate is the framework's own. The model is a script, there is no key, and no money moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

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


def agent(amount: int, *gates: HumanInTheLoopMiddleware[Any, Any]) -> Any:  # noqa: ANN401 - a graph
    """Return an agent that pays."""
    return create_agent(
        Script(messages=answers(amount)),
        tools=[pay],
        checkpointer=InMemorySaver(),
        middleware=gates,
    )


def approved_twice() -> None:
    """Answer one question twice: two tabs, a retried request, a pinned checkpoint."""
    it = agent(5, HumanInTheLoopMiddleware(interrupt_on={"pay": True}))
    config: RunnableConfig = {"configurable": {"thread_id": "t1"}}
    it.invoke({"messages": [("user", "pay 5")]}, config)
    asked = it.get_state(config).config  # as a user interface keeps it with the question
    for _ in range(2):
        it.invoke(Command(resume={"decisions": [{"type": "approve"}]}), asked)
    print(f"one approval, sent twice: paid {len(PAID)} times")


def killed_in_the_tool() -> None:
    """Stop in the tool, and go on from the checkpoint."""
    PAID.clear()
    it = agent(7)
    config: RunnableConfig = {"configurable": {"thread_id": "t2"}}
    try:
        it.invoke({"messages": [("user", "pay 7")]}, config)
    except KeyboardInterrupt:
        it.invoke(None, config)
    print(f"one call, stopped and resumed: paid {len(PAID)} times")


if __name__ == "__main__":
    approved_twice()
    killed_in_the_tool()
