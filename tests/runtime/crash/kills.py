"""Processes killed and stopped for real, and what they left behind, told as a `World`."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from turnlock import Fact
from turnlock.models.codec import fact_from_json
from turnlock.models.facts import ExecutionRetried, ToolExecutionStarted
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.writer import fold_run

from .child import lines_of
from .world import Begun, Told, World, Written

CHILD: Final = Path(__file__).with_name("child.py")
LEASE: Final = 0.3
"""Seconds for which a child owns its run unless it renews that: see its settings."""
TIMEOUT: Final = 60.0
"""Seconds that a child has for what it must come to."""
EARLY: Final = 0.25
"""Of so many kills the instant is drawn from the child's start, and not from when it owns."""


@attrs.frozen
class Child:
    """A host in a process of its own."""

    process: subprocess.Popen[str]

    def says(self, expected: str) -> bool:
        """Wait for a line; whether it came before the end."""
        output = self.process.stdout
        assert output is not None
        return any(line.strip() == expected for line in output)

    def end(self) -> int:
        """Wait for its end, and return its status."""
        return self.process.wait(timeout=TIMEOUT)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def child(folder: Path, seed: str, turns: int, *modes: str) -> Generator[Child]:
    """Begin a host, and kill it at the end if it has not ended."""
    arguments = [sys.executable, "-W", "error", str(CHILD), str(folder), seed, str(turns), *modes]
    with (
        (folder / "stderr").open("a") as errors,
        subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            yield Child(process)
        finally:
            process.kill()


def killed(folder: Path, *, seed: int, kills: int, turns: int) -> int:
    """Begin a child and kill it, so many times; then let one finish. Return how many were killed
    before they had done everything."""
    draw = random.Random(seed)
    count = 0
    for number in range(kills):
        with child(folder, f"{seed} {number}", turns) as host:
            if draw.random() < EARLY:
                time.sleep(draw.uniform(0.0, 0.8))
            elif host.says("owner"):
                time.sleep(draw.uniform(0.0, 0.25))
            count += host.process.poll() is None
    with child(folder, f"{seed} last", turns) as host:
        assert host.end() == 0, (folder / "stderr").read_text()
    return count


def left_behind(folder: Path) -> World:
    """Read what is there: the journal, the ledger, and what hosts and people were told.

    How long the journal was at each moment is not known here: as long as it is now, at most.
    """
    world = World()
    facts = asyncio.run(moved(folder, world))
    kept = len(facts)
    for line in lines_of(folder / "ledger"):
        if line["what"] == "begin":
            world.begun.append(
                Begun(
                    run_id=line["run"],
                    turn_id=line["turn"],
                    invocation_id=line["invocation"],
                    attempt=line["attempt"],
                    key=line["key"],
                    kept=kept,
                )
            )
        else:
            world.ended.add(line["key"])
    for line in lines_of(folder / "told"):
        heard = line["what"] == "heard"
        (world.heard if heard else world.taken).append(
            Told(
                run_id="r",
                turn_id=line["turn"],
                effect_id=line["effect"],
                results=(),
                kept=kept if heard else 0,
            )
        )
    for line in lines_of(folder / "shown"):
        world.shown += [(fact_from_json(told.encode()), kept) for told in line["facts"]]
    newest = 0
    for line in sorted(lines_of(folder / "written"), key=lambda line: int(line["first"])):
        fence = line["fence"]
        world.written.append(Written(run_id="r", last=line["last"], by=fence, taken=fence > newest))
        newest = max(newest, fence)
    return world


STARTS = ToolExecutionStarted | ExecutionRetried


async def moved(folder: Path, world: World) -> list[Fact]:
    """Move the run into the world's journal, and return its facts; fold its snapshot too."""
    async with await SqliteJournal.open(folder / "journal.db", create=False) as journal:
        await journal.check()
        (entry,) = await journal.runs()
        facts = [fact async for fact in journal.facts("r")]
        await world.memory.declare(entry.run)
        if facts:
            fence = await world.memory.own("r", owner="o", now=0.0, lease=1.0)
            await world.memory.append("r", fence=fence, after=0, facts=facts, busy=False)
        for worker in {it.worker for it in facts if isinstance(it, STARTS)}:
            if worker and (meaning := await journal.worker(worker)) is not None:
                await world.memory.put_worker(worker, meaning)
        world.live["r"] = (await fold_run(entry.run, journal)).snapshot()
    return facts
