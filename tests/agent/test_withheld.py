"""Calls whose answer turned out to be refused, or none: they never begin (W-58), early or whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

import attrs
import pytest

from turnlock.agent.folds import anthropic as anthropic_fold
from turnlock.agent.folds import responses as responses_fold
from turnlock.agent.folds.anthropic import AnthropicFold
from turnlock.agent.folds.google import GoogleFold
from turnlock.agent.folds.responses import ResponsesFold
from turnlock.agent.loop import Agent
from turnlock.agent.messages import Answer, Stop
from turnlock.agent.speaking import Ended, Fold, Question, Said

from ..runtime.virtual import LoopClock, run

PLACES: Final = ("sky", "sea")


@attrs.define
class Once:
    """Says one answer out of a provider's events, and then that it is done."""

    fold: Callable[[], Fold]
    events: Sequence[Any]
    spec: str = "test:m"
    asked: int = 0

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        del question
        self.asked += 1
        if self.asked > 1:
            yield Ended(Answer(text="done"))
            return
        fold = self.fold()
        for event in self.events:
            for said in fold.feed(event):
                yield said
        yield fold.end()

    async def close(self) -> None:
        """Nothing is open."""


def block(place: int, at: str) -> list[dict[str, Any]]:
    begun = {"type": "tool_use", "id": f"t{place}", "name": "look", "input": {"at": at}}
    return [
        {"type": "content_block_start", "index": place, "content_block": begun},
        {"type": "content_block_stop", "index": place},
    ]


def anthropic(calls: int, reason: str) -> list[dict[str, Any]]:
    blocks = [it for place, at in enumerate(PLACES[:calls]) for it in block(place, at)]
    message: Any = {"id": "m", "content": []}
    last = {"type": "message_delta", "delta": {"stop_reason": reason}}
    return [{"type": "message_start", "message": message}, *blocks, last]


def google(calls: int, reason: str, *, at_once: bool = False) -> list[dict[str, Any]]:
    parts = [{"functionCall": {"name": "look", "args": {"at": at}}} for at in PLACES[:calls]]
    if at_once:
        return [{"candidates": [{"content": {"parts": parts}, "finishReason": reason}]}]
    pieces: list[dict[str, Any]] = [{"candidates": [{"content": {"parts": [it]}}]} for it in parts]
    return [*pieces, {"candidates": [{"finishReason": reason}]}]


def responses(calls: int, reason: str, *, unsaid: int = 0) -> list[dict[str, Any]]:
    """Of `unsaid` items the stream says nothing before its last event."""
    items = [
        {
            "type": "function_call",
            "id": f"fc{place}",
            "call_id": f"c{place}",
            "name": "look",
            "arguments": f'{{"at": "{at}"}}',
            "status": "completed",
        }
        for place, at in enumerate(PLACES[:calls])
    ]
    ended = {"status": "incomplete", "incomplete_details": {"reason": reason}, "output": items}
    return [
        *(
            {"type": "response.output_item.done", "output_index": place, "item": item}
            for place, item in enumerate(items[: calls - unsaid])
        ),
        {"type": "response.incomplete", "response": ended},
    ]


CALLS = [it["content_block"] for it in anthropic(2, "refusal") if "content_block" in it]
REFUSED = {
    "anthropic": (AnthropicFold, anthropic(1, "refusal")),
    "google": (GoogleFold, google(1, "SAFETY")),
    "google, at once": (GoogleFold, google(2, "SAFETY", at_once=True)),
    "anthropic, at once": (
        AnthropicFold,
        [*anthropic_fold.as_events({"content": CALLS, "stop_reason": "refusal"})],
    ),
    "responses, at once": (
        lambda: ResponsesFold(spec="m"),
        [*responses_fold.as_events(responses(2, "content_filter")[-1]["response"])],
    ),
    "responses": (lambda: ResponsesFold(spec="m"), responses(1, "content_filter")),
    "responses, left out": (
        lambda: ResponsesFold(spec="m"),
        responses(2, "content_filter", unsaid=1),
    ),
}


def ran(fold: Callable[[], Fold], events: Sequence[Any], start: str) -> tuple[list[str], Stop, int]:
    """What ran, why the last answer stopped, and how often the model was asked."""

    async def play() -> tuple[list[str], Stop, int]:
        looked: list[str] = []

        async def look(at: str) -> str:
            looked.append(at)
            return "seen"

        model = Once(fold, events)
        given: Any = {"start": start}
        async with Agent(model=model, tools=[look], clock=LoopClock(), **given) as agent:
            result = await agent.run("go")
        return looked, result.stop, model.asked

    return run(play())


@pytest.mark.parametrize("start", ["early", "whole"])
@pytest.mark.parametrize(("fold", "events"), REFUSED.values(), ids=REFUSED)
def test_w_58_the_event_that_refuses_an_answer_starts_no_call_of_it(
    fold: Callable[[], Fold], events: Sequence[Any], start: str
) -> None:
    """A call that was closed waits for what follows it; if that is a refusal, it never begins."""
    assert ran(fold, events, start) == ([], Stop.REFUSED, 1)


@pytest.mark.parametrize("start", ["early", "whole"])
@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE"])
def test_w_52_w_58_what_the_provider_could_not_read_starts_no_call_and_is_asked_again(
    reason: str, start: str
) -> None:
    """It is no answer."""
    assert ran(GoogleFold, google(1, reason), start) == ([], Stop.DONE, 2)


@pytest.mark.parametrize(
    ("fold", "events"),
    [
        (AnthropicFold, anthropic(2, "refusal")),
        (GoogleFold, google(2, "SAFETY")),
        (lambda: ResponsesFold(spec="m"), responses(2, "content_filter")),
    ],
    ids=["anthropic", "google", "responses"],
)
def test_w_58_what_began_before_a_refusal_has_run_and_nothing_more(
    fold: Callable[[], Fold], events: Sequence[Any]
) -> None:
    """The negative control: a call that another one follows begins when that does."""
    looked, stop, _ = ran(fold, events, "early")

    assert set(looked) <= {"sky"}
    assert stop is Stop.REFUSED


@pytest.mark.parametrize("start", ["early", "whole"])
@pytest.mark.parametrize(
    ("fold", "events"),
    [
        (AnthropicFold, anthropic(2, "tool_use")),
        (GoogleFold, google(2, "STOP")),
        (lambda: ResponsesFold(spec="m"), responses(2, "another")),
    ],
    ids=["anthropic", "google", "responses"],
)
def test_w_58_calls_of_other_answers_run(
    fold: Callable[[], Fold], events: Sequence[Any], start: str
) -> None:
    """The negative control of all of this."""
    looked, stop, asked = ran(fold, events, start)

    assert (sorted(looked), stop, asked) == (["sea", "sky"], Stop.DONE, 2)
