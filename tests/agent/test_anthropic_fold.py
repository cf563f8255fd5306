"""What Anthropic's events mean, oddity by oddity."""

from __future__ import annotations

from typing import Any

import pytest

from turnlock.agent.errors import ProviderFailure
from turnlock.agent.folds.anthropic import AnthropicFold, as_events
from turnlock.agent.folds.calls import CUT_OFF, UNCLOSED
from turnlock.agent.messages import Stop, Tokens
from turnlock.agent.speaking import (
    Again,
    CallBegan,
    CallEnded,
    CallText,
    Elsewhere,
    Ended,
    Said,
    Text,
    Thought,
    Used,
)

from .folding import faults, folded, of, raw

Event = dict[str, Any]


def start(**more: Any) -> Event:
    message: Event = {"id": "m", "type": "message", "role": "assistant", "content": [], **more}
    return {"type": "message_start", "message": {"stop_reason": None, **message}}


def begin(index: int, kind: str, **block: Any) -> Event:
    return {
        "type": "content_block_start",
        "index": index,
        "content_block": {"type": kind, **block},
    }


def delta(index: int, kind: str, **fields: Any) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> Event:
    return {"type": "content_block_stop", "index": index}


def over(reason: str | None, **used: Any) -> list[Event]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": used},
        {"type": "message_stop"},
    ]


def text(index: int, *pieces: str) -> list[Event]:
    said = [delta(index, "text_delta", text=it) for it in pieces]
    return [begin(index, "text", text=""), *said, stop(index)]


def call(index: int, *pieces: str, call_id: str = "c", name: str = "look") -> list[Event]:
    said = [delta(index, "input_json_delta", partial_json=it) for it in pieces]
    return [begin(index, "tool_use", id=call_id, name=name, input={}), *said, stop(index)]


def told(*events: Event | list[Event]) -> tuple[list[Said], Ended]:
    flat = [one for it in events for one in (it if isinstance(it, list) else [it])]
    return folded(AnthropicFold(spec="anthropic:m"), flat)


def test_w_53_a_call_is_whole_when_its_block_is_closed_and_something_follows() -> None:
    """Text beside it is not lost; places count calls alone; the raw goes up to and with it."""
    said, ended = told(
        start(usage={"input_tokens": 3}),
        text(0, "I ", "look."),
        call(1, "", '{"at": ', '"sky"}', call_id="a"),
        call(2, call_id="b", name="wait"),
        over("tool_use", output_tokens=9),
    )

    answer = ended.answer
    assert (answer.text, ended.stop) == ("I look.", Stop.CALLS)
    assert [dict(it.arguments) for it in answer.calls] == [{"at": "sky"}, {}]
    assert faults(answer) == [False, False]
    used = Used(Tokens(input=3)), Used(Tokens(input=3, output=9))
    first, second = of(CallEnded, said)
    assert said == [
        used[0],
        Text("I "),
        Text("look."),
        CallBegan(0, "look"),
        CallText(0, '{"at": '),
        CallText(0, '"sky"}'),
        first,
        CallBegan(1, "wait"),
        second,
        used[1],
    ]
    assert [first.call, second.call] == list(answer.calls)
    content = raw(answer)["content"]
    assert raw(first)["content"] == content[:2]
    assert raw(second)["content"] == content


def test_w_52_the_last_call_of_an_answer_that_was_too_long_is_never_seen_whole() -> None:
    """Not in `CallEnded` either: a call cut right after its name has the arguments {}."""
    said, ended = told(
        start(), call(0, '{"a": 1}', call_id="a"), call(1, call_id="b"), over("max_tokens")
    )

    assert ended.stop is Stop.LENGTH
    assert [it.fault for it in ended.answer.calls] == [None, CUT_OFF]
    assert [it.call.fault for it in of(CallEnded, said)] == [None, CUT_OFF]


def test_w_52_arguments_that_are_no_json_are_a_fault_and_go_back_in_an_object() -> None:
    """The provider refuses an input that is no object."""
    _, ended = told(start(), call(0, '{"a": '), call(1, "[1]"), over("tool_use"))

    assert faults(ended.answer) == [True, True]
    blocks = raw(ended.answer)["content"]
    assert [it["input"] for it in blocks] == [{"text": '{"a": '}, {"text": "[1]"}]


@pytest.mark.parametrize(
    ("reason", "meant"),
    [
        ("end_turn", Stop.DONE),
        ("stop_sequence", Stop.DONE),
        ("tool_use", Stop.DONE),  # without a call it wants no results
        ("max_tokens", Stop.LENGTH),
        ("model_context_window_exceeded", Stop.LENGTH),
        ("refusal", Stop.REFUSED),
        ("pause_turn", Stop.PAUSED),
        ("compaction", Stop.PAUSED),
        ("a new one", Stop.OTHER),
        (None, Stop.CUT),
    ],
)
def test_w_52_why_it_stopped(reason: str | None, meant: Stop) -> None:
    """A reason that is not known keeps the answer; none at all is no answer."""
    _, ended = told(start(), text(0, "hm"), over(reason))

    assert (ended.stop, ended.answer.text) == (meant, "hm")
    assert raw(ended.answer)["stop_reason"] == reason


def test_w_52_a_reason_without_the_last_event_is_enough_and_the_last_event_alone_is_not() -> None:
    """What counts is whether it said why."""
    _, whole = told(start(), text(0, "x"), over("end_turn")[:1])
    _, cut = told(start(), text(0, "x"), {"type": "message_stop"})

    assert (whole.stop, cut.stop) == (Stop.DONE, Stop.CUT)


def test_w_53_a_call_that_was_never_closed_is_not_told_and_has_a_fault() -> None:
    """Although its arguments parse."""
    said, ended = told(start(), call(0, "{}")[:-1], over("tool_use"))

    assert not of(CallEnded, said)
    assert [it.fault for it in ended.answer.calls] == [UNCLOSED]


def test_w_53_a_call_that_is_closed_is_not_told_before_something_follows() -> None:
    """It may have been cut there."""
    said, ended = told(start(), call(0, "{}"))

    assert (ended.stop, of(CallEnded, said)) == (Stop.CUT, [])


def test_w_54_a_second_message_start_throws_away_what_came_before() -> None:
    """A proxy asked again; the first may stand in the middle of a call."""
    fold = AnthropicFold()
    first = [start(id="first"), *text(0, "one"), *call(1, '{"a": "Sp')[:-1]]
    second = [start(id="second"), *text(0, "two"), *call(1, '{"a": 2}'), *over("tool_use")]
    before = [it for event in first for it in fold.feed(event)]
    assert of(Text, before) == [Text("one")]
    assert of(Again, fold.feed(second[0])) == [Again()]
    said = [it for event in second[1:] for it in fold.feed(event)]

    answer = fold.end().answer
    assert (answer.text, [dict(it.arguments) for it in answer.calls]) == ("two", [{"a": 2}])
    assert [it.place for it in of(CallBegan, said)] == [0]
    assert raw(answer)["id"] == "second"


def test_w_55_what_the_provider_runs_itself_is_kept_and_is_no_call() -> None:
    """Search, code, its own MCP: shown while they run; their results go back with them."""
    result = {"tool_use_id": "s", "content": [{"type": "web_search_result", "url": "u"}]}
    said, ended = told(
        start(),
        begin(0, "server_tool_use", id="s", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json='{"query": "x"}'),
        stop(0),
        begin(1, "web_search_tool_result", **result),
        stop(1),
        begin(2, "mcp_tool_use", id="m", name="echo", input={"a": 1}, server_name="e"),
        stop(2),
        call(3, "{}"),
        over("tool_use"),
    )

    assert [(it.place, it.tool_name) for it in of(CallBegan, said)] == [(0, "look")]
    assert of(Elsewhere, said) == [
        Elsewhere("web_search"),
        Elsewhere("web_search", '{"query": "x"}'),
        Elsewhere("echo"),
        Elsewhere("echo", '{"a": 1}'),
    ]
    assert raw(ended.answer)["content"][:3] == [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", **result},
        {"type": "mcp_tool_use", "id": "m", "name": "echo", "input": {"a": 1}, "server_name": "e"},
    ]


def test_w_56_thoughts_and_their_signatures_are_kept_as_they_were() -> None:
    """Redacted ones and citations too."""
    said, ended = told(
        start(),
        begin(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="Let "),
        delta(0, "thinking_delta", thinking="me."),
        delta(0, "signature_delta", signature="s=="),
        stop(0),
        begin(1, "redacted_thinking", data="x=="),
        stop(1),
        begin(2, "text", text="", citations=[]),
        delta(2, "citations_delta", citation={"cited_text": "a"}),
        delta(2, "text_delta", text="So."),
        delta(2, "citations_delta", citation={"cited_text": "b"}),
        stop(2),
        over("end_turn"),
    )

    assert of(Thought, said) == [Thought("Let "), Thought("me.")]
    assert ended.answer.text == "So."
    assert raw(ended.answer)["content"] == [
        {"type": "thinking", "thinking": "Let me.", "signature": "s=="},
        {"type": "redacted_thinking", "data": "x=="},
        {
            "type": "text",
            "text": "So.",
            "citations": [{"cited_text": "a"}, {"cited_text": "b"}],
        },
    ]


def test_unknown_events_blocks_and_deltas_are_skipped_and_kept() -> None:
    """What comes with the next version of the provider breaks nothing (W-55)."""
    said, ended = told(
        start(),
        {"type": "ping"},
        {"type": "weather", "index": 3},
        begin(0, "hologram", data=[1], input="as it was"),
        delta(0, "hologram_delta", more=2),
        stop(0),
        over("end_turn"),
    )

    assert not of(Text, said)
    assert raw(ended.answer)["content"] == [
        {"type": "hologram", "data": [1], "input": "as it was", "more": 2}
    ]


def test_w_51_a_message_that_came_at_once_is_the_same_answer() -> None:
    """Its usage and its reason, too."""
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "a", "name": "look", "input": {"at": "sky"}},
    ]
    message = {"id": "m", "type": "message", "role": "assistant", "content": content}
    usage = {
        "input_tokens": 2,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 5,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 4},
    }
    events = as_events({**message, "stop_reason": "tool_use", "usage": usage})
    said, ended = folded(AnthropicFold(spec="anthropic:m"), events)
    _, streamed = told(
        start(),
        begin(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="Hm."),
        delta(0, "signature_delta", signature="s"),
        stop(0),
        text(1, "I ", "look."),
        call(2, '{"at": "sky"}', call_id="a"),
        over("tool_use", **usage),
    )

    assert ended == streamed
    assert ended.tokens == Tokens(input=10, output=7, cached=3, thought=4)
    assert [type(it) for it in said] == [
        Used,
        Thought,
        Text,
        CallBegan,
        CallText,
        CallEnded,
        Used,
    ]


def test_an_error_in_the_stream_is_a_failure_of_the_provider() -> None:
    """`overloaded_error` and its like; also where an answer came at once."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

    for events in ([start(), error], [*as_events(error)]):
        with pytest.raises(ProviderFailure, match="Overloaded"):
            told(*events)
