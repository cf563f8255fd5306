"""A host's own file: what it may say, what is refused and where, and that it tells no secret."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlock.models.errors import InvalidValue
from turnlock.runtime.tools.policy import Policy
from turnlock.world.host_declared import ENDPOINTS, HostFile, declared_by, read_host_file

SECRET = "sk-proj-" + "0123456789abcdefghij"
"""What must never be told."""

Written = Callable[[str], Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Write a host's file."""

    def write(text: str) -> Path:
        path = tmp_path / "host.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


WHOLE = """
[models]
files = ["models.py"]

[endpoints.local]
provider = "openai"
base_url = "http://127.0.0.1:9/v1"
key = "LOCAL_KEY"
timeout = 5
retries = 0
streams = false
reasonless = true

[endpoints.anthropic]
limit = 1000

[servers.shop]
command = ["python", "shop.py"]
env = ["SHOP_TOKEN"]
trusted = true
call_within = 10

[servers.shop.policies.buy]
approval = true
in_doubt = "fail"
concurrency = 2

[servers.far]
url = "https://shop.example/mcp"
bearer = "FAR_TOKEN"
headers = { "X-Shop" = "FAR_SHOP" }
asks = false
roots = ["src"]

[tools]
files = ["tools.py"]

[shell]
folder = "."
environment = ["PATH", "http_proxy"]
timeout = 3
approval = false

[sampling]
servers = ["shop"]
"""


def test_w_15_a_whole_file_is_read(written: Written, tmp_path: Path) -> None:
    """Names of variables stand where secrets would; paths are relative to the file."""
    read = read_host_file(written(WHOLE))

    assert read.model_files == (tmp_path / "models.py",)
    assert read.endpoints["local"].key == "LOCAL_KEY"
    assert read.endpoints["local"].given == {
        "timeout": 5, "retries": 0, "streams": False, "reasonless": True,
    }  # fmt: skip
    assert read.endpoints["anthropic"].provider == "anthropic"
    shop, far = read.servers["shop"], read.servers["far"]
    assert shop.trusted
    assert shop.policies == {"buy": Policy(approval=True, in_doubt="fail", concurrency=2)}
    assert shop.cwd == tmp_path
    assert not far.trusted
    assert far.roots == (tmp_path / "src",)
    assert read.shell is not None
    assert read.shell.environment == ("PATH", "http_proxy")
    assert read.sampling == {"shop"}


def test_w_15_an_empty_file_allows_nothing(written: Written) -> None:
    """No server, no program, no sampling: what is not configured is off (W-68)."""
    path = written("")
    assert read_host_file(path) == HostFile(place=str(path))


REFUSED = {
    "a strange table": ("[endpoint.a]\n", "endpoint", "is no field"),
    "a misspelt field": ('[endpoints.a]\nprovider="openai"\ntime_out=1\n', "time_out", "timeout"),
    "no provider": ('[endpoints.a]\nbase_url="http://x"\n', "endpoints.a.provider", "openai"),
    "another provider": ('[endpoints.a]\nprovider="x"\n', "endpoints.a.provider", "google"),
    "a name of ours": ('[endpoints.file]\nprovider="openai"\n', "endpoints.file", "Python files"),
    "a name in capitals": ('[endpoints.A]\nprovider="openai"\n', "endpoints.A", "lower-case"),
    "a field of others": ("[endpoints.google]\nreasonless=true\n", "google.reasonless", "timeout"),
    "no time": ("[endpoints.openai]\ntimeout=0\n", "openai.timeout", "above 0"),
    "no finite time": ("[endpoints.openai]\ntimeout=inf\n", "openai.timeout", "above 0"),
    "a flag as a number": ("[endpoints.openai]\nretries=true\n", "openai.retries", "whole number"),
    "no URL": ('[endpoints.openai]\nbase_url="x"\n', "openai.base_url", "http://"),
    "no port": ('[endpoints.openai]\nbase_url="http://x:y"\n', "openai.base_url", "http://"),
    "neither": ("[servers.a]\ntrusted=true\n", "servers.a.command", "url"),
    "both": ('[servers.a]\ncommand=["x"]\nurl="http://x"\n', "servers.a.command", "both"),
    "a command line": ('[servers.a]\ncommand="x y"\n', "servers.a.command", "list of texts"),
    "a header of a program": (
        '[servers.a]\ncommand=["x"]\nbearer="A"\n', "servers.a.bearer", "means nothing"),
    "two who you are": (
        '[servers.a]\nurl="http://x"\nbearer="A"\nheaders={authorization="B"}\n',
        "servers.a.bearer", "leave one"),
    "no header": ('[servers.a]\nurl="http://x"\nheaders={"a b"="B"}\n', "headers.a b", "HTTP"),
    "a strange policy": (
        '[servers.a]\ncommand=["x"]\npolicies.b.probe="c"\n', "policies.b.probe", "approval"),
    "a policy that asks nobody": (
        '[servers.a]\ncommand=["x"]\npolicies.b.in_doubt="probe"\n', "b.in_doubt", "retry if safe"),
    "a policy against itself": (
        '[servers.a]\ncommand=["x"]\npolicies.b.approval_timeout=1\n',
        "servers.a.policies.b.approval_timeout", "approval"),
    "no folder": ("[shell]\n", "shell.folder", "left out"),
    "an unknown server": ('[sampling]\nservers=["a"]\n', "sampling.servers", "no server"),
    "no table": ("endpoints = 1\n", "endpoints", "table"),
    "no table below": ("[endpoints]\na = 1\n", "endpoints.a", "table"),
    "an empty text": ('[models]\nfiles=[""]\n', "models.files[0]", "no text"),
    "a number": ("[models]\nfiles=[1]\n", "models.files[0]", "no text"),
    "no TOML": ("[models\n", "host.toml", "no TOML"),
    "too many endpoints": (
        "".join(f'[endpoints.e{n}]\nprovider="openai"\n' for n in range(ENDPOINTS + 1)),
        "endpoints", "100 at most"),
    "too many servers": (
        "".join(f'[servers.s{n}]\ncommand=["x"]\n' for n in range(33)), "servers", "32 at most"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "place", "said"), REFUSED.values(), ids=REFUSED)
def test_w_15_what_is_wrong_is_named_with_its_place(
    written: Written, text: str, place: str, said: str
) -> None:
    """The file, the field, what is wrong, and what would be right."""
    with pytest.raises(InvalidValue) as refused:
        read_host_file(written(text))
    assert refused.value.place.startswith(str(written(text)))
    assert place in refused.value.place
    assert said in str(refused.value)


def test_w_15_a_strange_table_is_told_all_that_there_are(written: Written) -> None:
    """Also those that this file has none of."""
    with pytest.raises(InvalidValue) as refused:
        read_host_file(written("[model]\n"))
    tables = {"models", "endpoints", "servers", "tools", "shell", "sampling"}
    assert {
        it.strip() for it in refused.value.fix.removeprefix("the fields are ").split(",")
    } == tables


SECRETS = {
    "as a key": f'[endpoints.openai]\nkey="{SECRET}"\n',
    "a key without a sign": '[endpoints.openai]\nkey="0123456789abcdef0123"\n',
    "under another name": '[endpoints.openai]\napi_key="0123456789abcdef0123"\n',
    "in a URL's user": '[endpoints.openai]\nbase_url="http://me:0123456789abcdef0123@x"\n',
    "in a URL's query": '[endpoints.openai]\nbase_url="http://x?key=0123456789abcdef0123"\n',
    "in a URL's fragment": '[endpoints.openai]\nbase_url="http://x#0123456789abcdef0123"\n',
    "as an argument": f'[servers.a]\ncommand=["x", "--key={SECRET}"]\n',
    "as a bearer": '[servers.a]\nurl="http://x"\nbearer="0123456789abcdef0123"\n',
    "as a header": '[servers.a]\nurl="http://x"\nheaders.A="Bearer 0123456789abcdef0123"\n',
    "as another header": '[servers.a]\nurl="http://x"\nheaders.X="0123456789abcdef0123"\n',
    "in env": '[servers.a]\ncommand=["x"]\nenv=["SHOP=0123456789abcdef0123"]\n',
    "in env as a table": '[servers.a]\ncommand=["x"]\nenv={SHOP="0123456789abcdef0123"}\n',
    "as a name": f'[endpoints."{SECRET}"]\nprovider="openai"\n',
    "of no field": f'[servers.a]\ncommand=["x"]\nnotes=["{SECRET}"]\n',
    "in no table": 'token="0123456789abcdef0123"\n',
}


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_w_15_a_secret_in_the_file_is_refused_and_not_repeated(
    written: Written, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Wherever it stands; the error tells the place and what to do."""
    caplog.set_level(logging.DEBUG)
    with pytest.raises(InvalidValue) as refused:
        read_host_file(written(text))
    for told in (str(refused.value), repr(refused.value), caplog.text):
        assert SECRET not in told
        assert "0123456789abcdef" not in told
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("name", ["/srv/task-runner", "sk-learn", "basic", "Bearer", "pinscher_x"])
def test_w_15_what_is_no_secret_is_taken(written: Written, name: str) -> None:
    """The negative control: not every word with such letters is a key."""
    read = read_host_file(written(f'[servers.a]\ncommand=["x", "{name}"]\n'))
    assert read.servers["a"].command == ("x", name)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    fields=st.dictionaries(
        st.sampled_from(["models", "endpoints", "servers", "tools", "shell", "sampling", "x"]),
        _JSON,
    )
)
def test_w_15_whatever_stands_there_is_read_or_refused(fields: dict[str, Any]) -> None:
    """No value of TOML makes anything but `InvalidValue`."""
    with suppress(InvalidValue):
        declared_by(fields, Path("host.toml"))


@pytest.mark.parametrize(
    "data", [b"\xff", b"[a]\n\x00", b"#" * (1 << 20) + b"\n", b"a = " + b"[" * 100_000]
)
def test_w_15_what_is_no_file_of_text_is_refused(tmp_path: Path, data: bytes) -> None:
    """Bytes, NUL, too much, too deep."""
    path = tmp_path / "host.toml"
    path.write_bytes(data)
    with pytest.raises(InvalidValue, match=r"host\.toml"):
        read_host_file(path)


@pytest.mark.parametrize("name", ["none.toml", "", "a\0b"])
def test_w_15_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    """Not there, a folder, no name at all."""
    with pytest.raises(InvalidValue):
        read_host_file(tmp_path / name if "\0" not in name else Path(name))


def test_w_15_the_file_that_the_page_shows_is_read(tmp_path: Path) -> None:
    """Whoever copies it has what it says; each table of a file is shown there."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "worlds.md").read_text("utf-8")
    shown = page.partition("```toml\n")[2].partition("```")[0]
    path = tmp_path / "host.toml"
    path.write_text(shown, "utf-8")
    read = read_host_file(path)
    assert all(
        (read.model_files, read.endpoints, read.servers, read.tool_files, read.shell, read.sampling)
    )
