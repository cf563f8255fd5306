"""Kill an agent right after its approved payment, let it go on, and count the payments.

    python examples/double-payment/run.py            # LangGraph, OpenAI Agents, turnlock
    python examples/double-payment/run.py --write    # the same, and write docs/comparison.md anew
    python examples/double-payment/run.py --only turnlock   # ours alone: installs nothing

The frameworks are installed from PyPI into `.venv` beside this file, once, in the versions of
PINNED; their models are fakes, so neither a key nor a network is needed afterwards. Every step is a
process of its own. Exit status: 0 if turnlock paid once in each story, 1 if not, 2 usage.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "comparison.md"
BEGINS = "<!-- python examples/double-payment/run.py --write -->\n"
ENDS = "<!-- end -->"
PINNED = (
    "langgraph==1.2.22",
    "langgraph-checkpoint-sqlite==3.1.2",
    "langchain==1.4.7",
    "openai-agents==0.24.0",
)
COLUMNS = (
    "payments made for one approval",
    "undisturbed",
    "killed, resumed",
    "what is then recorded",
    "two workers resume",
    "killed, the bank honours the key",
)
KILLED = -9
TIMEOUT = 120.0
"""Seconds that one step may take."""


@dataclass(frozen=True)
class Agent:
    """One of those that are compared: its script, and what it has in the environment."""

    name: str
    script: str
    environment: dict[str, str] = field(default_factory=dict)


AGENTS = (
    Agent("LangGraph, `create_agent`", "langgraph_agent.py"),
    Agent("LangGraph, the payment in a `@task`", "langgraph_agent.py", {"TASK": "1"}),
    Agent("OpenAI Agents SDK, `needs_approval`", "openai_agents_agent.py"),
    Agent("turnlock, `@tool(approval=True)`", "turnlock_agent.py"),
)
OURS = AGENTS[-1]


class Story:
    """An agent in a folder of its own, a process for each step."""

    def __init__(self, agent: Agent, python: str, folder: Path) -> None:
        """Begin: the model asks for the payment, and the process ends."""
        self._agent = agent
        self._python = python
        self._folder = folder
        self._said(self._started("ask"))

    def approved(self, **environment: str) -> dict[str, Any]:
        """Approve, and let the agent go on to its end."""
        return self._said(self._started("approve", **environment))

    def approved_and_killed(self, **environment: str) -> None:
        """Approve; the process is killed right after the payment."""
        process = self._started("approve", KILL="1", **environment)
        _, errors = process.communicate(timeout=TIMEOUT)
        if process.returncode != KILLED:
            raise SystemExit(f"{self._agent.script} was not killed:\n{errors}")

    def resumed(self, **environment: str) -> dict[str, Any]:
        """Go on in another process, with nothing but what is stored."""
        return self._said(self._started("resume", **environment))

    def approved_by_two(self) -> list[dict[str, Any]]:
        """Let two processes resume the one approval, both of which have read what is stored."""
        workers = [self._started("approve", BARRIER="2") for _ in range(2)]
        return [self._said(worker) for worker in workers]

    @property
    def payments(self) -> int:
        """How often the bank was told to pay, and did."""
        ledger = self._folder / "ledger.jsonl"
        return len(ledger.read_text(encoding="utf-8").splitlines()) if ledger.exists() else 0

    def _started(self, step: str, **environment: str) -> subprocess.Popen[str]:
        ledger = {"LEDGER": str(self._folder / "ledger.jsonl")}
        return subprocess.Popen(  # noqa: S603 - a script of this folder
            [self._python, str(HERE / self._agent.script), step, str(self._folder)],
            env={**os.environ, **self._agent.environment, **environment, **ledger},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _said(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        output, errors = process.communicate(timeout=TIMEOUT)
        if process.returncode:
            raise SystemExit(f"{self._agent.script} ended with {process.returncode}:\n{errors}")
        said: dict[str, Any] = json.loads(output.splitlines()[-1])
        return said


def measured(agent: Agent, python: str) -> dict[str, Any]:
    """Tell the four stories of one agent: payments each, and what was said after the kill."""
    with tempfile.TemporaryDirectory() as place:
        stories = iter(range(9))

        def story() -> Story:
            folder = Path(place, str(next(stories)))
            folder.mkdir()
            return Story(agent, python, folder)

        calm = story()
        calm.approved()
        killed = story()
        killed.approved_and_killed()
        afterwards = killed.resumed()
        keyed = story()
        keyed.approved_and_killed(KEYED="1")
        keyed.resumed(KEYED="1")
        two = story()
        two.approved_by_two()
        return {
            "calm": calm.payments,
            "killed": killed.payments,
            "results": afterwards["results"],
            "status": afterwards.get("status"),
            "keyed": keyed.payments,
            "two": two.payments,
        }


def table(rows: list[tuple[Agent, dict[str, Any]]]) -> str:
    """Return what was measured as Markdown."""
    lines = [
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
    ]
    for agent, row in rows:
        recorded = f"{row['results']} result" if row["results"] else f"`{row['status']}`, no result"
        counts = (row["calm"], row["killed"], recorded, row["two"], row["keyed"])
        lines.append(f"| {agent.name} | " + " | ".join(map(str, counts)) + " |")
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
        subprocess.run([*pip, *PINNED, "-e", ROOT], check=True)  # noqa: S603 - what PINNED names
        stamp.write_text(wanted, encoding="utf-8")
    return str(python)


def main() -> int:
    """Measure, print, and write where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write docs/comparison.md anew")
    parser.add_argument("--only", choices=("turnlock",), help="ours alone, by this Python")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    asked = parser.parse_args()
    agents = (OURS,) if asked.only else AGENTS
    python = sys.executable if asked.only else installed()
    rows = [(agent, measured(agent, python)) for agent in agents]
    if asked.json:
        for agent, row in rows:
            print(json.dumps({"agent": agent.name, **row}))
    else:
        versions = ", ".join(name.replace("==", " ") for name in PINNED)
        day = datetime.now(UTC).date().isoformat()
        by = f"Python {sys.version_info.major}.{sys.version_info.minor}, {sys.platform}"
        text = f"{table(rows)}\nMeasured on {day} with {versions}; {by}.\n"
        print(text, end="")
        if asked.write and not asked.only:
            page = PAGE.read_text(encoding="utf-8")
            before, _, rest = page.partition(BEGINS)
            _, _, after = rest.partition(ENDS)
            PAGE.write_text(f"{before}{BEGINS}\n{text}\n{ENDS}{after}", encoding="utf-8")
    ours = rows[-1][1]
    return 0 if all(ours[story] == 1 for story in ("calm", "killed", "keyed", "two")) else 1


if __name__ == "__main__":
    sys.exit(main())
