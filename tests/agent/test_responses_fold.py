"""Items of the responses API: what is ours, what its provider runs, how it stops (W-52 … W-55)."""

from __future__ import annotations

from typing import Any

import pytest

from turnlock.agent.errors import ProviderFailure
from turnlock.agent.folds.calls import CUT_OFF, UNCLOSED
from turnlock.agent.folds.responses import HOSTED, ResponsesFold, as_events
from turnlock.agent.messages import Answer, Stop, Tokens
from turnlock.agent.speaking import (
    Again,
    CallBegan,
    CallEnded,
    CallText,
    Elsewhere,
    Said,
    Text,
    Thought,
    Used,
)


def added(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def delta(kind: str, index: int, text: str) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text}


def function(arguments: str = "{}", call_id: str = "a", **more: Any) -> dict[str, Any]:
    item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": "look"}
    return item | {"arguments": arguments} | more


def message(text: str, kind: str = "output_text") -> dict[str, Any]:
    part = {"type": kind, "text" if kind == "output_text" else "refusal": text}
    return {"type": "message", "id": "m", "role": "assistant", "content": [part]}


def last(status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": {"status": status, "output": [], **more}}


TOO_LONG = last("incomplete", incomplete_details={"reason": "max_output_tokens"})


def folded(*events: dict[str, Any]) -> tuple[list[Said], Answer]:
    """Fold them."""
    fold = ResponsesFold(spec="openai-responses:m")
    said = [it for one in events for it in fold.feed(one)]
    return said, fold.end().answer


def test_w_53_a_call_is_complete_when_its_item_is_done() -> None:
    """It is told when the next begins, or the response has ended, with the items up to it."""
    first, second = function('{"x": 1}'), function("{}", "b")
    events = [
        added(0, function("")),
        delta("function_call_arguments", 0, '{"x":'),
        delta("function_call_arguments", 0, " 1}"),
        done(0, first),
        added(1, second),
        done(1, second),
    ]
    said, cut = folded(*events)
    told, answer = folded(*events, last())

    call, other = answer.calls
    assert said == [
        CallBegan(0, "look"),
        CallText(0, '{"x":'),
        CallText(0, " 1}"),
        CallEnded(0, call, [first]),
        CallBegan(1, "look"),
        CallText(1, "{}"),
    ]
    assert told == [*said, CallEnded(1, other, [first, second])]
    assert (cut.stop, answer.stop) == (Stop.CUT, Stop.CALLS)
    assert answer.raw == [first, second]


def test_w_53_a_call_that_was_never_closed_is_faulty() -> None:
    """Though its arguments parse, and the response says that it is complete."""
    _, answer = folded(
        added(0, function("")), delta("function_call_arguments", 0, '{"x": 1}'), last()
    )

    assert [it.fault for it in answer.calls] == [UNCLOSED]


def test_w_53_a_call_that_is_open_when_the_next_begins_has_not_ended() -> None:
    """It is told with the next, once it is closed."""
    first, second = function('{"x": 1}'), function("{}", "b")
    early, _ = folded(added(0, function("")), added(1, function("", "b")), done(1, second))
    said, answer = folded(
        added(0, function("")), added(1, second), done(1, second), done(0, first), last()
    )

    assert not any(isinstance(it, CallEnded) for it in early)
    assert [it.call for it in said if isinstance(it, CallEnded)] == [*answer.calls]


@pytest.mark.parametrize("arguments", ['{"x": 1}', '{"x'])
def test_w_52_the_last_call_of_a_response_that_was_too_long_is_faulty(arguments: str) -> None:
    """And is told so: who starts calls early never sees it whole."""
    said, answer = folded(
        done(0, function()), done(1, function(arguments, "b", status="incomplete")), TOO_LONG
    )

    first, second = answer.calls
    assert answer.stop is Stop.LENGTH
    assert first.fault is None
    assert second.fault is not None
    assert [it.call for it in said if isinstance(it, CallEnded)] == [first, second]


def test_w_52_an_item_that_is_incomplete_is_a_faulty_call_wherever_it_stands() -> None:
    """Its provider says so itself."""
    _, answer = folded(done(0, function(status="incomplete")), done(1, function("{}", "b")), last())

    assert [it.fault for it in answer.calls] == [CUT_OFF, None]


STOPS: list[tuple[dict[str, Any], Stop]] = [
    (last(), Stop.DONE),
    (TOO_LONG, Stop.LENGTH),
    (last("incomplete", incomplete_details={"reason": "content_filter"}), Stop.REFUSED),
    (last("incomplete", incomplete_details={"reason": "news"}), Stop.OTHER),
    (last("incomplete"), Stop.OTHER),
    ({"type": "response.in_progress", "response": {}}, Stop.CUT),
]


@pytest.mark.parametrize(("event", "stop"), STOPS, ids=str)
def test_w_52_why_it_stopped(event: dict[str, Any], stop: Stop) -> None:
    """A stream that ends without one of these is cut."""
    assert folded(done(0, message("hi")), event)[1].stop is stop


def test_a_refusal_is_text_and_says_that_it_is_one() -> None:
    """Streamed, or in an item that came whole."""
    streamed = [added(0, message("", "refusal")), delta("refusal", 0, "I will not.")]
    for events in (streamed, [done(0, message("I will not.", "refusal"))]):
        said, answer = folded(*events, last())
        assert said == [Text("I will not.")]
        assert (answer.text, answer.stop) == ("I will not.", Stop.REFUSED)


def test_text_is_told_once_whatever_comes_twice() -> None:
    """Pieces, then the item that holds them all, and the response that holds the item."""
    item = message("Hello")
    said, answer = folded(
        added(0, message("")),
        delta("output_text", 0, "Hel"),
        done(0, item),
        done(1, message("World")),
        last(output=[item, message("World")]),
    )

    assert said == [Text("Hel"), Text("lo"), Text("\n\n"), Text("World")]
    assert answer.text == "Hello\n\nWorld"


def test_items_that_only_the_end_holds_count_too() -> None:
    """Some proxies stream no more than that."""
    said, answer = folded(last(output=[message("hi"), function()]))

    assert (answer.text, len(answer.calls), answer.stop) == ("hi", 1, Stop.CALLS)
    assert Text("hi") in said


def test_thoughts_are_told_streamed_or_not() -> None:
    """Their summaries, or what is open of them."""
    whole = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "Hm"}]}
    streamed = [added(0, whole | {"summary": []}), delta("reasoning_summary_text", 0, "Hm")]
    for events in ([*streamed, done(0, whole)], [done(0, whole)]):
        said, answer = folded(*events, last())
        assert said == [Thought("Hm")]
        assert answer.raw == [whole]


def test_usage_is_told() -> None:
    """Thoughts are among what was answered."""
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 3},
    }
    said, answer = folded(last(usage=usage))

    assert answer.tokens == Tokens(input=10, output=5, cached=4, thought=3)
    assert said == [Used(answer.tokens)]


OURS: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "custom_tool_call": ({"name": "sql", "input": "SELECT 1"}, "sql", {"input": "SELECT 1"}),
    "local_shell_call": ({"action": {"command": ["ls"]}}, "local_shell", {"command": ["ls"]}),
    "shell_call": (
        {"action": {"commands": ["ls"]}, "environment": {"type": "local"}},
        "shell",
        {"commands": ["ls"]},
    ),
    "apply_patch_call": (
        {"operation": {"type": "delete_file", "path": "x"}},
        "apply_patch",
        {"type": "delete_file", "path": "x"},
    ),
    "computer_call": (
        {"action": {"type": "click", "x": 1, "y": 2}, "pending_safety_checks": []},
        "computer",
        {"action": {"type": "click", "x": 1, "y": 2}},
    ),
    "tool_search_call": (
        {"arguments": {"goal": "weather"}, "execution": "client"},
        "tool_search",
        {"goal": "weather"},
    ),
}


@pytest.mark.parametrize(
    ("kind", "fields", "name", "arguments"), [(k, *v) for k, v in OURS.items()]
)
def test_w_55_item_kinds_that_are_ours_beyond_functions(
    kind: str, fields: dict[str, Any], name: str, arguments: dict[str, Any]
) -> None:
    """They are calls of a tool of that name; where there is none, they are rejected as any."""
    item = {"type": kind, "id": "i", "call_id": "a", **fields}
    said, answer = folded(done(0, item), last())

    (call,) = answer.calls
    assert (call.call_id, call.tool_name, dict(call.arguments)) == ("a", name, arguments)
    assert (call.fault, call.requires_approval) == (None, False)
    assert said[0] == CallBegan(0, name)
    assert answer.stop is Stop.CALLS


def test_w_55_an_approval_of_an_mcp_call_asks_a_person() -> None:
    """Whatever its tool declares."""
    item = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "server_label": "shop",
        "name": "buy",
        "arguments": '{"n": 1}',
    }
    _, answer = folded(done(0, item), last())

    (call,) = answer.calls
    assert (call.call_id, call.tool_name, call.requires_approval) == (
        "mcpr_1",
        "mcp_approval",
        True,
    )
    assert call.arguments == {"server_label": "shop", "name": "buy", "arguments": '{"n": 1}'}


OF_THE_PROVIDER: list[dict[str, Any]] = [
    {"type": "web_search_call", "id": "ws", "action": {"type": "search"}},
    {"type": "file_search_call", "id": "fs"},
    {"type": "code_interpreter_call", "id": "ci", "code": "1"},
    {"type": "mcp_call", "id": "mcp", "name": "buy", "arguments": "{}"},
    {"type": "shell_call", "call_id": "a", "environment": {"type": "container_reference"}},
    {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}},
    {"type": "news_call", "id": "n"},
]


@pytest.mark.parametrize("item", OF_THE_PROVIDER, ids=lambda it: it["type"])
def test_w_55_what_the_provider_runs_is_kept_and_shown_and_no_call(item: dict[str, Any]) -> None:
    """By the name of the tool, or of what it is."""
    said, answer = folded(added(0, item), done(0, item), last())

    shown = item.get("name") or item["type"].removesuffix("_call")
    assert said == [Elsewhere(shown)]
    assert (answer.calls, answer.stop, answer.raw) == ((), Stop.DONE, [item])


def test_w_55_a_call_that_turns_out_to_be_the_providers_own_is_never_run_here() -> None:
    """Only its closing says where it ran."""
    item = {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}}
    hosted = item | {"environment": {"type": "container_reference"}}
    _, answer = folded(added(0, item), done(0, hosted), last())

    assert [it.fault for it in answer.calls] == [HOSTED]


def test_the_message_holds_its_items_in_the_order_of_the_calls() -> None:
    """Whichever place is filled first: results go back by that order."""
    first, second = function('{"x": 1}'), function("{}", "b")
    _, answer = folded(
        added(1, second), added(0, function("")), done(0, first), done(1, second), last()
    )

    assert [it.call_id for it in answer.calls] == ["b", "a"]
    assert answer.raw == [second, first]


def test_pieces_of_what_is_no_text_are_not_shown() -> None:
    """Sounds, for one; what there is of text is told all the same."""
    events = [added(0, message("")), delta("output_audio", 0, "UklGRg=="), done(0, message("hi"))]
    said, _ = folded(*events, last())

    assert said == [Text("hi")]


def test_w_55_what_is_run_elsewhere_is_shown_while_it_comes() -> None:
    """Code, for one."""
    item = {"type": "code_interpreter_call", "id": "ci", "code": ""}
    said, _ = folded(added(0, item), delta("code_interpreter_call_code", 0, "1+1"), last())

    assert said == [Elsewhere("code_interpreter"), Elsewhere("code_interpreter", "1+1")]


def test_w_54_a_second_start_throws_away_what_came_before_it() -> None:
    """A proxy asked again."""
    created: dict[str, Any] = {"type": "response.created", "response": {}}
    said, answer = folded(created, done(0, message("Hel")), created, done(0, message("Hi")), last())

    assert said == [Text("Hel"), Again(), Text("Hi")]
    assert answer.text == "Hi"


def test_items_go_by_their_places_since_some_proxies_change_their_ids() -> None:
    """The id in an event is not looked at."""
    events = [added(0, function("", id="x")), delta("function_call_arguments", 0, "{}")]
    events[1]["item_id"] = "y"
    _, answer = folded(*events, done(0, function("{}", id="z")), last())

    assert [it.arguments for it in answer.calls] == [{}]


FAILURES: list[dict[str, Any]] = [
    {"type": "error", "code": "x", "message": "overloaded"},
    {"type": "error", "error": {"message": "overloaded"}},
    last("failed", error={"code": "x", "message": "overloaded"}),
]


@pytest.mark.parametrize("event", FAILURES, ids=str)
def test_a_failure_in_the_middle_of_a_stream_is_told(event: dict[str, Any]) -> None:
    """And one of a whole response."""
    with pytest.raises(ProviderFailure, match="overloaded"):
        folded(done(0, message("hi")), event)
    if event["type"] == "response.failed":
        with pytest.raises(ProviderFailure, match="overloaded"):
            folded(*as_events(event["response"]))


NO_EVENTS: list[Any] = [
    [],
    "text",
    {},
    {"type": 3},
    {"type": "response.output_item.done", "output_index": 0},
    {"type": "response.output_item.done", "output_index": 0, "item": 3},
    done(0, {"type": "function_call", "call_id": "a"}),
    {"type": "response.completed"},
    {"type": "response.completed", "response": 3},
]


@pytest.mark.parametrize("body", NO_EVENTS, ids=str)
def test_what_is_no_event_raises_what_the_fold_says(body: Any) -> None:
    """So that whoever feeds it can tell what was sent."""
    with pytest.raises((LookupError, TypeError, ValueError, AttributeError)):
        folded(body)


def test_events_that_say_nothing_new_say_nothing() -> None:
    """Nor do kinds that we do not know."""
    kinds = ("response.in_progress", "response.content_part.added", "response.news", "keepalive")
    assert folded(*({"type": kind} for kind in kinds))[0] == []
