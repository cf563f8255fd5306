"""What goes to Google, and what is told of what fails there."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from turnlock.agent.errors import ModelError
from turnlock.agent.messages import Answer, Message, Prompt, Results, Stop, ToolCall
from turnlock.agent.providers import open_model
from turnlock.agent.providers.client import MissingClient
from turnlock.agent.providers.google import UNSIGNED, GoogleModel, as_contents
from turnlock.agent.speaking import CallEnded, Ended, Question, Said, listen
from turnlock.models.calls import CallResult, Status
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

from .playing import Play, playing

SPEC = "google:m"
GO = Prompt(text="go")


def piece(*parts: Any, reason: str | None = None) -> Any:
    candidate: Any = {"content": {"role": "model", "parts": [*parts]}}
    if reason is not None:
        candidate["finishReason"] = reason
    return {"candidates": [candidate]}


def sse(*pieces: Any) -> Play:
    return Play(body=b"".join(f"data: {json.dumps(it)}\r\n\r\n".encode() for it in pieces))


def whole(body: Any, status: int = 200) -> Play:
    return Play(body=json.dumps(body).encode(), content_type="application/json", status=status)


HI = sse(piece({"text": "Hi."}, reason="STOP"))


def asked(
    question: Question, *plays: Play, said: list[Said] | None = None, **options: Any
) -> tuple[Ended, list[Any], list[str]]:
    """Ask a model there; return how it ended, what was sent, and where."""

    async def ask() -> tuple[Ended, list[Any], list[str]]:
        async with playing(*(plays or (HI,))) as server:
            more: dict[str, Any] = {"timeout": 2.0, "retries": 0, **options}
            model = GoogleModel(model="m", base_url=server.url, api_key="k", **more)
            heard: list[Said] = [] if said is None else said
            try:
                ended = await listen(model, question, hear=heard.append)
                return ended, server.asked, server.paths
            finally:
                await model.close()

    return asyncio.run(ask())


def result(call: str, status: Status = Status.SUCCEEDED, said: Any = "ok") -> CallResult:
    field = {Status.SUCCEEDED: "result", Status.FAILED: "error", Status.DENIED: "reason"}[status]
    return CallResult(invocation_id=call, tool_name="look", status=status, **{field: said})


def test_w_50_what_is_asked() -> None:
    """Everything of a question has its place; schemas go whole."""

    @tool(parameters={"type": "object", "properties": {"at": {"type": "string", "pattern": "^a"}}})
    def look(**given: Any) -> str:
        """Looks."""
        return str(given)

    question = Question((GO,), Toolbox.of(look), instructions="Be kind.", limit=7)
    ended, (first,), (path,) = asked(
        question,
        hosted=[{"googleSearch": {}}],
        extra={"generationConfig": {"temperature": 0}, "safetySettings": []},
    )
    form: Any = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}}
    _, (second,), (other,) = asked(
        Question((Prompt(text=" "),), output=form),
        whole(piece({"text": "{}"}, reason="STOP")),
        streams=False,
    )

    assert (ended.answer.text, ended.answer.spec) == ("Hi.", SPEC)
    assert path.partition("/models/")[2] == "m:streamGenerateContent?alt=sse"
    assert first == {
        "contents": [{"role": "user", "parts": [{"text": "go"}]}],
        "systemInstruction": {"parts": [{"text": "Be kind."}]},
        "tools": [
            {"googleSearch": {}},
            {
                "functionDeclarations": [
                    {
                        "name": "look",
                        "description": "Looks.",
                        "parametersJsonSchema": dict(look.parameters),
                    }
                ]
            },
        ],
        "generationConfig": {"maxOutputTokens": 7, "temperature": 0},
        "safetySettings": [],
    }
    assert other.partition("/models/")[2] == "m:generateContent"
    assert second["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": form,
    }
    assert second["contents"][0]["parts"][0]["text"].strip()


def test_w_50_google_is_told_no_bound_of_the_whole_answer() -> None:
    """As the client tells it, if it is given a timeout: long answers would end there."""

    async def ask() -> dict[str, str]:
        async with playing(HI) as server:
            model = GoogleModel(model="m", base_url=server.url, api_key="k", timeout=5.0)
            await listen(model, Question((GO,)))
            await model.close()
            return server.headers[0]

    headers = asyncio.run(ask())
    assert headers["x-goog-api-key"] == "k"
    assert "x-server-timeout" not in headers


def test_w_59_a_form_is_a_tool_where_there_are_tools() -> None:
    """Many models refuse both together."""

    @tool
    def look() -> None:
        """Looks."""

    model = GoogleModel(model="m", api_key="k")
    assert model.structured(Question((GO,)))
    assert not model.structured(Question((GO,), Toolbox.of(look)))
    assert not GoogleModel(model="m", api_key="k", structured=False).structured(Question((GO,)))
    hosted = GoogleModel(model="m", api_key="k", hosted=[{"googleSearch": {}}])
    assert not hosted.structured(Question((GO,)))


def test_w_56_own_parts_go_back_as_they_were_and_foreign_ones_as_text_and_calls() -> None:
    """Signatures byte for byte; Gemini 3 wants one on a message's first call, whoever made it."""
    own: list[Any] = [
        {"text": "Hm.", "thought": True},
        {"executableCode": {"code": "1"}},
        {"functionCall": {"name": "look", "args": {"z": 1, "a": 2}}, "thoughtSignature": "a+/="},
        {"functionCall": {"id": "x", "name": "look", "args": {}}},
        {"text": "", "thoughtSignature": "b=="},
    ]
    look = ToolCall(call_id=None, tool_name="look", arguments={"z": 1, "a": 2})
    other = ToolCall(call_id="x", tool_name="look", arguments={})
    messages: tuple[Message, ...] = (
        GO,
        Answer(calls=(look, other), raw={"content": {"parts": own}}, spec=SPEC),
        Results(turn_id="t1", results=(result("call~1"), result("x", Status.FAILED, "no"))),
        Answer(text="Well.", calls=(other, look), raw=[{"reasoning": "x"}], spec="openai:x"),
    )
    _, (sent,), _ = asked(Question(messages))

    assert sent["contents"] == [*as_contents(messages, spec=SPEC)]
    assert sent["contents"] == [
        {"role": "user", "parts": [{"text": "go"}]},
        {
            "role": "model",
            "parts": [
                own[0],
                own[1],
                {
                    "functionCall": {"id": "call_1_1", "name": "look", "args": {"z": 1, "a": 2}},
                    "thoughtSignature": "a+/=",
                },
                {"functionCall": {"id": "x", "name": "look", "args": {}}},
                own[4],
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "call_1_1",
                        "name": "look",
                        "response": {"output": "ok"},
                    }
                },
                {
                    "functionResponse": {
                        "id": "x",
                        "name": "look",
                        "response": {"error": "error: no"},
                    }
                },
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "Well."},
                {
                    "functionCall": {"id": "call_2_1", "name": "look", "args": {}},
                    "thoughtSignature": UNSIGNED,
                },
                {"functionCall": {"id": "call_2_2", "name": "look", "args": {"z": 1, "a": 2}}},
            ],
        },
    ]


def test_w_56_calls_of_an_older_model_of_google_get_a_signature_if_they_have_none() -> None:
    """Those of this very model are as they were."""
    call: Any = {"functionCall": {"id": "x", "name": "look", "args": {}}}
    asks = ToolCall(call_id="x", tool_name="look", arguments={})
    answer = Answer(calls=(asks,), raw={"content": {"parts": [call]}}, spec="google:old")

    (newer,) = as_contents((answer,), spec=SPEC)
    (same,) = as_contents((answer,), spec="google:old")

    assert newer["parts"] == [{**call, "thoughtSignature": UNSIGNED}]
    assert same["parts"] == [call]


def test_w_52_what_was_paused_goes_on_by_its_token() -> None:
    """The question stays as it was, and the client asks nobody by itself meanwhile (W-50)."""
    token = {"candidates": [{**piece({"text": "1"})["candidates"][0], "continuationToken": "t+8="}]}
    token["candidates"][0]["finishReason"] = "CONTINUATION"
    first, sent, _ = asked(Question((GO,)), sse(token))
    again, _, _ = asked(Question((GO, first.answer)), sse(token))
    _, (resumed,), _ = asked(Question((GO, first.answer, again.answer)))

    assert (first.stop, first.answer.text, len(sent)) == (Stop.PAUSED, "1", 1)
    assert resumed["continuationToken"] == "t+8="
    assert resumed["contents"] == [{"role": "user", "parts": [{"text": "go"}]}]
    _, (later,), _ = asked(Question((GO, first.answer, Answer(text="2"), GO)))
    assert "continuationToken" not in later
    assert [it["parts"][0]["text"] for it in later["contents"]] == ["go", "1", "2", "go"]


def test_w_53_partial_arguments_come_through_the_client() -> None:
    """As they come on Vertex AI; what is a double there may be an integer."""
    said: list[Said] = []
    partial = {"jsonPath": "$.n", "numberValue": 5}
    nothing = {"jsonPath": "$.no", "nullValue": "NULL_VALUE"}
    ended, _, _ = asked(
        Question((GO,)),
        sse(
            piece({"functionCall": {"name": "look", "willContinue": True}}),
            piece({"functionCall": {"partialArgs": [partial, nothing], "willContinue": True}}),
            piece({"functionCall": {}}),
            piece(reason="STOP"),
        ),
        said=said,
    )

    (call,) = ended.answer.calls
    assert (json.dumps(call.arguments), call.fault) == ('{"n": 5, "no": null}', None)
    assert [it.call for it in said if isinstance(it, CallEnded)] == [call]


FAILED = {"error": {"code": 503, "message": "Sorry", "status": "UNAVAILABLE"}}


@pytest.mark.parametrize(
    ("play", "told"),
    [
        (
            whole({"error": {"code": 403, "message": "Sorry"}}, 403),
            r"403: Sorry; see to GOOGLE_API",
        ),
        (whole(FAILED, 503), r"answered 503: Sorry; .*try again later"),
        (sse(piece({"text": "a"}), FAILED), r"Sorry; .*try again later"),
        (Play(body=b"<html>", content_type="text/html"), r"is this its base URL"),
        (sse({"candidates": 5}), r"is this its base URL"),
        (Play(body=b"", hangs=1.0), r"took too long"),
    ],
)
def test_w_50_what_fails_is_a_model_error_that_says_what_to_do(play: Play, told: str) -> None:
    """Whether the client says it, its transport, or the provider in the middle of its answer."""
    with pytest.raises(ModelError, match=rf"(?s)model m at http.*{told}.*goes on from here"):
        asked(Question((GO,)), play, timeout=0.3)


def test_w_52_a_stream_that_ends_in_the_middle_of_a_piece_is_cut() -> None:
    """Cleanly or not; nobody asks again but the loop."""
    two = sse(piece({"text": "a"}), piece({"text": "b"}, reason="STOP")).body
    for cleanly in (True, False):
        cut = Play(body=two, cut=len(two) - 9, cleanly=cleanly)
        ended, sent, _ = asked(Question((GO,)), cut, retries=1)

        assert (ended.stop, ended.answer.text, len(sent)) == (Stop.CUT, "a", 1)


def test_without_a_key_it_says_where_it_belongs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is asked."""
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(MissingClient, match="GOOGLE_API_KEY"):
        open_model("google:m")


def test_without_the_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named."""
    monkeypatch.setitem(__import__("sys").modules, "google.genai", None)

    with pytest.raises(MissingClient, match=r"pip install 'turnlock\[google\]'"):
        open_model("google:m")
