"""Generated files are what would be generated now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_docs_tables_is_generated_from_the_tables() -> None:
    """K-4: what people read is what is enforced."""
    command = [sys.executable, str(ROOT / "tools" / "write_tables.py"), "--check"]
    environment = {"PYTHONPATH": str(ROOT / "src")}

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
