"""``turnlock serve --runtime codex`` as a process, with Codex as it was recorded below it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest

from turnlock import FactType
from turnlock.cli.databases import facts_of_db

from .codexes import executable, logged
from .recordings import turnlock
from .test_serve import CONSOLE, Served, serving


@attrs.frozen
class Client:
    """Who asks the server."""

    http: httpx.Client
    served: Served

    def ask(self, method: str, place: str, **body: Any) -> tuple[int, Any]:
        """Ask, and return the status and what it says."""
        answer = self.http.request(method, f"/v1/{place}", json=body or None)
        return answer.status_code, answer.json()

    def until(self, run_id: str, said: str) -> None:
        """Follow a run until this is said in it."""
        headers = {"Accept": "text/event-stream"}
        with self.http.stream("GET", f"/v1/runs/{run_id}/events", headers=headers) as stream:
            assert any(said in line for line in stream.iter_lines())

    def call(self, run_id: str) -> dict[str, Any]:
        """Return the one call of the open turn."""
        (call,) = self.ask("GET", f"runs/{run_id}")[1]["turn"]["calls"]
        told: dict[str, Any] = call
        return told


@contextmanager
def asking(folder: Path, *options: str, codex: Path | str) -> Generator[Client]:
    """Serve Codex runs below a folder, and ask as who may do everything."""
    performs = ("--runtime", "codex", "--codex", str(codex), "--root", str(folder))
    with serving(folder, *options, performs=performs) as served:
        url = served.line(CONSOLE)["url"]
        token = (folder / "a.db.token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=30) as http:
            yield Client(http, served)


def said(folder: Path) -> list[str]:
    """What Codex was told: the methods of requests, and the answers to its own."""
    heard = [it["message"] for it in logged(folder / "log") if it["event"] == "heard"]
    told = [it.get("method") or it["result"]["decision"] for it in heard]
    return [it for it in told if it not in {"initialize", "initialized"} and "list" not in it]


def prompt(text: str, message_id: str = "m1") -> dict[str, str]:
    return {"text": text, "message_id": message_id}


def until_gone(pid: int) -> None:
    """Wait until a process has ended: it dies with its server (S-48)."""
    with suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            time.sleep(0.01)


def test_s_51_a_codex_run_is_created_decided_and_shown_over_http(tmp_path: Path) -> None:
    """What a client asks for is stricter than the owner's; an edit is refused; it says which kind.

    And the journal that it leaves conforms.
    """
    codex = executable(tmp_path, "raw_accept")
    work = str(tmp_path / "work")
    with asking(tmp_path, codex=codex) as it:
        (models,) = it.ask("GET", "models")[1]["models"]
        assert (models["kind"], models["unavailable"]) == ("codex", False)
        for field, value in (("sandbox", "danger-full-access"), ("cwd", "/"), ("agent", "x")):
            status, told = it.ask("POST", "runs", run_id="r", **{field: value})
            assert (status, told["at"]) == (422, field)
        status, made = it.ask("POST", "runs", run_id="r", cwd=work, prompt=prompt("go"))
        assert (status, made.get("kind")) == (201, "codex"), made
        assert made["capabilities"]["edit_arguments"] is False
        it.until("r", "TOOL_APPROVAL_REQUESTED")
        call = it.call("r")
        assert (call["tool_name"], call["allowed"]) == ("command", ["approve", "deny"])

        decision = {key: call[key] for key in ("turn_id", "invocation_id", "arguments_digest")}
        edited = it.ask("POST", "runs/r/decisions", **decision, approved=True, arguments={})
        assert (edited[0], edited[1]["title"]) == (409, "capability_unsupported")
        assert "accept" not in said(tmp_path)
        assert it.ask("POST", "runs/r/decisions", **decision, approved=True)[0] == 200
        it.until("r", "CONTINUATION_TAKEN")
        it.until("r", '"done"')
        assert it.served.end() == 0

    start, turn, answer = [it for it in said(tmp_path) if it != "thread/read"]
    assert (start, turn, answer) == ("thread/start", "turn/start", "accept")
    types = [fact.type for fact in facts_of_db(str(tmp_path / "a.db"), "r")[1]]
    assert types.count(FactType.TOOL_EXECUTION_STARTED) == 1
    assert turnlock("check", "--db", str(tmp_path / "a.db")).exit_code == 0


def test_s_26_the_server_killed_before_anybody_has_decided(tmp_path: Path) -> None:
    """What it asked about was never started; the next prompt has the thread go on."""
    codex = executable(tmp_path, "raw_kill_pending_resume", "--wait-after", f"25:{tmp_path}/never")
    work = str(tmp_path / "work")
    with asking(tmp_path, codex=codex) as it:
        assert it.ask("POST", "runs", run_id="r", cwd=work, prompt=prompt("go"))[0] == 201
        it.until("r", "TOOL_APPROVAL_REQUESTED")
        before = it.call("r")
        it.served.end(signal.SIGKILL)
    (pid,) = [it["pid"] for it in logged(tmp_path / "log") if it["event"] == "starts"]
    until_gone(pid)

    with asking(tmp_path, codex=codex) as it:
        assert it.ask("GET", "runs/r")[1]["session"] == "inactive"
        status, told = it.ask("POST", "runs/r/prompts", **prompt("again", "m2"))
        assert (status, told.get("restored")) == (202, True), told
        it.until("r", "never started")
        it.until("r", '"done"')
        assert it.served.end() == 0
    assert before["waits"] == "approval"
    assert "accept" not in said(tmp_path)
    types = [fact.type for fact in facts_of_db(str(tmp_path / "a.db"), "r")[1]]
    assert FactType.TOOL_EXECUTION_STARTED not in types


def test_s_85_without_the_executable_the_server_starts_and_says_so(tmp_path: Path) -> None:
    with asking(tmp_path, codex=tmp_path / "nowhere") as it:
        (models,) = it.ask("GET", "models")[1]["models"]
        assert models["unavailable"]
        assert "cannot be started" in models["detail"]
        status, told = it.ask("POST", "runs", run_id="r", cwd=str(tmp_path))
        assert (status, told["title"]) == (503, "runtime_unavailable")
        assert "cannot be started" in told["detail"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--runtime", "codex"), "needs --root FOLDER"),
        (("--sandbox", "read-only", "--agent", "agents.py"), "--sandbox is of --runtime codex"),
        (("--runtime", "codex", "--root", ".", "--sandbox", "none"), "is not one of"),
        (("--runtime", "codex", "--root", ".", "--kind-default", "own"), "is not performed here"),
        (
            ("--headless",),
            "which is nothing; leave it out, or give --agent, --runtime codex, --world or --mcp",
        ),
    ],
)
def test_what_cannot_be_used_is_told(
    tmp_path: Path, options: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agents.py").write_text(
        "from turnlock.agent import Agent\nhelper = Agent(model='openai:some')\n"
    )
    done = turnlock("serve", "--db", "a.db", "--port", "0", *options)

    assert done.exit_code == 2
    assert told in done.stderr
