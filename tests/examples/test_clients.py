"""The examples of clients of others start with one command, and do what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples" / "clients"


def played(name: str) -> str:
    """Run an example without a terminal: what it is asked is approved."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_mcp_client_session() -> None:
    """A gated tool asks by elicitation, and a repeated key gets the first outcome."""
    printed = played("mcp_session.py")
    assert "Approve this call of order?" in printed
    assert printed.count("['ordered 2 tea']") == 2
    assert printed.splitlines()[-1].endswith("['2 tea']")


def test_an_a2a_exchange() -> None:
    """A question is answered by a data part; each fact comes once."""
    printed = played("a2a_exchange.py")
    assert "TASK_STATE_INPUT_REQUIRED ['pay waits for approval']" in printed
    facts = [line.split()[1] for line in printed.splitlines() if line.startswith("  fact")]
    assert facts == [f"fact/{number}" for number in range(1, len(facts) + 1)]
    assert printed.splitlines()[-1].endswith("TASK_STATE_COMPLETED")
