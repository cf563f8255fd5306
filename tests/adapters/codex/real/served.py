"""`turnlock serve --runtime codex` as a process, with the real Codex below it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx

from turnlock.models.fact import Fact
from turnlock.runtime.journal.ledger import Domain
from turnlock.runtime.journal.sqlite import SqliteJournal

from .conftest import Room
from .homes import environment
from .raw import descendants

PATIENCE: Final = 60.0
KILLING: Final = Path(__file__).with_name("killing_serve.py")
LOST: Final = (httpx.TransportError, httpx.StreamError)
RUN: Final = "run"
QUIET: Final = frozenset({"idle", "interrupted"})
"""What a run says in which nothing is open."""


class Served:
    """One server at a time on one journal and one port, in a room."""

    def __init__(self, room: Room, *options: str) -> None:
        self.room = room
        self._options = options
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port: int = free.getsockname()[1]
        self.journal = room.place / "runs.db"
        self._errors = room.place / "stderr"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *, killed_at: str | None = None) -> None:
        """Begin to serve; one that is killed at a point does that by itself."""
        program = ["-m", "turnlock"] if killed_at is None else [str(KILLING), killed_at]
        with (self.room.place / "stdout").open("a") as out, self._errors.open("a") as err:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, *program, "serve", "--db", str(self.journal)),
                    *("--runtime", "codex", "--codex", self.room.codex.binary),
                    *("--root", str(self.room.workspace), "--port", str(self._port)),
                    *self._options,
                ],
                env=os.environ | environment(self.room.home),
                stdout=out,
                stderr=err,
            )
        self._until_it_answers()

    @property
    def errors(self) -> str:
        """What it wrote to standard error, but for who asked what."""
        lines = self._errors.read_text(encoding="utf-8").splitlines()
        return "\n".join(line for line in lines if ".access: " not in line)

    def _until_it_answers(self) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(*LOST):
                if httpx.get(f"http://127.0.0.1:{self._port}/readyz").status_code == 200:
                    return
            assert self.process is not None
            assert self.process.poll() is None, self.errors
            time.sleep(0.02)
        raise AssertionError(f"no answer: {self.errors}")

    @property
    def codexes(self) -> list[int]:
        """The processes below it, as far as they are found."""
        return [] if self.process is None else list(descendants(self.process.pid))

    def until_killed(self) -> None:
        """Wait for the point at which it kills itself, and until what was below it is gone."""
        assert self.process is not None
        below = self.codexes
        assert self.process.wait(PATIENCE) == -signal.SIGKILL, self.errors
        until_gone(below)

    def kill(self) -> None:
        """Kill it, now; return once what was below it is gone."""
        assert self.process is not None
        below = self.codexes
        self.process.kill()
        self.process.wait(PATIENCE)
        until_gone(below)

    def end(self) -> int:
        """Tell it to end; return with what it did."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(PATIENCE)

    # Asking

    def ask(self, method: str, place: str, body: dict[str, Any] | None = None) -> httpx.Response:
        """Ask once."""
        token = self.journal.with_name("runs.db.token").read_text().strip()
        return httpx.request(
            method,
            f"http://127.0.0.1:{self._port}{place}",
            json=body,
            headers={"Authorization": f"Bearer {token}"},
            timeout=PATIENCE,
        )

    def did(self, place: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask for something that is done, whoever owned the run a moment ago."""
        end = time.monotonic() + PATIENCE
        while True:
            answer = self.ask("POST", f"/v1/runs{place}", {} if body is None else body)
            told: dict[str, Any] = answer.json()
            if answer.is_success:
                return told
            assert told.get("title") == "owned_elsewhere", answer.text
            assert time.monotonic() < end, answer.text
            time.sleep(0.05)

    def create(self, prompt: str = "go") -> None:
        """Create the run, and say something to it."""
        self.did("", {"run_id": RUN, "kind": "codex"})
        self.prompt(prompt)

    def prompt(self, text: str, **more: Any) -> dict[str, Any]:
        """Say something to the run."""
        return self.did(f"/{RUN}/prompts", {"text": text, "message_id": f"m-{text}", **more})

    def talk(self, text: str, **more: Any) -> dict[str, Any]:
        """Say something, and wait until the model has said something, and nothing is open."""
        before = len(self.said())
        told = self.prompt(text, **more)
        self.until(lambda _: len(self.said()) > before)
        self.quiet()
        return told

    def view(self, run_id: str = RUN) -> dict[str, Any]:
        """The run, as it stands."""
        told: dict[str, Any] = self.ask("GET", f"/v1/runs/{quoted(run_id)}").json()
        return told

    def until(
        self, what: Callable[[dict[str, Any]], Any], *, run_id: str = RUN, seconds: float = PATIENCE
    ) -> Any:
        """Wait until the view of the run is so; return what that says."""
        end = time.monotonic() + seconds
        while True:
            view = self.view(run_id)
            if found := what(view):
                return found
            assert time.monotonic() < end, f"{view}\n{self.errors}"
            time.sleep(0.02)

    def asked(self, count: int = 1, *, run_id: str = RUN) -> list[dict[str, Any]]:
        """Wait until so many calls wait for a decision; return them."""

        def waiting(view: dict[str, Any]) -> list[dict[str, Any]]:
            found = [call for call in calls_in(view) if "approve" in call["allowed"]]
            return found if len(found) >= count else []

        found: list[dict[str, Any]] = self.until(waiting, run_id=run_id)
        return found

    def decide(
        self, call: dict[str, Any], approved: bool, *, run_id: str = RUN, **more: Any
    ) -> httpx.Response:
        """Decide about a call, once."""
        body = {name: call[name] for name in ("turn_id", "invocation_id", "arguments_digest")}
        place = f"/v1/runs/{quoted(run_id)}/decisions"
        return self.ask("POST", place, body | {"approved": approved} | more)

    def quiet(self, run_id: str = RUN) -> dict[str, Any]:
        """Wait until nothing is open in the run; return its view."""
        view: dict[str, Any] = self.until(
            lambda it: it if it["status"] in QUIET and not it["owed"] else None,
            run_id=run_id,
        )
        return view

    # What is kept

    def facts(self, run_id: str = RUN) -> list[Fact]:
        """The facts of the run, from the file."""

        async def read() -> list[Fact]:
            async with await SqliteJournal.open(self.journal, create=False) as journal:
                return [fact async for fact in journal.facts(run_id)]

        return asyncio.run(read())

    def said(self, run_id: str = RUN) -> list[str]:
        """What the model has said in the run, from the file."""

        async def read() -> list[str]:
            async with await SqliteJournal.open(self.journal, create=False) as journal:
                notes = await journal.notes(run_id, domain=Domain.MESSAGE)
                return [str(it.note.body["text"]) for it in notes if it.note.kind == "assistant"]

        return asyncio.run(read())

    def kept(self, *kinds: type[Fact], run_id: str = RUN) -> list[str]:
        """The names of its facts, or of those of these kinds."""
        return [
            type(fact).__name__
            for fact in self.facts(run_id)
            if not kinds or isinstance(fact, kinds)
        ]


def calls_in(view: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of the open turn of a run."""
    turn: dict[str, Any] = view.get("turn") or {}
    calls: list[dict[str, Any]] = turn.get("calls", [])
    return calls


def quoted(run_id: str) -> str:
    """A run's id, as a path has it."""
    return run_id.replace("/", "%2F")


def until_gone(processes: list[int]) -> None:
    """Wait until these have ended, the commands of a killed Codex among them."""
    end = time.monotonic() + PATIENCE
    while living := [pid for pid in processes if lives(pid)]:
        assert time.monotonic() < end, f"they live on: {[shown(pid) for pid in living]}"
        time.sleep(0.01)


def shown(pid: int) -> str:
    """What a process is, for a person."""
    told = [f"{pid}"]
    for name in ("cmdline", "stat", "wchan"):
        with suppress(OSError):
            text = Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8", errors="replace")
            told.append(text.replace("\0", " "))
    return "; ".join(told)


def lives(pid: int) -> bool:
    """Whether a process is there, and no zombie that nobody has asked for."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@contextmanager
def serving(room: Room, *options: str, killed_at: str | None = None) -> Generator[Served]:
    """A server in a room, killed at the end if it lives."""
    served = Served(room, *options)
    try:
        served.start(killed_at=killed_at)
        yield served
    finally:
        if served.process is not None and served.process.poll() is None:
            served.kill()
