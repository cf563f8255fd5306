"""The agent of two servers: its tools write down what they do, outside the journal."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

from turnlock.agent import Agent, Answer, Ended, Prompt, Question, Said, Stop, ToolCall
from turnlock.runtime import InDoubt, ToolContext, owners, tool

LEDGER = Path(os.environ["TURNLOCK_TEST_LEDGER"])
if MACHINE := os.environ.get("TURNLOCK_TEST_MACHINE"):
    setattr(owners, "boot", lambda: MACHINE)  # noqa: B010 - nobody else can see that it is dead


def done(what: str) -> None:
    """Write it down, whatever happens to this process."""
    with LEDGER.open("a", encoding="utf-8") as file:
        file.write(f"{what}\n")


@tool(in_doubt=InDoubt.FAIL)
async def work(context: ToolContext, at: str) -> str:
    """Do what must never be done twice."""
    done(at)
    return f"worked at {at}"


@tool(approval=True, in_doubt=InDoubt.FAIL)
async def pay(context: ToolContext, at: str) -> str:
    """Do so once somebody has approved."""
    done(at)
    return f"paid {at}"


class Model:
    """Calls the tool that the prompt begins with, and then says what it was told."""

    spec = "test:two"

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        """Answer the last prompt."""
        last = question.messages[-1]
        if isinstance(last, Prompt):
            name = last.text.split()[0]
            call = ToolCall(call_id=None, tool_name=name, arguments={"at": last.text})
            yield Ended(Answer(calls=(call,), stop=Stop.CALLS))
            return
        prompts = [it for it in question.messages if isinstance(it, Prompt)]
        yield Ended(Answer(text=f"done: {prompts[-1].text}"))

    async def close(self) -> None:
        """Do nothing."""


clerk = Agent(model=Model(), tools=[work, pay])
