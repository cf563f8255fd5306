"""``turnlock serve --world`` as a process: members answer, wait, and go on after a kill (W-36)."""

from __future__ import annotations

import json
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from .recordings import turnlock
from .test_serve import AGENTS, CONSOLE, Served, serving

MODELS = '''\
"""A model that pays when it is asked to, and then says that it is done."""

from turnlock.agent import Answer, Ended, Stop, ToolCall


class Paying:
    async def speak(self, question):
        if type(question.messages[-1]).__name__ == "Results":
            yield Ended(Answer(text="Done.", stop=Stop.DONE))
        else:
            call = ToolCall(call_id="c1", tool_name="pay", arguments={"to": "ada"})
            yield Ended(Answer(text="Now.", calls=(call,), stop=Stop.CALLS))

    async def close(self):
        pass


paying = Paying()
'''
TOOLS = '''\
"""Pays into a file."""

from turnlock.runtime import tool


@tool(approval=True)
async def pay(to: str) -> str:
    """Pay somebody."""
    with open("paid", "a") as file:
        print(to, file=file)
    return f"paid {to}"
'''
HOST = """\
[models]
files = ["models.py"]

[tools]
files = ["tools.py"]
"""
PERFORMS = ("--world", "demo", "--host-file", "host.toml")
CHAT = "/v1/worlds/demo/chats/plan"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A world with an agent that pays, and what its host has."""
    for name, text in {"models.py": MODELS, "tools.py": TOOLS, "host.toml": HOST}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def client(folder: Path, it: Served) -> Generator[httpx.Client]:
    """A client with the token of whoever started the server."""
    url = it.line(CONSOLE)["url"]
    token = (folder / "a.db.token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=30) as made:
        yield made


def until(client: httpx.Client, **wanted: Any) -> dict[str, Any]:
    """Follow the chat until an event has these fields."""
    headers = {"Accept": "text/event-stream"}
    with client.stream("GET", f"{CHAT}/events", headers=headers) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                told: dict[str, Any] = json.loads(line.removeprefix("data: "))
                if wanted.items() <= told.items():
                    return told
    raise AssertionError(wanted)


def make(client: httpx.Client) -> None:
    """The world's agent and chat, over HTTP."""
    spec = {"model": "file:paying", "tools": ["pay"]}
    assert client.put("/v1/worlds/demo/agents/alice", json=spec).status_code == 201
    assert client.post("/v1/worlds/demo/chats", json={"chat": "plan"}).status_code == 201


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_request_waits_for_the_next_server(folder: Path, number: int) -> None:
    """Asked for under one server, decided with none or with the next; it runs once."""
    assert turnlock("world", "new", "demo", "--db", "a.db").exit_code == 0
    with serving(folder, performs=PERFORMS) as it, client(folder, it) as ada:
        make(ada)
        said = ada.post(f"{CHAT}/messages", json={"message_id": "m1", "text": "pay ada"})
        assert said.status_code == 201
        request = until(ada, role="request")
        status = it.end(number)
        assert status == (0 if number == signal.SIGTERM else -number)
    body = {
        "request_id": request["id"],
        "approved": True,
        "arguments_digest": request["asks"]["arguments_digest"],
    }
    with serving(folder, performs=PERFORMS) as it, client(folder, it) as ada:
        assert [each["id"] for each in ada.get(CHAT).json()["requests"]] == [request["id"]]
        assert ada.post(f"{CHAT}/decisions", json=body).json()["accepted"] is True
        until(ada, role="tool")
        until(ada, type="entry", number=2)
        assert it.end() == 0
    assert (folder / "paid").read_text() == "ada\n"


def test_without_a_world_it_publishes_and_shows(folder: Path) -> None:
    """Two servers on one file: who says it to the one is answered by the other's member."""
    assert turnlock("world", "new", "demo", "--db", "a.db").exit_code == 0
    (folder / "agents.py").write_text(AGENTS)
    with (
        serving(folder, performs=PERFORMS) as performs,
        serving(folder, performs=("--agent", "agents.py")) as other,
        client(folder, performs) as near,
        client(folder, other) as far,
    ):
        make(far)
        said = far.post(f"{CHAT}/messages", json={"message_id": "m1", "text": "pay ada"})
        assert said.status_code == 201
        request = until(far, role="request")
        deny = {"request_id": request["id"], "approved": False, "reason": "no"}
        assert far.post(f"{CHAT}/decisions", json=deny).json()["accepted"] is True
        until(near, role="tool", status="denied")
        assert performs.end() == 0
        assert other.end() == 0
    assert not (folder / "paid").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--world", "none"), "there is no world 'none'"),
        (("--world", "Demo"), "is no id"),
        (("--world", "demo", "--host-file", "none.toml"), "none.toml"),
        (("--world", "demo", "--host-file", "models.py"), "models.py"),
        (("--runtime", "codex", "--root", ".", "--host-file", "host.toml"), "name a world"),
    ],
)
def test_what_cannot_be_performed_is_told(
    folder: Path, options: tuple[str, ...], told: str
) -> None:
    assert turnlock("world", "new", "demo", "--db", "a.db").exit_code == 0
    done = turnlock("serve", "--db", "a.db", "--port", "0", *options)

    assert done.exit_code == 2
    assert told in done.stderr
    assert "console" not in done.stdout
