"""Guards: what a guarded call costs beside bare commits, a first look at a long run, and imports.

A guarded call is a turn of one call that is opened, claimed, run and recorded by a `Guard` on a
file: three appends. Beside each stand three commits of the same bytes by SQLite alone, in the same
folder and of the same durability (WAL, synchronous FULL), one call after the other and in turn, so
that both meet the same disk. That is wall time, because both wait for the disk. A guarded call goes
through three threads, each of which waits for a processor where others are busy; so what they take
of it is told apart.

A first look is what a process does that has never seen a run: of 550 turns of one call, with the
snapshot that its guards have kept, or with none. An import is what a guard's adapter takes in a
fresh interpreter that has its framework already, attrs included; bytecode is cached. Both are CPU
time.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Final, TypeAlias, cast

import attrs
from timing import QUICK, Line, Samples, Work, measured

from turnlock import Call
from turnlock.guards import BEGINNING, Abandons, At, CallContext, Guard, Outcome
from turnlock.guards.engine import Engine, Held
from turnlock.guards.settings import Settings
from turnlock.models.values import Json
from turnlock.runtime.journal.contract import Journal, open_journal
from turnlock.runtime.journal.memory import MemoryJournal

CALLS: Final = 100
"""Guarded calls of a round, each beside its three commits."""
COMMITS: Final = 3
"""Of a guarded call: its turn, its claim and its outcome."""
TIMES: Final = 1.5
"""Times the bare commits that a guarded call may take."""
LONG: Final = 550
"""Calls of the run that is looked at."""
LOOK: Final = 20.0
IMPORT: Final = 30.0
"""Milliseconds that a first look, and an import, may take."""
QUICK_PART: Final = 10
Look: TypeAlias = Callable[[Engine], Awaitable[None]]

ARGUMENTS: Final[dict[str, Json]] = {"account": "NO93 8601 1117 947", "amount": 250}
FRAMEWORKS: Final = {
    "langgraph": "import langchain.agents, langgraph.graph, langgraph.prebuilt",
    "openai_agents": "import agents",
    "pydantic_ai": "import pydantic_ai",
    "agent_framework":
        "from agent_framework import Agent, ChatMiddleware, FunctionMiddleware, tool",
    "mcp": "import click, mcp",
}  # fmt: skip
"""By adapter: what a program has imported that uses its framework."""
IMPORTING: Final = """
{framework}
from time import process_time
before = process_time()
{ours}
print(process_time() - before)
"""


def measure(rounds: int) -> list[Line]:
    """Call, look and import."""
    part = 1 if rounds > QUICK else QUICK_PART
    return [
        *_calling(rounds, CALLS // part),
        *_looking(rounds, LONG // part),
        *_importing(rounds),
    ]


# A guarded call.


@attrs.frozen(kw_only=True)
class _Round:
    """Seconds of each call and of its commits, by the wall, and of all of them by the processor."""

    guarded: list[float]
    bare: list[float]
    cpu: float
    bare_cpu: float


def _calling(rounds: int, calls: int) -> list[Line]:
    lines = _bytes_of_a_call()
    found = [_beside(lines, calls) for _ in range(rounds + 1)][1:]
    guarded = Samples(tuple(statistics.median(it.guarded) for it in found))
    bare = Samples(tuple(statistics.median(it.bare) for it in found))
    cpu = Samples(tuple(it.cpu / calls for it in found))
    bare_cpu = Samples(tuple(it.bare_cpu / calls for it in found))
    each = sum(map(len, lines)) / len(lines)
    note = "wall time, median of a round"
    return [
        guarded.line("a guarded call", "ms", scale=1e3, note=note),
        bare.line(
            f"{COMMITS} bare commits", "ms", scale=1e3, note=f"{note}; {each:.0f} bytes each"
        ),
        Line(
            name=f"a guarded call / {COMMITS} bare commits",
            value=statistics.median(_ratios(found)),
            unit="ratio",
            bound=TIMES,
            note="median of each call over the commits right after it",
        ),
        Line(
            name="– were a processor always free",
            value=1 + max(0.0, cpu.median - bare_cpu.median) / bare.median,
            unit="ratio",
            note="the commits, and all that a call takes of the processor besides",
        ),
        cpu.line("of the processor: a guarded call", "ms", scale=1e3),
        bare_cpu.line(f"of the processor: {COMMITS} bare commits", "ms", scale=1e3),
    ]


def _ratios(found: list[_Round]) -> list[float]:
    return [mine / other for it in found for mine, other in zip(it.guarded, it.bare, strict=True)]


def _bytes_of_a_call() -> list[bytes]:
    """Return what a guarded call appends, as its journal keeps it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "guarded.db"
        with Guard.open(path) as guard:
            _call(guard, 0)
            _call(guard, 1)
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute("SELECT facts FROM appends ORDER BY rowid").fetchall()
    found = [bytes(row[0]) for row in rows[-COMMITS:]]
    if len(rows) != 2 * COMMITS:
        raise AssertionError(len(rows))
    return found


def _call(guard: Guard, number: int) -> None:
    """Open the turn of a call, and run it."""
    turn, after = f"t{number}", f"t{number - 1}" if number else BEGINNING
    guard.open_turn("r", turn, (_asked(),), after=after)
    outcome = guard.call(At("r", turn, "c"), "pay", ARGUMENTS, _pay)
    if outcome.replayed or outcome.value != "paid":
        raise AssertionError(outcome)


def _asked() -> Call:
    return Call(invocation_id="c", tool_name="pay", arguments=ARGUMENTS, requires_approval=False)


def _pay(_: CallContext) -> str:
    return "paid"


def _beside(lines: list[bytes], calls: int) -> _Round:
    guarded: list[float] = []
    bare: list[float] = []
    cpu = bare_cpu = 0.0
    with (
        TemporaryDirectory() as folder,
        Guard.open(Path(folder) / "guarded.db") as guard,
        closing(sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)) as connection,
    ):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE appends (number INTEGER PRIMARY KEY, facts BLOB)")
        for number in range(calls):
            start, start_cpu = perf_counter(), process_time()
            _call(guard, number)
            between, between_cpu = perf_counter(), process_time()
            for line in lines:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO appends (facts) VALUES (?)", (line,))
                connection.execute("COMMIT")
            guarded.append(between - start)
            bare.append(perf_counter() - between)
            cpu += between_cpu - start_cpu
            bare_cpu += process_time() - between_cpu
    return _Round(guarded=guarded, bare=bare, cpu=cpu, bare_cpu=bare_cpu)


# A first look.


def _looking(rounds: int, calls: int) -> list[Line]:
    with TemporaryDirectory() as folder:
        kept, bare = Path(folder) / "kept.db", Path(folder) / "bare.db"
        behind = asyncio.run(_long_run(kept, calls, snapshot=True))
        asyncio.run(_long_run(bare, calls, snapshot=False))
        last, first = At("r", f"t{calls - 1}", "c"), At("r", "t0", "c")
        samples = measured(
            rounds,
            {
                "waits": _first(kept, _waiting),
                "last": _first(kept, partial(_replayed, at=last)),
                "old": _first(kept, partial(_replayed, at=first)),
                "none": _on_a_copy(bare, _waiting),
            },
        )
    return [
        samples["waits"].line(
            f"a first look at {calls} calls",
            "ms",
            scale=1e3,
            bound=LOOK,
            note=f"snapshot {behind} facts behind" if behind else "no snapshot yet",
        ),
        samples["last"].line("– with the outcome of the last", "ms", scale=1e3),
        samples["old"].line("– with the outcome of the first", "ms", scale=1e3),
        samples["none"].line("– where no snapshot is kept", "ms", scale=1e3),
    ]


async def _long_run(path: Path, calls: int, *, snapshot: bool) -> int:
    """Keep a run of so many calls; return how many facts its snapshot is behind, 0 without one."""
    quick = MemoryJournal()
    guard = _engine(quick)
    for number in range(calls):
        turn, after = f"t{number}", f"t{number - 1}" if number else BEGINNING
        await guard.open_turn("r", turn, (_asked(),), after=after, abandons=Abandons.WAITING)
        held = await guard.claim(At("r", turn, "c"), "pay", ARGUMENTS)
        await guard.succeeded(cast("Held", held), "paid")
    entry, kept = await quick.entry("r"), await quick.snapshot("r")
    async with await open_journal(path) as journal:
        await journal.declare(entry.run)
        facts = [fact async for fact in quick.facts("r")]
        await journal.append("r", fence=None, after=0, facts=facts, busy=True)
        if snapshot and kept is not None:
            await journal.keep_snapshot(kept, fence=None)
            return entry.sequence - kept.sequence
    return 0


def _engine(journal: Journal) -> Engine:
    settings = Settings(lease=30.0, wait=1.0, patience=1.0, policies={}, limits=None)
    return Engine(journal, settings)


def _first(path: Path, look: Look) -> Work:
    """Look with an engine that has seen nothing; opening the file is no part of it."""

    async def seconds() -> float:
        async with await open_journal(path) as journal:
            guard = _engine(journal)
            start = process_time()
            await look(guard)
            return process_time() - start

    return lambda: asyncio.run(seconds())


def _on_a_copy(path: Path, look: Look) -> Work:
    """Look at a copy: whoever looks at a run without a snapshot keeps one."""

    def work() -> float:
        with TemporaryDirectory() as folder:
            copied = Path(folder) / "copied.db"
            copy(path, copied)
            return _first(copied, look)()

    return work


async def _waiting(guard: Engine) -> None:
    if await guard.waiting("r"):
        raise AssertionError


async def _replayed(guard: Engine, *, at: At) -> None:
    outcome = await guard.claim(at, "pay", ARGUMENTS)
    if not isinstance(outcome, Outcome) or outcome.value != "paid":
        raise AssertionError(outcome)


# Imports.


def _importing(rounds: int) -> list[Line]:
    works: dict[str, Work] = {
        name: partial(_seconds, framework, f"import turnlock.guards.{name}")
        for name, framework in FRAMEWORKS.items()
    }
    works["attrs"] = partial(_seconds, FRAMEWORKS["openai_agents"], "import attrs")
    works["guard"] = partial(_seconds, "import asyncio, attrs", "import turnlock.guards.engine")
    samples = measured(rounds, works)
    return [
        *(
            samples[name].line(f"import turnlock.guards.{name}", "ms", scale=1e3, bound=IMPORT)
            for name in FRAMEWORKS
        ),
        samples["attrs"].line("– of each: import attrs", "ms", scale=1e3),
        *(
            samples[name].over(samples["attrs"], f"guards.{name} / import attrs")
            for name in FRAMEWORKS
        ),
        samples["guard"].line("what Guard.open imports then", "ms", scale=1e3),
    ]


def _seconds(framework: str, ours: str) -> float:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    told = subprocess.run(  # noqa: S603 - our own interpreter and programs
        [sys.executable, "-c", IMPORTING.format(framework=framework, ours=ours)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(told.stdout)
