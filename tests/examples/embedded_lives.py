"""Lives of examples/embedded_host.py, each killed at another point; run as a script, one thread.

    python embedded_lives.py FOLDER [deaf]

For n = 1, 2, …: a process performs one turn and is killed with SIGKILL at the n-th point that it
comes to: before each SQL statement of its journal, in the tool before and after what it does, in
`tell`. Then another process goes on to the end. It stops at the first n that is never reached. A
line of JSON is printed for each n. `deaf` takes the Lose out of the recovery, which is the control:
then it stops at the first n after which the turn stays open, if there is one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

import turnlock as tl

ROOT: Final = Path(__file__).resolve().parents[2]
RUN: Final = tl.Run(run_id="r1")
TIMEOUT: Final = 60.0
"""Seconds that a life may take before it counts as stuck …"""
DEAF_PATIENCE: Final = 1.5
"""… and where it is expected to."""
STUCK: Final = 3


def load_host() -> Any:
    """The example, imported from its file."""
    spec = importlib.util.spec_from_file_location(
        "embedded_host", ROOT / "examples/embedded_host.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Life:
    """What one process does; it dies at the point with this number."""

    def __init__(self, folder: Path, dies_at: int, patience: float) -> None:
        self.folder = folder
        self.dies_at = dies_at
        self.patience = patience
        self.points = 0

    def point(self, _: str) -> None:
        """Come to a point."""
        self.points += 1
        if self.points == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def note(self, file: str, what: str) -> None:
        """Write a line, durably."""
        with (self.folder / file).open("a") as notes:
            notes.write(what + "\n")
            notes.flush()
            os.fsync(notes.fileno())

    def tool(self, execute: tl.Execute) -> str:
        """Pay, or look something up."""
        name = execute.tool_name
        self.note("begun", name)
        self.point("in the tool, before")
        self.note("done", name)
        self.point("in the tool, after")
        return f"{name} done"

    def tell(self, told: tl.Continue) -> None:
        """Hear the results."""
        self.note("told", json.dumps([told.effect_id, *(str(it.status) for it in told.results)]))
        self.point("told")

    def live(self, host_of: Callable[..., Any]) -> NoReturn:
        """Do all there is to do in this turn, again if it was done already, and end."""
        host = host_of(str(self.folder / "run.db"), RUN, self.tool, self.tell)
        free = tl.Call(
            invocation_id="look", tool_name="look", arguments={}, requires_approval=False
        )
        gated = tl.Call(
            invocation_id="pay", tool_name="pay", arguments={"amount": 5}, requires_approval=True
        )
        host.send(tl.OpenTurn(turn_id="t1", calls=(free, gated), epoch=1))
        host.send(tl.Decide(turn_id="t1", invocation_id="pay", approved=True))
        give_up = time.monotonic() + self.patience
        while time.monotonic() < give_up:
            facts = self.facts(host)
            if any(isinstance(fact, tl.ContinuationTaken) for fact in facts):
                os._exit(0)
            for fact in facts:
                if isinstance(fact, tl.ExecutionInDoubt):
                    self.resolve(host, fact)
            time.sleep(0.005)
        os._exit(STUCK)

    def resolve(self, host: Any, doubt: tl.ExecutionInDoubt) -> None:
        """Answer a doubt as a person would who looks where the tool leaves its traces."""
        at: dict[str, Any] = {"turn_id": doubt.turn_id, "invocation_id": doubt.invocation_id}
        at["attempt"] = doubt.attempt
        done = self.folder / "done"
        if done.exists() and doubt.invocation_id in done.read_text().split():
            answer = tl.Resolve(**at, resolution=tl.Resolution.RESULT, result="found")
        else:
            answer = tl.Resolve(**at, resolution=tl.Resolution.RETRY)
        host.send(answer)

    def facts(self, host: Any) -> list[tl.Fact]:
        """All facts that are kept, read beside the host's threads."""
        with host.lock:
            rows = host.db.execute("SELECT fact FROM log ORDER BY id").fetchall()
        return [tl.fact_from_json(fact) for (fact,) in rows]


def lived(folder: Path, dies_at: int, *, deaf: bool) -> int:
    """Live once in a process of its own; return how it ended, as `os.waitstatus_to_exitcode`."""
    process = os.fork()
    if process == 0:
        life = Life(folder, dies_at, DEAF_PATIENCE if deaf else TIMEOUT)
        connect = sqlite3.connect

        def connected(path: str, *, check_same_thread: bool) -> sqlite3.Connection:
            opened = connect(path, check_same_thread=check_same_thread)
            opened.set_trace_callback(life.point)
            return opened

        module = load_host()
        if dies_at:
            module.sqlite3.connect = connected
        if deaf:
            module.tl.ToolExecutionStarted = module.tl.ExecutionRetried = type("Never", (), {})
        life.live(module.Host)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def lines_of(path: Path) -> list[str]:
    """The lines of a file, which need not be there."""
    return path.read_text().splitlines() if path.exists() else []


def main(folder: Path, *, deaf: bool) -> None:
    """Live, be killed, live again; until nothing is left to be killed at."""
    dies_at = 0
    first, second = -signal.SIGKILL, 0
    while first == -signal.SIGKILL and not second:
        dies_at += 1
        place = folder / str(dies_at)
        place.mkdir(parents=True)
        first = lived(place, dies_at, deaf=deaf)
        second = lived(place, 0, deaf=deaf)
        with sqlite3.connect(place / "run.db") as db:
            facts = [row[0].decode() for row in db.execute("SELECT fact FROM log ORDER BY id")]
        print(
            json.dumps(
                {
                    "dies_at": dies_at,
                    "first": first,
                    "second": second,
                    "facts": facts,
                    "begun": lines_of(place / "begun"),
                    "done": lines_of(place / "done"),
                    "told": [json.loads(line) for line in lines_of(place / "told")],
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), deaf="deaf" in sys.argv[2:])
