"""A chat client of the framework's own protocol that says what it is told to; a bank; a host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any

from agent_framework import (
    Agent,
    AgentResponse,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)

from turnlock.guards import Guard
from turnlock.guards.agent_framework import ClaimMiddleware, TurnMiddleware, answer

Asked = tuple[str, str, Mapping[str, Any]]
"""A call as the model asks for it: its id, its tool, its arguments."""

PAY: Sequence[Asked] = (("c1", "pay", {"amount": 5}),)


class Speaker(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Says its answers in turn: a text, or calls; then "done" for ever."""

    OTEL_PROVIDER_NAME = "speaker"

    def __init__(
        self, *answers: str | Sequence[Asked], own_ids: bool = False, **options: Any
    ) -> None:
        """Keep what is to be said; `own_ids`: contents come with ids, those of their calls."""
        super().__init__(**options)
        self.answers = list(answers)
        self.own_ids = own_ids
        self.heard: list[list[Message]] = []

    def _inner_get_response(
        self,
        *,
        messages: Sequence[Message],
        stream: bool,
        options: Mapping[str, Any],
        **kwargs: Any,
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        """Say the next answer."""
        self.heard.append(list(messages))
        said = self.answers.pop(0) if self.answers else "done"
        contents = [Content.from_text(said)] if isinstance(said, str) else self._calls(said)
        if stream:
            return self._build_response_stream(streamed(contents))

        async def respond() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", contents)], response_id="always")

        return respond()

    def _calls(self, said: Sequence[Asked]) -> list[Content]:
        return [
            Content.from_function_call(
                call_id, name, arguments=dict(arguments), id=call_id if self.own_ids else None
            )
            for call_id, name, arguments in said
        ]

    def told(self) -> list[str]:
        """Return the results that the model was told in its last question."""
        contents = [it for message in self.heard[-1] for it in message.contents]
        return [it.result or "" for it in contents if it.type == "function_result"]


async def streamed(contents: Sequence[Content]) -> AsyncIterator[ChatResponseUpdate]:
    """Yield one update for each content."""
    for it in contents:
        yield ChatResponseUpdate(role="assistant", contents=[it], response_id="always")


class Bank:
    """What a tool does to the world: `paid` has each payment that was made."""

    def __init__(self) -> None:
        """Begin with nothing paid."""
        self.paid: list[int] = []

    def tool(self, *, asks: bool = True) -> Any:
        """Return a tool that pays; `asks`: the framework asks before it runs."""

        @tool(approval_mode="always_require" if asks else "never_require")
        async def pay(amount: int) -> str:
            """Pay an amount."""
            await self.before(amount)
            self.paid.append(amount)
            await self.after(amount)
            return f"paid {amount}"

        return pay

    async def before(self, amount: int) -> None:
        """Do nothing before a payment."""

    async def after(self, amount: int) -> None:
        """Do nothing after a payment."""


def agent_of(
    guard: Guard | None, speaker: Speaker, *tools: Any, gate: Sequence[str] = (), **more: Any
) -> Agent[Any]:
    """Return an agent, with a guard or bare."""
    guarding: list[Any] = []
    if guard:
        guarding = [TurnMiddleware(guard, gate=gate), ClaimMiddleware(guard)]
    beside = more.pop("middleware", [])
    return Agent(client=speaker, tools=list(tools), middleware=[*beside, *guarding], **more)


def run(agent: Agent[Any], given: str, session: AgentSession | None = None) -> str:
    """Run an agent, and return what it says."""

    async def play() -> str:
        return (await agent.run(given, session=session)).text

    return asyncio.run(play())


async def decided(
    guard: Guard | None, session: AgentSession, asked: AgentResponse[Any], *, approved: bool = True
) -> list[Content]:
    """Decide all that is asked for, where a guard is through `answer`."""
    return [
        await answer(guard, session, it, approved, by="ada")
        if guard
        else it.to_function_approval_response(approved)
        for it in asked.user_input_requests
    ]


def kept(session: AgentSession) -> str:
    """Return a session as a host stores it."""
    return json.dumps(session.to_dict())


def loaded(stored: str) -> AgentSession:
    """Return a session as another process gets it."""
    return AgentSession.from_dict(json.loads(stored))
