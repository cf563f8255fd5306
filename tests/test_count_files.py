"""From `turnlock approve` to the running tool is a short way: tools/count_files.py counts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST = 40
"""Files of ours; who needs more reads docs/measurements.md first."""


def test_few_files_lie_between_an_approval_and_its_tool() -> None:
    """Among them those that must be there: a counter that sees nothing would pass otherwise."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools/count_files.py", "approve"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    files = done.stdout.split()
    must = {"cli/decide.py", "engine/kernel.py", "runtime/actor.py", "runtime/tools/performing.py"}
    assert must <= set(files)
    assert len(files) <= MOST, files
