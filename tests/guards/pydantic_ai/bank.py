"""A bank that pays, a model that is a script, and an agent of Pydantic AI with or without a guard.

Each story is told twice: bare, which shows the fault on the real framework, and guarded.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from click.testing import CliRunner
from pydantic_ai import Agent, AgentRunResult, DeferredToolRequests, DeferredToolResults, Tool
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from turnlock.cli.main import main
from turnlock.guards.guard import Guard
from turnlock.guards.pydantic_ai import GuardCapability, decide

T = TypeVar("T")
WAIT = 0.2
"""Seconds that a guard of these tests waits for a call that runs elsewhere."""


class Bank:
    """Pays, and remembers each payment."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.began = asyncio.Event()
        self.hangs = False

    async def pay(self, amount: int) -> str:
        """Pay an amount."""
        self.paid.append(amount)
        self.began.set()
        if self.hangs:
            await asyncio.Event().wait()
        return f"paid {amount}"


def call(call_id: str = "c1", amount: Any = 5, tool: str = "pay") -> ToolCallPart:
    return ToolCallPart(tool, {"amount": amount}, call_id)


def text(said: str = "done") -> TextPart:
    return TextPart(said)


class Script:
    """A model: its answer depends on how many answers the history has. It counts its requests."""

    def __init__(self, *answers: Sequence[ModelResponsePart]) -> None:
        self.answers = answers
        self.asked = 0
        self.model = FunctionModel(self._answer, stream_function=self._stream)

    def _parts(self, messages: list[ModelMessage]) -> Sequence[ModelResponsePart]:
        self.asked += 1
        place = sum(isinstance(it, ModelResponse) for it in messages)
        return self.answers[place] if place < len(self.answers) else [text()]

    def _answer(self, messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=self._parts(messages))

    async def _stream(
        self, messages: list[ModelMessage], _: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        for place, part in enumerate(self._parts(messages)):
            if isinstance(part, TextPart):
                yield part.content
            elif isinstance(part, ToolCallPart):
                arguments = json.dumps(part.args)
                yield {
                    place: DeltaToolCall(part.tool_name, arguments, tool_call_id=part.tool_call_id)
                }


PAYS = ([call()], [text()])
"""The script of a model that asks for one payment and is content."""


def guarded_by(guard: Guard | None) -> list[GuardCapability]:
    return [] if guard is None else [GuardCapability(guard)]


def agent_of(
    guard: Guard | None, bank: Bank, script: Script, *, asks: bool = True, **options: Any
) -> Agent[None, str | DeferredToolRequests]:
    """Return an agent that pays; `asks` says whether somebody must approve of it."""
    options.setdefault("tools", [Tool(bank.pay, requires_approval=asks, name="pay")])
    options.setdefault("output_type", [str, DeferredToolRequests])
    options["capabilities"] = [*options.get("capabilities", ()), *guarded_by(guard)]
    agent: Agent[None, Any] = Agent(script.model, **options)
    return agent


async def answered(
    guard: Guard | None,
    first: AgentRunResult[Any],
    answers: Mapping[str, Any],
    history: Sequence[ModelMessage] | None = None,
) -> DeferredToolResults:
    """Return a person's answers: told the framework alone, or by `decide`."""
    if guard is None:
        return DeferredToolResults(approvals=dict(answers))
    messages = first.all_messages() if history is None else history
    return await decide(guard, messages, first.output, answers, by="ada")


def kept(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return messages as another process reads them."""
    return ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json([*messages]))


def returned(messages: Sequence[ModelMessage]) -> list[tuple[str, Any]]:
    """Return what the model was told of its calls: the outcome and the content of each."""
    return [
        (part.outcome, part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


def turn(first: AgentRunResult[Any]) -> str:
    """Return the conversation that a result is of: the run of a guard."""
    return first.conversation_id


def bare(story: Callable[[None], Awaitable[T]]) -> T:
    """Tell a story without a guard."""
    return _run(story(None))


def guarded(folder: Path, story: Callable[[Guard], Awaitable[T]], **options: Any) -> T:
    """Tell a story with a guard, and hold its journal to the rules (turnlock check)."""
    options.setdefault("wait", WAIT)

    async def told() -> T:
        async with Guard.open(folder / "agent.db", **options) as guard:
            return await story(guard)

    result = _run(told())
    conforms(folder)
    return result


def conforms(folder: Path) -> None:
    """Hold a journal to the rules."""
    checked = CliRunner().invoke(main, ["check", "--db", str(folder / "agent.db")])
    assert checked.exit_code == 0, checked.output


def _run(story: Awaitable[T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(60):
            return await story

    return asyncio.run(bounded())
