"""A LangChain agent that waits for a person, wherever that person sits.

    python examples/guards/inbox_langgraph.py agent.db

It asks to pay, and goes on once somebody has decided: in the browser (`turnlock serve --db
agent.db`), in `turnlock tui --db agent.db`, or by `turnlock approve`. `inbox_openai.py` may run
beside it, on the same file. The model is a script, and there is no key.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from langchain.agents import create_agent  # pyright: ignore[reportUnknownVariableType]
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from turnlock.guards import At
from turnlock.guards.guard import Guard
from turnlock.guards.langgraph import GuardMiddleware

PATIENCE = 600.0
"""Seconds that the agent waits for a person."""


def pay(amount: int) -> str:
    """Pay an invoice."""
    return f"paid {amount}"


class Script(GenericFakeChatModel):
    """A model that says what it was told to."""

    def bind_tools(self, *_: object, **__: object) -> Script:
        """Know its tools already."""
        return self


def answers() -> Iterator[AIMessage]:
    """Yield what the model says."""
    yield AIMessage("", id="a1", tool_calls=[ToolCall(name="pay", args={"amount": 5}, id="c1")])
    yield AIMessage("The invoice is settled.", id="a2")


def main(db: str) -> None:
    """Ask the agent, wait for whoever decides, and go on."""
    config: RunnableConfig = {"configurable": {"thread_id": "invoice-17"}}
    with Guard.open(db) as guard:
        agent: Any = create_agent(
            Script(messages=answers()),
            tools=[pay],
            checkpointer=InMemorySaver(),
            middleware=[GuardMiddleware(guard, gate={"pay"})],
        )
        told = agent.invoke({"messages": [("user", "pay invoice 17")]}, config)
        for asked in told.get("__interrupt__", ()):
            at = At(asked.value["run"], asked.value["turn"], asked.value["call"])
            print(f"{at.run} waits for a person", flush=True)
            guard.wait_decided(at, within=PATIENCE)
            told = agent.invoke(None, config)  # the guard finds the decision
        *_, result, last = told["messages"]
        print(f"{result.content}. {last.content}")


if __name__ == "__main__":
    if not sys.argv[1:]:
        print("usage: python examples/guards/inbox_langgraph.py agent.db", file=sys.stderr)
        sys.exit(2)
    main(*sys.argv[1:])
