"""What `turnlock run` passes on: models by their spec, instructions, limits, MCP servers."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from turnlock.agent import Answer, Ended, Question, Said, Stop, Text, ToolCall
from turnlock.cli.databases import facts_of_db
from turnlock.cli.run_terminal import bounds_of, value_of
from turnlock.models.errors import InvalidValue

from .recordings import ROOT, turnlock
from .sessions import played, recording

SHOP = ROOT / "tests" / "toolkits" / "mcp" / "shop_server.py"


class Noting:
    """Notes what it is asked, and asks for the same call again and again, if there is one."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    async def speak(self, question: Question) -> AsyncIterator[Said]:
        self.asked.append(question)
        if question.tools:
            call = ToolCall(call_id=None, tool_name="look", arguments={})
            yield Ended(Answer(calls=(call,), stop=Stop.CALLS))
        else:
            yield Text("so it is")
            yield Ended(Answer(text="so it is"))

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> tuple[Noting, list[tuple[str, Any]]]:
    """A model that stands for all, and by which specs it was opened."""
    model, specs = Noting(), list[tuple[str, Any]]()

    def open_model(spec: str, **options: Any) -> Noting:
        specs.append((spec, options))
        return model

    monkeypatch.setattr("turnlock.agent.providers.open_model", open_model)
    return model, specs


def test_models_go_by_their_spec_and_bare_names_are_openai(
    opened: tuple[Noting, list[tuple[str, Any]]],
) -> None:
    """A colon may be a part of a name; what is no provider is none."""
    _, specs = opened
    for given in ("gpt-5", "llama3:8b", "anthropic:claude-x", "openai-responses:gpt-5"):
        assert played("hello", "--model", given, "--base-url", "http://here").stdout == "so it is\n"
    assert specs == [
        (spec, {"base_url": "http://here"})
        for spec in (
            *("openai:gpt-5", "openai:llama3:8b"),
            *("anthropic:claude-x", "openai-responses:gpt-5"),
        )
    ]


def test_a_mistyped_provider_is_refused(
    opened: tuple[Noting, list[tuple[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is said must not go to OpenAI, with the key of that; an endpoint of one's own may."""
    _, specs = opened
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    wrong = turnlock("run", "hello", "--model", "antropic:claude-4")
    told = " ".join(wrong.output.split())
    assert (wrong.exit_code, specs) == (2, [])
    assert "'antropic' is no provider: give openai, openai-responses, anthropic, google" in told
    assert "did you mean anthropic?" in told
    monkeypatch.setenv("OPENAI_BASE_URL", "http://here")
    assert played("hello", "--model", "llama3:8b").returncode == 0
    assert specs == [("openai:llama3:8b", {"base_url": None})]


def test_no_recording_plays_into_a_conversation_unless_it_is_named(
    opened: tuple[Noting, list[tuple[str, Any]]], tmp_path: Path
) -> None:
    """Nor does it answer a prompt; refused before anything happens."""
    db = tmp_path / "a.db"
    assert opened[1] == []
    assert played("hello", "--model", "m", "--db", str(db)).returncode == 0
    before = facts_of_db(str(db), "agent")[1]
    for tools in ((), ("--tools", "example")):
        done = turnlock("run", "--db", str(db), *tools, stdin=b"")
        assert done.exit_code == 2, done.output
        assert "is a conversation with a model: give --model" in " ".join(done.output.split())
    done = turnlock("run", "Pay Ada")
    assert (done.exit_code, "give --model PROVIDER:NAME" in done.output) == (2, True)
    assert facts_of_db(str(db), "agent")[1] == before

    for _ in range(2):  # it goes on with its own
        assert played("--yes", "--db", str(db), "--run", "shipped").returncode == 0
    done = turnlock("run", "--db", str(db), "--run", "shipped", "--tools", "example", stdin=b"")
    assert done.exit_code == 2
    told = "began with the recorded conversation pydantic-ai/complex_agent_run: give --record"
    assert told in " ".join(done.output.split())


def test_instructions_are_a_text_or_a_file(
    opened: tuple[Noting, list[tuple[str, Any]]], tmp_path: Path
) -> None:
    model, _ = opened
    file = tmp_path / "instructions.txt"
    file.write_text("Be short.\nBe kind.\n")
    for given in ("Be short.", f"@{file}"):
        assert played("hello", "--model", "m", "--instructions", given).returncode == 0
    assert [it.instructions for it in model.asked] == ["Be short.", "Be short.\nBe kind."]
    wrong = turnlock("run", "hello", "--model", "m", "--instructions", "@/nowhere")
    assert wrong.exit_code == 2
    assert "/nowhere cannot be read (No such file or directory)" in wrong.output


def test_a_model_that_goes_on_and_on_is_stopped(
    opened: tuple[Noting, list[tuple[str, Any]]], tmp_path: Path
) -> None:
    """Status 1, in words, after as many answers as were allowed."""
    model, _ = opened
    tools = tmp_path / "tools.py"
    tools.write_text(
        "from turnlock.runtime import tool\n\n@tool\ndef look() -> str:\n    return 'blue'\n"
    )
    done = played("look", "--model", "m", "--tools", str(tools), "--max-answers", "3")

    assert (done.returncode, len(model.asked)) == (1, 3)
    assert "Error: " in done.stderr
    assert turnlock("run", "x", "--model", "m", "--max-answers", "0").exit_code == 2


def test_w_67_an_mcp_server_asks_at_the_terminal(tmp_path: Path) -> None:
    """Field by field, again after what does not fit."""
    call = {"id": "c1", "name": "shop__order", "args": '{"what": "tea"}'}
    talk = tmp_path / "talk.jsonl"
    told = [{"id": "c1", "status": "ok", "content": "played"}]
    talk.write_text(
        json.dumps({"conv": "talk", "turn": 0, "calls": [call], "results": told}) + "\n"
    )
    command = (
        *("--record", str(talk), "--gate", "none"),
        *("--mcp", f"shop={sys.executable} {SHOP} {tmp_path / 'ledger'}"),
    )
    answered = played(*command, stdin="a\nwhat\na\nbig\n7\nmaybe\n\n")
    assert answered.returncode == 0, answered.stderr
    assert "shop asks, for shop__order c1:\n  Which size\\x1b[1m of tea?" in answered.stderr
    assert "Size (integer)" in answered.stderr
    assert "is no JSON" in answered.stderr
    assert "gift: 'maybe' is neither yes nor no" in answered.stderr
    assert answered.stderr.count("Size (integer)") == 2  # what fitted is not asked again
    assert r"{\"size\":7,\"gift\":false}" in answered.stderr

    (did,) = (tmp_path / "ledger").read_text().splitlines()
    assert json.loads(did)["action"] == "accept"


def test_two_servers_of_one_name_are_wrong_usage() -> None:
    wrong = turnlock("run", "--mcp", "python a/server.py", "--mcp", "python b/server.py")
    assert wrong.exit_code == 2
    assert "two servers have one name" in wrong.output


def test_what_is_typed_becomes_a_value_of_the_kind_that_is_asked_for() -> None:
    assert value_of("string", "7", place="f") == "7"
    assert [value_of("boolean", it, place="f") for it in ("y", "No", "true")] == [True, False, True]
    assert value_of("integer", "7", place="f") == 7
    assert value_of("array", "a, b", place="f") == ["a", "b"]
    bounds = bounds_of({"type": "integer", "minimum": 1, "maximum": 9, "title": "Size"})
    assert [*bounds] == ["at least 1", "at most 9"]
    with pytest.raises(InvalidValue):
        value_of("number", "much", place="f")


def test_who_decides_is_told_that_a_call_cannot_run(tmp_path: Path) -> None:
    """Its arguments do not fit; they can be edited still, which is why it is asked about."""
    tools = tmp_path / "tools.py"
    tools.write_text(
        "from turnlock.runtime import tool\n\n@tool(approval=True)\n"
        "def pay(amount: int) -> str:\n    return f'paid {amount}'\n"
    )
    talk = recording(tmp_path, [("pay", {"amount": "much"}, "-"), ("pay", {"amount": 5}, "-")])
    play = ("--record", talk, "--gate", "none", "--tools", str(tools), "--db")
    done = played(*play, str(tmp_path / "a.db"), stdin='e {"amount": 7}\na\n')
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("approved as it is, it fails: arguments.amount: ") == 1
    assert "paid 7" in done.stderr
