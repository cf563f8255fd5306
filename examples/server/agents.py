"""An agent for `turnlock serve --agent agents.py`: it pays what it is told to, once you approve.

Its model is none of anybody's, so that no key is needed: give `model="openai:gpt-5-mini"` instead.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from turnlock import Status
from turnlock.agent import Agent, Answer, Ended, Prompt, Question, Results, Said, ToolCall
from turnlock.runtime import tool


@tool(approval=True)
def pay(to: str, amount: int) -> str:
    """Pay somebody an amount in euros."""
    return f"paid {amount} to {to}"


class Payer:
    """Asks to pay whoever it is told of, and says what came of it."""

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        """Answer what was said last."""
        last = question.messages[-1]
        if isinstance(last, Results):
            told = (
                done.result if done.status is Status.SUCCEEDED else done.error or done.reason
                for done in last.results
            )
            yield Ended(Answer(text="; ".join(map(str, told))))
        elif isinstance(last, Prompt) and (found := re.findall(r"(\w+) (\d+)", last.text)):
            calls = (
                ToolCall(call_id=None, tool_name="pay", arguments={"to": to, "amount": int(amount)})
                for to, amount in found
            )
            yield Ended(Answer(text="I pay.", calls=tuple(calls)))
        else:
            yield Ended(Answer(text="Whom, and how much? As: pay Ada 5"))

    async def close(self) -> None:
        """Close nothing."""


payer = Agent(model=Payer(), tools=[pay])
