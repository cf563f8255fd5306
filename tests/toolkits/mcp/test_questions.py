"""Forms that servers ask to have filled in: which are declined unseen, and what fits one (W-67)."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import MCPError

from turnlock.models.errors import InvalidValue
from turnlock.runtime.tools.errors import OutcomeUnknown
from turnlock.toolkits.mcp import McpToolError, answering
from turnlock.toolkits.mcp.http import NOT_SENT, REFUSED, UNANSWERED
from turnlock.toolkits.mcp.outcomes import failure_of, result_of
from turnlock.toolkits.mcp.questions import (
    SECRET_FORMATS,
    SECRET_PHRASES,
    SECRET_WORDS,
    question_of,
    why_not,
)

from .hosting import Notes, context, play, until


def form(**fields: Any) -> dict[str, Any]:
    """A form with these fields."""
    return {"type": "object", "properties": fields, "required": list(fields)[:1]}


TEXT: dict[str, Any] = {"type": "string"}

SECRETS = [
    *(form(value={**TEXT, "format": it}) for it in sorted(SECRET_FORMATS)),
    *(form(**{f"my_{it}": TEXT}) for it in sorted(SECRET_WORDS)),
    *(form(value={**TEXT, "title": f"Your {it.upper()}"}) for it in sorted(SECRET_WORDS)),
    *(form(value={**TEXT, "description": f"The {it}, please"}) for it in sorted(SECRET_PHRASES)),
    form(apiKey=TEXT),
    form(APIKey=TEXT),
    form(githubAccessToken2=TEXT),
    form(pin={"type": "integer"}),
    form(**{"user.password": TEXT}),
    form(name=TEXT, value={**TEXT, "writeOnly": True}),
]
HARMLESS = [
    form(name=TEXT, size={"type": "integer"}, keyboard=TEXT, monkey=TEXT, spinning=TEXT),
    form(reset_password={"type": "boolean"}),
    form(key={**TEXT, "enum": ["c", "d minor"]}),
    form(token={**TEXT, "oneOf": [{"const": "a", "title": "A"}]}),
    form(keys={"type": "array", "items": {"type": "string", "enum": ["a"]}}),
    form(mail={**TEXT, "format": "email"}),
    form(),
]


@pytest.mark.parametrize("asked", SECRETS, ids=str)
def test_w_67_who_asks_for_a_secret_is_declined(asked: dict[str, Any]) -> None:
    """By format, and by the words of name, title and description, however they are joined."""
    assert "asks for a secret" in str(why_not(asked))


@pytest.mark.parametrize("asked", HARMLESS, ids=str)
def test_w_67_other_forms_are_shown(asked: dict[str, Any]) -> None:
    """The negative control: words inside of words, and what can hold no secret."""
    assert why_not(asked) is None


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"type": "object", "properties": {"a": {"type": 7}}}, "is no JSON Schema"),
        ({"type": "array"}, "is no JSON Schema of an object"),
        (form(a={"title": "Anything"}), "its field a is of no kind that a form has"),
        (form(a={"type": "object"}), "its field a is of no kind that a form has"),
        (form(**{f"f{n}": TEXT for n in range(51)}), "more than 50 fields"),
        (form(a={**TEXT, "description": "x" * 64_000}), "more than 64,000 bytes"),
    ],
)
def test_w_67_a_form_that_is_none_or_too_large_is_declined(asked: dict[str, Any], why: str) -> None:
    """Nobody is shown what cannot be answered."""
    assert why in str(why_not(asked))


def test_w_67_an_answer_is_held_against_its_form() -> None:
    """What is missing, of another type, not among the choices, or no field at all is told."""
    asked = form(
        size={"type": "integer", "minimum": 1, "title": "The\x1b[2J size"},
        colours={"type": "array", "items": {"anyOf": [{"const": "red"}, {"const": "blue"}]}},
    )
    question = question_of(context(), 2, server="shop", message="x" * 5_000 + "\n", form=asked)
    assert question.question_id == "question/r/t1/a/1/2"
    assert len(question.message) == 4_000
    size, colours = question.fields
    assert (size.title, size.kind, size.required) == ("The\\x1b[2J size", "integer", True)
    assert (colours.choices, colours.required) == (("red", "blue"), False)
    question.check({"size": 1, "colours": ["red"]})
    for answer in ({}, {"size": "1"}, {"size": 0}, {"size": 1, "colours": ["green"]}, {"siz": 1}):
        with pytest.raises(InvalidValue):
            question.check(answer)


_IDS = st.text(st.sampled_from("a/%2F5"), min_size=1, max_size=5)


@given(st.lists(st.tuples(_IDS, _IDS, _IDS), min_size=2, max_size=2, unique=True))
def test_w_67_no_two_calls_ask_under_one_id(places: list[tuple[str, str, str]]) -> None:
    """Ids of runs, turns and calls may hold a slash, as those of members do; escaped as in K-7."""
    made = [
        question_of(
            context(run_id=run, turn_id=turn, invocation_id=call),
            1,
            server="shop",
            message="",
            form=form(),
        ).question_id
        for run, turn, call in places
    ]
    assert made[0] != made[1]
    assert {name.count("/") for name in made} == {5}


def test_w_67_what_the_dead_asked_in_a_members_run_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its id begins with the run as the id has it, and not as the run is called."""
    monkeypatch.setattr(answering, "LOOK_FOR_RUNS", 0.01)

    async def work() -> None:
        notes = Notes("question/w%2Fc%2Fa/t1/a/1/1", "question/w/t1/a/1/1", runs=("w/c/a",))
        looking = asyncio.create_task(answering.cancel_what_the_dead_asked(notes))
        await until(lambda: "reply/w%2Fc%2Fa/t1/a/1/1" in notes.kept)
        looking.cancel()
        assert "reply/w/t1/a/1/1" not in notes.kept  # another run's, whose id begins so

    play(work())


def text(said: str) -> types.TextContent:
    return types.TextContent(text=said)


def test_w_65_nothing_of_a_result_is_dropped() -> None:
    """What is said twice is said once; all else is there, whatever its kind."""
    result = types.CallToolResult
    assert result_of(result(content=[text("a")])) == "a"
    assert result_of(result(content=[text("a"), text("b")])) == {
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    }
    assert result_of(result(content=[], structured_content={"a": 1})) == {"a": 1}
    same = result(content=[text('{ "a":1 }')], structured_content={"a": 1})
    assert result_of(same) == {"a": 1}
    assert result_of(result(content=[text("1")], structured_content={"result": 1})) == 1
    assert result_of(result(content=[text("a")], structured_content={"result": "a"})) == "a"
    differs = result(content=[text("one thing")], structured_content={"a": 1})
    assert result_of(differs) == {
        "content": [{"type": "text", "text": "one thing"}],
        "structuredContent": {"a": 1},
    }
    link = types.ResourceLink(uri="file:///a", name="a")
    blob = types.BlobResourceContents(uri="file:///b", blob="aGk=", mime_type="a/b")
    sound = types.AudioContent(data="aGk=", mime_type="audio/wav")
    held = types.EmbeddedResource(resource=blob)
    assert result_of(result(content=[link, held, sound])) == {
        "content": [
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
            {
                "type": "resource",
                "resource": {"uri": "file:///b", "blob": "aGk=", "mimeType": "a/b"},
            },
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        ]
    }
    failures: list[tuple[list[types.ContentBlock], Any, str]] = [
        ([text("no money"), text("left")], None, "no money\nleft"),
        ([], {"a": 1}, '{"a": 1}'),
        ([], None, "it failed, and did not say why"),
        ([link], None, '"file:///a"'),
    ]
    for content, structured, why in failures:
        failed = result(content=content, structured_content=structured, is_error=True)
        with pytest.raises(McpToolError, match=why):
            result_of(failed)


FAILED, DOUBT = McpToolError, OutcomeUnknown


@pytest.mark.parametrize(
    ("code", "message", "lives", "begun", "comes_to"),
    [
        (types.INVALID_PARAMS, "no such size", True, False, FAILED),
        (types.METHOD_NOT_FOUND, "gone", True, False, FAILED),
        (types.INVALID_REQUEST, "Session terminated", False, False, FAILED),
        (types.INVALID_REQUEST, "server answered a request with 202 Accepted", False, False, DOUBT),
        (types.INVALID_REQUEST, "Unexpected content type: text/html", False, False, DOUBT),
        (types.INTERNAL_ERROR, "crashed", True, False, FAILED),
        (0, "crashed", False, False, FAILED),
        (NOT_SENT, "could not be reached", False, False, FAILED),
        (NOT_SENT, "could not be reached", False, True, DOUBT),
        (REFUSED, "HTTP 401 Unauthorized", False, False, FAILED),
        (UNANSWERED, "HTTP 502 Bad Gateway", False, False, DOUBT),
        (types.CONNECTION_CLOSED, "Connection closed", False, False, DOUBT),
        (types.CONNECTION_CLOSED, "out of stock", True, False, FAILED),
        (types.REQUEST_TIMEOUT, "timed out", True, False, DOUBT),
        (types.PARSE_ERROR, "Failed to parse SSE message", False, False, DOUBT),
    ],
)
def test_w_65_an_error_is_a_failure_or_a_doubt(
    *, code: int, message: str, lives: bool, begun: bool, comes_to: type[Exception]
) -> None:
    """What was not run has failed; of what may have run nobody knows."""
    failure = failure_of(MCPError(code, message), lives=lives, why="", begun=begun)
    assert type(failure) is comes_to
    assert message in str(failure)
