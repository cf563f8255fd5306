"""What goes wrong in Microsoft Agent Framework without a guard: two payments for one approval.

    python examples/guards/agent_framework_bare.py

The gate is the framework's own. The model is a script, there is no key, and no money moves.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Sequence
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

PAID: list[int] = []
STALLS = [7]
"""What the bank books, and does not answer to."""
BOOKED = asyncio.Event()
"""Set when it has booked that."""


@tool(approval_mode="always_require")
async def pay(amount: int) -> str:
    """Pay somebody."""
    PAID.append(amount)
    if amount in STALLS:  # the first time
        STALLS.remove(amount)
        BOOKED.set()
        await asyncio.Event().wait()
    return f"paid {amount}"


class Script(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A model that asks to pay what it is told to, and is done when it was paid, or called off."""

    OTEL_PROVIDER_NAME = "script"

    async def _says(self, messages: Sequence[Message]) -> ChatResponse[Any]:
        if messages[-1].role == "user" and messages[-1].text.startswith("pay "):
            amount = int(messages[-1].text.removeprefix("pay "))
            said = Content.from_function_call("c1", "pay", arguments={"amount": amount})
        else:
            said = Content.from_text("It is settled.")
        return ChatResponse(messages=[Message("assistant", [said])])

    def _inner_get_response(
        self, *, messages: Sequence[Message], **_: object
    ) -> Awaitable[ChatResponse[Any]]:
        return self._says(messages)


AGENT: Agent[Any] = Agent(client=Script(), tools=[pay])


async def asked(amount: int) -> tuple[str, list[Content]]:
    """Ask for a payment; return the session as a host stores it, and the approval."""
    session = AgentSession()
    question = await AGENT.run(f"pay {amount}", session=session)
    yes = [it.to_function_approval_response(approved=True) for it in question.user_input_requests]
    return json.dumps(session.to_dict()), yes


def loaded(stored: str) -> AgentSession:
    """Return a stored session, as the next request gets it."""
    return AgentSession.from_dict(json.loads(stored))


async def approved_twice() -> None:
    """Answer one question twice: two tabs, a retried request."""
    stored, yes = await asked(5)
    for _ in range(2):
        await AGENT.run(yes, session=loaded(stored))
    print(f"one approval, sent twice: paid {len(PAID)} times")


async def given_up_in_the_tool() -> None:
    """Give up in the tool, as a host does after its timeout, and try again."""
    PAID.clear()
    stored, yes = await asked(7)
    first = asyncio.ensure_future(AGENT.run(yes, session=loaded(stored)))
    await BOOKED.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await AGENT.run(yes, session=loaded(stored))
    print(f"one call, given up and tried again: paid {len(PAID)} times")


async def approved_too_late() -> None:
    """Answer a question when the user has moved on."""
    PAID.clear()
    stored, yes = await asked(9)
    session = loaded(stored)
    await AGENT.run("never mind", session=session)
    await AGENT.run(yes, session=session)
    print(f"approved after 'never mind': paid {len(PAID)} times")


async def main() -> None:
    """Do all three."""
    await approved_twice()
    await given_up_in_the_tool()
    await approved_too_late()


if __name__ == "__main__":
    asyncio.run(main())
