"""LangGraph: an agent whose tool a person must approve, with its state in a SQLite checkpointer.

    python langgraph_agent.py ask|approve|resume FOLDER

The agent is the documented one: `create_agent`, `HumanInTheLoopMiddleware`, `SqliteSaver`, and
`durability="sync"`, which stores each step before the next one begins. With TASK in the
environment the payment is wrapped in a `@task`, as the guide to durable execution advises.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import ToolRuntime
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import task
from langgraph.types import Command
from ledger import ARGUMENTS, ASKED, CALL, SAID, meet, say
from ledger import pay as pay_for_good

THREAD = "t1"


class FakeModel(BaseChatModel):
    """Asks for one payment, and then says that it was made."""

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, *_: object, **__: object) -> FakeModel:
        """Take the tools for known."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the signature is LangChain's
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **_: object,
    ) -> ChatResult:
        if isinstance(messages[-1], ToolMessage):
            answer = AIMessage(content=SAID)
        else:
            call = {"name": "pay", "args": ARGUMENTS, "id": CALL, "type": "tool_call"}
            answer = AIMessage(content="", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


@task
def payment(account: str, amount: int, key: str) -> str:
    """Pay, in a task whose result LangGraph stores."""
    return pay_for_good(account, amount, key)


@tool
def pay(account: str, amount: int, runtime: ToolRuntime) -> str:
    """Pay an amount to an account."""
    key = f"{THREAD}/{runtime.tool_call_id}"
    if "TASK" in os.environ:
        return payment(account, amount, key).result()
    return pay_for_good(account, amount, key)


def main(step: str, folder: Path) -> None:
    """Take one step of the story in this process."""
    config: Any = {"configurable": {"thread_id": THREAD}}
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        gate = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
        agent = create_agent(FakeModel(), [pay], checkpointer=saver, middleware=[gate])
        if step == "ask":
            agent.invoke({"messages": [("user", ASKED)]}, config, durability="sync")
        elif step == "approve":
            asked = agent.get_state(config).interrupts
            meet()
            if asked:
                decision = {"decisions": [{"type": "approve"}]}
                agent.invoke(Command(resume=decision), config, durability="sync")
        elif step == "resume":
            agent.invoke(None, config, durability="sync")
        state = agent.get_state(config)
        results = [m for m in state.values["messages"] if isinstance(m, ToolMessage)]
        say(asks=len(state.interrupts), results=len(results))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
