"""Replay: how fast a journal is folded again, into a kernel and a view, and how fast received.

The facts are objects; what it costs to read them from JSON stands under codec. Then the whole way
from a SQLite file to a kernel, as a run is opened, and beside it by records, as one could do it:
CPU time of both threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Final

from timing import QUICK, Line, Samples, Work, measured, timed, timed_on
from turns import LEASE, RUN, Timed, deliver, fresh, turn_of_three

from turnlock import Fact, Kernel, RunView
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.writer import fold_run

FACTS: Final = 50_000
QUICK_FACTS: Final = 2_000
AN_APPEND: Final = 100
"""Facts, some more where a commit ends behind them."""


def measure(rounds: int) -> list[Line]:
    """Play turns of three with leases until the journal is long enough, then recover it."""
    wanted = FACTS if rounds > QUICK else QUICK_FACTS
    per_turn = len(_journal(turn_of_three(lease=LEASE)))
    story: list[Timed] = []
    for number in range(wanted // per_turn + 1):
        turn = turn_of_three(turn_id=f"turn-{number}", lease=LEASE)
        story += [(delivery, number * 10 + after) for delivery, after in turn]
    journal = _journal(story)
    recovered = Kernel.recover(RUN, journal)
    if recovered.sequence != len(journal):
        raise AssertionError(recovered.sequence)

    samples = measured(
        rounds,
        {
            "recover": timed(len(journal), partial(Kernel.recover, RUN, journal)),
            "view": timed(len(journal), partial(RunView.of, RUN, journal)),
            "receive": timed_on(len(story), partial(fresh, 1), partial(_play, story)),
        },
    )
    note = f"{len(journal):,} facts"
    kept = _from_sqlite(rounds, journal)
    return [
        samples["recover"].line("recover, a fact", note=note),
        samples["recover"].rate("facts recovered a second", "/s"),
        samples["view"].line("fold into a view, a fact", note="RunView.of"),
        samples["view"].over(samples["recover"], "fold into a view / recover"),
        samples["receive"].rate("deliveries received a second", "/s", note="with leases"),
        kept["fold"].line("SQLite to a kernel, a fact", note=f"{AN_APPEND} facts an append"),
        kept["fold"].rate("SQLite to a kernel, facts a second", "/s"),
        kept["records"].line("the same by records, a fact"),
        kept["fold"].over(kept["records"], "SQLite to a kernel / by records"),
        kept["fold"].over(samples["recover"], "SQLite to a kernel / recover"),
    ]


def _from_sqlite(rounds: int, facts: Sequence[Fact]) -> dict[str, Samples]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        asyncio.run(_fill(path, facts))
        works = {
            "fold": _folding(path, len(facts), partial(fold_run, RUN)),
            "records": _folding(path, len(facts), _by_records),
        }
        return measured(rounds, works)


async def _fill(path: Path, facts: Sequence[Fact]) -> None:
    async with await SqliteJournal.open(path) as journal:
        await journal.declare(RUN)
        fence = await journal.own(RUN.run_id, owner="bench", now=0.0, lease=1.0)
        for told in _appends(facts):
            after = told[0].sequence - 1
            await journal.append(RUN.run_id, fence=fence, after=after, facts=told, busy=True)


def _appends(facts: Sequence[Fact]) -> Iterator[list[Fact]]:
    told: list[Fact] = []
    for fact in facts:
        told.append(fact)
        if len(told) >= AN_APPEND and fact.sequence == fact.commit:
            yield told
            told = []
    if told:
        yield told


async def _by_records(journal: Journal) -> Kernel:
    return Kernel.recover(RUN, [fact async for fact in journal.facts(RUN.run_id)])


def _folding(path: Path, count: int, fold: Callable[[Journal], Awaitable[Kernel]]) -> Work:
    async def work() -> float:
        async with await SqliteJournal.open(path) as journal:
            start = process_time()
            kernel = await fold(journal)
            took = process_time() - start
        if kernel.sequence != count:
            raise AssertionError(kernel.sequence)
        return took / count

    return lambda: asyncio.run(work())


def _journal(story: list[Timed]) -> list[Fact]:
    return [fact for verdict in Kernel(RUN).receive_many(story) for fact in verdict.facts]


def _play(story: list[Timed], kernels: list[Kernel]) -> None:
    for kernel in kernels:
        deliver(kernel, story)
