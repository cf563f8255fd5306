"""What OpenAI's two APIs are asked: all that was said, in their own words (W-55, W-56, W-59)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from turnlock.agent.messages import Answer, Message, Prompt, Results, Stop, ToolCall
from turnlock.agent.providers.chat_completions import ChatCompletionsModel
from turnlock.agent.providers.client import NOTHING
from turnlock.agent.providers.responses import ResponsesModel
from turnlock.agent.speaking import Question
from turnlock.models.calls import CallResult, Status
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

OWN = "https://api.openai.com/v1"
OTHER = "http://127.0.0.1:1/v1"


def chat(question: Question, *, base_url: str = OTHER, **options: Any) -> dict[str, Any]:
    """What a chat-completions endpoint is asked."""
    asked: dict[str, Any] = made(ChatCompletionsModel, "m", base_url, **options)._request(question)
    return asked


def responses(question: Question, *, model: str = "m", **options: Any) -> dict[str, Any]:
    """What the responses API is asked."""
    asked: dict[str, Any] = made(ResponsesModel, model, OTHER, **options)._request(question)
    return asked


MADE: dict[tuple[Any, ...], Any] = {}
"""Models: each costs the certificates that its client loads."""


def made(kind: Any, name: str, base_url: str, **options: Any) -> Any:
    """Return a model, the same one for the same options."""
    key = kind, name, base_url, repr(options)
    if key not in MADE:
        MADE[key] = kind(model=name, base_url=base_url, api_key="k", **options)
    return MADE[key]


def result(answer: Answer, value: Any = "seen", *, place: int = 0, **failed: Any) -> CallResult:
    """The result of one of its calls: `error` or `reason` in place of a value."""
    call = answer.identified()[place]
    payload: dict[str, Any] = {"status": Status.SUCCEEDED, "result": value}
    if failed:
        payload = {"status": Status.FAILED if "error" in failed else Status.DENIED, **failed}
    return CallResult(invocation_id=call.invocation_id, tool_name=call.tool_name, **payload)


def conversation(answer: Answer, *results: CallResult) -> tuple[Message, ...]:
    """A prompt, the answer, and the results of its calls."""
    return Prompt(text="go"), answer, Results(turn_id="t1", results=results)


def looks(call_id: str | None = "a", **fields: Any) -> ToolCall:
    """One call."""
    given: dict[str, Any] = {"tool_name": "look", "arguments": {"b": 1, "a": 2}} | fields
    return ToolCall(call_id=call_id, **given)


@tool
def look(at: str) -> str:
    """Look somewhere."""
    return at


ASKED = Question(
    (Prompt(text="go"),),
    Toolbox([look]),
    instructions="Be brief.",
    output={"type": "object"},
    limit=9,
)


def test_chat_completions_are_asked_with_all_that_a_question_holds() -> None:
    """The bound of the answer has another name at OpenAI's own endpoint (W-59)."""
    request = chat(ASKED)

    (declared,) = request.pop("tools")
    assert declared["function"]["name"] == "look"
    form = {"name": "answer", "schema": {"type": "object"}}
    assert request == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "go"},
        ],
        "response_format": {"type": "json_schema", "json_schema": form},
        "max_tokens": 9,
        "stream_options": {"include_usage": True},
    }
    assert chat(ASKED, base_url=OWN)["max_completion_tokens"] == 9
    assert "stream_options" not in chat(ASKED, streams=False)
    assert chat(Question(())) == {
        "model": "m",
        "messages": [],
        "stream_options": {"include_usage": True},
    }


def test_responses_are_asked_with_all_that_a_question_holds() -> None:
    """None of it is stored there; thoughts come along sealed, of models that think (W-56)."""
    request = responses(ASKED)

    (declared,) = request.pop("tools")
    assert (declared["type"], declared["name"], declared["strict"]) == ("function", "look", False)
    form = {"type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": False}
    assert request == {
        "model": "m",
        "input": [{"role": "user", "content": "go"}],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "text": {"format": form},
        "max_output_tokens": 9,
    }
    assert "include" not in responses(ASKED, model="gpt-4o")


@pytest.mark.parametrize("ask", [chat, responses])
def test_fields_of_each_request_can_be_added_and_taken_away(ask: Any) -> None:
    """None takes one away, when it is sent."""
    request = ask(ASKED, extra={"temperature": 0, "model": None})

    assert (request["temperature"], request["model"]) == (0, None)


def test_w_55_a_tool_that_is_declared_as_hosted_is_not_declared_twice() -> None:
    """Its calls are served by the tool of that name all the same."""
    request = responses(ASKED, hosted=[{"type": "web_search"}, {"type": "custom", "name": "look"}])

    assert request["tools"] == [{"type": "web_search"}, {"type": "custom", "name": "look"}]


RAW: dict[str, Any] = {
    "role": "assistant",
    "content": "I look.",
    "refusal": None,
    "annotations": [],
    "reasoning_content": "Hm",
    "tool_calls": [
        {
            "id": "a",
            "type": "function",
            "function": {"name": "look", "arguments": '{"b": 1, "a": 2}'},
            "extra_content": {"signature": "s"},
        },
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{"}},
    ],
}


def test_w_56_chat_completions_get_their_own_message_back_as_it_was() -> None:
    """Under new ids where theirs come twice, and with JSON for what was none."""
    broken = looks("a", arguments={"text": "{"}, fault="no JSON")
    answer = Answer(text="I look.", calls=(looks(), broken), raw=RAW, spec="openai:other")
    said = conversation(answer, result(answer), result(answer, place=1, error="no JSON"))

    _, assistant, *told = chat(Question(said))["messages"]

    first, second = RAW["tool_calls"]
    asked_again = {"id": "call_1_2", "function": {"name": "look", "arguments": '{"text":"{"}'}}
    assert assistant == {
        "role": "assistant",
        "content": "I look.",
        "reasoning_content": "Hm",
        "tool_calls": [first, {**second, **asked_again}],
    }
    assert told == [
        {"role": "tool", "tool_call_id": "a", "content": "seen"},
        {"role": "tool", "tool_call_id": "call_1_2", "content": "error: no JSON"},
    ]


@pytest.mark.parametrize("spec", ["anthropic:m", "openai-responses:m", None])
def test_w_56_chat_completions_get_anothers_answer_as_text_and_calls(spec: str | None) -> None:
    """Nothing of its own blocks."""
    answer = Answer(text="I look.", calls=(looks("a~b"),), raw=RAW, spec=spec)
    _, assistant, told = chat(Question(conversation(answer, result(answer))))["messages"]

    function = {"name": "look", "arguments": '{"a":2,"b":1}'}
    assert assistant == {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [{"type": "function", "id": "call_1_1", "function": function}],
    }
    assert told["tool_call_id"] == "call_1_1"


def test_an_answer_without_text_has_an_empty_one_or_calls() -> None:
    """Null alone is refused."""
    empty, called = Answer(), Answer(calls=(looks(),))
    said = (Prompt(text="go"), empty, *conversation(called, result(called)))
    messages = chat(Question(said))["messages"]

    assert messages[1] == {"role": "assistant", "content": ""}
    assert messages[3]["content"] is None


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": "i1", "call_id": "a", **fields}


def exchanged(
    raw: dict[str, Any], value: Any = "seen", **failed: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What goes back for an answer that is this item, and for its result."""
    answer = Answer(calls=(looks(),), raw=[raw], spec="openai-responses:m")
    said = conversation(answer, result(answer, value, **failed))
    _, asked, told = responses(Question(said))["input"]
    return asked, told


ACTION = {"commands": ["ls"], "max_output_length": 9}
SCREEN = {"type": "computer_screenshot", "image_url": "https://x/y.png"}
GONE = {"error": "gone"}

ANSWERS: dict[str, tuple[dict[str, Any], Any, dict[str, str], dict[str, Any]]] = {
    "a function": (
        item("function_call", name="look", arguments="{}", caller={"type": "program"}),
        {"x": 1},
        {},
        {"type": "function_call_output", "output": '{"x":1}', "caller": {"type": "program"}},
    ),
    "a custom tool": (
        item("custom_tool_call", name="look", input="SELECT 1"),
        "1",
        {},
        {"type": "custom_tool_call_output", "output": "1"},
    ),
    "a shell": (
        item("shell_call", action=ACTION),
        "seen",
        {},
        {
            "type": "shell_call_output",
            "max_output_length": 9,
            "output": [
                {"stdout": "seen", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
            ],
        },
    ),
    "a shell that failed": (
        item("shell_call", action={"commands": []}),
        None,
        GONE,
        {
            "type": "shell_call_output",
            "output": [
                {"stdout": "", "stderr": "error: gone", "outcome": {"type": "exit", "exit_code": 1}}
            ],
        },
    ),
    "a shell that answers in its own words": (
        item("shell_call", action={"commands": []}),
        [{"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}],
        {},
        {
            "type": "shell_call_output",
            "output": [{"stdout": "", "stderr": "", "outcome": {"type": "timeout"}}],
        },
    ),
    "a patch": (
        item("apply_patch_call", operation={}),
        "applied",
        {},
        {"type": "apply_patch_call_output", "status": "completed", "output": "applied"},
    ),
    "a patch that failed": (
        item("apply_patch_call", operation={}),
        None,
        GONE,
        {"type": "apply_patch_call_output", "status": "failed", "output": "error: gone"},
    ),
    "a computer": (
        item("computer_call", action={}, pending_safety_checks=[{"id": "c"}]),
        SCREEN,
        {},
        {
            "type": "computer_call_output",
            "output": SCREEN,
            "acknowledged_safety_checks": [{"id": "c"}],
        },
    ),
    "a search of tools": (
        item("tool_search_call", arguments={}, execution="client"),
        [{"type": "function", "name": "look"}],
        {},
        {
            "type": "tool_search_output",
            "execution": "client",
            "status": "completed",
            "tools": [{"type": "function", "name": "look"}],
        },
    ),
}


@pytest.mark.parametrize(("raw", "value", "failed", "told"), ANSWERS.values(), ids=ANSWERS)
def test_w_55_results_go_back_in_the_item_of_their_calls_kind(
    raw: dict[str, Any], value: Any, failed: dict[str, str], told: dict[str, Any]
) -> None:
    """Under the wire id of the call, which goes back as it was."""
    asked, answered = exchanged(raw, value, **failed)

    assert asked == raw | ({"status": "completed"} if "status" in asked else {})
    assert answered == {"call_id": "a", **told}


def test_w_55_a_local_shell_is_answered_by_the_id_of_its_call() -> None:
    """It has its own ways."""
    _, told = exchanged(item("local_shell_call", action={"command": ["ls"]}))

    assert told == {"type": "local_shell_call_output", "id": "a", "output": "seen"}


@pytest.mark.parametrize("failed", [{}, GONE, {"reason": "no"}])
def test_w_55_a_computer_without_a_screenshot_is_told_as_a_function(failed: dict[str, str]) -> None:
    """Its own kind has no words for anything else."""
    raw = item("computer_call", action={"type": "wait"}, pending_safety_checks=[])
    asked, told = exchanged(raw, "it hangs", **failed)

    arguments = '{"action":{"type":"wait"}}'
    assert asked == {
        "type": "function_call",
        "call_id": "a",
        "name": "look",
        "arguments": arguments,
    }
    assert (told["type"], told["call_id"]) == ("function_call_output", "a")


APPROVALS: dict[str, tuple[Any, dict[str, str], dict[str, Any]]] = {
    "approved": ("yes", {}, {"approve": True}),
    "its tool says no": (False, {}, {"approve": False, "reason": "false"}),
    "denied": (None, {"reason": "too dear"}, {"approve": False, "reason": "denied: too dear"}),
    "no such tool": (None, GONE, {"approve": False, "reason": "error: gone"}),
}


@pytest.mark.parametrize(("value", "failed", "told"), APPROVALS.values(), ids=APPROVALS)
def test_w_55_an_approval_goes_back_under_the_id_of_its_request(
    value: Any, failed: dict[str, str], told: dict[str, Any]
) -> None:
    """Which is no call of ours, and keeps its own."""
    raw = {"type": "mcp_approval_request", "id": "mcpr_" + "x" * 48, "arguments": "{}"}
    asked, answered = exchanged(raw, value, **failed)

    assert asked == raw
    wanted = {"type": "mcp_approval_response", "approval_request_id": raw["id"]}
    assert answered == wanted | told


def test_w_56_responses_get_their_own_items_back_as_they_were() -> None:
    """Thoughts under their seal too; not their status, and no id that comes twice or is refused."""
    sealed: dict[str, Any] = {
        "type": "reasoning",
        "id": "rs",
        "summary": [],
        "encrypted_content": "x",
    }
    bare: dict[str, Any] = {"type": "reasoning", "id": "rs2", "summary": []}
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    bare_message: dict[str, Any] = {"type": "message", "role": "assistant", "content": []}
    said_it = bare_message | {"id": "m" * 65}
    called = item("function_call", name="look", arguments='{"b": 1}', status="completed")
    raw: list[Any] = [sealed, bare, search, said_it, called]
    answer = Answer(text="hi", calls=(looks(),), raw=raw, spec="openai-responses:m")
    once = conversation(answer, result(answer))

    items = responses(Question(once + once))["input"]

    plain = {"type": "function_call", "call_id": "a", "name": "look", "arguments": '{"b": 1}'}
    told = {"type": "function_call_output", "output": "seen"}
    assert items[1:6] == [
        sealed,
        search,
        bare_message,
        {**plain, "id": "i1"},
        told | {"call_id": "a"},
    ]
    again = [without_id(sealed), without_id(search), bare_message, plain | {"call_id": "call_2_1"}]
    assert items[7:] == [*again, told | {"call_id": "call_2_1"}]


def without_id(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "id"}


@pytest.mark.parametrize("spec", ["anthropic:m", "openai:m", None])
def test_w_56_responses_get_anothers_answer_as_text_and_functions(spec: str | None) -> None:
    """Nothing of its own blocks; nor of an answer that was kept without all of its calls."""
    raw = [item("function_call", name="look", arguments="{}")]
    answer = Answer(text="hi", calls=(looks("a~b"),), raw=raw, spec=spec)
    short = Answer(text="hi", calls=(looks(),), raw=raw * 2, spec="openai-responses:m")

    for it, call_id in ((answer, "call_1_1"), (short, "a")):
        items = responses(Question(conversation(it, result(it))))["input"]
        function = {"name": "look", "arguments": '{"a":2,"b":1}'}
        assert items[1:] == [
            {"role": "assistant", "content": "hi"},
            {"type": "function_call", "call_id": call_id, **function},
            {"type": "function_call_output", "call_id": call_id, "output": "seen"},
        ]


def test_a_call_that_was_cut_goes_back_as_json() -> None:
    """Its arguments were none."""
    raw = item("function_call", name="look", arguments='{"a', status="incomplete")
    call = looks(arguments={"text": '{"a'}, fault="no JSON")
    answer = Answer(calls=(call,), raw=[raw], spec="openai-responses:m", stop=Stop.LENGTH)
    _, asked, _ = responses(Question(conversation(answer, result(answer, error="no JSON"))))[
        "input"
    ]

    assert asked["arguments"] == '{"text":"{\\"a"}'
    assert "status" not in asked


@pytest.mark.parametrize("spec", ["openai:m", "openai-responses:m", None])
def test_a_name_that_the_model_made_up_goes_back_as_one_that_is_taken(spec: str | None) -> None:
    """Endpoints refuse blanks and parentheses in it; the call was rejected all the same."""
    call = looks(tool_name="(no name)", fault="the call names no tool")
    function = {"name": "(no name)", "arguments": "{}"}
    raw: Any = {"tool_calls": [{"id": "a", "type": "function", "function": function}]}
    if spec == "openai-responses:m":
        raw = [item("function_call", **function)]
    answer = Answer(calls=(call,), raw=raw, spec=spec)
    question = Question(conversation(answer, result(answer, error="no")))

    (asked,) = chat(question)["messages"][1]["tool_calls"]
    assert asked["function"]["name"] == "_no_name_"
    assert responses(question)["input"][1]["name"] == "_no_name_"


def test_a_prompt_without_a_word_goes_as_one() -> None:
    """Some endpoints refuse an empty message."""
    question = Question((Prompt(text=" \n"),))

    assert chat(question)["messages"] == [{"role": "user", "content": NOTHING}]
    assert responses(question)["input"] == [{"role": "user", "content": NOTHING}]
