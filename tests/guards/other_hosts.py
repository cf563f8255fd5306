"""Hosts in processes of their own: `host.py FOLDER [hang]` of a framework's folder.

One says `there` when it stands before its tools, bare and guarded, and goes on at a line.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

LONG = 120
"""Seconds that a process may last, on however loaded a machine."""


@contextmanager
def another(host: Path, folder: Path, *how: str) -> Generator[subprocess.Popen[str]]:
    """A process that goes on with what both were left with, and stands before their tools."""
    command = [sys.executable, str(host), str(folder), *how]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert line(process) == "there\n"
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    """The next line that it says."""
    return cast("IO[str]", process.stdout).readline()


def go(process: subprocess.Popen[str]) -> None:
    """Let it go on."""
    stdin = cast("IO[str]", process.stdin)
    stdin.write("go\n")
    stdin.flush()


def killed_having_paid(host: Path, folder: Path) -> None:
    """Have a process killed in its tool, right after it has paid."""
    with another(host, folder, "hang") as process:
        go(process)
        assert line(process) == "paid\n"
        process.kill()
        process.wait(LONG)


def paid(folder: Path, *how: str) -> list[list[str]]:
    """What was paid by each."""
    return [(folder / f"{it}.paid").read_text(encoding="utf-8").split() for it in how]
