"""Characters that come in halves (W-51, W-52): joined over pieces, U+FFFD where one is alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import pytest

from turnlock.agent.messages import Answer, Tokens, ToolCall, as_note
from turnlock.agent.speaking import (
    Again,
    CallBegan,
    CallEnded,
    CallText,
    Elsewhere,
    Ended,
    Question,
    Said,
    Text,
    Thought,
    Used,
    listen,
)
from turnlock.agent.whole_text import WholeTexts, all_whole, whole

from .playing import Play, playing
from .spoken import PROVIDERS

HIGH, LOW, LOST = "\ud83d", "\ude00", "\N{REPLACEMENT CHARACTER}"
FACE: Final = "\N{GRINNING FACE}"
SPLITS: Final = {
    "a pair over two pieces": ((f"hi {HIGH}", f"{LOW} you"), f"hi {FACE} you"),
    "a half at the end": (("hi ", HIGH), f"hi {LOST}"),
    "a half amid it": ((f"hi {HIGH}", " you"), f"hi {LOST} you"),
    "the second half alone": (("hi ", f"{LOW} you"), f"hi {LOST} you"),
    "two first halves": ((HIGH, HIGH, LOW), LOST + FACE),
}


def chat(pieces: tuple[str, ...]) -> list[Any]:
    def event(reason: str | None = None, **delta: Any) -> Any:
        return {"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    def call(arguments: str, **function: Any) -> Any:
        called = {"arguments": arguments, **function}
        return event(tool_calls=[{"index": 0, "function": called}])

    return [
        *(event(reasoning_content=it) for it in pieces),
        *(event(content=it) for it in pieces),
        call('{"at": "', name="look"),
        *(call(it) for it in pieces),
        call('"}'),
        event("tool_calls"),
    ]


def anthropic(pieces: tuple[str, ...]) -> list[Any]:
    arguments = ('{"at": "', *pieces, '"}')

    def block(index: int, begun: Any, kind: str, field: str, of: tuple[str, ...]) -> list[Any]:
        deltas = [{"type": kind, field: it} for it in of]
        return [
            {"type": "content_block_start", "index": index, "content_block": begun},
            *({"type": "content_block_delta", "index": index, "delta": it} for it in deltas),
            {"type": "content_block_stop", "index": index},
        ]

    tool: Any = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    thinking = {"type": "thinking", "thinking": ""}
    text = {"type": "text", "text": ""}
    return [
        {"type": "message_start", "message": {"id": "m", "type": "message", "content": []}},
        *block(0, thinking, "thinking_delta", "thinking", pieces),
        *block(1, text, "text_delta", "text", pieces),
        *block(2, tool, "input_json_delta", "partial_json", arguments),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]


def google(pieces: tuple[str, ...]) -> list[Any]:
    call = {"functionCall": {"name": "look", "args": {"at": "".join(pieces)}}}
    parts = [
        *({"text": it, "thought": True} for it in pieces),
        *({"text": it} for it in pieces),
        call,
    ]
    said: list[Any] = [{"candidates": [{"content": {"parts": [it]}}]} for it in parts]
    return [*said, {"candidates": [{"finishReason": "STOP"}]}]


def responses(pieces: tuple[str, ...]) -> list[Any]:
    joined = "".join(pieces)
    arguments = f'{{"at": "{joined}"}}'
    items: list[Any] = [
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": joined}]},
        {"type": "message", "id": "m", "content": [{"type": "output_text", "text": joined}]},
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": arguments},
    ]
    deltas = [
        ("response.reasoning_summary_text.delta", pieces),
        ("response.output_text.delta", pieces),
        ("response.function_call_arguments.delta", ('{"at": "', *pieces, '"}')),
    ]
    events: list[Any] = []
    for place, (item, (kind, of)) in enumerate(zip(items, deltas, strict=True)):
        begun: Any = {**item, "content": [], "summary": [], "arguments": ""}
        at = {"output_index": place}
        events.append({"type": "response.output_item.added", "item": begun, **at})
        events += [{"type": kind, "delta": it, **at} for it in of]
        events.append({"type": "response.output_item.done", "item": item, **at})
    return [*events, {"type": "response.completed", "response": {"output": items}}]


STREAMS = {
    "openai": chat,
    "openai-responses": responses,
    "anthropic": anthropic,
    "google": google,
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize(("pieces", "expected"), SPLITS.values(), ids=SPLITS)
def test_w_51_w_52_halves_that_stream_are_what_would_have_come_at_once(
    name: str, pieces: tuple[str, ...], expected: str
) -> None:
    """In texts, thoughts and arguments, through the official clients; all of it can be kept."""
    events = STREAMS[name](pieces)
    body = b"".join(
        (b"event: %s\n" % it["type"].encode() if "type" in it else b"")
        + b"data: %s\n\n" % json.dumps(it).encode()
        for it in events
    )
    said: list[Said] = []

    async def play() -> Ended:
        async with playing(Play(body=body)) as server:
            model = PROVIDERS[name].model(server.url)
            try:
                return await listen(model, Question(()), hear=said.append)
            finally:
                await model.close()

    answer = asyncio.run(play()).answer
    heard = {
        kind: "".join(it.text for it in said if isinstance(it, kind)) for kind in (Text, Thought)
    }
    (call,) = answer.calls

    assert answer.text == heard[Text] == heard[Thought] == expected
    assert (call.arguments, call.fault) == ({"at": expected}, None)
    called = "".join(it.text for it in said if isinstance(it, CallText))
    assert all_whole(json.loads(called)) == {"at": expected}
    for it in said:
        if isinstance(it, Text | Thought | CallText):
            it.text.encode()
    as_note(answer).content()


def test_w_51_a_text_without_halves_is_what_it_was() -> None:
    """A mark of order at its beginning, too."""
    for text in ("", "hi", FACE, "\ufeffhi", f"\ufeff{FACE}"):
        assert whole(text) == text
    assert whole(f"\ufeff{HIGH}") == f"\ufeff{LOST}"
    assert all_whole({HIGH: [LOW, 1, None, (HIGH + LOW,)]}) == {LOST: [LOST, 1, None, [FACE]]}


def test_w_51_a_half_waits_for_what_goes_on_with_it_alone() -> None:
    """Other texts pass it; it is told before its call ends, and void where all is."""
    texts, call = WholeTexts(), ToolCall(call_id=None, tool_name="look", arguments={})

    def of(*said: Said) -> list[Said]:
        return [*texts.of(said)]

    assert of(Text(f"a{HIGH}")) == [Text("a")]
    assert of(Thought("b"), CallText(0, HIGH), CallText(1, "c"), Used(Tokens())) == [
        Thought("b"),
        CallText(1, "c"),
        Used(Tokens()),
    ]
    assert of(CallText(0, LOW)) == [CallText(0, FACE)]
    assert of(Text(LOW)) == [Text(FACE)]
    assert of(CallText(1, HIGH), CallEnded(1, call)) == [CallText(1, LOST), CallEnded(1, call)]
    assert of(Text(HIGH), Again(), Text(LOW)) == [Again(), Text(LOST)]
    assert of(CallBegan(0, HIGH), Elsewhere(LOW, HIGH)) == [CallBegan(0, LOST)]
    assert [*texts.rest()] == [Elsewhere(LOST, LOST)]
    assert of(Ended(Answer(text="d"))) == [Ended(Answer(text="d"))]
