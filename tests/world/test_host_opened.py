"""A host's file opened: its models, tools and servers, each once, and no secret is told."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from turnlock.agent import MissingClient
from turnlock.agent.speaking import Question, Said, Text, listen
from turnlock.models.errors import InvalidValue, TurnlockError
from turnlock.runtime.errors import Closed
from turnlock.runtime.tools.errors import BadToolFile
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.toolkits.mcp import McpServerError, McpServers
from turnlock.toolkits.mcp.sampling import Sample
from turnlock.world import AgentSpec, endpoint_models
from turnlock.world.endpoint_models import OWN_FIELDS, Models
from turnlock.world.host_declared import Endpoint, HostFile, Server
from turnlock.world.host_file import mcp_server, open_host_file

from ..toolkits.mcp.hosting import HERE, context, failure, play, result

KEY = "TURNLOCK_TEST_KEY"
SECRET = "0123456789abcdef0123"  # noqa: S105 - stands for one
"""What the variable of the key holds."""


@pytest.fixture(autouse=True)
def with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the variable hold a key, and the providers' own none."""
    monkeypatch.setenv(KEY, SECRET)
    monkeypatch.setenv("SSL_CERT_DIR", "/nowhere")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


MODELS = """
from turnlock.agent import Answer, Ended, Text

closed = []

class Echo:
    def __init__(self, word="echo"):
        self.word = word
    async def speak(self, question):
        yield Text(self.word)
        yield Ended(Answer(text=self.word))
    async def close(self):
        closed.append(self.word)

ready = Echo("ready")

def loud(word):
    return Echo(word.upper())

def nothing():
    return None

def broken():
    raise RuntimeError("no luck")

_hidden = Echo("hidden")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with models, tools and a host's file."""
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "tools.py").write_text(
        "from turnlock.runtime import tool\n@tool\ndef add(a: int, b: int) -> int:\n"
        '    """Add."""\n    return a + b\n'
    )
    return tmp_path


def written(folder: Path, text: str) -> Path:
    """Write the host's file."""
    path = folder / "host.toml"
    path.write_text(text)
    return path


def test_w_15_models_of_files_are_made_once_for_each_spec(folder: Path) -> None:
    """The same text and options are one model; all are closed at the end, each once."""

    async def work() -> None:
        path = written(folder, '[models]\nfiles = ["models.py"]\n')
        async with open_host_file(path) as own:
            echo = own.models(AgentSpec(model="file:Echo"))
            assert own.models(AgentSpec(model="file:Echo")) is echo
            loud = own.models(AgentSpec(model="file:loud", options={"word": "hey"}))
            assert loud is not own.models.named("file:loud", {"word": "ho"})
            ready = own.models.named("file:ready")
            ended = await listen(loud, Question(messages=(), tools=Toolbox([])))
            assert ended.answer.text == "HEY"
            closed: list[str] = sys.modules[type(ready).__module__].closed
            assert closed == []
        assert sorted(closed) == ["HEY", "HO", "echo", "ready"]
        assert own.toolboxes == ()
        with pytest.raises(Closed):
            own.models(AgentSpec(model="file:Echo"))

    play(work())


@pytest.mark.parametrize(("text", "said"), [
    ("file:nobody", "Echo, ready, loud, nothing, broken"),
    ("file:_hidden", "no Python file"),
    ("file:closed", "no Python file"),
    ("file:nothing", "has no speak and close"),
    ("file:broken", "no luck"),
    ("file:loud", "could not be made"),
    ("strange:model", "names no model of this host"),
    ("nothing", "names no model"),
    ("openai:", "names no model"),
    (":x", "names no model"),
    ("local:x\x1b[2J", ""),
])  # fmt: skip
def test_w_15_a_model_that_cannot_be_made_is_told_with_its_name(
    folder: Path, text: str, said: str
) -> None:
    """What there is instead is told; nothing in a message moves a cursor."""

    async def work() -> None:
        path = written(folder, '[models]\nfiles = ["models.py"]\n')
        async with open_host_file(path) as own:
            with pytest.raises(TurnlockError) as refused:
                own.models.named(text)
            assert said in str(refused.value)
            assert "\x1b" not in str(refused.value)

    play(work())


def test_w_15_a_key_is_read_from_its_variable_and_told_to_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The endpoint's own, or the provider's: neither stands in a repr, an error or a log."""
    caplog.set_level(logging.DEBUG)
    given: list[dict[str, Any]] = []

    def opened(spec: str, **options: Any) -> object:
        given.append({"spec": spec, **options})
        return object()

    local = Endpoint(provider="openai", key=KEY, base_url="http://x/v1", given={"timeout": 3})
    declared = HostFile(endpoints={"local": local})
    monkeypatch.setattr(endpoint_models, "open_model", opened)
    models = Models(declared)
    models.named("local:llama", {"temperature": 0, "thinking": {"a": [1]}})
    models.named("anthropic:claude")
    json.dumps(given)  # as the clients write it
    assert given == [
        {
            "spec": "openai:llama", "timeout": 3, "base_url": "http://x/v1", "api_key": SECRET,
            "extra": {"temperature": 0, "thinking": {"a": [1]}},
        },
        {"spec": "anthropic:claude"},
    ]  # fmt: skip
    monkeypatch.delenv(KEY)
    with pytest.raises(MissingClient, match=KEY) as refused:
        models.named("local:other")
    for told in (repr(declared), repr(models), str(refused.value), caplog.text):
        assert SECRET not in told


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "anthropic", "google"])
def test_w_15_each_provider_takes_what_a_file_may_say_of_it(provider: str) -> None:
    """The real clients are made; their models tell no key."""

    async def work() -> None:
        given = {"timeout": 3, "retries": 1, "streams": False}
        endpoint = Endpoint(provider=provider, key=KEY, base_url="http://127.0.0.1:9", given=given)
        models = Models(HostFile(endpoints={"mine": endpoint}))
        model = models.named("mine:m", {"temperature": 0})
        assert SECRET not in repr(model)
        assert SECRET not in repr(vars(model))
        await models.close()

    asyncio.run(work())


@pytest.mark.parametrize("name", sorted(OWN_FIELDS))
def test_w_15_no_options_replace_what_is_ours(name: str) -> None:
    """Nor make an agent ask another model than its spec says."""
    with pytest.raises(InvalidValue, match=rf"options\.{name}"):
        Models(HostFile()).named("openai:x", {name: "y"})


def test_w_15_one_host_makes_so_many_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever varies options for ever is stopped (W-9)."""
    monkeypatch.setattr(endpoint_models, "MADE", 2)

    def opened(spec: str, **options: Any) -> object:
        return spec, options

    monkeypatch.setattr(endpoint_models, "open_model", opened)
    models = Models(HostFile())
    for number in range(2):
        models.named(f"openai:{number}")
    models.named("openai:1")  # it is there
    with pytest.raises(InvalidValue, match="model 3 of this host"):
        models.named("openai:2")


def test_w_15_one_that_cannot_be_closed_keeps_none_open(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged; the others are closed."""
    closed: list[str] = []

    class Odd:
        def __init__(self, name: str) -> None:
            self.name = name

        async def speak(self, question: Question) -> AsyncIterator[Said]:
            yield Text(f"{question}")

        async def close(self) -> None:
            closed.append(self.name)
            raise ValueError(self.name)

    async def work() -> None:
        models = Models(HostFile())
        for name in "ab":
            models._made[name, ""] = Odd(name)  # pyright: ignore[reportPrivateUsage]
        await models.close()
        await models.close()

    play(work())
    assert closed == ["a", "b"]
    assert caplog.text.count("was not closed") == 2


def test_w_15_one_name_in_two_files_is_refused(folder: Path) -> None:
    """Which of them would be meant is nobody's guess."""
    (folder / "more.py").write_text(MODELS)

    async def work() -> None:
        path = written(folder, '[models]\nfiles = ["models.py", "more.py"]\n')
        with pytest.raises(InvalidValue, match=r"models\.files.*Echo is in .*models\.py"):
            async with open_host_file(path):
                pass

    play(work())


@pytest.mark.parametrize("table", ["models", "tools"])
def test_w_15_a_file_that_is_not_there_is_named(folder: Path, table: str) -> None:
    """With what it was to hold."""

    async def work() -> None:
        path = written(folder, f'[{table}]\nfiles = ["none.py"]\n')
        with pytest.raises(BadToolFile, match=rf"none\.py.*Python file with {table}"):
            async with open_host_file(path):
                pass

    play(work())


def test_w_60_tools_of_files_the_shell_and_servers_are_there(folder: Path) -> None:
    """Three kinds; the servers' are asked for each time, as their lists change."""

    async def work() -> None:
        shop = [sys.executable, str(HERE / "shop_server.py"), str(folder / "ledger")]
        path = written(
            folder,
            f'[tools]\nfiles = ["tools.py"]\n[shell]\nfolder = "."\napproval = false\n'
            f"[servers.shop]\ncommand = {shop!r}\n[servers.shop.policies.add]\napproval = false\n",
        )
        async with open_host_file(path) as own:
            files, shell, servers = own.toolboxes
            assert isinstance(files, Toolbox)
            assert isinstance(shell, Toolbox)
            assert await result(files["add"], context("add"), a=1, b=2) == 3
            ran = await result(shell["shell_cmd"], context("shell_cmd"), command="ls")
            assert "tools.py" in str(ran)
            assert callable(servers)
            assert servers("any/run/at-all") is servers("any/other/run")
            added = await result(servers("r")["shop__add"], context("shop__add"), a=1, b=2)
            assert added == 3
            assert not servers("r")["shop__add"].policy.approval
            assert servers("r")["shop__look"].policy.approval  # not trusted: its hint is no word

    play(work())


def test_w_15_secrets_of_servers_are_told_to_them_alone(caplog: pytest.LogCaptureFixture) -> None:
    """What a variable holds goes to the program and over the wire, and into no repr or log."""
    caplog.set_level(logging.DEBUG)
    near = mcp_server("near", Server(command=("x",), env=(KEY,)))
    far = mcp_server("far", Server(url="https://x", bearer=KEY, headers={"X-Shop": KEY}))
    assert near.env == {KEY: SECRET}
    assert far.headers == {"Authorization": f"Bearer {SECRET}", "X-Shop": SECRET}
    assert SECRET not in repr((near, far)) + caplog.text


UNSENDABLE = [f"{SECRET}\n", f"{SECRET}é", f"\t{SECRET}", f"{SECRET} ", f"{SECRET}\x7f"]


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "anthropic", "google"])
@pytest.mark.parametrize("value", UNSENDABLE, ids=ascii)
@pytest.mark.parametrize("own", [True, False], ids=["its own", "the endpoint's"])
def test_w_15_a_key_that_cannot_be_sent_is_told_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, provider: str, value: str, *, own: bool
) -> None:
    """The clients would repeat it in what they raise: it never comes so far."""
    variable = endpoint_models.OWN_KEYS[provider][0] if own else KEY
    monkeypatch.setenv(variable, value)
    endpoint = Endpoint(provider=provider, key=None if own else KEY)
    with pytest.raises(InvalidValue, match=variable) as refused:
        Models(HostFile(endpoints={"mine": endpoint})).named("mine:m")
    error: BaseException | None = refused.value
    while error is not None:
        assert SECRET not in repr(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("held", [None, "", "a\nb", "é"], ids=ascii)
def test_w_15_a_variable_that_holds_nothing_usable_is_named(
    monkeypatch: pytest.MonkeyPatch, held: str | None
) -> None:
    """Not set, empty, more than a line, or what no header takes: what it holds is not repeated."""
    if held is None:
        monkeypatch.delenv(KEY)
    else:
        monkeypatch.setenv(KEY, held)
    with pytest.raises(InvalidValue, match=rf"servers\.far\.bearer: the variable {KEY}") as refused:
        mcp_server("far", Server(url="https://x", bearer=KEY))
    assert "a\n" not in str(refused.value)


def test_w_63_a_server_that_does_not_start_is_named_and_all_else_is_closed(folder: Path) -> None:
    """What was opened before it is closed again."""

    async def work() -> None:
        path = written(
            folder,
            '[models]\nfiles = ["models.py"]\n[servers.shop]\ncommand = ["no-such-program"]\n',
        )
        with pytest.raises(McpServerError, match="shop"):
            async with open_host_file(path):
                pass

    play(work())


@pytest.mark.parametrize(("allowed", "said"), [
    (["shop"], "tea: deep"), ([], None),
], ids=["named", "not named"])  # fmt: skip
def test_w_68_sampling_is_off_unless_the_file_names_the_server(
    folder: Path, allowed: list[str], said: str | None
) -> None:
    """Though the host could answer: the server is told that nobody does."""
    asked: list[str] = []

    async def speak(_: Sample) -> str:
        return "deep"

    async def approve(sample: Sample) -> bool:
        asked.append(sample.server)
        return True

    async def work() -> None:
        shop = [sys.executable, str(HERE / "shop_server.py"), str(folder / "ledger")]
        path = written(
            folder, f"[servers.shop]\ncommand = {shop!r}\n[sampling]\nservers = {allowed}\n"
        )
        async with open_host_file(path, sample=speak, approve_sample=approve) as own:
            assert isinstance(own.servers, McpServers)
            ponder = own.servers.toolbox()["shop__ponder"]
            if said is None:
                await failure(ponder, topic="tea")
            else:
                assert await result(ponder, topic="tea") == said
        assert asked == allowed

    play(work())
