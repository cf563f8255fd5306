"""Servers of benchmarks: processes of their own, which end with their standard input."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent


@contextmanager
def served(script: str, folder: Path, size: int) -> Generator[int]:
    """Start a script of this folder on a folder of data and a size; yield the port it prints."""
    with subprocess.Popen(  # noqa: S603 - our own
        [sys.executable, str(HERE / script), str(folder), str(size)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise AssertionError
        yield json.loads(process.stdout.readline())["port"]
        process.stdin.close()
