"""Shared logs: entries appended beside facts, in the same run; a thousand logs looked at often.

An append is one entry of a chat, 150 bytes, or one fact by the owner of a run, each awaited before
the next, or a hundred at once: of a hundred logs, or of a hundred runs. Appends are wall time,
because they wait for the disk; the rest is CPU time, the journal's threads included.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Final

from bench_journal import RUNS, in_folder, one_by_one, runs_at_once
from timing import QUICK, Line, Samples, Work, measured

from turnlock.models.values import Json
from turnlock.runtime.journal.sqlite import SqliteJournal

ONE_BY_ONE: Final = 300
TICKS: Final = 10
READ: Final = 20_000
LOGS: Final = 1_000
POLLS: Final = 500
QUICK_PART: Final = 10

BODY: Final[Json] = {
    "kind": "message",
    "role": "person",
    "sender": "human",
    "text": "@alice book the flight to Lisbon, and ask before you pay for it",
}


def measure(rounds: int) -> list[Line]:
    """Append, read what was kept, and look whether there is anything new."""
    part = 1 if rounds > QUICK else QUICK_PART
    count, ticks = ONE_BY_ONE // part, max(2, TICKS // part)
    appended = measured(
        rounds,
        {
            "facts": one_by_one(count),
            "entries": in_folder(lambda path: _append(path, count)),
            "again": in_folder(lambda path: _append(path, count, again=True)),
            "facts at once": runs_at_once(ticks),
            "entries at once": in_folder(lambda path: _append_at_once(path, ticks)),
        },
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        asyncio.run(_fill(path, entries=READ // part, logs=LOGS))
        asked = measured(
            rounds,
            {
                "read": _on(path, lambda journal: _read(journal, READ // part)),
                "poll": _on(path, lambda journal: _poll(journal, POLLS // part)),
                "busy": _on(path, lambda journal: _poll(journal, POLLS // part, said=True)),
                "alone": _on(path, lambda journal: _poll(journal, POLLS // part, asked=False)),
            },
        )
    return [*_appending(appended), *_asking(asked)]


def _appending(samples: dict[str, Samples]) -> list[Line]:
    one, many = samples["entries"], samples["entries at once"]
    return [
        one.rate("entries appended a second, one by one", "/s", note="wall time"),
        samples["facts"].rate("facts: one by one", "/s", note="wall time"),
        one.over(samples["facts"], "entry / fact, one by one"),
        samples["again"].over(one, "said again / said first"),
        many.rate("entries appended a second, 100 logs at once", "/s", note="wall time"),
        samples["facts at once"].rate("facts: 100 runs at once", "/s", note="wall time"),
        many.over(samples["facts at once"], "entry / fact, 100 at once"),
    ]


def _asking(samples: dict[str, Samples]) -> list[Line]:
    return [
        samples["read"].rate("entries read a second", "/s", note="in pages of a thousand"),
        samples["poll"].line(f"look at {LOGS:,} logs, nothing new"),
        samples["busy"]
        .less(samples["alone"])
        .line(f"look at {LOGS:,} logs, one entry new", note="without its append"),
    ]


async def _append(path: Path, count: int, *, again: bool = False) -> float:
    async with await SqliteJournal.open(path) as journal:
        for number in range(count) if again else ():
            await journal.append_entry("w/c", f"say/human/{number}", BODY, at=1.0)
        start = perf_counter()
        for number in range(count):
            await journal.append_entry("w/c", f"say/human/{number}", BODY, at=1.0)
        return (perf_counter() - start) / count


async def _append_at_once(path: Path, ticks: int) -> float:
    async with await SqliteJournal.open(path) as journal:
        start = perf_counter()
        for tick in range(ticks):
            await _one_each(journal, len(RUNS), f"say/human/{tick}")
        return (perf_counter() - start) / (ticks * len(RUNS))


async def _one_each(journal: SqliteJournal, logs: int, entry_id: str) -> None:
    await asyncio.gather(
        *(journal.append_entry(f"w/c{it}", entry_id, BODY, at=1.0) for it in range(logs))
    )


async def _fill(path: Path, *, entries: int, logs: int) -> None:
    async with await SqliteJournal.open(path) as journal:
        await _one_each(journal, logs, "first")
        await asyncio.gather(
            *(journal.append_entry("v/c", f"{it}", BODY, at=1.0) for it in range(entries))
        )


async def _read(journal: SqliteJournal, count: int) -> float:
    start = process_time()
    last = 0
    while page := await journal.entries("v/c", after=last):
        last = page[-1].number
    took = process_time() - start
    if last != count:
        raise AssertionError(last)
    return took / count


async def _poll(
    journal: SqliteJournal, polls: int, *, said: bool = False, asked: bool = True
) -> float:
    """Look so often; each time after an entry was appended, if `said`, or only append it."""
    before = sum(it.last for it in await journal.logs("w/"))
    start = process_time()
    for number in range(polls):
        if said or not asked:
            await journal.append_entry("w/c7", f"{before}/{asked}/{number}", BODY, at=1.0)
        if asked:
            await journal.logs("w/")
    return (process_time() - start) / polls


def _on(path: Path, ask: Callable[[SqliteJournal], Awaitable[float]]) -> Work:
    async def work() -> float:
        async with await SqliteJournal.open(path) as journal:
            return await ask(journal)

    return lambda: asyncio.run(work())
