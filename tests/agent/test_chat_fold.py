"""Every oddity of those who speak chat completions, by name (W-52 … W-54)."""

from __future__ import annotations

from typing import Any

import pytest

from turnlock.agent.errors import ProviderFailure
from turnlock.agent.folds.calls import CUT_OFF
from turnlock.agent.folds.chat_completions import TWO_NAMES, ChatCompletionsFold, as_events
from turnlock.agent.messages import Answer, Stop, Tokens, ToolCall
from turnlock.agent.speaking import Again, CallBegan, CallText, Said, Text, Thought, Used


def event(
    *fragments: dict[str, Any], reason: str | None = None, of: str = "r", **delta: Any
) -> dict[str, Any]:
    """One event of the response `of`."""
    if fragments:
        delta["tool_calls"] = list(fragments)
    return {"id": of, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def part(
    arguments: str | None = None,
    *,
    name: str | None = None,
    call_id: str | None = None,
    index: int | None = None,
) -> dict[str, Any]:
    """One fragment of a call; what is None is not there."""
    function = {"name": name, "arguments": arguments}
    given = {key: value for key, value in function.items() if value is not None}
    fragment = {"index": index, "id": call_id, "function": given}
    return {key: value for key, value in fragment.items() if value is not None}


def folded(*events: dict[str, Any], reasonless: bool = False) -> tuple[list[Said], Answer]:
    """Fold them."""
    fold = ChatCompletionsFold(spec="openai:m", reasonless=reasonless)
    said = [it for one in events for it in fold.feed(one)]
    return said, fold.end().answer


def calls_of(*events: dict[str, Any]) -> list[tuple[str | None, str, dict[str, Any]]]:
    """Fold them with an end, and return the calls; each is whole."""
    _, answer = folded(*events, event(reason="tool_calls"))
    assert answer.stop is Stop.CALLS
    assert not any(call.fault for call in answer.calls)
    return [(call.call_id, call.tool_name, dict(call.arguments)) for call in answer.calls]


ODDITIES: dict[str, tuple[list[dict[str, Any]], list[tuple[str | None, str, dict[str, Any]]]]] = {
    "by index, interleaved": (
        [
            event(part(index=0, call_id="a", name="look"), part(index=1, call_id="b", name="go")),
            event(part('{"x"', index=1), part('{"y"', index=0)),
            event(part(": 1}", index=0)),
            event(part(": 2}", index=1)),
        ],
        [("a", "look", {"y": 1}), ("b", "go", {"x": 2})],
    ),
    "without index, a name begins a call and the rest goes to the last": (
        [
            event(part("", call_id="a", name="look")),
            event(part('{"x": 1')),
            event(part("}")),
            event(part('{"x": ', call_id="b", name="look")),
            event(part("2}")),
        ],
        [("a", "look", {"x": 1}), ("b", "look", {"x": 2})],
    ),
    "without index, an id that is known": (
        [
            event(part(call_id="a", name="look"), part(call_id="b", name="go")),
            event(part("{}", call_id="a")),
            event(part('{"x": 1}', call_id="b")),
        ],
        [("a", "look", {}), ("b", "go", {"x": 1})],
    ),
    "another id at a used index begins a call": (
        [
            event(part("", index=0, call_id="a", name="look")),
            event(part('{"x": 2', index=0, call_id="b", name="look")),
            event(part("}", index=0)),
        ],
        [("a", "look", {}), ("b", "look", {"x": 2})],
    ),
    "a name without id after complete arguments begins a call": (
        [
            event(part('{"x": 1}', index=0, name="look")),
            event(part('{"x": 2}', index=0, name="look")),
        ],
        [(None, "look", {"x": 1}), (None, "look", {"x": 2})],
    ),
    "a name that comes again before the arguments are complete begins none": (
        [
            event(part('{"x": ', index=0, call_id="a", name="look")),
            event(part("1}", index=0, name="look")),
        ],
        [("a", "look", {"x": 1})],
    ),
    "an id that comes with each fragment": (
        [
            event(part('{"x": ', index=0, call_id="a", name="look")),
            event(part("1}", index=0, call_id="a", name="look")),
            event(part("", index=0, call_id="a", name="look")),
        ],
        [("a", "look", {"x": 1})],
    ),
    "indexes from 1": (
        [
            event(part("{}", index=1, call_id="a", name="look")),
            event(part("{}", index=2, call_id="b", name="go")),
        ],
        [("a", "look", {}), ("b", "go", {})],
    ),
    "empty ids are no ids": (
        [
            event(part('{"x": ', index=0, call_id="", name="look")),
            event(part("1}", index=0, call_id="")),
            event(part("{}", index=1, call_id="", name="go")),
        ],
        [(None, "look", {"x": 1}), (None, "go", {})],
    ),
    "an id that comes later": (
        [event(part("{", index=0, name="look")), event(part("}", index=0, call_id="a"))],
        [("a", "look", {})],
    ),
    "no arguments": (
        [event(part(index=0, call_id="a", name="look")), event(part("", index=0))],
        [("a", "look", {})],
    ),
    "as functions were called once": (
        [
            event(function_call={"name": "look", "arguments": '{"x"'}),
            event(function_call={"arguments": ": 1}"}),
        ],
        [(None, "look", {"x": 1})],
    ),
}


@pytest.mark.parametrize(("events", "calls"), ODDITIES.values(), ids=ODDITIES)
def test_w_54_how_calls_are_put_together(
    events: list[dict[str, Any]], calls: list[tuple[str | None, str, dict[str, Any]]]
) -> None:
    """Whatever endpoint sent their fragments."""
    assert calls_of(*events) == calls


TWO_CALLS: dict[str, list[dict[str, Any]]] = {
    "no ids, the first without arguments": [
        event(part("", index=0, name="f")),
        event(part('{"a": 1}', index=0, name="g")),
    ],
    "the same in one event": [
        event(part(index=0, name="f"), part('{"a": 1}', index=0, name="g")),
    ],
    "a name in pieces": [
        event(part("", index=0, call_id="a", name="get_")),
        event(part(index=0, name="weather")),
        event(part('{"a": 1}', index=0)),
    ],
    "a name in pieces, with its id": [
        event(part("", index=0, call_id="a", name="get_")),
        event(part('{"a": 1}', index=0, call_id="a", name="weather")),
    ],
    "a name in pieces, without index": [
        event(part("", call_id="a", name="get_")),
        event(part("", name="weather")),
        event(part('{"a": 1}')),
    ],
    "another name with the id of a call that is complete": [
        event(part("{}", index=0, call_id="a", name="f")),
        event(part("", index=0, call_id="a", name="g")),
    ],
    "an id that comes with the second name": [
        event(part("", index=0, name="f")),
        event(part('{"a": 1}', index=0, call_id="b", name="g")),
    ],
    "another name amid arguments": [
        event(part('{"a": ', index=0, call_id="a", name="f")),
        event(part("1}", index=0, name="g")),
    ],
    "as functions were called once": [
        event(function_call={"name": "get_", "arguments": ""}),
        event(function_call={"name": "weather", "arguments": '{"a": 1}'}),
    ],
}


@pytest.mark.parametrize("events", TWO_CALLS.values(), ids=TWO_CALLS)
def test_w_54_what_may_be_two_calls_or_one_is_none_that_runs(events: list[dict[str, Any]]) -> None:
    """Nothing tells them apart, so each is a fault: no call with the arguments of another."""
    _, answer = folded(*events, event(reason="tool_calls"))

    assert answer.calls
    assert {call.fault for call in answer.calls} == {TWO_NAMES}


@pytest.mark.parametrize(
    "events",
    [
        [event(part("{}", index=0, name="f")), event(part('{"a": 1}', index=0, name="g"))],
        [
            event(part("", index=0, call_id="a", name="f")),
            event(part('{"a": 1}', index=0, call_id="b", name="g")),
        ],
        [
            event(part("", call_id="a", name="f")),
            event(part('{"a": 1}', call_id="b", name="g")),
        ],
        [
            event(part("{}", call_id="a", name="f")),
            event(part('{"a": 1}', call_id="a", name="g")),
        ],
    ],
)
def test_w_54_another_name_is_another_call_where_something_tells_them_apart(
    events: list[dict[str, Any]],
) -> None:
    """The negative control: complete arguments, or another id."""
    assert [it[1:] for it in calls_of(*events)] == [("f", {}), ("g", {"a": 1})]


def test_w_54_a_second_start_throws_away_what_came_before_it() -> None:
    """A proxy asked again: another response begins where a role comes with another id."""
    said, answer = folded(
        event(role="assistant", content="Hel", of="r1"),
        event(part('{"x": 1}', index=0, call_id="a", name="look"), of="r1"),
        event(role="assistant", content="Hi", of="r2"),
        event(part("{}", index=0, call_id="b", name="look"), of="r2"),
        event(reason="tool_calls", of="r2"),
    )

    assert said == [
        Text("Hel"),
        CallBegan(0, "look"),
        CallText(0, '{"x": 1}'),
        Again(),
        Text("Hi"),
        CallBegan(0, "look"),
        CallText(0, "{}"),
    ]
    assert answer.text == "Hi"
    assert [(it.call_id, dict(it.arguments)) for it in answer.calls] == [("b", {})]


@pytest.mark.parametrize("ids", [["r", "r"], ["", ""], ["r", ""]])
def test_w_54_a_role_in_each_event_is_no_second_start(ids: list[str]) -> None:
    """Some send it with every piece, and after the reason."""
    first, second = ids
    said, answer = folded(
        event(role="assistant", content="Hel", of=first),
        event(role="assistant", content="lo", of=second),
        event(role="assistant", content="", reason="stop", of=second),
        event(role="assistant", content="", of=second),
    )

    assert Again() not in said
    assert (answer.text, answer.stop) == ("Hello", Stop.DONE)


def test_w_54_another_id_without_a_role_is_no_second_start() -> None:
    """Some give each event an id of its own."""
    said, answer = folded(
        event(role="assistant", content="Hel", of="r1"),
        event(content="lo", of="r2"),
        event(reason="stop", of="r3"),
    )

    assert Again() not in said
    assert answer.text == "Hello"


def test_w_54_choices_other_than_the_first_are_not_looked_at() -> None:
    """They are other answers."""
    other = event(part("{}", name="go"), content="no", reason="length")
    other["choices"][0]["index"] = 1
    _, answer = folded(event(content="yes"), other, event(reason="stop"))

    assert (answer.text, answer.calls, answer.stop) == ("yes", (), Stop.DONE)


def test_w_54_events_without_choices_carry_usage() -> None:
    """An empty list of them, or none at all; thoughts that a total alone counts are output."""
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    tokens = Tokens(input=10, output=8, cached=4, thought=3)
    ends: list[dict[str, Any]] = [
        {"choices": [], "usage": usage},
        {"usage": usage},
        {"x_groq": {"usage": usage}},
    ]
    for last in ends:
        said, answer = folded(event(content="hi", reason="stop"), last)
        assert said[-1] == Used(tokens)
        assert answer.tokens == tokens


REASONS = {
    "stop": Stop.DONE,
    "tool_calls": Stop.DONE,  # and no calls
    "length": Stop.LENGTH,
    "content_filter": Stop.REFUSED,
    "insufficient_system_resource": Stop.OTHER,
    None: Stop.CUT,
    "": Stop.CUT,
}


@pytest.mark.parametrize(("reason", "stop"), REASONS.items())
def test_w_52_why_it_stopped(reason: str | None, stop: Stop) -> None:
    """A reason that we do not know is kept; none at all is no answer, unless none ever comes."""
    said = event(content="hi", reason=reason)

    assert folded(said)[1].stop is stop
    assert folded(said, reasonless=True)[1].stop is (Stop.DONE if stop is Stop.CUT else stop)


def test_w_52_calls_after_which_it_says_stop_are_calls() -> None:
    """Some name no other reason."""
    _, answer = folded(event(part("{}", name="look"), content="I look.", reason="stop"))

    assert (answer.stop, answer.text) == (Stop.CALLS, "I look.")


@pytest.mark.parametrize("last", ['{"x": 1}', '{"x": '])
def test_w_52_the_last_call_of_an_answer_that_was_too_long_is_faulty(last: str) -> None:
    """That its arguments parse is no proof; those of the call before it do not."""
    first = part('{"x": 1}', index=0, name="look")
    broken = part("{", index=1, name="look")
    ending = part(last, index=2, name="look")
    _, answer = folded(event(first, broken, ending, reason="length"))

    assert [bool(it.fault) for it in answer.calls] == [False, True, True]
    if last == '{"x": 1}':
        assert answer.calls[2].fault == CUT_OFF


def test_a_refusal_is_text_and_says_that_it_is_one() -> None:
    """In the middle of a stream, and at once."""
    message = {"role": "assistant", "content": None, "refusal": "I will not."}
    whole = {"index": 1, "message": message, "finish_reason": "stop"}  # some count from 1
    (at_once,) = as_events({"choices": [whole]})
    for events in ([event(refusal="I will"), event(refusal=" not.", reason="stop")], [at_once]):
        _, answer = folded(*events)
        assert (answer.text, answer.stop) == ("I will not.", Stop.REFUSED)


THOUGHTS: dict[str, list[dict[str, Any]]] = {
    "reasoning_content": [event(reasoning_content="Hm")],
    "reasoning": [event(reasoning="Hm")],
    "both": [event(reasoning_content="Hm", reasoning="Hm")],
    "parts": [event(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}])],
}


@pytest.mark.parametrize("events", THOUGHTS.values(), ids=THOUGHTS)
def test_thoughts_are_no_text_of_the_answer_and_go_back_as_they_came(
    events: list[dict[str, Any]],
) -> None:
    """Whatever they are called."""
    said, answer = folded(*events, event(content="Yes.", reason="stop"))

    assert said == [Thought("Hm"), Text("Yes.")]
    assert answer.text == "Yes."
    assert "Hm" in str(answer.raw)


def test_w_56_what_else_was_sent_is_kept_and_its_pieces_put_together() -> None:
    """Signatures of thoughts and of calls; lists go on, by their indexes."""
    fragment = part("{}", index=0, call_id="a", name="look")
    fragment["extra_content"] = {"signature": "s"}
    _, answer = folded(
        event(reasoning_details=[{"index": 0, "type": "t", "text": "Let"}], provider="p"),
        event(reasoning_details=[{"index": 0, "type": "t", "text": " me", "signature": "x"}]),
        event(reasoning_details=[{"index": 1, "type": "e", "data": "y"}]),
        event(fragment, reason="tool_calls"),
    )

    assert answer.raw == {
        "role": "assistant",
        "content": None,
        "provider": "p",
        "reasoning_details": [
            {"index": 0, "type": "t", "text": "Let me", "signature": "x"},
            {"index": 1, "type": "e", "data": "y"},
        ],
        "tool_calls": [
            {
                "type": "function",
                "id": "a",
                "function": {"name": "look", "arguments": "{}"},
                "extra_content": {"signature": "s"},
            }
        ],
    }


def test_calls_of_a_whole_response_are_one_each_whatever_they_lack() -> None:
    """Indexes that are all 0, one id twice, and no name."""
    calls = [
        part("{}", index=0, call_id="a", name="look"),
        part("{}", index=0, call_id="a", name="look"),
        part("{}"),
    ]
    message = {"role": "assistant", "content": "", "tool_calls": calls}
    _, answer = folded(*as_events({"choices": [{"message": message}]}))

    look = ToolCall(call_id="a", tool_name="look", arguments={})
    assert answer.calls[:2] == (look, look)
    assert answer.calls[2].fault == "the call names no tool"


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "overloaded"}},
        {"error": "overloaded"},
        {"id": "r", "choices": [], "error": {"code": "overloaded"}},
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_told(body: dict[str, Any]) -> None:
    """And one that comes in place of a whole response."""
    with pytest.raises(ProviderFailure, match="overloaded"):
        folded(event(content="hi"), body)
    with pytest.raises(ProviderFailure, match="overloaded"):
        folded(*as_events(body))


NO_EVENTS: list[Any] = [
    [],
    "text",
    {"choices": 3},
    {"choices": [3]},
    {"choices": [{"delta": 3}]},
    event(content=3),
    {"choices": [{"delta": {"tool_calls": 3}}]},
    {"choices": [{"delta": {"tool_calls": [3]}}]},
    {"choices": [], "usage": 3},
]


@pytest.mark.parametrize("body", NO_EVENTS, ids=str)
def test_what_is_no_event_raises_what_the_fold_says(body: object) -> None:
    """So that whoever feeds it can tell what was sent."""
    with pytest.raises((LookupError, TypeError, ValueError, AttributeError)):
        folded(body)  # type: ignore[arg-type]
