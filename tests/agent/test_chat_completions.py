"""The endpoint's side of the loop: what is asked, what may come back, and what goes wrong."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from turnlock import Run
from turnlock.agent.errors import ModelError
from turnlock.agent.loop import Agent
from turnlock.agent.providers.chat_completions import ChatCompletionsModel
from turnlock.agent.providers.client import MissingClient
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

from .endpoint import Endpoint, Reply, call, endpoint, says


def converse(
    served: Endpoint,
    prompt: str | None = "go",
    *,
    journal: Journal | None = None,
    timeout: float = 5.0,
    retries: int = 0,
) -> tuple[str | None, list[str]]:
    """Play a conversation with the endpoint; return the answer, and where the tool looked."""
    looked: list[str] = []

    @tool
    async def look(at: str = "sky", times: int = 1) -> dict[str, int]:
        """Look somewhere."""
        looked.append(at)
        return {at: times}

    async def play() -> str | None:
        model = ChatCompletionsModel(
            model="m", base_url=served.url, api_key="k", timeout=timeout, retries=retries
        )
        try:
            async with Agent(
                run=Run(run_id="r"),
                model=model,
                journal=journal or MemoryJournal(),
                tools=Toolbox([look]),
            ) as agent:
                return (await agent.run(prompt)).text
        finally:
            await model.close()

    return asyncio.run(play()), looked


def test_tools_are_declared_and_results_go_back_under_the_ids_of_their_calls() -> None:
    """Parallel calls, in order; what else the provider's message held comes back to it."""
    calls = [call('{"at": "sea"}', id="c1"), call('{"at": "sky", "times": 2}', id="c2")]
    with endpoint(says(None, *calls, reasoning="hm"), says("done")) as served:
        answer, looked = converse(served)

    assert (answer, sorted(looked)) == ("done", ["sea", "sky"])
    first, second = served.asked
    assert first["model"] == "m"
    assert first["messages"] == [{"role": "user", "content": "go"}]
    (declared,) = first["tools"]
    assert declared["function"]["description"] == "Look somewhere."
    assert set(declared["function"]["parameters"]["properties"]) == {"at", "times"}
    assert served.keys == ["Bearer k", "Bearer k"]
    _, assistant, *told = second["messages"]
    assert assistant["reasoning"] == "hm"
    assert [it["id"] for it in assistant["tool_calls"]] == ["c1", "c2"]
    assert told == [
        {"role": "tool", "tool_call_id": "c1", "content": '{"sea":1}'},
        {"role": "tool", "tool_call_id": "c2", "content": '{"sky":2}'},
    ]


IDS: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "one id twice": ([{"id": "c"}, {"id": "c"}], ["c", "call_1_2"]),
    "no ids": ([{}, {}], ["call_1_1", "call_1_2"]),
    "empty ids": ([{"id": ""}, {"id": None}], ["call_1_1", "call_1_2"]),
}


@pytest.mark.parametrize(("ids", "told"), IDS.values(), ids=IDS)
def test_ids_that_are_no_ids(ids: list[dict[str, Any]], told: list[str]) -> None:
    """Each call runs once and has its own result, whatever ids the provider sent (K-20)."""
    calls = [call(f'{{"times": {n}}}', **it) for n, it in enumerate(ids)]
    with endpoint(says(None, *calls), says("done")) as served:
        _, looked = converse(served)

    assert len(looked) == 2
    _, assistant, *results = served.asked[1]["messages"]
    assert [it["id"] for it in assistant["tool_calls"]] == told
    assert [(it["tool_call_id"], it["content"]) for it in results] == [
        (told[0], '{"sky":0}'),
        (told[1], '{"sky":1}'),
    ]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (call('{"at": '), "the arguments cannot be read: "),
        (call("[1]"), "are no text of a JSON object"),
        (call({"at": "x"}), "the arguments cannot be read: "),
        (call('{"at": "x", "at": "y"}'), "the arguments cannot be read: "),
        (call("{}", name=None), "the call names no tool"),
        (call("{}", name="nope"), "there is no tool 'nope'"),
        (call('{"at": 1}'), "bad arguments: at"),
    ],
    ids=["cut off", "a list", "an object", "one key twice", "no name", "no such tool", "a type"],
)
def test_calls_that_cannot_run_are_told_to_the_model(asked: dict[str, Any], error: str) -> None:
    """The tool never runs with what nobody meant; the call beside it does."""
    good = call('{"at": "sea"}', id="good")
    with endpoint(says(None, asked | {"id": "bad"}, good), says("sorry")) as served:
        answer, looked = converse(served)

    assert (answer, looked) == ("sorry", ["sea"])
    bad, fine = served.asked[1]["messages"][2:]
    assert bad["content"].startswith("error: ")
    assert error in bad["content"]
    assert fine["content"] == '{"sea":1}'


def test_no_arguments_are_none() -> None:
    """Some providers send an empty text, or null, for a tool without parameters."""
    with endpoint(says(None, call("", id="a"), call(None, id="b")), says("done")) as served:
        _, looked = converse(served)

    assert looked == ["sky", "sky"]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_passes_is_asked_again(status: int) -> None:
    """The client waits as the endpoint says, and the conversation hears nothing of it."""
    away = Reply({"error": {"message": "away"}}, status=status, headers={"Retry-After": "0.01"})
    with endpoint(away, away, says("here")) as served:
        answer, _ = converse(served, retries=2)

    assert answer == "here"
    assert len(served.asked) == 3


FAILURES: dict[str, tuple[Reply, str]] = {
    "429": (Reply({"error": "slow down"}, status=429), r"answered 429: .*slow down.*try again"),
    "500": (Reply(b"oops", status=500), r"answered 500: oops; it was asked"),
    "401": (Reply({"error": "who?"}, status=401), r"answered 401.*see to OPENAI_API_KEY"),
    "404": (Reply({}, status=404), r"answered 404.*see to the name of the model and its base URL"),
    "400": (Reply({"error": "\x1b[2J"}, status=400), r"answered 400.*see what it says"),
    "no JSON": (Reply(b"<html>"), r"no answer: .*<html>.*base URL"),
    "no choices": (Reply({"choices": []}), r"no answer: IndexError.*choices.*base URL"),
    "no object": (Reply([]), r"no answer: "),
    "no text": (says(3), r"no answer: "),  # type: ignore[arg-type]
    "no calls": (Reply({"choices": [{"message": {"tool_calls": 3}}]}), r"no answer: "),
    "slow": (Reply({}, hangs=0.4), r"it took too long; try again later"),
}


@pytest.mark.parametrize(("reply", "told"), FAILURES.values(), ids=FAILURES)
def test_what_fails_is_told_and_the_conversation_goes_on_later(reply: Reply, told: str) -> None:
    """Cause, place and fix; the turn stays owed, and nothing is run again."""
    journal = MemoryJournal()
    with endpoint(says(None, call('{"at": "sea"}', id="a")), reply) as served:
        with pytest.raises(ModelError, match=f"(?s)model m at {served.url}.*{told}") as caught:
            converse(served, journal=journal, timeout=0.2)
        assert "\x1b" not in str(caught.value)
        assert asyncio.run(journal.entry("r")).busy

    with endpoint(says("done")) as served:
        assert converse(served, None, journal=journal) == ("done", [])
    assert not asyncio.run(journal.entry("r")).busy


def test_nobody_there_is_told() -> None:
    """Connection refused: the URL may be wrong."""
    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    nobody = Endpoint([], url=f"http://127.0.0.1:{port}/v1")

    with pytest.raises(ModelError, match=r"cannot be reached.*correct its base URL"):
        converse(nobody)


def test_without_a_key_it_says_where_it_belongs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is asked."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    with pytest.raises(MissingClient, match="OPENAI_API_KEY"):
        ChatCompletionsModel(model="m")


def test_without_the_client_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, missing: Callable[[str], None]
) -> None:
    """The extra is named."""
    missing("openai")

    with pytest.raises(MissingClient, match=r"pip install 'turnlock\[openai\]'"):
        ChatCompletionsModel(model="m")


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make a package look as if it were not installed."""

    def hide(name: str) -> None:
        monkeypatch.setitem(__import__("sys").modules, name, None)

    return hide
