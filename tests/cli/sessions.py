"""How the tests of `turnlock run` start the command, answer it, and look at its journal."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pyte

from turnlock import FactType
from turnlock.cli.databases import facts_of_db

from .recordings import ROOT, turnlock

ROWS = 60
"""Of a terminal."""
TIMEOUT = 120.0
"""Seconds that a test waits at most for what must happen."""
END_OF_INPUT = "\x04"
AGAIN = 5.0
"""Seconds after which it is typed again."""

TOOLS = '''
import os, time
from pathlib import Path
from turnlock.runtime import tool, ToolContext

@tool
def slow(context: ToolContext, seconds: float = 60.0) -> str:
    """Takes its time, unless it is asked to stop."""
    until = time.monotonic() + seconds
    Path("slow-runs").open("a").write(f"{context.attempt}\\n")
    while time.monotonic() < until:
        context.raise_if_cancelled()
        time.sleep(0.01)
    return "at last"
'''


def recording(folder: Path, *turns: Sequence[tuple[str, Mapping[str, Any], str]]) -> str:
    """A recorded conversation: for each turn its calls, as tool, arguments and result."""
    lines: list[str] = []
    for number, calls in enumerate(turns):
        asked = [
            {"id": f"c{number}-{place}", "name": name, "args": json.dumps(arguments)}
            for place, (name, arguments, _) in enumerate(calls)
        ]
        told = [
            {"id": call["id"], "status": "denied" if "denied" in content else "ok",
             "content": content}
            for call, (_, _, content) in zip(asked, calls, strict=True)
        ]  # fmt: skip
        lines.append(json.dumps({"conv": "talk", "turn": number, "calls": asked, "results": told}))
    file = folder / "talk.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


@attrs.define
class Session:
    """A `turnlock run` under way, its standard streams on a terminal or in pipes."""

    process: subprocess.Popen[bytes]
    keyboard: int
    columns: int = 100
    shown: bytearray = attrs.field(factory=bytearray)
    _screen: Any = None
    _stream: Any = None
    _typed: str = ""
    _drawn: int = 0
    """How much of it stands on the screen."""

    def says(self, text: str) -> None:
        """Wait until this is shown."""
        self.until(lambda: text.encode() in self.shown, text)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + TIMEOUT
        while not holds():
            assert time.monotonic() < deadline, f"{what!r} did not come: {self.shown.decode()}"
            time.sleep(0.01)

    def type(self, line: str, *, end: str = "\n") -> None:
        """Type a line, or without its end what is to become one."""
        self._typed = line
        os.write(self.keyboard, f"{line}{end}".encode())

    def display(self) -> list[str]:
        """What stands on the terminal now, without the empty lines."""
        if self._stream is None:
            self._screen = pyte.Screen(self.columns, ROWS)
            self._stream = pyte.ByteStream(self._screen)
        new = bytes(self.shown[self._drawn :])
        self._stream.feed(new)
        self._drawn += len(new)
        return [line.rstrip() for line in self._screen.display if line.strip()]

    def stands(self, *lines: str) -> None:
        """Wait until these are the last lines on the terminal."""
        self.until(lambda: self.display()[-len(lines) :] == list(lines), "\n".join(lines))

    def ends(self) -> int:
        """Wait for the end, and return the status.

        An end of input that was typed while the terminal changed hands is lost, so somebody who
        typed it types it again.
        """
        deadline = time.monotonic() + TIMEOUT
        while self.process.poll() is None and time.monotonic() < deadline:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(AGAIN)
            if self._typed == END_OF_INPUT and self.process.poll() is None:
                self.type(END_OF_INPUT, end="")
        status = self.process.wait(1.0)
        os.close(self.keyboard)
        return status


def on_terminal(
    *arguments: str,
    cwd: Path,
    program: Sequence[str] = ("-m", "turnlock", "run"),
    columns: int = 100,
    **env: str,
) -> Session:
    """Start ``turnlock run``, or another program, with its standard streams on a terminal."""
    keyboard, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (ROWS, columns))
    process = subprocess.Popen(
        [sys.executable, *program, *arguments],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=cwd,
        env=_environment() | {"TERM": "xterm"} | env,
        start_new_session=True,
    )
    os.close(terminal)
    session = Session(process, keyboard, columns)
    mine = os.dup(keyboard)  # a number that is given to nobody else while it is read
    threading.Thread(target=_read, args=(session, mine), daemon=True).start()
    return session


def _read(session: Session, terminal: int) -> None:
    try:
        while True:
            session.shown += os.read(terminal, 65_536)
    except OSError:  # the other side is closed
        os.close(terminal)


def in_pipes(*arguments: str, cwd: Path, stdin: str | None = "", **env: str) -> Any:
    """Run ``turnlock run`` to its end, its streams in pipes."""
    return subprocess.run(
        [sys.executable, "-m", "turnlock", "run", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=_environment() | env,
        timeout=TIMEOUT,
        check=False,
    )


@attrs.frozen
class Played:
    """What a run in this process came to."""

    returncode: int
    stdout: str
    stderr: str


def played(*arguments: str, stdin: str | None = "") -> Played:
    """Play ``turnlock run`` to its end in this process: where nothing is killed, it is quicker."""
    done = turnlock("run", *arguments, stdin=None if stdin is None else stdin.encode())
    return Played(done.exit_code, done.stdout, done.stderr)


def started(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Start ``turnlock run`` without anybody at its standard input."""
    return subprocess.Popen(
        [sys.executable, "-m", "turnlock", "run", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=_environment(),
    )


def kill(process: subprocess.Popen[Any]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=TIMEOUT)


def happens(db: Path, fact: FactType, run_id: str = "agent") -> None:
    """Wait until a fact of this type is in the journal."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        if db.exists():
            result = turnlock("show", run_id, "--db", str(db), "--json")
            if result.exit_code == 0:
                types = [it["type"] for it in json.loads(result.output)["facts"]]
                if fact in types:
                    return
        time.sleep(0.02)
    raise AssertionError(f"{fact} did not happen")


def types_of(db: Path, run_id: str = "agent") -> list[FactType]:
    return [fact.type for fact in facts_of_db(str(db), run_id)[1]]


_UNSET = frozenset({"OPENAI_API_KEY", "TURNLOCK_DB", "NO_COLOR", "EDITOR", "VISUAL", "COLUMNS"})


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _UNSET}
    return kept | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), kept.get("PYTHONPATH", "")])}
