"""The same agent in four frameworks: our own side is held here, theirs when the script is run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "compare-agents" / "run.py"
PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
LINES = 22
"""Of a user's code, at most, for the agent with two tools and an approval that survives a kill."""


def test_our_agent_pays_once_whenever_it_is_killed_in_few_lines() -> None:
    """The conversation goes on, and the approval is not asked again; `make lint` holds its types.

    The control is the story in which nobody is killed: nothing is in doubt there.
    """
    done = subprocess.run(
        [sys.executable, SCRIPT, "--only", "turnlock", "--json", "--untyped"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )

    assert (done.returncode, done.stderr) == (0, "")
    (measured,) = map(json.loads, done.stdout.splitlines())
    once = {"payments": 1, "goes_on": True}
    assert measured["lines"] <= LINES
    assert measured["calm"] == {**once, "asked": 1, "resolved": []}
    assert measured["before"] == {**once, "asked": 0, "resolved": ["--retry"]}
    assert measured["after"] == {
        **once,
        "asked": 0,
        "resolved": ['--result "paid 5 to Ada"'],
    }
    assert f"| turnlock | {measured['lines']} | 0 errors | paid once; goes on |" in PAGE


def test_the_page_names_the_versions_that_the_script_installs() -> None:
    """A raised version is measured again: run the script with --write."""
    pinned = re.findall(r'"([a-z-]+(?:\[openai\])?)==([0-9.]+)"', SCRIPT.read_text("utf-8"))

    assert len(pinned) == 8
    assert [name for name, version in pinned if f"{name} {version}" not in PAGE] == []
