"""``turnlock serve`` as a process: what it prints, whom it lets in, how it ends (F-10, S-97)."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import attrs
import httpx
import pytest

from turnlock.agent import Agent
from turnlock.server.opening import check_models
from turnlock.server.tokens import read_tokens

from .recordings import turnlock

AGENTS = '''\
"""Two agents without a model of anybody's."""

import asyncio

from turnlock.agent import Agent, Answer, Ended, Stop, ToolCall
from turnlock.runtime import tool


@tool(approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
async def linger() -> str:
    """Take long, and not end when told to."""
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            print("lingering", flush=True)


class Paying:
    def __init__(self, name, **arguments):
        self.call = ToolCall(call_id="c1", tool_name=name, arguments=arguments)

    async def speak(self, question):
        if type(question.messages[-1]).__name__ == "Results":
            yield Ended(Answer(text="Done.", stop=Stop.DONE))
        else:
            yield Ended(Answer(text="Now.", calls=(self.call,), stop=Stop.CALLS))

    async def close(self):
        pass


payer = Agent(model=Paying("pay", amount=12), tools=[pay])
idler = Agent(model=Paying("linger"), tools=[linger])
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agents.py").write_text(AGENTS)
    return tmp_path


WITHIN = 300.0
"""Seconds for what takes one, on a machine that does much else."""


@attrs.frozen
class Served:
    """A server that runs, and the lines that it prints."""

    process: subprocess.Popen[str]
    lines: Queue[str]

    def line(self, pattern: str) -> re.Match[str]:
        """Wait for a line."""
        while True:
            found = re.search(pattern, self.lines.get(timeout=WITHIN))
            if found:
                return found

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(WITHIN)


@contextmanager
def serving(
    folder: Path, *options: str, performs: Sequence[str] = ("--agent", "agents.py")
) -> Generator[Served]:
    command = [sys.executable, "-m", "turnlock", "serve", "--db", "a.db", *performs]
    process = subprocess.Popen(
        [*command, "--port", "0", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    lines: Queue[str] = Queue()
    assert process.stdout is not None
    printed = process.stdout

    def read() -> None:
        for line in printed:
            lines.put(line)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        yield Served(process, lines)
    finally:
        process.kill()
        process.wait()
        reading.join()
        printed.close()


CONSOLE = r"console  (?P<url>http://127\.0\.0\.1:\d+)/console/(#code=(?P<code>\S+))?"


def test_f_10_it_prints_a_way_in_that_is_good_once(folder: Path) -> None:
    """And keeps the token that it makes for its owner alone; the next start knows the cookie."""
    cookie = ""
    for start in range(2):
        with serving(folder) as it:
            found = it.line(CONSOLE)
            url = f"{found['url']}/v1/session"
            if start:
                assert httpx.get(url, headers={"Cookie": cookie}).json()["name"] == "local"
            first = httpx.post(url, json={"code": found["code"]})
            assert first.status_code == 200
            cookie = first.headers["set-cookie"].partition(";")[0]
            assert httpx.post(url, json={"code": found["code"]}).status_code == 401
            it.process.send_signal(signal.SIGHUP)
            again = it.line(CONSOLE)["code"]
            assert httpx.post(url, json={"code": again}).status_code == 200
            assert it.end() == 0
    for name in ("a.db.keys", "a.db.token"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600


def test_f_10_beyond_the_loopback_it_starts_with_tokens_alone(folder: Path) -> None:
    told = turnlock(
        "serve", "--db", str(folder / "a.db"), "--agent", str(folder / "agents.py"),
        "--host", "10.0.0.7",
    )  # fmt: skip
    assert told.exit_code == 2
    assert "give --tokens FILE" in told.stderr
    assert not (folder / "a.db").exists()


def test_f_10_with_a_file_each_has_a_token_of_their_own(folder: Path) -> None:
    """`turnlock token` prints it; the file that has its line is read anew."""
    tokens = folder / "tokens"
    alice = turnlock("token", "alice", "look,decide", "--tokens", str(tokens)).stdout.strip()
    with serving(folder, "--tokens", str(tokens)) as it:
        found = it.line(CONSOLE)
        assert found["code"] is None
        with httpx.Client(base_url=found["url"]) as client:
            headers = {"Authorization": f"Bearer {alice}"}
            assert client.get("/v1/session", headers=headers).json()["roles"] == ["decide", "look"]
            tokens.write_text("")
            bob = turnlock("token", "bob", "admin", "--tokens", str(tokens)).stdout.strip()
            it.line("the tokens were read anew")
            assert client.get("/v1", headers=headers).status_code == 401
            assert client.get("/v1", headers={"Authorization": f"Bearer {bob}"}).is_success
        assert it.end(signal.SIGINT) == 0
    assert not (folder / "a.db.token").exists()


def test_s_97_the_second_signal_ends_it_at_once(folder: Path) -> None:
    with serving(folder, "--drain", "1h") as it:
        found = it.line(CONSOLE)
        token = (folder / "a.db.token").read_text().strip()
        with httpx.Client(base_url=found["url"]) as client:
            body = {"run_id": "r", "agent": "idler", "prompt": {"text": "x", "message_id": "m"}}
            headers = {"Authorization": f"Bearer {token}"}
            told = client.post("/v1/runs", json=body, headers=headers)
            assert told.status_code == 201, told.text
            follow = client.stream(
                "GET", "/v1/runs/r/events", headers={**headers, "Accept": "text/event-stream"}
            )
            with follow as stream:
                lines = stream.iter_lines()
                next(line for line in lines if "TOOL_EXECUTION_STARTED" in line)
                it.process.send_signal(signal.SIGTERM)
                assert "event: bye" in list(lines)  # F-45: streams end first
            it.line("turnlock: ending")
            assert it.process.poll() is None
            assert it.end() == 128 + signal.SIGTERM


def test_a_port_that_is_taken_is_told(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with serving(folder, "--port", port) as it:
            it.line("another process listens there")
            assert it.process.wait(30) == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--agent", "none.py"), "is no file"),
        (("--agent", "agents.py:nobody"), "has no agent"),
        (("--origin", "friend.example"), "is no origin"),
        (("--origin", "https://friend.example/"), "is no origin"),
        (("--tokens", "none"), "cannot be read"),
        (("--tokens", "agents.py"), "line 1"),
        (("--keys", "agents.py"), "chmod 600"),
        (("--drain", "soon"), "is no duration"),
        (("--root", "none"), "does not exist"),
        (("--on-pending", "approve"), "is not one of"),
    ],
)
def test_what_cannot_be_used_is_told(
    folder: Path, options: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    done = turnlock("serve", "--db", "a.db", "--agent", "agents.py", "--port", "0", *options)

    assert done.exit_code == 2
    assert told in done.stderr


def test_a_token_and_its_line_are_told_apart(tmp_path: Path) -> None:
    done = turnlock("token", "alice", "look,decide")
    known = read_tokens(done.stderr, place="line")

    assert done.exit_code == 0
    assert known["alice"].roles == {"look", "decide"}
    assert done.stdout.strip() not in done.stderr
    file = tmp_path / "tokens"
    file.write_text("# people")
    assert turnlock("token", "bob", "admin", "--tokens", str(file)).exit_code == 0
    assert list(read_tokens(file.read_text(), place="file")) == ["bob"]
    again = turnlock("token", "bob", "admin", "--tokens", str(file))
    assert (again.exit_code, "line 3" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("a b", "look"), "is no name"),
        (("runtime", "look"), "nobody decided"),
        (("World", "look"), "nobody decided"),
        (("a", "sudo"), "are no roles"),
        (("a", "look", "--tokens", "/none/tokens"), "cannot be written to"),
    ],
)
def test_a_token_that_cannot_be_is_told(arguments: tuple[str, ...], told: str) -> None:
    done = turnlock("token", *arguments)

    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr


WITHOUT = """
import sys
sys.modules["starlette"] = None
from turnlock.cli.main import main
import turnlock.cli.serve, turnlock.cli.token, turnlock.agent, turnlock.runtime
assert not {"uvicorn", "cryptography", "httptools", "websockets"} & sys.modules.keys()
main(["serve", "--db", "memory:", "--agent", "agents.py"])
"""


def test_what_is_no_journal_is_wrong_usage_as_elsewhere(folder: Path) -> None:
    """As `turnlock runs` has it: a folder, and a folder that is not there."""
    for db in (str(folder), str(folder / "none" / "a.db")):
        done = turnlock("serve", "--db", db, "--port", "0")
        assert (done.exit_code, turnlock("runs", "--db", db).exit_code) == (2, 2), done.output
        assert f"journal {db}: it" in done.stderr


def test_without_its_extra_it_says_what_to_install(folder: Path) -> None:
    """And nothing of it is loaded before it is asked for."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=folder, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "pip install 'turnlock[server]'" in done.stderr


WITHOUT_A_MODEL = """
import sys
sys.modules[sys.argv[1]] = None
from turnlock.cli.main import main
main(["serve", "--db", "memory:", "--port", "0", "--agent", "named.py"])
"""


@pytest.mark.parametrize(
    ("provider", "library"),
    [("openai", "openai"), ("openai-responses", "openai"), ("anthropic", "anthropic")],
)
def test_a_model_whose_library_is_missing_is_told_before_anybody_is_served(
    tmp_path: Path, provider: str, library: str
) -> None:
    """Not at the first run, which would stay empty."""
    agent = f"from turnlock.agent import Agent\nhelper = Agent(model='{provider}:some')\n"
    (tmp_path / "named.py").write_text(agent)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_MODEL, library],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 2
    assert f"agent helper, model {provider}:some" in done.stderr
    assert f"pip install 'turnlock[{library}]'" in done.stderr
    assert "console" not in done.stdout


def test_a_model_without_a_key_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is asked of anybody: a key that is wrong shows at the first run."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    asyncio.run(check_models({"helper": Agent(model="openai:some")}))
    assert "agent helper, model openai:some: there is no key" in caplog.text
    caplog.clear()
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    asyncio.run(check_models({"helper": Agent(model="openai:some")}))
    assert caplog.text == ""


WITHOUT_A_TERMINAL = """
import sys
sys.modules["textual"] = sys.modules["httpx"] = None
import turnlock.tui.app
"""


def test_without_its_extra_the_console_in_a_terminal_names_that_one(folder: Path) -> None:
    """And not the extra of the commands on a server, which it brings along."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_TERMINAL],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 'needs Textual: pip install "turnlock[tui]"' in done.stderr
