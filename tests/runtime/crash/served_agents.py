"""The agent of a server that is killed: its tools write down what they do, outside the journal."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

from turnlock.agent import Agent, Answer, Ended, Prompt, Question, Said, Stop, Text, ToolCall
from turnlock.runtime import InDoubt, ToolContext, tool

LEDGER = Path(os.environ["TURNLOCK_TEST_LEDGER"])


@tool(in_doubt=InDoubt.FAIL)
async def work(context: ToolContext, at: str) -> str:
    """Do what must never be done twice."""
    file = os.open(LEDGER, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
    try:
        os.write(file, json.dumps([context.idempotency_key, at]).encode() + b"\n")
        os.fsync(file)
    finally:
        os.close(file)
    await asyncio.sleep(0.01)
    return f"worked at {at}"


class Worker:
    """A model that works once at each prompt, and then says what it was told."""

    spec = "test:worker"

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        """Answer the last prompt."""
        last = question.messages[-1]
        prompts = [it for it in question.messages if isinstance(it, Prompt)]
        if isinstance(last, Prompt):
            call = ToolCall(call_id=None, tool_name="work", arguments={"at": last.text})
            yield Ended(Answer(calls=(call,), stop=Stop.CALLS))
            return
        text = f"done: {prompts[-1].text}"
        for word in text.split():
            yield Text(word)
            await asyncio.sleep(0.001)
        yield Ended(Answer(text=text))

    async def close(self) -> None:
        """Do nothing."""


worker = Agent(model=Worker(), tools=[work])
