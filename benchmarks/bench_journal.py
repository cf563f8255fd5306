"""The SQLite journal: appending beside raw SQLite, reading beside what its parts cost.

Raw is one row for each fact, the same bytes, the same file settings (WAL, synchronous FULL), one
transaction for each batch, no second thread, no event loop. A batch is one append by one run,
awaited before the next; "at once" are a hundred runs that append one fact each in one tick. Appends
are wall time, because they wait for the disk; reading is CPU time.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Final

import msgspec
from timing import QUICK, Line, Samples, Work, measured, timed
from turns import LEASE, RUN, Timed, turn_of_three

from turnlock import Fact, Kernel, Run
from turnlock.models.codec import fact_from_json, to_json
from turnlock.models.record import changed
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.journal.trusted import trusted_fact

SIZES: Final = {1: 300, 10: 3_000, 100: 20_000}
"""By batch: how many facts a round appends."""

READ: Final = 20_000
QUICK_PART: Final = 10
BOUNDED: Final = 100
RAW_BOUND: Final = 2.0
"""Times the time of raw appends that batches of `BOUNDED` facts may take."""

RUNS: Final = [Run(run_id=f"run-{number}") for number in range(100)]
_decode: Final = msgspec.json.Decoder().decode


def measure(rounds: int) -> list[Line]:
    """Append, then read what was kept."""
    part = 1 if rounds > QUICK else QUICK_PART
    facts = facts_of_turns(READ // part)
    samples = measured(
        rounds,
        {
            **{f"raw {size}": _raw(facts[: count // part], size) for size, count in SIZES.items()},
            **{
                f"ours {size}": _ours(facts[: count // part], size) for size, count in SIZES.items()
            },
            "at once": runs_at_once(10 // min(part, 5)),
        },
    )
    return [*_appending(samples), *_reading(rounds, facts)]


def _appending(samples: dict[str, Samples]) -> list[Line]:
    lines: list[Line] = []
    for size in SIZES:
        ours, raw = samples[f"ours {size}"], samples[f"raw {size}"]
        lines += [
            ours.rate(f"facts appended a second, batches of {size}", "/s", note="wall time"),
            raw.rate(f"raw: batches of {size}", "/s", note="wall time"),
            ours.over(
                raw, f"ours / raw, batches of {size}", bound=RAW_BOUND if size == BOUNDED else None
            ),
        ]
    at_once = samples["at once"]
    return [
        *lines,
        at_once.rate("facts appended a second, 100 runs at once", "/s", note="wall time"),
        at_once.over(samples["raw 100"], "100 runs at once / raw, batches of 100"),
    ]


def _reading(rounds: int, facts: Sequence[Fact]) -> list[Line]:
    lines = [to_json(fact) for fact in facts]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        asyncio.run(_fill(path, single(facts), 100))
        samples = measured(
            rounds,
            {
                "read": _read(path, len(facts)),
                "decode": _each(_decode, lines),
                "trusted": _each(trusted_fact, lines),
                "codec": _each(fact_from_json, lines),
                "fold": timed(len(facts), partial(Kernel.recover, RUN, facts)),
            },
        )
    size = sum(map(len, lines)) / len(lines)
    return [
        samples["read"].rate("facts read a second", "/s", note=f"{size:.0f} bytes a fact"),
        samples["read"].line("read a fact, in pages of a thousand"),
        samples["decode"].line("– of it msgspec: decode the line"),
        samples["trusted"].line("– of it decode, and build the record"),
        samples["codec"].line("instead: a fact by the codec", note="every field checked again"),
        samples["fold"].line("afterwards: fold the fact", note="Kernel.recover"),
        samples["read"].over(samples["decode"], "read / msgspec: decode the line"),
        samples["read"].over(samples["codec"], "read / a fact by the codec"),
    ]


def facts_of_turns(count: int) -> list[Fact]:
    """Play turns of three with leases."""
    story: list[Timed] = []
    for number in range(count // 11 + 1):
        turn = turn_of_three(turn_id=f"turn-{number}", lease=LEASE)
        story += [(delivery, number * 10 + after) for delivery, after in turn]
    return [fact for verdict in Kernel(RUN).receive_many(story) for fact in verdict.facts][:count]


def single(facts: Sequence[Fact]) -> list[Fact]:
    """Make each fact a commit of its own, so that any batch is whole."""
    return [changed(fact, commit=fact.sequence) for fact in facts]


def _raw(facts: Sequence[Fact], size: int) -> Work:
    lines = [(fact.sequence, to_json(fact)) for fact in facts]

    def work() -> float:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "raw.db"
            with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("CREATE TABLE facts (sequence INTEGER PRIMARY KEY, fact BLOB)")
                start = perf_counter()
                for at in range(0, len(lines), size):
                    connection.execute("BEGIN IMMEDIATE")
                    connection.executemany("INSERT INTO facts VALUES (?, ?)", lines[at : at + size])
                    connection.execute("COMMIT")
                return (perf_counter() - start) / len(lines)

    return work


def _ours(facts: Sequence[Fact], size: int) -> Work:
    told = single(facts)
    return in_folder(lambda path: _fill(path, told, size))


async def _fill(path: Path, facts: Sequence[Fact], size: int) -> float:
    async with await SqliteJournal.open(path) as journal:
        await journal.declare(RUN)
        fence = await journal.own(RUN.run_id, owner="bench", now=0.0, lease=1.0)
        start = perf_counter()
        for at in range(0, len(facts), size):
            await _append(journal, RUN.run_id, fence, facts[at : at + size])
        return (perf_counter() - start) / len(facts)


def one_by_one(count: int) -> Work:
    """Append so many facts of one run, each by itself."""
    return _ours(facts_of_turns(count), 1)


def runs_at_once(ticks: int) -> Work:
    """Append one fact of each of `RUNS` at once, so often."""
    told = {
        run.run_id: [changed(fact, run_id=run.run_id) for fact in single(facts_of_turns(ticks))]
        for run in RUNS
    }

    async def fill(path: Path) -> float:
        async with await SqliteJournal.open(path) as journal:
            fences: dict[str, int] = {}
            for run in RUNS:
                await journal.declare(run)
                fences[run.run_id] = await journal.own(
                    run.run_id, owner="bench", now=0.0, lease=1.0
                )
            start = perf_counter()
            for tick in range(ticks):
                await asyncio.gather(
                    *(
                        _append(journal, run_id, fences[run_id], facts[tick : tick + 1])
                        for run_id, facts in told.items()
                    )
                )
            return (perf_counter() - start) / (ticks * len(RUNS))

    return in_folder(fill)


async def _append(journal: SqliteJournal, run_id: str, fence: int, facts: Sequence[Fact]) -> None:
    after = facts[0].sequence - 1
    answer = await journal.append(run_id, fence=fence, after=after, facts=facts, busy=True)
    if answer is not Appended.OK:
        raise AssertionError(answer)


def in_folder(fill: Callable[[Path], Coroutine[None, None, float]]) -> Work:
    """Make a work of what fills a journal in a folder of its own, and says how long it took."""

    def work() -> float:
        with TemporaryDirectory() as folder:
            return asyncio.run(fill(Path(folder) / "journal.db"))

    return work


def _each(function: Callable[[bytes], object], lines: Sequence[bytes]) -> Work:
    def run() -> None:
        for line in lines:
            function(line)

    return timed(len(lines), run)


def _read(path: Path, count: int) -> Work:
    async def read() -> float:
        async with await SqliteJournal.open(path) as journal:
            start = process_time()
            last = 0
            async for fact in journal.facts(RUN.run_id):
                last = fact.sequence
            took = process_time() - start
        if last != count:
            raise AssertionError(last)
        return took / count

    return lambda: asyncio.run(read())
