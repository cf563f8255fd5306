"""The peers of benchmarks/peers do what is compared: so their figures are of the same turn.

Each step is a process of its own, and what tools did stands in a file that no peer knows of. Beside
turnlock one of each framework is played; the others differ in an option.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
NEEDS = {
    "turnlock": "turnlock",
    "LangGraph": "langgraph.checkpoint.sqlite",
    "DBOS tuned": "dbos",
    "OpenAI Agents": "agents",
}


def step(peer: str, folder: Path, name: str, *, status: int = 0) -> str:
    """Have a process take one step, and see how it ended; what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "peers.killed", peer, folder, name],
        cwd=ROOT / "benchmarks",
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == status, done.stderr
    return done.stdout


def begun(folder: Path) -> Counter[str]:
    lines = (folder / "ledger.txt").read_text(encoding="utf-8").split()
    return Counter(line.removeprefix("run/0/") for line in lines)


@pytest.mark.parametrize("peer", NEEDS)
def test_a_turn_waits_through_a_kill_and_each_tool_runs_once(peer: str, tmp_path: Path) -> None:
    """The two that look before the kill, the payment after its approval, in another process."""
    if find_spec(NEEDS[peer].partition(".")[0]) is None or find_spec(NEEDS[peer]) is None:
        pytest.skip(f"{NEEDS[peer]} is not installed: pip install -e '.[peers]'")
    step(peer, tmp_path, "wait", status=-signal.SIGKILL)
    assert begun(tmp_path) == {"look-1": 1, "look-2": 1}

    told: dict[str, Any] = json.loads(step(peer, tmp_path, "approve"))

    assert begun(tmp_path) == {"look-1": 1, "look-2": 1, "pay": 1}
    assert told["imported"] <= told["opened"] <= told["paid"] <= told["ended"]


def test_a_payment_whose_process_is_killed_is_in_doubt(tmp_path: Path) -> None:
    """Ours runs it once and asks (K-35), however soon after its first line the kill comes."""
    step("turnlock", tmp_path, "at-once", status=-signal.SIGKILL)
    told: dict[str, Any] = json.loads(step("turnlock", tmp_path, "resume"))

    assert told["standing"] == "in doubt"
    assert begun(tmp_path) == {"look-1": 1, "look-2": 1, "pay": 1}
