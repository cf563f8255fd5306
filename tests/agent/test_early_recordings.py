"""Early calls out of recorded responses, cut wherever they may be (W-58)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Final

import attrs
import pytest

from turnlock.agent.asking import Asking
from turnlock.agent.errors import ModelError
from turnlock.agent.folds.anthropic import AnthropicFold
from turnlock.agent.folds.chat_completions import ChatCompletionsFold
from turnlock.agent.folds.google import GoogleFold
from turnlock.agent.folds.responses import ResponsesFold
from turnlock.agent.loop import Agent
from turnlock.agent.messages import Answer, Stop
from turnlock.agent.speaking import Fold, Question, Said
from turnlock.runtime.tools.tool import Tool

from ..runtime.virtual import run
from .playing import Play, playing
from .recordings import Recording, recordings
from .spoken import PROVIDERS

FOLDS: Final[dict[str, Callable[..., Fold]]] = {
    "openai": ChatCompletionsFold,
    "openai-responses": ResponsesFold,
    "anthropic": AnthropicFold,
    "google": GoogleFold,
}


@attrs.frozen
class Recorded:
    """A model that says what was recorded, up to some event; then its connection is closed."""

    fold: Fold
    events: Sequence[Any]
    breaks: bool
    """Whether the client complains of that."""
    spec: str

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        del question
        for event in self.events:
            for said in self.fold.feed(event):
                yield said
        if self.breaks:
            raise ModelError("the connection was lost")
        yield self.fold.end()

    async def close(self) -> None:
        """Nothing is open."""


def answered(
    recording: Recording, events: Sequence[Any], *, breaks: bool = False
) -> tuple[Answer | None, list[Answer]]:
    """The answer that is kept of these events, if any, and its parts."""
    parts: list[Answer] = []

    async def begin(answer: Answer) -> bool:
        parts.append(answer)
        return True

    spec = f"{recording.provider}:m"
    model = Recorded(FOLDS[recording.provider](spec=spec), events, breaks, spec)
    asking = Asking(model=model, agent="ada", pauses=())
    try:
        return run(asking.answer(Question(()), entry_id="e", begin=begin)), parts
    except ModelError:
        return None, parts


def tenths(events: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """The events up to each tenth of them."""
    return (events[: len(events) * tenth // 10] for tenth in range(1, 10))


STREAMED = [
    pytest.param(it, id=it.name)
    for provider in FOLDS
    for it in recordings(provider, streamed=True)
    if it.status == 200 and it.calls
]


@pytest.mark.parametrize("recording", STREAMED)
def test_w_58_what_begins_early_is_what_the_answer_asks_for(recording: Recording) -> None:
    """Cut anywhere, cleanly or not: each call that has begun is one of the whole answer's."""
    events = [*recording.events()]
    whole, parts = answered(recording, events)

    assert whole is not None
    early = recording.provider != "openai"  # W-53: chat completions close no call before the end
    assert len(parts) == (len(whole.calls) if early else 0)
    assert all(part.calls == whole.calls[: len(part.calls)] for part in parts)
    assert whole.ids == (parts[-1].ids if parts else None)
    for some in tenths(events):
        for breaks in (False, True):
            answer, begun = answered(recording, some, breaks=breaks)
            assert [part.calls for part in begun] == [part.calls for part in parts[: len(begun)]]
            assert begun == parts[: len(begun)]
            if answer is not None and answer.stop is Stop.CUT:
                assert answer == begun[-1]
            else:
                assert answer is None or answer.calls == whole.calls
                assert answer is not None or begun == []


def cut_after_a_call(provider: str) -> tuple[Recording, int, Answer]:
    """A recording, a byte in it, and the answer that it is there: some of its calls have begun."""
    for recording in recordings(provider, streamed=True):
        if recording.status == 200 and len(recording.calls or ()) > 1:
            for event in re.finditer(rb"\r?\n\r?\n", recording.body):
                some = attrs.evolve(recording, body=recording.body[: event.end()])
                answer, parts = answered(some, [*some.events()])
                if parts and answer is not None and answer.stop is Stop.CUT:
                    return recording, event.end(), answer
    raise AssertionError(provider)


def without_calls(provider: str) -> Recording:
    """A recording of an answer that ends a conversation."""
    for recording in recordings(provider, streamed=True):
        if recording.status == 200 and not recording.calls and b"quota" not in recording.body:
            answer, _ = answered(recording, [*recording.events()])
            if answer is not None and answer.stop is Stop.DONE and not answer.calls:
                return recording
    raise AssertionError(provider)


def any_tool(name: str) -> Tool:
    """A tool that takes whatever it is given."""

    async def call(**given: Any) -> str:
        return f"{len(given)} taken"

    return Tool(name=name, call=call, parameters={"type": "object"})


@pytest.mark.parametrize("name", ["anthropic", "openai-responses"])
@pytest.mark.parametrize("cleanly", [True, False])
def test_w_58_through_the_official_clients(name: str, cleanly: bool) -> None:
    """What was cut after a call is told with its result, and not asked again.

    No recorded response of Google closes a call before its last event.
    """

    recording, cut, answer = cut_after_a_call(name)
    last = without_calls(name)

    async def play() -> None:
        plays = Play.of(recording, cut=cut, cleanly=cleanly), Play.of(last)
        async with playing(*plays) as server:
            model = PROVIDERS[name].model(server.url)
            tools = [any_tool(call.tool_name) for call in answer.calls]
            async with Agent(model=model, tools=tools, start="early") as agent:
                result = await agent.run("go")
                kept = agent.conversation.said[1]
            await model.close()
        assert kept == answer
        assert result.answers == 2
        asked, told = PROVIDERS[name].ids(server.asked[1])
        assert len(server.asked) == 2
        assert asked == told
        assert len(asked) == len(answer.calls)

    asyncio.run(play())
