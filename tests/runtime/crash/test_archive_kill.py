"""For real: an archive is killed at random instants; each run is in the journal or in the file."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from turnlock import Claim, OpenTurn, Report, Run
from turnlock.models.deliveries import Acknowledge
from turnlock.runtime.archive import Archive, read_archive
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.retention import archive_runs, forget_runs
from turnlock.runtime.submitting import SharedRun

from ..test_runtime import calls
from .depth import DEEP

ROUNDS: Final = 60 if DEEP else 3
RUNS: Final = 30
FACTS: Final = 50
"""Of each run."""
CHILD: Final = """
import asyncio, sys
from turnlock.runtime import SqliteJournal, archive_runs

async def main():
    async with await SqliteJournal.open(sys.argv[1], create=False) as journal:
        print("begins", flush=True)
        await archive_runs(journal, older_than=0.0, path=sys.argv[2])
        print("ended", flush=True)

asyncio.run(main())
"""


async def _filled(path: Path) -> None:
    async with await SqliteJournal.open(path) as journal:

        async def fill(number: int) -> None:
            run_id = f"run-{number}"
            await journal.declare(Run(run_id=run_id))
            shared = await SharedRun.open(journal, run_id, policies={})
            for turn in range(FACTS // 5):
                turn_id = f"t{turn}"
                await shared.submit(
                    OpenTurn(turn_id=turn_id, calls=tuple(calls("a"))),
                    Claim(turn_id=turn_id, invocation_id="a", attempt=1, worker="me"),
                    Report(turn_id=turn_id, invocation_id="a", attempt=1, result=[number, turn]),
                    Acknowledge(turn_id=turn_id),
                )

        await asyncio.gather(*map(fill, range(RUNS)))


def _killed(path: Path, file: Path, *, after: float, written: bool) -> float | None:
    """Archive in a process that is killed so long after it began, or after its file was there.

    Say how long it took if it was not.
    """
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(file)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "src")},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"begins\n"
    began = time.monotonic()
    while written and not file.exists() and child.poll() is None:
        time.sleep(0.001)
    with suppress(subprocess.TimeoutExpired):
        child.wait(after)
    child.kill()
    took = time.monotonic() - began
    rest, _ = child.communicate()
    return took if rest == b"ended\n" else None


async def _is_all_there(path: Path, archives: list[Archive]) -> int:
    """Hold each run to be whole in one of the two; return how many are in the journal."""
    written = {name: it.facts for archive in archives for name, it in archive.sections.items()}
    here = 0
    async with await SqliteJournal.open(path, create=False) as journal:
        assert await journal.check() == ()
        async for entry in journal.run_entries(forgotten=True):
            run_id = entry.run.run_id
            if entry.forgotten is not None:
                assert written[run_id] == entry.sequence == FACTS, run_id
                continue
            here += 1
            facts = [fact async for fact in journal.facts(run_id)]
            assert [fact.sequence for fact in facts] == list(range(1, FACTS + 1))
        assert here + sum(1 for it in await journal.runs(forgotten=True) if it.forgotten) == RUNS
    return here


async def _goes_on(path: Path, file: Path, *, left: int) -> None:
    """Give the same command again."""
    async with await SqliteJournal.open(path, create=False) as journal:
        names = [f"run-{number}" for number in range(RUNS)]
        retired = await archive_runs(journal, names, path=file)
        assert len(retired.removed) + len(retired.before) == RUNS
        assert (len(retired.removed), retired.left) == (left, ())


def test_killed_at_random_instants_an_archive_loses_nothing(tmp_path: Path) -> None:
    """And the same command goes on, until all is in the file."""
    chance = random.Random(11)
    longest, half = 0.5, 0
    for number in range(ROUNDS):
        path, file = tmp_path / f"{number}.db", tmp_path / f"{number}.jsonl"
        asyncio.run(_filled(path))
        written = number % 2 == 0
        after = chance.uniform(0.0, longest / (5 if written else 1))
        longest = _killed(path, file, after=after, written=written) or longest
        archives = [read_archive(file)] if file.exists() else []
        left = asyncio.run(_is_all_there(path, archives))
        half += 0 < left < RUNS

        asyncio.run(_goes_on(path, file, left=left))
        assert asyncio.run(_is_all_there(path, [read_archive(file)])) == 0
    print(f"{ROUNDS} killed, {half} between two removals")


def test_removed_before_it_is_written_it_would_be_lost(tmp_path: Path) -> None:
    """The negative control: killed between the two, a run is in neither."""
    path = tmp_path / "a.db"

    async def play() -> None:
        await _filled(path)
        async with await SqliteJournal.open(path, create=False) as journal:
            await forget_runs(journal, ["run-7"])  # and here it is killed

    asyncio.run(play())
    with pytest.raises(KeyError, match="run-7"):
        asyncio.run(_is_all_there(path, []))
