"""A Microsoft agent under a guard: what agent_framework_bare.py does twice is done once.

    python examples/guards/agent_framework_pay.py agent.db

The model is a script, there is no key, and no money moves.
"""

from __future__ import annotations

import asyncio
import json
import sys
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
)

from turnlock.guards import At, Guard, InDoubt, Resolution, Stale
from turnlock.guards.agent_framework import ClaimMiddleware, TurnMiddleware, answer

PAID: list[int] = []
STALLS = [7]
"""What the bank books, and does not answer to."""
BOOKED = asyncio.Event()
"""Set when it has booked that."""


async def pay(amount: int) -> str:
    """Pay somebody."""
    PAID.append(amount)
    if amount in STALLS:  # the first time
        STALLS.remove(amount)
        BOOKED.set()
        await asyncio.Event().wait()
    return f"paid {amount}"


def look_up(at: At) -> str:
    """Ask the bank what became of a call."""
    return f"paid {PAID[-1]}, says the bank of {at.call}"


class Script(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """A model that asks to pay what it is told to, and then repeats what it was told of it."""

    OTEL_PROVIDER_NAME = "script"

    async def _says(self, messages: Sequence[Message]) -> ChatResponse[Any]:
        last = messages[-1]
        if last.role == "user" and last.text.startswith("pay "):
            amount = int(last.text.removeprefix("pay "))
            said = Content.from_function_call("c1", "pay", arguments={"amount": amount})
        else:
            told = [it.result or "" for it in last.contents if it.type == "function_result"]
            said = Content.from_text(" ".join(told) or "It is settled.")
        return ChatResponse(messages=[Message("assistant", [said])])

    def _inner_get_response(
        self, *, messages: Sequence[Message], **_: object
    ) -> Awaitable[ChatResponse[Any]]:
        return self._says(messages)


def agent_of(guard: Guard, client: BaseChatClient[Any]) -> Agent[Any]:
    """Return an agent whose payments need approval."""
    return Agent(
        client=client,
        tools=[pay],
        middleware=[TurnMiddleware(guard, gate={"pay"}), ClaimMiddleware(guard)],
    )


def stored(session: AgentSession) -> str:
    """Return a session as a host keeps it between requests."""
    return json.dumps(session.to_dict())


def loaded(text: str) -> AgentSession:
    """Return a stored session, as the next request gets it."""
    return AgentSession.from_dict(json.loads(text))


async def approved_twice(guard: Guard) -> None:
    """Answer one question twice: the second is told what came of the first."""
    agent, session = agent_of(guard, Script()), AgentSession()
    asked = await agent.run("pay 5", session=session)
    requests = asked.user_input_requests
    yes = [await answer(guard, session, it, approved=True, by="ada") for it in requests]
    kept = stored(session)
    said = [(await agent.run(yes, session=loaded(kept))).text for _ in range(2)]
    print(f"one approval, sent twice: paid {len(PAID)} times; {said}")


async def given_up_in_the_tool(guard: Guard) -> None:
    """Give up in the tool: nobody knows whether it happened, until somebody says so."""
    PAID.clear()
    agent, session = agent_of(guard, Script()), AgentSession()
    asked = await agent.run("pay 7", session=session)
    requests = asked.user_input_requests
    yes = [await answer(guard, session, it, approved=True, by="ada") for it in requests]
    kept = stored(session)
    first = asyncio.ensure_future(agent.run(yes, session=loaded(kept)))
    await BOOKED.wait()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    session = loaded(kept)
    try:
        done = await agent.run(yes, session=session)
    except InDoubt as doubt:
        await guard.aresolve(doubt.at, Resolution.RESULT, result=look_up(doubt.at))
        done = await agent.run(yes, session=session)
    print(f"one call, given up and tried again: paid {len(PAID)} times; {done.text}")


async def approved_too_late(guard: Guard) -> None:
    """Answer a question when the user has moved on."""
    PAID.clear()
    agent, session = agent_of(guard, Script()), AgentSession()
    asked = await agent.run("pay 9", session=session)
    await agent.run("never mind", session=session)
    try:
        await answer(guard, session, asked.user_input_requests[0], approved=True, by="ada")
    except Stale:
        print(f"approved after 'never mind': refused, paid {len(PAID)} times")


async def decided_elsewhere(guard: Guard) -> None:
    """Have somebody decide at a console, and wake the run."""
    PAID.clear()
    agent, session = agent_of(guard, Script()), AgentSession()
    asked = await agent.run("pay 11", session=session)
    console = asyncio.create_task(at_a_console(guard, session.session_id))
    (waiting,) = await guard.awaiting(session.session_id)
    await guard.await_decided(waiting.at, within=600)
    wake = [it.to_function_approval_response(approved=True) for it in asked.user_input_requests]
    done = await agent.run(wake, session=session)
    await console
    print(f"denied at a console: paid {len(PAID)} times; {done.text}")


async def at_a_console(guard: Guard, run: str) -> None:
    """Deny what waits, as a person does with turnlock deny."""
    for it in await guard.awaiting(run):
        await guard.adecide(it.at, approved=False, digest=it.digest, by="bob", reason="too much")


async def main(db: str) -> None:
    """Do all four."""
    async with Guard.open(db) as guard:
        await approved_twice(guard)
        await given_up_in_the_tool(guard)
        await approved_too_late(guard)
        await decided_elsewhere(guard)


if __name__ == "__main__":
    if not sys.argv[1:]:
        print("usage: python examples/guards/agent_framework_pay.py agent.db", file=sys.stderr)
        sys.exit(2)
    asyncio.run(main(sys.argv[1]))
