"""What the pieces of a generateContent response mean, oddity by oddity."""

from __future__ import annotations

from typing import Any

import pytest

from turnlock.agent.errors import ProviderFailure
from turnlock.agent.folds.calls import CUT_OFF, UNCLOSED
from turnlock.agent.folds.google import GoogleFold
from turnlock.agent.messages import Stop, Tokens
from turnlock.agent.speaking import (
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


def piece(*parts: Any, reason: str | None = None, **more: Any) -> Event:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [*parts]}}
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], **more}


def text(said: str, **more: Any) -> Event:
    return {"text": said, **more}


def call(name: str | None = None, /, **fields: Any) -> Event:
    return {"functionCall": fields if name is None else {"name": name, **fields}}


def some(path: str, /, **value: Any) -> Event:
    """One piece of an open call's arguments."""
    partial = {"jsonPath": path, **value}
    return call(partialArgs=[partial], willContinue=True)


def told(*events: Event) -> tuple[list[Said], Ended]:
    return folded(GoogleFold(spec="google:m"), events)


def test_w_53_a_part_without_will_continue_closes_its_call() -> None:
    """One that came at once, one in pieces; parallel ones of the same name are two."""
    said, ended = told(
        piece(text("I "), usageMetadata={"promptTokenCount": 3}),
        piece(text("look."), call("look", args={"at": "sky"}, id="a")),
        piece(call("look", willContinue=True)),
        piece(some("$.at", stringValue="s", willContinue=True)),
        piece(some("$.at", stringValue="ea")),
        piece(call()),
        piece(text(""), reason="STOP"),
    )

    answer = ended.answer
    assert (answer.text, ended.stop) == ("I look.", Stop.CALLS)
    assert [(it.call_id, dict(it.arguments)) for it in answer.calls] == [
        ("a", {"at": "sky"}),
        (None, {"at": "sea"}),
    ]
    first, second = of(CallEnded, said)
    assert said == [
        Text("I "),
        Used(Tokens(input=3)),
        Text("look."),
        CallBegan(0, "look"),
        CallText(0, '{"at": "sky"}'),
        first,
        CallBegan(1, "look"),
        CallText(1, '{"at": "sea"}'),
        second,
    ]
    assert [first.call, second.call] == list(answer.calls)
    parts = raw(answer)["content"]["parts"]
    assert parts == [
        text("I look."),
        call("look", args={"at": "sky"}, id="a"),
        call("look", args={"at": "sea"}),
    ]
    assert raw(first)["content"]["parts"] == parts[:2]
    assert raw(second)["content"]["parts"] == parts


def test_w_53_partial_arguments_are_put_together_by_their_paths() -> None:
    """Objects, lists, quoted names, numbers that are whole, null, and texts side by side."""
    said, ended = told(
        piece(call("cook", willContinue=True, args={"for": 2})),
        piece(some("$.steps[0].name", stringValue="boil", willContinue=True)),
        piece(some("$['a \\'b\\'.c'][0]", numberValue=5.0)),
        piece(some("$.steps[0].name", stringValue=" it")),
        piece(some("$.steps[1]", numberValue=0.5)),
        piece(some('$["x"].y', boolValue=False), some("$.none", nullValue="NULL_VALUE")),
        piece(some("$.none2", nullValue=None), some("$.steps[1]", numberValue=7)),
        piece(some("$.nothing", willContinue=True)),
        piece(call(), reason="STOP"),
    )

    (cooked,) = ended.answer.calls
    assert cooked.fault is None
    assert dict(cooked.arguments) == {
        "for": 2,
        "steps": [{"name": "boil it"}, 7],
        "a 'b'.c": [5],
        "x": {"y": False},
        "none": None,
        "none2": None,
    }
    assert "[5]" in of(CallText, said)[0].text  # it came as 5.0
    assert len(of(CallEnded, said)) == 1


@pytest.mark.parametrize(
    "path",
    (
        "|a|$|$.|$.a[|$.a[2]|$.a[-1]|$.a[99999999999]|$.a[999999999]|$.s.t|$.s[0]|$.a.b|$[0]|$['a|$"
        + ".a" * 101
    ).split("|"),
)
def test_w_53_a_path_that_leads_nowhere_is_a_fault_of_its_call_alone(path: str) -> None:
    """Nothing is guessed, and no list is filled up to an index."""
    _, ended = told(
        piece(call("cook", willContinue=True), some("$.s", stringValue="x")),
        piece(some("$.a[0]", numberValue=1), some(path, numberValue=2)),
        piece(call(), call("look"), reason="STOP"),
    )

    assert faults(ended.answer) == [True, False]


@pytest.mark.parametrize(
    ("reason", "meant"),
    [
        ("STOP", Stop.DONE),
        ("MAX_TOKENS", Stop.LENGTH),
        ("SAFETY", Stop.REFUSED),
        ("RECITATION", Stop.REFUSED),
        ("BLOCKLIST", Stop.REFUSED),
        ("PROHIBITED_CONTENT", Stop.REFUSED),
        ("CONTINUATION", Stop.PAUSED),
        ("UNEXPECTED_TOOL_CALL", Stop.OTHER),
        ("a new one", Stop.OTHER),
        ("MALFORMED_FUNCTION_CALL", Stop.CUT),
        (None, Stop.CUT),
    ],
)
def test_w_52_why_it_stopped(reason: str | None, meant: Stop) -> None:
    """What the provider itself could not read is no answer, as one that never said why."""
    _, ended = told(piece(text("hm")), piece(reason=reason))

    assert (ended.stop, ended.answer.text) == (meant, "hm")


def test_w_52_a_prompt_that_is_blocked_is_refused() -> None:
    """Such a response has no candidate."""
    _, ended = told({"promptFeedback": {"blockReason": "SAFETY"}})

    assert (ended.stop, ended.answer.text) == (Stop.REFUSED, None)
    assert raw(ended.answer)["promptFeedback"] == {"blockReason": "SAFETY"}


def test_w_52_the_last_call_of_an_answer_that_was_too_long_is_never_seen_whole() -> None:
    """Not in `CallEnded` either."""
    said, ended = told(piece(call("look"), call("look", args={"a": 1}), reason="MAX_TOKENS"))

    assert ended.stop is Stop.LENGTH
    assert [it.fault for it in ended.answer.calls] == [None, CUT_OFF]
    assert [it.call.fault for it in of(CallEnded, said)] == [None, CUT_OFF]


def test_w_53_a_call_that_was_never_closed_has_a_fault() -> None:
    """Neither another call nor the end of the answer closes one."""
    said, ended = told(
        piece(call("look", willContinue=True), some("$.a", numberValue=1)),
        piece(call("look", args={})),
        piece(call("look", willContinue=True)),
        piece(reason="STOP"),
    )

    assert [it.fault for it in ended.answer.calls] == [UNCLOSED, None, UNCLOSED]
    assert [it.place for it in of(CallEnded, said)] == [1]


def test_w_53_pieces_of_one_call_may_all_have_its_id_and_name() -> None:
    """A name begins another call, but not under the same id."""
    _, ended = told(
        piece(call("look", id="a", willContinue=True)),
        piece(call("look", id="a", args={"x": 1}, willContinue=True)),
        piece(call("look", id="a")),
        piece(call("look", id="b"), reason="STOP"),
    )

    assert [(it.call_id, dict(it.arguments)) for it in ended.answer.calls] == [
        ("a", {"x": 1}),
        ("b", {}),
    ]
    assert faults(ended.answer) == [False, False]


def test_a_call_that_names_no_tool_has_a_fault_and_a_part_that_closes_nothing_is_none() -> None:
    """As W-52 has it of calls that cannot run."""
    _, ended = told(
        piece(call(), call(args={"a": 1})), piece(call(willContinue=True), reason="STOP")
    )

    assert faults(ended.answer) == [True]


def test_w_55_what_the_provider_runs_itself_is_kept_and_is_no_call() -> None:
    """Code and its result, calls of its own tools, and parts that we do not know."""
    code = {"executableCode": {"language": "PYTHON", "code": "1+1"}}
    output = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}
    search = {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s", "args": {"q": "x"}}}
    found: Event = {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s", "response": {}}}
    odd = {"hologram": [1], "thoughtSignature": "s=="}
    said, ended = told(piece(code, output, search, found), piece(odd, text("2."), reason="STOP"))

    assert of(Elsewhere, said) == [
        Elsewhere("executableCode", "1+1"),
        Elsewhere("codeExecutionResult", "2"),
        Elsewhere("GOOGLE_SEARCH_WEB"),
    ]
    assert (ended.answer.text, ended.answer.calls) == ("2.", ())
    assert raw(ended.answer)["content"]["parts"] == [code, output, search, found, odd, text("2.")]


def test_w_56_signatures_stay_with_the_part_that_they_came_with() -> None:
    """Texts are put together between them, thoughts apart from the answer."""
    said, ended = told(
        piece(text("Let ", thought=True), text("me.", thought=True)),
        piece(text("So", thoughtSignature="a=="), text(" it"), text(" is.")),
        piece({**call("look", willContinue=True, kind=7), "thoughtSignature": "b=="}),
        piece(call("look", id="x")),
        piece(call(), text("", thoughtSignature="c=="), reason="STOP"),
    )

    assert of(Thought, said) == [Thought("Let "), Thought("me.")]
    assert ended.answer.text == "So it is."
    assert raw(ended.answer)["content"]["parts"] == [
        text("Let me.", thought=True),
        text("So", thoughtSignature="a=="),
        text(" it is."),
        {**call("look", kind=7, args={}), "thoughtSignature": "b=="},
        call("look", id="x", args={}),
        text("", thoughtSignature="c=="),
    ]


def test_other_candidates_than_the_first_are_not_looked_at() -> None:
    """As W-54 has it of choices; what is said beside the candidates is usage."""
    used = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 1,
        "cachedContentTokenCount": 4,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 2,
    }
    first = {"index": 0, "content": {"parts": [text("one")]}, "finishReason": "STOP"}
    other = {"index": 1, "content": {"parts": [text("two"), call("look")]}}
    _, ended = told({"candidates": [other, first]}, {"usageMetadata": used})

    assert (ended.answer.text, ended.answer.calls) == ("one", ())
    assert ended.tokens == Tokens(input=11, output=7, cached=4, thought=2)


def test_an_error_in_the_stream_is_a_failure_of_the_provider() -> None:
    """As Google sends it, in place of a piece."""
    with pytest.raises(ProviderFailure, match="overloaded"):
        told(piece(text("x")), {"error": {"code": 503, "message": "overloaded"}})
