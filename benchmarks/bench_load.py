"""The runtime under load: many runs at once, beside the bare commits of the same appends.

First, each run plays turns of three calls; a person approves each as soon as he is asked, and the
next turn is opened as soon as the one before is told. Bare is raw SQLite, in the same folder and
right after: the same bytes in as many transactions with as many appends in each, and nothing else.

Then approvals that come at a pace which leaves time to spare, in one of many runs after the other;
and one run that needs no slot of others, which wait for a tool that bounds itself, have hundreds of
calls ready at any time, or play turns of three as fast as they can: with those it shares the
processor. Wall time: all of it waits for the disk.
"""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final, Self, TypeAlias

import attrs
from timing import QUICK, Line

from turnlock import Call, Run
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

TURNS: Final = {1: 300, 10: 60, 100: 12, 1_000: 4}
"""By how many runs there are: the turns that each plays."""
CALLS: Final = 3
PACE: Final = 50
PACED: Final = 250
"""Approvals that come at that pace, in one run after the other."""
PROBES: Final = 100
LONGEST: Final = 6.0
"""Seconds after which it is probed no more."""
BEFORE: Final = 0.5
"""Seconds that the others have to begin."""
FLOOD: Final = 300
HELD: Final = "held"
"""The turn of those that wait for slots."""
SINGLE: Final = 300
"""Appends that are committed one by one."""


def measure(rounds: int) -> list[Line]:
    """Measure each load so many times; what is told is the median round."""
    part = 4 if rounds <= QUICK else 1
    lines: list[Line] = []
    for runs, turns in TURNS.items():
        if runs * part <= max(TURNS):
            loads = [_loaded(runs, max(turns // part, 2)) for _ in range(rounds)]
            lines += _lines(runs, loads)
    for runs in TURNS:
        if runs * part <= max(TURNS):
            lines += _waited(
                _paced, runs, PACED // part, f"{_runs(runs)}, {PACE} approvals a second"
            )
    lines += _waited(partial(_beside, _waits), 0, PROBES // part, "one run alone")
    for others, what, do in BESIDE:
        name = f"one run beside {others:,} {what}"
        lines += _waited(partial(_beside, do), others // part, PROBES // part, name)
    return lines


@attrs.frozen(kw_only=True)
class _Load:
    """What one round came to; times in seconds."""

    turns: int
    seconds: float
    bare: float
    """Of the same appends in the same commits."""
    single: float
    """Of one append in a commit of its own."""
    appends: int
    commits: int
    waits: list[float]
    """From each approval to the first line of its tool."""


def _loaded(runs: int, turns: int) -> _Load:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "load.db"
        gc.collect()
        seconds, groups, waits = asyncio.run(_played(path, runs, turns))
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute("SELECT run, facts FROM appends ORDER BY rowid").fetchall()
        bare = _bare(Path(folder) / "bare.db", rows, groups)
        few = rows[:SINGLE]
        single = _bare(Path(folder) / "single.db", few, [1] * len(few)) / len(few)
    return _Load(
        turns=runs * turns,
        seconds=seconds,
        bare=bare,
        single=single,
        appends=len(rows),
        commits=len(groups),
        waits=waits,
    )


def _lines(runs: int, loads: Sequence[_Load]) -> list[Line]:
    of = _runs(runs)

    def line(name: str, unit: str, figure: Callable[[_Load], float], note: str = "") -> Line:
        value = statistics.median(map(figure, loads))
        return Line(name=f"{name}, {of}", value=value, unit=unit, note=note)

    return [
        line("turns a second", "/s", lambda load: load.turns / load.seconds),
        line("tool starts a second", "/s", lambda load: len(load.waits) / load.seconds),
        line("approve to the tool's first line, p50", "ms", lambda load: _at(load.waits, 50)),
        line("approve to the tool's first line, p99", "ms", lambda load: _at(load.waits, 99)),
        line("appends a commit", "", lambda load: load.appends / load.commits),
        line("bare: commits of one append", "/s", lambda load: 1 / load.single),
        line(
            "bare: turns a second",
            "/s",
            lambda load: load.turns / load.bare,
            note="the same appends in the same commits",
        ),
        line("ours / bare, time", "ratio", lambda load: load.seconds / load.bare),
    ]


def _runs(count: int) -> str:
    return f"{count:,} runs" if count > 1 else "1 run"


def _at(waits: Sequence[float], percent: int) -> float:
    return 1e3 * waits[len(waits) * percent // 100]


class _Host:
    """Plays runs, and notes how long each approved call took to come to its tool."""

    def __init__(self, journal: SqliteJournal) -> None:
        self.waits: defaultdict[str, list[float]] = defaultdict(list)
        """By run, in seconds."""
        self._asked: dict[str, float] = {}
        self._told: dict[str, asyncio.Future[None]] = {}

        @tool(approval=True)
        async def act(context: ToolContext, key: str) -> None:
            self.waits[context.run_id].append(perf_counter() - self._asked.pop(key))

        @tool
        async def pour(key: str) -> str:
            return key

        @tool(concurrency=1)
        async def hold(key: str) -> None:  # noqa: ARG001 - as the other
            await asyncio.sleep(3_600)

        self.runtime = Runtime(
            journal=journal,
            tools=Toolbox.of(act, pour, hold),
            on_continue=self._continue,
            settings=Settings(drain=0.1),
        )

    async def __aenter__(self) -> Self:
        await self.runtime.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runtime.__aexit__(None, None, None)

    async def open(self, run_ids: Sequence[str]) -> None:
        await asyncio.gather(*(self.runtime.open_run(Run(run_id=run_id)) for run_id in run_ids))

    async def play(self, run_id: str, turn_id: str, calls: int = CALLS) -> None:
        """Open a turn, approve all of it at once, and wait until it is told."""
        told = self._told[run_id] = asyncio.get_running_loop().create_future()
        asked = _calls(run_id, turn_id, tool_name="act", count=calls)
        await self.runtime.open_turn(run_id, asked, turn_id=turn_id)
        for call in asked:
            self._asked[str(call.arguments["key"])] = perf_counter()
        await asyncio.gather(
            *(
                self.runtime.approve(run_id, turn_id=turn_id, invocation_id=call.invocation_id)
                for call in asked
            )
        )
        await told

    async def flood(self, run_id: str, turn_id: str, calls: int) -> None:
        """Open a turn of calls that nobody need approve, and wait until it is told."""
        told = self._told[run_id] = asyncio.get_running_loop().create_future()
        asked = _calls(run_id, turn_id, tool_name="pour", count=calls)
        await self.runtime.open_turn(run_id, asked, turn_id=turn_id)
        await told

    async def _continue(self, told: Continuation) -> None:
        waiting = self._told.pop(told.run_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)


def _calls(run_id: str, turn_id: str, *, tool_name: str, count: int = CALLS) -> list[Call]:
    return [
        Call(
            invocation_id=f"call-{number}",
            tool_name=tool_name,
            arguments={"key": f"{run_id}/{turn_id}/{number}"},
            requires_approval=False,
        )
        for number in range(count)
    ]


async def _played(path: Path, runs: int, turns: int) -> tuple[float, list[int], list[float]]:
    """Return the seconds it took, how much was done in each commit, and the waits of all calls."""
    ids = [f"run-{number}" for number in range(runs)]
    async with await SqliteJournal.open(path) as journal, _Host(journal) as host:
        await host.open(ids)

        async def play(run_id: str) -> None:
            for number in range(turns):
                await host.play(run_id, f"turn-{number}")

        groups = _groups(journal)
        began = perf_counter()
        await asyncio.gather(*map(play, ids))
        seconds = perf_counter() - began
        return seconds, list(groups), sorted(chain.from_iterable(host.waits.values()))


def _groups(journal: SqliteJournal) -> list[int]:
    """Have it noted how many works each transaction of the writer does, from now on."""
    groups: list[int] = []
    worker: Any = journal._writer  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - nobody else needs to know
    perform = worker._perform  # noqa: SLF001

    def noted(connection: sqlite3.Connection, works: Sequence[Any]) -> Any:  # noqa: ANN401
        groups.append(len(works))
        return perform(connection, works)

    worker._perform = noted  # noqa: SLF001
    return groups


def _bare(path: Path, rows: Sequence[tuple[int, bytes]], groups: Sequence[int]) -> float:
    """Append the rows in transactions of so many, and return the seconds."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE appends (run INTEGER, facts BLOB)")
        began = perf_counter()
        at = 0
        for size in groups:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO appends VALUES (?, ?)", rows[at : at + size])
            connection.execute("COMMIT")
            at += size
        return perf_counter() - began


Wait: TypeAlias = Callable[[_Host, int, int], Coroutine[Any, Any, str]]
"""Plays so many runs and so many turns of one call, and names the run whose waits count, or ""."""


def _waited(play: Wait, runs: int, turns: int, name: str) -> list[Line]:
    with TemporaryDirectory() as folder:
        gc.collect()
        waits = asyncio.run(_waits_of(Path(folder) / "waits.db", play, runs, turns))
    return [
        Line(name=f"approve to the tool's first line, p{percent}, {name}", value=at, unit="ms")
        for percent, at in ((percent, _at(waits, percent)) for percent in (50, 99))
    ]


async def _waits_of(path: Path, play: Wait, runs: int, turns: int) -> list[float]:
    async with await SqliteJournal.open(path) as journal, _Host(journal) as host:
        run_id = await play(host, runs, turns)
        every = chain.from_iterable(host.waits.values())
        return sorted(host.waits[run_id] if run_id else every)


async def _paced(host: _Host, runs: int, turns: int) -> str:
    """Approve at a pace that leaves time to spare, whatever the number of runs."""
    ids = [f"run-{number}" for number in range(runs)]
    await host.open(ids)
    began = perf_counter()
    plays: list[asyncio.Task[None]] = []
    for number in range(turns):
        await asyncio.sleep(began + number / PACE - perf_counter())
        if number >= runs:
            await plays[number - runs]  # of the same run
        play = host.play(ids[number % runs], f"turn-{number}", calls=1)
        plays.append(asyncio.create_task(play))
    await asyncio.gather(*plays)
    return ""


async def _beside(do: Beside, host: _Host, others: int, turns: int) -> str:
    """Play turns of one run, one after the other, while the others do their part."""
    ids = [f"other-{number}" for number in range(others)]
    await host.open(["probe", *ids])
    busy = [asyncio.create_task(do(host, run_id)) for run_id in ids]
    await asyncio.sleep(BEFORE)
    until = perf_counter() + LONGEST
    for number in range(turns):
        await host.play("probe", f"turn-{number}", calls=1)
        if perf_counter() > until:
            break
    for task in busy:
        task.cancel()
    await asyncio.gather(*busy, return_exceptions=True)
    return "probe"


Beside: TypeAlias = Callable[[_Host, str], Coroutine[Any, Any, None]]
"""What each of the other runs does meanwhile."""


async def _waits(host: _Host, run_id: str) -> None:
    """Wait for a slot of a tool that one of these runs has for as long as it likes."""
    await host.runtime.open_turn(run_id, _calls(run_id, HELD, tool_name="hold"), turn_id=HELD)


async def _floods(host: _Host, run_id: str) -> None:
    """Have hundreds of calls ready, all the time."""
    for number in count():
        await host.flood(run_id, f"turn-{number}", calls=FLOOD)


async def _works(host: _Host, run_id: str) -> None:
    for number in count():
        await host.play(run_id, f"turn-{number}")


BESIDE: Final[Sequence[tuple[int, str, Beside]]] = (
    (1_000, "that wait for slots", _waits),
    (10, f"whose turns have {FLOOD} calls", _floods),
    (100, "that work", _works),
    (1_000, "that work", _works),
)
