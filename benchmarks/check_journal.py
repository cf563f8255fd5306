"""What it takes to check a journal: seconds and memory of `turnlock check` and `journal check`.

    python benchmarks/check_journal.py --db postgresql://me@localhost/bench --facts 1000000

It fills a journal that has no runs yet with whole turns, and one run with a tenth of all facts, so
that a long run shows, too; then it starts the commands as processes of their own, and says what the
system counted of each: its processor's seconds, and the most memory that it ever had.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

from turns import turn_of_three

from turnlock import Kernel, Run
from turnlock.models.fact import Fact
from turnlock.runtime import open_journal
from turnlock.runtime.journal.contract import Appended, Journal
from turnlock.runtime.journal.places import shown_place

TURNS: Final = 5
"""In one append."""
SHORT: Final = 1_000
"""Facts of a usual run, about."""
COMMANDS: Final = (("check",), ("journal", "check"), ("journal", "status"))
MIB: Final = 1024


def main() -> None:
    """Fill it, and print a row for each command."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--db", required=True, help="a journal that has no runs yet")
    options.add_argument("--facts", type=int, default=100_000)
    given = options.parse_args()
    began = time.perf_counter()
    runs, facts = asyncio.run(_filled(given.db, given.facts))
    took = time.perf_counter() - began
    print(f"{shown_place(given.db)}: {runs:,} runs, {facts:,} facts, filled in {took:.0f} s\n")
    print("| what | seconds | CPU of it | memory at most | status |")
    print("|---|---|---|---|---|")
    _row("the interpreter and its imports", ["check", "--help"])
    for command in COMMANDS:
        _row(f"turnlock {' '.join(command)}", [*command, "--db", given.db])


async def _filled(db: str, facts: int) -> tuple[int, int]:
    async with await open_journal(db) as journal:
        if await journal.runs(limit=1):
            raise SystemExit(f"{shown_place(db)}: has runs already; give an empty journal")
        filled = await _fill(journal, "long", facts // 10)
        for number in count(1):
            if filled >= facts:
                return number, filled
            filled += await _fill(journal, f"run-{number}", min(SHORT, facts - filled))
    raise AssertionError


async def _fill(journal: Journal, run_id: str, facts: int) -> int:
    run = Run(run_id=run_id)
    await journal.declare(run)
    after = 0
    for batch in _batches(Kernel(run)):
        if after >= facts:
            break
        kept = await journal.append(run_id, fence=None, after=after, facts=batch, busy=False)
        if kept is not Appended.OK:
            raise AssertionError(kept)
        after += len(batch)
    return after


def _batches(kernel: Kernel) -> Iterator[Sequence[Fact]]:
    """Yield the facts of some turns at a time, for ever."""
    for number in count():
        batch: list[Fact] = []
        for turn in range(TURNS):
            for delivery, at in turn_of_three(turn_id=f"t-{number}-{turn}"):
                batch += kernel.receive(delivery, at).facts
        yield batch


def _row(name: str, words: Sequence[str]) -> None:
    began = time.perf_counter()
    child = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "turnlock", *words],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, used = os.wait4(child, 0)
    took = time.perf_counter() - began
    cpu = used.ru_utime + used.ru_stime
    memory = used.ru_maxrss / MIB
    print(
        f"| {name} | {took:.1f} | {cpu:.1f} | {memory:,.0f} MiB |"
        f" {os.waitstatus_to_exitcode(status)} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
