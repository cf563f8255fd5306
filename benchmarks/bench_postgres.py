"""The PostgreSQL journal beside raw INSERTs of the same rows, and what hosts wait for.

Raw is asyncpg on a connection of its own to the same server: the same rows into a table like ours,
without any judgement. "Grouped" are one row each of so many runs, asked for at once, again and
again; raw they are one statement with arrays. Every round has all sides, in turn, in one process.
The server waits for its disk (fsync), where the SQLite file lies, too. Wall time: all wait for it.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, Final

import asyncpg
import attrs
from bench_journal import facts_of_turns, single
from bench_runtime import Turns
from servers import postgres_cluster
from timing import QUICK, Line, Samples, Work, measured

from turnlock import Call, Decide, Fact, OpenTurn, Run
from turnlock.models.record import changed
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Appended, Journal, open_journal
from turnlock.runtime.journal.rows import row_of
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.submitting import submit
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from tests.postgres.cluster import Cluster

SIZES: Final = (1, 10, 100)
"""Of runs that append at once, and of facts in each append."""
FACTS: Final = 2_000
"""That a round appends at least, in each cell …"""
TICKS: Final = 20
"""… in so many ticks at most."""
STARTS: Final = 100
START_ROUNDS: Final = 7
TAKEN: Final = 1_000
VISITS: Final = 100
RESTARTS: Final = 5

TABLE: Final = """CREATE TABLE raw (run bigint NOT NULL, first bigint NOT NULL,
    last bigint NOT NULL, facts bytea NOT NULL, checksum bigint NOT NULL,
    PRIMARY KEY (run, last))"""
ONE: Final = "INSERT INTO raw VALUES ($1, $2, $3, $4, $5)"
MANY: Final = """INSERT INTO raw
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bigint[])"""

AT_LEAST_OF_RAW: Final = 0.2
"""Of the rate of raw grouped INSERTs, in every cell."""
AT_LEAST_OF_SINGLE: Final = 2.5
"""Times the rate of one raw INSERT a transaction, at 100 runs."""
AT_LEAST_GROUPED: Final = 5.0
"""Times the rate of our own appends one by one, at 10 and 100 runs."""

Row = tuple[int, int, int, bytes, int]


def measure(rounds: int) -> list[Line]:
    """Measure all of it on one server."""
    quick = rounds <= QUICK
    lines: list[Line] = []
    with postgres_cluster() as server, asyncio.Runner() as runner:
        bench = runner.run(_Bench.begun(server))
        for runs, batch in itertools.product(SIZES, SIZES):
            if not quick or runs * batch <= SIZES[1]:
                lines += bench.cell(runner, rounds, runs=runs, batch=batch)
        starts = (STARTS // 5, 1) if quick else (STARTS, START_ROUNDS)
        lines += runner.run(_starts(bench, *starts))
        lines += runner.run(_visits(bench, VISITS // 5 if quick else VISITS))
        lines += runner.run(_take_over(bench, TAKEN // 10 if quick else TAKEN))
        lines += runner.run(_restarted(bench, 1 if quick else RESTARTS))
        runner.run(bench.end())
    return lines


@attrs.define
class _Bench:
    """A server, our journal on it, and a raw connection."""

    server: Cluster
    journal: Journal
    raw: Any
    numbers: Iterator[int] = attrs.field(factory=itertools.count)

    @classmethod
    async def begun(cls, server: Cluster) -> _Bench:
        raw: Any = await asyncpg.connect(server.url)
        await raw.execute("SET synchronous_commit = on")
        if await raw.fetchval("SHOW fsync") != "on":
            raise AssertionError("the server does not wait for its disk")
        await raw.execute(TABLE)
        return cls(server, await open_journal(server.url), raw)

    async def end(self) -> None:
        await self.journal.close()

    def cell(self, runner: asyncio.Runner, rounds: int, *, runs: int, batch: int) -> Sequence[Line]:
        """Measure one cell: ours, raw grouped, and each by itself where that is asked."""
        ticks = max(2, min(TICKS, FACTS // (runs * batch)))
        works: dict[str, Callable[[], Awaitable[float]]] = {
            "ours": partial(self.grouped, runs, batch, ticks),
            "raw": partial(self.raw_grouped, runs, batch, ticks),
        }
        if batch == 1:
            works |= {
                "one by one": partial(self.one_by_one, batch, ticks),
                "raw one by one": partial(self.raw_one_by_one, batch, ticks),
            }
        samples = measured(rounds, {name: _on(runner, work) for name, work in works.items()})
        return _lines(samples, runs=runs, batch=batch)

    async def grouped(self, runs: int, batch: int, ticks: int) -> float:
        """Append a batch to each of these runs at once, so often; return the time of one append."""
        told, fences = await self._begun(runs, batch * ticks)
        began = perf_counter()
        for at in range(0, batch * ticks, batch):
            await asyncio.gather(
                *(
                    _append(self.journal, run_id, fences[run_id], facts[at : at + batch])
                    for run_id, facts in told.items()
                )
            )
        return (perf_counter() - began) / (ticks * runs)

    async def one_by_one(self, batch: int, ticks: int) -> float:
        told, fences = await self._begun(1, batch * ticks)
        ((run_id, facts),) = told.items()
        began = perf_counter()
        for at in range(0, batch * ticks, batch):
            await _append(self.journal, run_id, fences[run_id], facts[at : at + batch])
        return (perf_counter() - began) / ticks

    async def raw_grouped(self, runs: int, batch: int, ticks: int) -> float:
        told = self.rows(runs, batch, ticks)
        began = perf_counter()
        for rows in told:
            await self.raw.execute(MANY, *map(list, zip(*rows, strict=True)))
        return (perf_counter() - began) / (ticks * runs)

    async def raw_one_by_one(self, batch: int, ticks: int) -> float:
        told = self.rows(1, batch, ticks)
        began = perf_counter()
        for (row,) in told:
            await self.raw.execute(ONE, *row)
        return (perf_counter() - began) / ticks

    async def begun_runs(self, count: int) -> dict[str, int]:
        """Declare and own so many runs; return their fences."""
        ids = [f"bench-{next(self.numbers)}" for _ in range(count)]
        journal = self.journal
        await asyncio.gather(*(journal.declare(Run(run_id=run_id)) for run_id in ids))
        now = journal.time()
        fences = await asyncio.gather(
            *(journal.own(run_id, owner="bench", now=now, lease=3_600.0) for run_id in ids)
        )
        return dict(zip(ids, fences, strict=True))

    async def _begun(
        self, runs: int, count: int
    ) -> tuple[dict[str, Sequence[Fact]], dict[str, int]]:
        fences = await self.begun_runs(runs)
        facts = single(facts_of_turns(count))
        told = {run_id: [changed(fact, run_id=run_id) for fact in facts] for run_id in fences}
        return {run_id: list(facts) for run_id, facts in told.items()}, fences

    def rows(self, runs: int, batch: int, ticks: int) -> list[list[Row]]:
        """Return the rows of each tick, as ours would be; the run's number is one of its own."""
        facts = single(facts_of_turns(batch * ticks))
        told = [row_of("run-1", facts[at : at + batch]) for at in range(0, batch * ticks, batch)]
        numbers = [next(self.numbers) for _ in range(runs)]
        return [
            [(number, it.first, it.last, it.facts, it.checksum) for number in numbers]
            for it in told
        ]


async def _append(journal: Journal, run_id: str, fence: int, facts: Sequence[Fact]) -> None:
    after = facts[0].sequence - 1
    answer = await journal.append(run_id, fence=fence, after=after, facts=facts, busy=True)
    if answer is not Appended.OK:
        raise AssertionError(answer)


def _on(runner: asyncio.Runner, work: Callable[[], Awaitable[float]]) -> Work:
    async def done() -> float:
        return await work()

    return lambda: runner.run(done())


def _lines(samples: dict[str, Samples], *, runs: int, batch: int) -> list[Line]:
    ours, raw = samples["ours"], samples["raw"]
    of = f"{runs} runs × {batch}"
    lines = [
        ours.rate(f"appends a second, {of}", "/s"),
        _quotient(ours, raw, f"ours ÷ raw grouped INSERTs, {of}", least=AT_LEAST_OF_RAW),
    ]
    if batch == 1 and runs > 1:
        single, alone = samples["raw one by one"], samples["one by one"]
        least = AT_LEAST_OF_SINGLE if runs == SIZES[-1] else None
        lines += [
            _quotient(ours, single, f"ours ÷ one raw INSERT a transaction, {of}", least=least),
            _quotient(
                ours, alone, f"ours ÷ one append a transaction, {of}", least=AT_LEAST_GROUPED
            ),
        ]
    return lines


def _quotient(ours: Samples, peer: Samples, name: str, *, least: float | None) -> Line:
    """Return a quotient of rates, best over best, and the median over the rounds."""
    pairs = zip(ours.seconds, peer.seconds, strict=True)
    value = peer.least / ours.least
    return Line(
        name=name,
        value=value,
        median=statistics.median(other / mine for mine, other in pairs),
        unit="ratio",
        note="" if least is None else f"at least {least:g}: {'yes' if value >= least else 'NO'}",
    )


async def _starts(bench: _Bench, count: int, rounds: int) -> list[Line]:
    """From `open_turn` to the tool's first line, beside raw INSERTs and SQLite, in turn."""
    found = [await _p50_of_starts(bench, count) for _ in range(rounds)]
    lines = [
        Line(
            name=f"p50: {name}",
            value=min(1e3 * p50[name] for p50 in found),
            median=statistics.median(1e3 * p50[name] for p50 in found),
            unit="ms",
        )
        for name in ("raw", "ours", "SQLite")
    ]
    for peer, name, bound in (("raw", "a raw INSERT", 15.0), ("SQLite", "that with SQLite", 2.0)):
        ratios = [p50["ours"] / p50[peer] for p50 in found]
        lines.append(
            Line(
                name=f"open_turn to the tool's first line ÷ {name}, p50",
                value=min(ratios),
                median=statistics.median(ratios),
                unit="ratio",
                bound=bound,
                by_median=True,
                note=f"{min(ratios):.2f} … {max(ratios):.2f} in {rounds} rounds",
            )
        )
    return lines


async def _p50_of_starts(bench: _Bench, count: int) -> dict[str, float]:
    """Return the seconds of each side, in one round.

    A turn's last append is under way when the next one is asked for: so each goes first in turn.
    """
    took: dict[str, list[float]] = {"raw": [], "ours": [], "SQLite": []}
    asked, side = 0.0, "ours"

    @tool
    async def act() -> None:
        took[side].append(perf_counter() - asked)

    run = Run(run_id=f"starts-{next(bench.numbers)}")
    with TemporaryDirectory() as folder:
        rows = bench.rows(1, 1, count + 1)
        async with (
            await SqliteJournal.open(Path(folder) / "starts.db") as file,
            Turns(bench.journal, act, run=run) as ours,
            Turns(file, act) as other,
        ):
            sides = [("ours", ours), ("SQLite", other)]
            for (row,), number in zip(rows, range(count + 1), strict=True):
                began = perf_counter()
                await bench.raw.execute(ONE, *row)
                took["raw"].append(perf_counter() - began)
                for name, turns in sides:
                    side, asked = name, perf_counter()
                    await turns.play("act")
                sides.reverse()
                if number == 0:
                    for each in took.values():
                        each.clear()  # what was prepared
    return {name: statistics.median(each) for name, each in took.items()}


def _milliseconds(name: str, seconds: float, *, bound: float | None = None) -> Line:
    return Line(name=name, value=1e3 * seconds, unit="ms", bound=bound)


async def _no_one(_: Continuation) -> None:
    """Take what is never told."""


@tool(approval=True)
async def pay() -> None:
    """Wait for a person first."""


def _runtime(journal: Journal, *tools: Tool, takes_over: bool = False) -> Runtime:
    return Runtime(
        journal=journal,
        tools=Toolbox(tools),
        on_continue=_no_one,
        settings=Settings(takes_over=takes_over),
    )


def _turn() -> OpenTurn:
    call = Call(invocation_id="call-1", tool_name="pay", arguments={}, requires_approval=True)
    return OpenTurn(turn_id="turn-1", calls=(call,))


async def _visits(bench: _Bench, count: int) -> list[Line]:
    """Approve in one journal what a runtime on another one owns."""
    approval = Decide(turn_id="turn-1", invocation_id="call-1", approved=True)
    took: list[float] = []
    raw: list[float] = []
    rows = iter(bench.rows(1, 1, count))
    async with (
        await open_journal(bench.server.url) as elsewhere,
        _runtime(elsewhere, pay) as runtime,
    ):
        for number in range(count):
            run_id = f"visited-{number}"
            await runtime.open_run(Run(run_id=run_id))
            await runtime.deliver(run_id, _turn())
            began = perf_counter()
            await bench.raw.execute(ONE, *next(rows)[0])
            raw.append(perf_counter() - began)
            began = perf_counter()
            answer = await submit(bench.journal, run_id, approval, within=10.0)
            took.append(perf_counter() - began)
            if not answer.by_owner:
                raise AssertionError(run_id)
    return [
        _milliseconds("an approval by the owner elsewhere, p50", statistics.median(took), bound=25),
        _milliseconds("– p99", sorted(took)[len(took) * 99 // 100]),
        Line(
            name="– ÷ a raw INSERT, p50",
            value=statistics.median(took) / statistics.median(raw),
            unit="ratio",
            note="post, facts and answer are three commits, one after the other",
        ),
    ]


async def _take_over(bench: _Bench, count: int) -> list[Line]:
    """Take runs of a dead owner over whose lease is over: owned, folded and performed."""
    journal = bench.journal
    for number in range(count):
        run_id = f"left-{number}"
        await journal.declare(Run(run_id=run_id))
        await submit(journal, run_id, _turn(), within=1.0, policies={"pay": pay.policy})
    entries = [entry async for entry in journal.run_entries(busy=True)]
    left = [entry for entry in entries if entry.run.run_id.startswith("left-")]
    now = journal.time()
    for at in range(0, len(left), SIZES[-1]):
        await journal.take(left[at : at + SIZES[-1]], owner="gone", now=now, lease=0.001)
    await asyncio.sleep(0.1 + journal.patience)
    async with _runtime(journal, pay) as runtime:
        began, worked = perf_counter(), process_time()
        taken = await runtime.take_over()
        seconds, worked = perf_counter() - began, process_time() - worked
        if len(taken) < count:
            raise AssertionError(len(taken))
    return [
        Line(
            name=f"takeover of {len(taken):,} runs, once their lease is over",
            value=seconds * TAKEN / len(taken),
            unit="s a thousand",
            bound=1.0,
            note=f"3 s without take; of this process {worked * TAKEN / len(taken):.2g} s of CPU",
        )
    ]


async def _restarted(bench: _Bench, count: int) -> list[Line]:
    """Kill the server, begin it again, and append as soon as it answers."""
    took: list[float] = []
    facts = single(facts_of_turns(count + 1))
    for _ in range(count):
        fences = await bench.begun_runs(1)
        ((run_id, fence),) = fences.items()
        server = bench.server
        await asyncio.to_thread(server.kill)
        with suppress(JournalError):
            await bench.journal.entry(run_id)
        await asyncio.sleep(1.0)
        await asyncio.to_thread(server.start)
        while True:
            with suppress(OSError, asyncpg.PostgresError):
                connection: Any = await asyncpg.connect(server.url)
                await connection.close()
                break
            await asyncio.sleep(0.005)
        began = perf_counter()
        while True:
            with suppress(JournalError):
                fact = changed(facts[0], run_id=run_id)
                await _append(bench.journal, run_id, fence, [fact])
                break
            await asyncio.sleep(0.005)
        took.append(perf_counter() - began)
    worst = max(took)
    return [
        Line(
            name="the server answers again, to the first append, worst",
            value=worst,
            median=statistics.median(took),
            unit="s",
            bound=1.0,
            note=f"of {count} kills",
        )
    ]
