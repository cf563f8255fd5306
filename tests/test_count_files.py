"""From an approval to its tool, from a fact to its picture: short ways, which tools/ counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WAYS = {
    "approve": (
        77,  # a command asks a journal or a server; notes stand beside the facts; bare facts
        {"cli/decide.py", "engine/kernel.py", "runtime/actor.py", "runtime/tools/performing.py"},
    ),
    "picture": (84, {"diagrams/timeline/svg.py", "views/turn_view.py", "wire/log.py"}),
}
"""The most files of ours, imports included in a picture's; who needs more reads measurements.md.

Some must be among them: a counter that sees nothing would pass otherwise.
"""


@pytest.mark.parametrize("way", WAYS)
def test_few_files_lie_between(way: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools/count_files.py", way],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    files = done.stdout.split()
    most, must = WAYS[way]
    assert must <= set(files)
    assert len(files) <= most, files
