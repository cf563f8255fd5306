"""The runtime: from a delivery to the start of its tool, runs that wait, and recovery.

The peer of the first is what asyncio itself takes from asking for a task to its first line. Between
the two lies an append: the turn and the claim are kept before the tool starts. Where the claim is
an append of its own there are two; both ways are measured in turn, to when the claim is durable.
Those are wall time, because they wait for the disk; recovery is CPU time of this process.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import tracemalloc
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Final, Self, cast
from unittest.mock import patch

from timing import QUICK, Line

from turnlock import Call, Claim, Execute, Fact, FactType, Kernel, Run
from turnlock.runtime.actor import Actor
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.executions import Executions
from turnlock.runtime.journal.contract import Appended, Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.runtime.writer import fold_run

STARTS: Final = 500
QUICK_STARTS: Final = 20
RUNS: Final = 10_000
QUICK_RUNS: Final = 200
TURNS: Final = (100, 1_000, 10_000)
"""Of one call each, five facts: 500 to 50,000 facts of one run."""
RUN: Final = Run(run_id="run-1")


def measure(rounds: int) -> list[Line]:
    """Measure all three."""
    quick = rounds <= QUICK
    with TemporaryDirectory() as folder:
        return asyncio.run(_measured(Path(folder), quick=quick))


async def _measured(folder: Path, *, quick: bool) -> list[Line]:
    count = QUICK_STARTS if quick else STARTS
    bare = await _bare(count)
    lines = [_percentile(bare, "a bare asyncio task to its first line", 50)]
    journals: dict[str, Journal] = {
        "in memory": MemoryJournal(),
        "SQLite": await SqliteJournal.open(folder / "starts.db"),
    }
    for name, journal in journals.items():
        async with journal:
            starts = await _starts(journal, count)
        lines += [
            _percentile(starts, f"open_turn to the tool's first line, {name}, p50", 50),
            _percentile(starts, f"open_turn to the tool's first line, {name}, p99", 99),
            Line(
                name=f"p50 / bare, {name}",
                value=statistics.median(starts) / statistics.median(bare),
                unit="ratio",
            ),
        ]
    claims: dict[str, Journal] = {
        "in memory": MemoryJournal(),
        "SQLite": await SqliteJournal.open(folder / "claims.db"),
    }
    for name, journal in claims.items():
        async with journal:
            lines += await _claims(journal, count, name)
    lines.append(await _waiting(QUICK_RUNS if quick else RUNS))
    for turns in TURNS[:1] if quick else TURNS:
        lines += await _recovery(folder / f"{turns}.db", turns)
    return lines


async def _bare(count: int) -> list[float]:
    took: list[float] = []
    for _ in range(count):
        asked = perf_counter()

        async def work(asked: float = asked) -> None:
            took.append(perf_counter() - asked)

        await asyncio.create_task(work())
    return took


async def _starts(journal: Journal, count: int) -> list[float]:
    """Return the seconds from `open_turn` to the tool, one turn after the other."""
    took: list[float] = []
    asked = 0.0

    @tool
    async def act() -> None:
        took.append(perf_counter() - asked)

    await journal.declare(RUN)
    async with Turns(journal, act) as turns:
        for _ in range(count):
            asked = perf_counter()
            await turns.play("act")
    return took


async def _claims(journal: Journal, count: int, name: str) -> list[Line]:
    """Measure `open_turn` until the claim is durable, kept together with it and apart, in turn."""
    took: dict[bool, list[float]] = {True: [], False: []}
    asked, together = 0.0, True
    append = cast("Callable[..., Awaitable[Appended]]", type(journal).append)
    claims = Executions.claims

    @tool
    async def act() -> None:
        """Do nothing."""

    async def timed(
        journal: Journal, run_id: str, *, facts: Sequence[Fact], **given: object
    ) -> Appended:
        appended = await append(journal, run_id, facts=facts, **given)
        if any(fact.type is FactType.TOOL_EXECUTION_STARTED for fact in facts):
            took[together].append(perf_counter() - asked)
        return appended

    def claimed(
        executions: Executions, actor: Actor, effects: Iterable[Execute]
    ) -> Sequence[Claim]:
        return claims(executions, actor, effects) if together else ()

    await journal.declare(RUN)
    with (
        patch.object(type(journal), "append", timed),
        patch.object(Executions, "claims", claimed),
    ):
        async with Turns(journal, act) as turns:
            for number in range(2 * count):
                together = number % 2 == 0
                asked = perf_counter()
                await turns.play("act")
    return [
        _percentile(took[True], f"open_turn to the claim durable, {name}, p50", 50),
        _percentile(took[False], f"– with the claim in an append of its own, {name}, p50", 50),
        Line(
            name=f"together / apart, {name}",
            value=statistics.median(took[True]) / statistics.median(took[False]),
            unit="ratio",
        ),
    ]


class Turns:
    """A runtime that plays turns of one call, each to its continuation."""

    def __init__(self, journal: Journal, *tools: Tool, run: Run = RUN) -> None:
        """Make one on this journal, and for this run."""
        self._run = run
        self._done = asyncio.Event()
        self._played = 0
        self.runtime = Runtime(journal=journal, tools=Toolbox(tools), on_continue=self._on_continue)

    async def __aenter__(self) -> Self:
        """Own the run."""
        await self.runtime.__aenter__()
        await self.runtime.open_run(self._run)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let it go."""
        await self.runtime.__aexit__(None, None, None)

    async def play(self, tool_name: str) -> None:
        """Play one turn, and return when its continuation was taken."""
        self._done.clear()
        self._played += 1
        call = Call(
            invocation_id="call-1", tool_name=tool_name, arguments={}, requires_approval=False
        )
        turn_id = f"turn-{self._played}"
        await self.runtime.open_turn(self._run.run_id, [call], turn_id=turn_id)
        await self._done.wait()

    async def _on_continue(self, _: Continuation) -> None:
        self._done.set()


async def _waiting(count: int) -> Line:
    """Return the bytes of a run that waits for an approval, its journal's left out."""
    journal = MemoryJournal()

    @tool(approval=True)
    async def pay() -> None:
        """Pay nothing: it only waits."""

    async def nothing(_: Continuation) -> None:
        """Nobody continues."""

    async with Runtime(journal=journal, tools=Toolbox([pay]), on_continue=nothing) as runtime:
        tracemalloc.start()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(count):
            run_id = f"run-{number:06}"
            await runtime.open_run(Run(run_id=run_id))
            call = Call(
                invocation_id=f"call-{number:06}",
                tool_name="pay",
                arguments={},
                requires_approval=False,
            )
            await runtime.open_turn(run_id, [call], turn_id=f"turn-{number:06}")
        gc.collect()
        whole = tracemalloc.get_traced_memory()[0] - before
        for kept in journal._runs.values():  # noqa: SLF001 - facts are the journal's, not ours
            kept.facts.clear()
        gc.collect()
        without = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    return Line(
        name=f"a run that waits for approval, of {count:,}",
        value=without / count,
        unit="bytes",
        note=f"{whole / count:,.0f} with its facts in the memory journal",
    )


async def _recovery(path: Path, turns: int) -> list[Line]:
    """Return what it takes to fold a run again, from all facts and from its last snapshot."""

    @tool
    async def act() -> None:
        """Do nothing."""

    lines: list[Line] = []
    async with await SqliteJournal.open(path) as journal:
        async with Turns(journal, act) as played:
            for _ in range(turns):
                await played.play("act")
        sequence = (await journal.entry("run-1")).sequence
        for what, fold in (("the snapshot", fold_run), ("all facts", _folded_whole)):
            gc.collect()
            began = process_time()
            await fold(RUN, journal)
            seconds = process_time() - began
            lines.append(
                Line(
                    name=f"recover {sequence:,} facts, from {what}",
                    value=seconds * 1_000,
                    unit="ms",
                )
            )
    return lines


async def _folded_whole(run: Run, journal: Journal) -> Kernel:
    facts = [fact async for fact in journal.facts(run.run_id)]
    return Kernel.recover(run, facts)


def _percentile(seconds: Sequence[float], name: str, percent: int) -> Line:
    ordered = sorted(seconds)
    at = min(len(ordered) - 1, len(ordered) * percent // 100)
    return Line(name=name, value=ordered[at] * 1e6, unit="µs")
