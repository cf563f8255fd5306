"""What an agent is: every field checked, nothing secret, and read from a person's own file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.models.errors import InvalidValue
from turnlock.models.values import Json
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.world import World, spec
from turnlock.world.entries import AgentPut, body_of
from turnlock.world.spec import AgentSpec, ChatSpec, Hears, Start, read_spec_file

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
COUNT = st.integers(1, 10**9)
SPECS = st.builds(
    AgentSpec,
    model=st.tuples(TEXT.filter(lambda it: it and ":" not in it), TEXT.filter(bool)).map(":".join),
    instructions=TEXT,
    tools=st.lists(st.from_regex(r"[a-z_]{1,9}(__\*)?", fullmatch=True), unique=True, max_size=4),
    turn_limit=COUNT,
    answer_limit=COUNT,
    token_limit=st.none() | COUNT,
    auto_reply=st.booleans(),
    hears=st.sampled_from([*Hears, "all"]),
    start=st.sampled_from([*Start]),
    output=st.none() | st.just({"type": "object"}),
    history=st.none() | COUNT,
    options=st.dictionaries(st.sampled_from(["temperature", "max_tokens"]), COUNT),
)


@given(SPECS)
def test_a_spec_is_read_as_it_was_written(it: AgentSpec) -> None:
    said = it.as_json()
    assert AgentSpec.from_json(said) == it
    assert AgentSpec.from_json(said).as_json() == said
    assert None not in said.values()


def test_the_defaults_are_those_of_the_text() -> None:
    it = AgentSpec(model="openai:x")
    assert (it.instructions, it.tools, it.turn_limit, it.answer_limit) == ("", (), 5, 50)
    assert (it.token_limit, it.auto_reply, it.hears, it.start) == (None, True, "addressed", "whole")
    assert (it.output, it.history, it.options) == (None, None, {})


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"model": "openai"}, "model"),
        ({"model": ":x"}, "model"),
        ({"model": "openai:"}, "model"),
        ({"model": None}, "model"),
        ({"instructions": None}, "instructions"),
        ({"instructions": "\ud800"}, "instructions"),
        ({"tools": "look"}, "tools"),
        ({"tools": ["look", ""]}, "tools[1]"),
        ({"tools": ["*"]}, "tools[0]"),
        ({"tools": ["__*"]}, "tools[0]"),
        ({"tools": ["a*b"]}, "tools[0]"),
        ({"tools": ["look", 7]}, "tools[1]"),
        ({"tools": ["look", "look"]}, "tools"),
        ({"tools": ["x"] * (spec.TOOLS + 1)}, "tools"),
        ({"turn_limit": 0}, "turn_limit"),
        ({"turn_limit": True}, "turn_limit"),
        ({"turn_limit": 1.0}, "turn_limit"),
        ({"answer_limit": -1}, "answer_limit"),
        ({"token_limit": 0}, "token_limit"),
        ({"history": 0}, "history"),
        ({"auto_reply": 1}, "auto_reply"),
        ({"hears": "none"}, "hears"),
        ({"start": "late"}, "start"),
        ({"output": []}, "output"),
        ({"options": []}, "options"),
        ({"options": {"x": float("nan")}}, "options.x"),
        ({"tool": []}, "tool"),
        ({"Model": "a:b"}, "Model"),
        ({7: 1}, ""),
    ],
)
def test_each_field_is_checked_and_unknown_ones_are_refused_by_name(
    fields: dict[str, Any], place: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        AgentSpec.from_json({"model": "openai:x", **fields})
    assert caught.value.place == f"spec.{place}".rstrip(".")
    assert caught.value.fix


@pytest.mark.parametrize(
    ("output", "place"),
    [
        ({"type": "object", "required": 1}, "output.required"),
        ({"type": "none"}, "output.properties.value.type"),
        ({"$ref": "#/x"}, "output.$ref"),
        ({"$ref": 5}, "output.properties.value.$ref"),
        ({"$ref": "#/$defs/a", "$defs": {"a": 5}}, "output.$defs.a"),
    ],
)
def test_w_59_an_output_that_is_no_schema_is_refused_where_it_is_put(
    output: Any, place: str
) -> None:
    """Its agent could never be asked; a log that has such a spec already is read."""
    it = AgentSpec(model="openai:x", output=output)
    with pytest.raises(InvalidValue) as caught:
        it.check()
    assert caught.value.place == place
    with pytest.raises(InvalidValue) as caught:
        spec.spec_of({"agents": {"alice": it.as_json()}})
    assert caught.value.place == f"agents.alice.{place}"

    async def put() -> None:
        world = World(MemoryJournal(), "demo")
        await world.make()
        with pytest.raises(InvalidValue, match="output"):
            await world.put_agent("alice", it)
        body = body_of(AgentPut(agent="alice", spec=it))
        await world.journal.append_entry("demo", "x", body, at=1.0)
        assert (await world.configuration()).agents["alice"].spec == it

    asyncio.run(put())


@pytest.mark.parametrize("value", [None, [], "x", 7])
def test_what_is_no_object_is_no_spec(value: object) -> None:
    with pytest.raises(InvalidValue, match=r"agents\.a"):
        AgentSpec.from_json(value, place="agents.a")
    with pytest.raises(InvalidValue, match=r"spec\.model: is missing"):
        AgentSpec.from_json({})


@pytest.mark.parametrize(
    "name",
    ["api_key", "apiKey", "API_KEY", "OPENAI_API_KEY", "x-api-key", "key", "secret",
     "client_secret", "password", "authorization", "Authorization", "auth_token", "token",
     "access_key_id", "privateKey", "credentials", "api_key_variable", "bearer", "cookie"],
)  # fmt: skip
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_w_15_a_spec_holds_no_field_that_may_be_a_secret(name: str, depth: int) -> None:
    options: Any = {name: "x"}
    for _ in range(depth):
        options = {"inner": [options]}
    with pytest.raises(InvalidValue, match="names a secret") as caught:
        AgentSpec(model="openai:x", options=options)
    assert caught.value.place.endswith(f".{name}")
    assert "host's own file" in caught.value.fix


@pytest.mark.parametrize(
    "name",
    ["base_url", "baseURL", "endpoint", "api_base", "headers", "extra_headers", "proxy", "trusted"],
)
def test_w_15_a_spec_says_not_where_the_hosts_key_is_sent(name: str) -> None:
    """Else whoever may write a spec, or sends an export, gets the key of who performs it."""
    with pytest.raises(InvalidValue, match="where a model is asked"):
        AgentSpec(model="openai:x", options={name: "https://elsewhere.example"})


@pytest.mark.parametrize(
    "value",
    ["sk-" + "a" * 20, "Bearer abc", "AIza" + "b" * 35, "ghp_" + "c" * 20, "xoxb-" + "1" * 12],
)
def test_w_15_a_text_that_looks_like_a_key_is_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(InvalidValue, match="looks like a key") as caught:
        AgentSpec(model="openai:x", options={"user": [value]})
    assert value not in str(caught.value)


def test_w_15_options_of_models_are_no_secrets() -> None:
    options: dict[str, Json] = {
        "temperature": 0.2,
        "max_tokens": 100,
        "max_output_tokens": 100,
        "prompt_cache_key": "demo",
        "reasoning": {"effort": "high"},
        "logit_bias": {"50256": -100},
        "keyboard": True,
        "author": "me",
        "stop": ["\n"],
    }
    assert AgentSpec(model="openai:x", options=options).options == options


FILE = """
[world]
title = "Demo"
settings = { colour = "red" }

[agents.alice]
model = "openai:x"
instructions = '''
Be kind.
'''
tools = ["shell_cmd", "files__*"]

[agents.bob]
model = "google:y"
hears = "all"
options = { temperature = 0.5 }

[chats.plan]
members = ["alice", "bob"]
title = "The plan"

[chats.all]
"""


def test_a_file_says_what_a_world_begins_with(tmp_path: Path) -> None:
    file = tmp_path / "demo.toml"
    file.write_text(FILE)

    found = read_spec_file(file)

    assert (found.title, found.settings) == ("Demo", {"colour": "red"})
    assert [*found.agents] == ["alice", "bob"]
    assert found.agents["alice"].tools == ("shell_cmd", "files__*")
    assert found.agents["alice"].instructions == "Be kind.\n"
    assert found.agents["bob"].hears is Hears.ALL
    assert found.chats == {
        "plan": ChatSpec(title="The plan", members=("alice", "bob")),
        "all": ChatSpec(),
    }


def test_an_empty_file_is_a_world_of_nobody(tmp_path: Path) -> None:
    file = tmp_path / "none.toml"
    file.write_text("")
    assert read_spec_file(str(file)) == spec.WorldSpec()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[world]\ntitel = 1", "world.titel"),
        ("[world]\ntitle = 1", "world.title"),
        ("[world]\nsettings = [1]", "world.settings"),
        ("[world]\nsettings = {a = 2020-01-01}", "world.settings.a"),
        ("world = 1", "world"),
        ("[worlds]", "worlds"),
        ("[agents.alice]", "agents.alice.model"),
        ("[agents.alice]\nmodel = 'a:b'\ntool = []", "agents.alice.tool"),
        (
            "[agents.alice]\nmodel = 'a:b'\noptions = {api_key = 'x'}",
            "agents.alice.options.api_key",
        ),
        ("[agents]\nalice = 1", "agents.alice"),
        ("[agents.Alice]\nmodel = 'a:b'", "agents.Alice"),
        ("[agents.human]\nmodel = 'a:b'", "agents.human"),
        (f"[world]\ntitle = '{'x' * 101}'", "world.title"),
        (f"[chats.plan]\ntitle = '{'x' * 101}'", "chats.plan.title"),
        ("[chats.Plan]", "chats.Plan"),
        ("[chats.plan]\nmember = []", "chats.plan.member"),
        ("[chats.plan]\nmembers = ['bob']", "chats.plan.members[0]"),
        ("[agents.a]\nmodel='a:b'\n[chats.plan]\nmembers = ['a', 'a']", "chats.plan.members[1]"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_by_file_and_field(
    text: str, place: str, tmp_path: Path
) -> None:
    file = tmp_path / "demo.toml"
    file.write_text(text)
    with pytest.raises(InvalidValue) as caught:
        read_spec_file(file)
    assert caught.value.place == f"{file}: {place}"
    assert caught.value.fix


@pytest.mark.parametrize("text", [b"[", b"\xff", b"a = 1\na = 2"])
def test_what_is_no_toml_is_told_by_file(text: bytes, tmp_path: Path) -> None:
    file = tmp_path / "demo.toml"
    file.write_bytes(text)
    with pytest.raises(InvalidValue) as caught:
        read_spec_file(file)
    assert caught.value.place == f"{file}"
    with pytest.raises(InvalidValue, match="cannot be read"):
        read_spec_file(tmp_path / "missing.toml")
