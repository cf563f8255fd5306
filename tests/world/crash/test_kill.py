"""For real: hosts of the story, and the person's process, are killed with `kill -9`.

Real processes need real time; the long form is `make crash`.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from turnlock.runtime.journal.sqlite import SqliteJournal

from ...runtime.crash.depth import DEEP
from .cast import Outside
from .checks import Left, violations

ROOT: Final = Path(__file__).parents[3]
SEEDS: Final = range(40) if DEEP else range(2)
KILLS: Final = 4
"""Hosts that are killed in each story, and once the person."""
LONGEST: Final = 0.6
"""Seconds that a host has before it is killed; the whole story takes about three."""
TIMEOUT: Final = 240.0
"""Seconds that a process has for what it must come to: much, for a busy machine. It takes three."""


@contextmanager
def child(folder: Path, role: str) -> Generator[subprocess.Popen[str]]:
    """Begin a process, and kill it at the end if it has not ended."""
    command = [sys.executable, "-W", "error", "-m", "tests.world.crash.child", str(folder), role]
    with (
        (folder / "stderr").open("a") as errors,
        subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def says_something(process: subprocess.Popen[str]) -> bool:
    """Wait until it is at work; whether it came so far."""
    assert process.stdout is not None
    return bool(process.stdout.readline())


async def left_behind(folder: Path) -> list[str]:
    """What is wrong with what there is."""
    async with await SqliteJournal.open(folder / "world.db", create=False) as journal:
        found = await journal.check()
        left = await Left.in_journal(journal)
    outside = Outside(notebook=folder / "did")
    return [*map(str, found), *violations(left, outside)]


@pytest.mark.parametrize("seed", SEEDS)
def test_w_33_killed_for_real(tmp_path: Path, seed: int) -> None:
    """W-30 … W-36: hosts are killed, and the person; the last of each come to the one end."""
    draw = random.Random(seed)
    killed = 0
    errors = tmp_path / "stderr"
    with child(tmp_path, "person") as person:
        assert says_something(person), errors.read_text()
        for _ in range(KILLS):
            with child(tmp_path, "host") as host:
                if says_something(host):
                    time.sleep(draw.uniform(0.0, LONGEST))
                killed += host.poll() is None
    with child(tmp_path, "person") as person, child(tmp_path, "host") as host:
        assert person.wait(timeout=TIMEOUT) == 0, errors.read_text()
        assert host.wait(timeout=TIMEOUT) == 0, errors.read_text()

    assert asyncio.run(left_behind(tmp_path)) == []
    assert killed > 0
    print(f"seed {seed}: {killed} hosts killed")
