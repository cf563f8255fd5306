"""The comparison with other frameworks: our own side of it is held here, theirs when it is run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "double-payment" / "run.py"
PAGE = ROOT / "docs" / "comparison.md"


def test_a_payment_is_made_once_whatever_happens() -> None:
    """One payment undisturbed, killed, with two workers; after the kill it is in doubt (K-35)."""
    done = subprocess.run(
        [sys.executable, SCRIPT, "--only", "turnlock", "--json"],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )

    assert (done.returncode, done.stderr) == (0, "")
    (measured,) = map(json.loads, done.stdout.splitlines())
    assert measured == {
        "agent": "turnlock, `@tool(approval=True)`",
        "calm": 1,
        "killed": 1,
        "results": 0,
        "status": "in_doubt",
        "keyed": 1,
        "two": 1,
    }
    assert "| turnlock, `@tool(approval=True)` | 1 | 1 | `in_doubt`, no result | 1 | 1 |" in (
        PAGE.read_text(encoding="utf-8")
    )


def test_the_page_names_the_versions_that_the_script_installs() -> None:
    """A raised version is measured again: run the script with --write."""
    pinned = re.findall(r'"([a-z-]+)==([0-9.]+)"', SCRIPT.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")

    assert len(pinned) == 4
    assert [name for name, version in pinned if f"{name} {version}" not in page] == []
