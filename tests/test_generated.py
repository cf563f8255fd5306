"""Generated files are what would be generated now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("tool", ["write_tables.py", "write_index.py"])
def test_what_is_generated_is_what_would_be_generated_now(tool: str) -> None:
    """K-4: the tables and the index of rules that people read are those that are enforced."""
    command = [sys.executable, str(ROOT / "tools" / tool), "--check"]
    environment = {"PYTHONPATH": str(ROOT / "src")}

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
