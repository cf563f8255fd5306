"""The same agent in four frameworks: its lines, and what happens when its process is killed.

    python examples/compare-agents/run.py            # all four
    python examples/compare-agents/run.py --write    # the same, and write docs/comparison.md anew
    python examples/compare-agents/run.py --only turnlock    # ours alone: installs nothing

The frameworks are installed from PyPI into `.venv` beside this file, once, in the versions of
PINNED; their official clients speak to an endpoint on loopback (endpoint.py), so neither a key nor
a network is needed afterwards. Each life is a process: the program is started, a person types y
where it asks, it is killed inside the payment, and started again, the same command. Where a call is
in doubt, the person looks into the ledger and answers with `turnlock resolve`. Exit status: 0 if
turnlock paid once in each story, 1 if not, 2 usage.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import venv
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from endpoint import SAID, endpoint

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "comparison.md"
BEGINS = "<!-- python examples/compare-agents/run.py --write -->\n"
ENDS = "<!-- end of compare-agents -->"
PINNED = (
    "langgraph==1.2.22",
    "langgraph-checkpoint-sqlite==3.1.2",
    "langchain==1.4.7",
    "langchain-openai==1.7.3",
    "openai-agents==0.24.0",
    "pydantic-ai-slim[openai]==2.68.0",
    "openai==3.54.0",
    "mypy==2.4.1",
)
COLUMNS = (
    *("", "lines", "`mypy --strict`", "undisturbed"),
    *("killed before it paid, started again", "killed after it paid, started again"),
)
KILLED = -9
TIMEOUT = 120.0
"""Seconds that a life may take."""
LOOK = 1.5
"""Seconds after which a person looks again whether something is in doubt."""


@dataclass(frozen=True)
class Agent:
    """One of those that are compared, and its program."""

    name: str
    script: str
    doubts: bool = False
    """Whether it knows what it does not know, and asks what became of it."""

    @property
    def path(self) -> Path:
        """Where its program is."""
        return HERE / self.script


AGENTS = (
    Agent("LangGraph", "langgraph_agent.py"),
    Agent("OpenAI Agents SDK", "openai_agents_agent.py"),
    Agent("Pydantic AI", "pydantic_ai_agent.py"),
    Agent("turnlock", "turnlock_agent.py", doubts=True),
)
OURS = AGENTS[-1]


class Place:
    """A folder of its own for one story, the processes in it, and what they leave and ask."""

    def __init__(self, agent: Agent, python: str, folder: Path, url: str) -> None:
        """Take a folder; nothing runs yet."""
        self.questions: list[str] = []
        """What the program that was started last has asked at its terminal."""
        self.answers: list[str] = []
        """What the person has said of calls in doubt."""
        self._agent = agent
        self._python = python
        self._folder = folder
        self._environment = {
            **os.environ,
            "OPENAI_BASE_URL": url,
            "OPENAI_API_KEY": "none",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "PYTHONFAULTHANDLER": "1",
        }

    def lived(self, kill: str = "") -> str:
        """Start the program, type y where it asks, and return the last line; it may be killed."""
        process = self._started(str(self._agent.path), KILL=kill)
        said, errors = self._communicated(process)
        if process.returncode != (KILLED if kill else 0):
            raise SystemExit(f"{self._agent.script} ended with {process.returncode}:\n{errors}")
        *self.questions, last = said.split("? ")
        return last.strip()

    @property
    def payments(self) -> int:
        """How often the bank paid."""
        ledger = self._folder / "ledger.txt"
        return len(ledger.read_text(encoding="utf-8").splitlines()) if ledger.exists() else 0

    def _communicated(self, process: subprocess.Popen[str]) -> tuple[str, str]:
        typed: str | None = "y\n" * 5
        give_up = time.monotonic() + TIMEOUT
        while True:
            try:
                return process.communicate(typed, timeout=LOOK)
            except subprocess.TimeoutExpired:
                typed = None
            if time.monotonic() > give_up:
                process.send_signal(signal.SIGABRT)  # it says where it stands
                _, errors = process.communicate()
                raise SystemExit(f"{self._agent.script} does not end:\n{errors}")
            if self._agent.doubts:
                self._resolve()

    def _resolve(self) -> None:
        """Be the person who is asked what became of a call: look into the ledger, and say it."""
        answer = ("--result", '"paid 5 to Ada"') if self.payments else ("--retry",)
        about = ("agent", "pay", "--db", "agent.db", "--turn", "t1", "--attempt", "1")
        process = self._started("-m", "turnlock", "resolve", *about, *answer)
        process.communicate(timeout=TIMEOUT)
        if process.returncode == 0:
            self.answers.append(" ".join(answer))

    def _started(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603 - programs of this folder, and turnlock
            [self._python, *command],
            cwd=self._folder,
            env={**self._environment, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def story(agent: Agent, python: str, url: str, kill: str) -> dict[str, Any]:
    """Return what came of one story: payments, what was asked after the kill, how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(agent, python, Path(folder), url)
        if kill:
            place.lived(kill)
        last = place.lived()
        return {
            "payments": place.payments,
            "asked": len(place.questions),
            "resolved": place.answers,
            "goes_on": last == SAID,
        }


def measured(agent: Agent, python: str, url: str, *, typed: bool = True) -> dict[str, Any]:
    """Return all that the table says of one agent."""
    return {
        "lines": lines_of(agent.path),
        "mistakes": mistakes(agent.path, python) if typed else None,
        "calm": story(agent, python, url, ""),
        "before": story(agent, python, url, "before"),
        "after": story(agent, python, url, "after"),
    }


def lines_of(path: Path) -> int:
    """Return how many lines a user writes: no blank ones, no comments, not what the file is."""
    text = path.read_text(encoding="utf-8")
    about = ast.parse(text).body[0].end_lineno or 0
    lines = (line.strip() for line in text.splitlines()[about:])
    return sum(bool(line) and not line.startswith("#") for line in lines)


def mistakes(path: Path, python: str) -> int:
    """Return how many errors `mypy --strict` finds in a program."""
    done = subprocess.run(  # noqa: S603 - mypy, of the same environment
        [python, "-m", "mypy", "--strict", "--config-file", os.devnull, "--output", "json", path],
        cwd=HERE,
        env={**os.environ, "MYPYPATH": f"{HERE}:{ROOT / 'src'}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    if done.returncode not in {0, 1}:
        raise SystemExit(f"mypy ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return sum(one["severity"] == "error" and one["file"].endswith(path.name) for one in found)


def told(one: dict[str, Any], *, again: bool) -> str:
    """Say what came of a story, in a few words."""
    times = {0: "not paid", 1: "paid once", 2: "**paid twice**"}[one["payments"]]
    said = [times]
    if again:
        said.append("approval asked again" if one["asked"] else "approval kept")
    said += [f"in doubt: a person says `{answer}`" for answer in one["resolved"]]
    said.append("goes on" if one["goes_on"] else "does not go on")
    return "; ".join(said)


def table(rows: list[tuple[Agent, dict[str, Any]]]) -> str:
    """Return what was measured as Markdown."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for agent, row in rows:
        errors = f"{row['mistakes']} error{'s' * (row['mistakes'] != 1)}"
        stories = (told(row[kind], again=kind != "calm") for kind in ("calm", "before", "after"))
        lines.append(f"| {' | '.join((agent.name, str(row['lines']), errors, *stories))} |")
    return "\n".join(lines) + "\n"


def installed() -> str:
    """Return the Python of `.venv` beside this file, with the frameworks and turnlock in it."""
    place = HERE / ".venv"
    python = place / "bin" / "python"
    stamp = place / "installed.txt"
    wanted = "\n".join(PINNED)
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        print("installing", *PINNED, f"into {place}", file=sys.stderr)
        venv.create(place, with_pip=True)
        pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install")
        ours = f"{ROOT}[openai,tools,runtime]"
        subprocess.run([*pip, *PINNED, "-e", ours], check=True)  # noqa: S603 - what PINNED names
        stamp.write_text(wanted, encoding="utf-8")
    return str(python)


def main() -> int:
    """Measure, print, and write where that is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write docs/comparison.md anew")
    parser.add_argument("--only", choices=("turnlock",), help="ours alone, by this Python")
    parser.add_argument("--untyped", action="store_true", help="leave mypy out")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    asked = parser.parse_args()
    agents = (OURS,) if asked.only else AGENTS
    python = sys.executable if asked.only else installed()
    with endpoint() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        rows = [(agent, measured(agent, python, url, typed=not asked.untyped)) for agent in agents]
        server.shutdown()
    if asked.json:
        for agent, row in rows:
            print(json.dumps({"agent": agent.name, **row}))
    else:
        versions = ", ".join(name.replace("==", " ") for name in PINNED)
        day = datetime.now(UTC).date().isoformat()
        by = f"Python {sys.version_info.major}.{sys.version_info.minor}, {sys.platform}"
        text = f"{table(rows)}\nMeasured on {day} with {versions}; {by}.\n"
        print(text, end="")
        if asked.write and not asked.only and not asked.untyped:
            page = PAGE.read_text(encoding="utf-8")
            before, _, rest = page.partition(BEGINS)
            _, _, after = rest.partition(ENDS)
            PAGE.write_text(f"{before}{BEGINS}\n{text}\n{ENDS}{after}", encoding="utf-8")
    ours = rows[-1][1]
    return 0 if all(ours[kind]["payments"] == 1 for kind in ("calm", "before", "after")) else 1


if __name__ == "__main__":
    sys.exit(main())
