"""docs/worlds.md: what it types prints what it says, and its program runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = (ROOT / "docs" / "worlds.md").read_text(encoding="utf-8")
WALK: Final = PAGE.partition("## A small world in ten minutes")[2].partition("\n## ")[0]


def blocks(kind: str) -> list[str]:
    """The blocks of this kind of the walk."""
    return re.findall(rf"^```{kind}\n(.*?)^```", WALK, re.MULTILINE | re.DOTALL)


def typed(block: str) -> list[tuple[str, str]]:
    """The commands of a block, each with what it is said to print."""
    found = [it.partition("\n") for it in f"\n{block}".split("\n$ ")[1:]]
    return [(command, said.strip("\n")) for command, _, said in found]


def test_the_walk_prints_what_it_says(tmp_path: Path) -> None:
    """W-6: killed after the payment, it is paid once; line for line."""
    shutil.copytree(ROOT / "examples" / "world", tmp_path / "examples" / "world")
    commands = [it for block in blocks("console") for it in typed(block)]
    (first, _), *rest = commands
    folder = tmp_path / "office"
    shutil.copytree(tmp_path / "examples" / "world", folder)
    assert first.startswith("cp -r examples/world office && cd office")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "TURNLOCK_DB": "office.db", "USER": "root"}

    for command, said in rest:
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        printed = [*done.stdout.splitlines(), *done.stderr.splitlines()]
        if said == "Killed":
            assert done.returncode in {137, -9}, command
        else:
            assert printed == said.splitlines(), command
    assert len(rest) >= 6


def test_the_program_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Section 9, with a model of its own."""
    (program,) = blocks("python")
    monkeypatch.chdir(tmp_path)

    exec(compile(program, "worlds.md", "exec"), {"__name__": "__main__"})  # noqa: S102 - the page

    assert capsys.readouterr().out.splitlines() == [
        "me – @alice say something nice",
        "alice – @bob thank you.",
        "bob – Welcome.",
    ]
