"""What goes to Anthropic, and what is told of what fails there."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from turnlock.agent.errors import ModelError
from turnlock.agent.folds.anthropic import as_events
from turnlock.agent.messages import Answer, Message, Prompt, Results, Stop, ToolCall
from turnlock.agent.providers import open_model
from turnlock.agent.providers.anthropic import LIMIT, AnthropicModel, as_messages, is_sayable
from turnlock.agent.providers.client import MissingClient
from turnlock.agent.speaking import Ended, Question, listen
from turnlock.models.calls import CallResult, Status
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

from .playing import Play, playing

MESSAGE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "Hi."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 2},
}
BEGUN = {**MESSAGE, "stop_reason": None}
WHOLE = Play(body=json.dumps(MESSAGE).encode(), content_type="application/json")


def sse(*events: Any) -> bytes:
    return b"".join(f"event: {it['type']}\ndata: {json.dumps(it)}\n\n".encode() for it in events)


def asked(question: Question, *plays: Play, **options: Any) -> tuple[Ended, list[Any]]:
    """Ask a model there; return how it ended and what was sent."""

    async def ask() -> tuple[Ended, list[Any]]:
        async with playing(*(plays or (WHOLE,))) as server:
            more: dict[str, Any] = {"timeout": 2.0, "retries": 0, **options}
            model = AnthropicModel(model="m", base_url=server.url, api_key="k", **more)
            try:
                return await listen(model, question), server.asked
            finally:
                await model.close()

    return asyncio.run(ask())


def result(call: str, status: Status = Status.SUCCEEDED, said: Any = "ok") -> CallResult:
    field = {Status.SUCCEEDED: "result", Status.FAILED: "error", Status.DENIED: "reason"}[status]
    return CallResult(invocation_id=call, tool_name="look", status=status, **{field: said})


def test_w_50_what_is_asked() -> None:
    """Everything of a question has its place, and the bound is always told."""

    @tool
    def look(at: str) -> str:
        """Looks."""
        return at

    question = Question((Prompt(text="go"),), Toolbox.of(look), instructions="Be kind.", limit=7)
    ended, (first,) = asked(question, extra={"thinking": {"type": "disabled"}, "system": None})
    _, (second,) = asked(Question((Prompt(text=" "),)), hosted=[{"type": "web_search_20250305"}])

    assert (ended.answer.text, ended.answer.spec) == ("Hi.", "anthropic:m")
    assert first == {
        "model": "m",
        "max_tokens": 7,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "go"}]}],
        "tools": [{"name": "look", "description": "Looks.", "input_schema": dict(look.parameters)}],
        "thinking": {"type": "disabled"},
        "stream": True,
    }
    assert second["max_tokens"] == LIMIT
    assert second["tools"] == [{"type": "web_search_20250305"}]
    assert second["messages"][0]["content"][0]["text"].strip()


def test_w_56_own_blocks_go_back_as_they_were_and_foreign_ones_as_text_and_calls() -> None:
    """Signatures byte for byte; results together and first; no empty text, which is refused."""
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s=="}
    own: list[Any] = [
        thinking,
        {"type": "redacted_thinking", "data": "x+/="},
        {"type": "text", "text": " \n"},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"z": 1, "a": 2}},
        {"type": "tool_use", "id": "toolu_1", "name": "(no name)", "input": {}},
    ]
    look = ToolCall(call_id="toolu_1", tool_name="look", arguments={"z": 1, "a": 2})
    nameless = ToolCall(call_id="toolu_1", tool_name="(no name)", arguments={}, fault="no name")
    messages: tuple[Message, ...] = (
        Prompt(text="go"),
        Answer(calls=(look, nameless), raw={"content": own}, spec="anthropic:old"),
        Results(
            turn_id="t1",
            results=(result("toolu_1", said=""), result("toolu_1~2", Status.FAILED, "no")),
        ),
        Answer(text="", raw={"content": []}, spec="anthropic:m"),
        Prompt(text="again"),
        Answer(text="Well.", calls=(look,), raw=[{"reasoning": "secret"}], spec="openai:x"),
        Results(turn_id="t2", results=(result("toolu_1", Status.DENIED, "not now"),)),
    )

    assert as_messages(messages) == [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {
            "role": "assistant",
            "content": [
                thinking,
                {"type": "redacted_thinking", "data": "x+/="},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"z": 1, "a": 2}},
                {"type": "tool_use", "id": "call_1_2", "name": "_no_name_", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1"},
                {
                    "type": "tool_result",
                    "tool_use_id": "call_1_2",
                    "content": "error: no",
                    "is_error": True,
                },
                {"type": "text", "text": "again"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Well."},
                {
                    "type": "tool_use",
                    "id": "call_2_1",
                    "name": "look",
                    "input": {"z": 1, "a": 2},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "call_2_1",
                    "content": "denied: not now",
                    "is_error": True,
                }
            ],
        },
    ]


def test_w_52_what_was_paused_goes_on_in_the_same_message() -> None:
    """Two answers in a row are one message of the provider's."""
    search: Any = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    paused = Answer(raw={"content": [search]}, spec="anthropic:m", stop=Stop.PAUSED)
    more = Answer(
        text="So.", raw={"content": [{"type": "text", "text": "So."}]}, spec="anthropic:m"
    )

    (_, said) = as_messages((Prompt(text="go"), paused, more))

    assert said["content"] == [search, {"type": "text", "text": "So."}]


def test_w_56_a_raw_that_does_not_fit_its_calls_is_not_sent() -> None:
    """As where an answer's form came as a call: it is text then."""
    block: Any = {"type": "tool_use", "id": "a", "name": "answer", "input": {}}
    answer = Answer(text="{}", raw={"content": [block]}, spec="anthropic:m")

    assert as_messages((answer,))[0]["content"] == [{"type": "text", "text": "{}"}]


CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "at": {"$ref": "#/$defs/Place"}},
    "required": ["name"],
    "$defs": {"Place": {"anyOf": [{"type": "null"}, {"enum": ["here", 2]}]}},
}


@pytest.mark.parametrize(
    ("change", "sayable"),
    [
        ({}, True),
        ({"additionalProperties": False}, True),
        ({"additionalProperties": {"type": "integer"}}, False),
        ({"patternProperties": {}}, False),
        ({"properties": {"odd": {"enum": [{"a": 1}]}}}, False),
        ({"properties": {"list": {"type": "array"}}}, False),
        ({"properties": {"at": {"$ref": "#/$defs/Place", "description": "x"}}}, True),
        ({"properties": {"at": {"$ref": "#/$defs/Place", "minLength": 3}}}, False),
        ({"allOf": []}, False),
        ({"properties": {"open": {"type": "object"}}}, False),
        ({"properties": {"two": {"type": ["string", "null"]}}}, False),
        ({"properties": {"any": {}}}, False),
        ({"properties": {"any": True}}, False),
        ({"properties": {"list": {"type": "array", "items": {"$ref": "#/$defs/No"}}}}, False),
        ({"properties": {"list": {"type": "array", "items": {"const": 1}}}}, True),
        ({"$defs": {"Place": {"type": "array", "items": {"$ref": "#/$defs/Place"}}}}, False),
    ],
)
def test_w_59_a_form_goes_to_the_providers_field_if_nothing_of_it_is_lost(
    change: dict[str, Any], *, sayable: bool
) -> None:
    """Else it is a tool: open objects, ones within themselves, and words that the field has not."""
    assert is_sayable(CITY | change) is sayable


def test_w_59_the_field_is_used_where_it_can_be() -> None:
    """And a model that has none is told so by whoever makes it."""
    field, none = (AnthropicModel(model="m", api_key="k", structured=it) for it in (True, False))
    closed = Question((Prompt(text="go"),), output=CITY)
    opened = Question((Prompt(text="go"),), output=CITY | {"additionalProperties": True})

    assert [field.structured(closed), field.structured(opened)] == [True, False]
    assert not none.structured(closed)
    _, (sent,) = asked(closed)
    assert sent["output_config"]["format"]["schema"]["additionalProperties"] is False


def test_w_59_many_names_for_one_form_cost_no_more_than_it() -> None:
    """Each is looked at once, however often it is named."""
    defs: dict[str, Any] = {"d0": {"type": "string"}}
    for n in range(60):
        below = [{"$ref": f"#/$defs/d{n}"}, {"$ref": f"#/$defs/d{n}"}]
        defs[f"d{n + 1}"] = {"anyOf": below}

    assert is_sayable({"$ref": "#/$defs/d60", "$defs": defs})


def error(kind: str, said: str = "Sorry") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": said}}


START = next(iter(as_events(MESSAGE)))
JSON = "application/json"


@pytest.mark.parametrize(
    ("play", "told"),
    [
        (
            Play(body=json.dumps(error("authentication_error")).encode(), status=401),
            r"answered 401: Sorry; see to ANTHROPIC_API_KEY",
        ),
        (
            Play(body=json.dumps(error("overloaded_error")).encode(), status=529),
            r"answered 529: Sorry; .*try again later",
        ),
        (Play(body=sse(START, error("overloaded_error"))), r"Sorry.*try again later"),
        (Play(body=b"<html>", content_type="text/html"), r"is this its base URL"),
        (Play(body=b"{}", content_type=JSON), r"is this its base URL"),
        (Play(body=sse({"type": "message_start"})), r"is this its base URL"),
        (Play(body=b"", hangs=1.0), r"took too long"),
    ],
)
def test_w_50_what_fails_is_a_model_error_that_says_what_to_do(play: Play, told: str) -> None:
    """Whether the client says it, its transport, or the provider in the middle of its answer."""
    with pytest.raises(ModelError, match=rf"(?s)model m at http.*{told}.*goes on from here"):
        asked(Question((Prompt(text="go"),)), play, timeout=0.3)


def test_w_51_half_a_character_that_is_left_of_a_broken_answer_is_none() -> None:
    """No note could hold it; it is U+FFFD, and the answer is cut as any other."""
    start, begin, *_ = as_events({**BEGUN, "content": [{"type": "text", "text": "\ud83d"}]})
    broken = sse(start, begin)

    ended, _ = asked(
        Question((Prompt(text="go"),)), Play(body=broken, cut=len(broken), cleanly=False)
    )

    assert (ended.stop, ended.answer.text) == (Stop.CUT, "\N{REPLACEMENT CHARACTER}")


def test_w_50_the_client_asks_again_before_the_first_byte() -> None:
    """And nobody does after it: what breaks then is cut (W-52)."""
    busy = Play(body=b"{}", status=529, headers={"retry-after-ms": "1"})
    begun = sse(*list(as_events(BEGUN))[:2])
    ended, sent = asked(Question((Prompt(text="go"),)), busy, WHOLE, retries=1)
    cut, sent_once = asked(
        Question((Prompt(text="go"),)),
        Play(body=begun, cut=len(begun), cleanly=False),
        WHOLE,
        retries=1,
    )

    assert (ended.stop, len(sent)) == (Stop.DONE, 2)
    assert (cut.stop, len(sent_once)) == (Stop.CUT, 1)


@pytest.mark.parametrize("profile", [None, "nobody"])
def test_without_a_key_it_says_where_it_belongs(
    profile: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Before anything is asked; the client itself would say it only then."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    if profile is not None:
        monkeypatch.setenv("ANTHROPIC_PROFILE", profile)

    with pytest.raises(MissingClient, match="ANTHROPIC_API_KEY"):
        open_model("anthropic:m")


def test_without_the_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named."""
    monkeypatch.setitem(__import__("sys").modules, "anthropic", None)

    with pytest.raises(MissingClient, match=r"pip install 'turnlock\[anthropic\]'"):
        open_model("anthropic:m")
