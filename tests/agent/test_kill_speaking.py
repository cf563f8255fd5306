"""For real: an agent is killed while its model speaks, with early calls (W-58).

Real processes need real time; the long form is `make crash`.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from turnlock.agent.conversation import Conversation
from turnlock.agent.messages import Message
from turnlock.models.fact import Fact
from turnlock.runtime.journal.sqlite import SqliteJournal

from ..runtime.crash.depth import DEEP
from .early_world import Ran, violations

ROOT: Final = Path(__file__).parents[2]
SEEDS: Final = range(40) if DEEP else range(1)
KILLS: Final = 4
"""Of each seed, each while one of its model's answers is spoken."""
TURNS: Final = KILLS + 1
"""That there are: so the last answer is not spoken before the last kill."""
PAUSE: Final = 0.02
"""Seconds before each piece of what is said."""
SPOKEN: Final = 0.5
"""Seconds that an answer and its calls take about."""
TIMEOUT: Final = 60.0
"""Seconds that a child has for what it must come to."""


@contextmanager
def child(folder: Path, salt: str) -> Generator[subprocess.Popen[str]]:
    """Begin an agent, and kill it at the end if it has not ended."""
    module = [sys.executable, "-W", "error", "-m", "tests.agent.speaking_child"]
    with (
        (folder / "stderr").open("a") as errors,
        subprocess.Popen(
            [*module, str(folder), salt, str(PAUSE), str(TURNS)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def lines(path: Path) -> list[Any]:
    """Read a notebook; a line that a kill cut off was never finished by its writer."""
    content = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in content.splitlines(keepends=True) if line.endswith("\n")]


async def left_behind(folder: Path) -> tuple[list[Message], list[Fact]]:
    """What the journal says was said and done."""
    async with await SqliteJournal.open(folder / "journal.db", create=False) as journal:
        conversation = Conversation("r")
        conversation.load(it.note for it in await journal.notes("r"))
        facts = [fact async for fact in journal.facts("r")]
    for fact in facts:
        conversation.take(fact)
    return [*conversation.messages()], facts


@pytest.mark.parametrize("seed", SEEDS)
def test_w_58_killed_while_the_model_speaks(tmp_path: Path, seed: int) -> None:
    """Each call ran once, and no answer was told twice differently."""
    draw = random.Random(seed)
    killed = 0
    for number in range(KILLS):
        with child(tmp_path, f"{seed}.{number}") as process:
            assert process.stdout is not None
            if process.stdout.readline():
                time.sleep(draw.uniform(0.0, SPOKEN))
            killed += process.poll() is None
    with child(tmp_path, f"{seed}.last") as process:
        assert process.wait(timeout=TIMEOUT) == 0, (tmp_path / "stderr").read_text()

    messages, facts = asyncio.run(left_behind(tmp_path))
    ran = [Ran(*line) for line in lines(tmp_path / "ran")]
    told = lines(tmp_path / "told")
    assert violations(messages, ran=ran, facts=facts, told=told, turns=TURNS) == []
    assert killed == KILLS
    print(f"seed {seed}: {killed} killed, {len(told)} times asked, {len(ran)} executions")
