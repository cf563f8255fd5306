"""Play turns for minutes, and say whether anything grows: ``benchmarks/soak.py --seconds 300``.

One process, one file, runs that play turns of three calls without a pause: a tool on the loop, one
in a thread, one that a person approves, here or by a post as from another process. Now and then a
tool fails, a call is denied, a turn is interrupted while its tool hangs, a run is closed and opened
again, somebody follows the facts. A run that remembers what was, a task that nobody ends, a handle
that nobody closes show as a slope over the turns.

Linux only: it reads /proc. The exit status is 1 where something leaks.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import statistics
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

import attrs

from turnlock import Call, FactType, Run
from turnlock.models.deliveries import Decide
from turnlock.models.values import Json
from turnlock.runtime import Continuation, Runtime, Settings, SqliteJournal, Toolbox, submit, tool

RUNS: Final = 16
SAMPLES: Final = 60
WARM: Final = 1 / 3
"""The part of the samples that is not judged: caches fill, snapshots begin."""
SUBMITTED_WITHIN: Final = 30.0


@attrs.frozen(kw_only=True)
class Bound:
    """How much of something may be added by a turn, on average, before it is called a leak."""

    unit: str
    each_turn: float
    slack: float
    """What may be added in all, whatever the turns: noise."""


BOUNDS: Final = {
    "resident": Bound(unit="bytes", each_turn=64, slack=16_000_000),
    "blocks": Bound(unit="", each_turn=0.5, slack=20_000),
    "handles": Bound(unit="", each_turn=0, slack=2),
    "threads": Bound(unit="", each_turn=0, slack=4),
    "tasks": Bound(unit="", each_turn=0, slack=2 * RUNS),
}
"""`blocks` are what Python has allocated, after it has collected. It is not asked for the objects
themselves: that shows tuples which another thread is just making, and spoils them."""


@attrs.frozen(kw_only=True)
class Sample:
    """What the process holds after so many turns."""

    seconds: float
    turns: int
    held: dict[str, int]
    file: int
    """Bytes of the journal and its -wal."""


class Soak:
    """The runs, their host, and what is measured of them."""

    def __init__(self, path: Path, *, seconds: float) -> None:
        """Play for so long in a new file."""
        self.samples: list[Sample] = []
        self.played: Counter[str] = Counter()
        self._path = path
        self._seconds = seconds
        self._began = monotonic()
        self._told: dict[tuple[str, str], asyncio.Event] = {}
        self._runtime: Runtime
        self._elsewhere: SqliteJournal

    async def play(self) -> None:
        """Play until time is over."""

        @tool
        async def look(what: str) -> str:
            await asyncio.sleep(0)
            return f"saw {what}"

        @tool
        def write(text: str) -> dict[str, str]:
            return {"written": text}

        @tool(approval=True)
        async def pay(amount: int) -> int:
            return amount

        @tool
        async def fail() -> None:
            raise ValueError("it never works")

        @tool
        async def hang() -> None:
            await asyncio.sleep(3_600)

        tools = Toolbox.of(look, write, pay, fail, hang)
        async with (
            await SqliteJournal.open(self._path) as journal,
            await SqliteJournal.open(self._path) as elsewhere,
            Runtime(
                journal=journal,
                tools=tools,
                on_continue=self._continue,
                settings=Settings(poll=0.02, drain=1.0),
            ) as self._runtime,
        ):
            self._elsewhere = elsewhere
            async with asyncio.TaskGroup() as group:
                for number in range(RUNS):
                    group.create_task(self._run(f"run-{number}"))
                group.create_task(self._watch())

    @property
    def _over(self) -> bool:
        return monotonic() - self._began > self._seconds

    async def _run(self, run_id: str) -> None:
        await self._runtime.open_run(Run(run_id=run_id))
        for number in count():
            if self._over:
                return
            name, turn = next((name, turn) for each, name, turn in TURNS if not number % each)
            self.played[name] += 1
            told = self._told[run_id, f"turn-{number}"] = asyncio.Event()
            await turn(self, run_id, f"turn-{number}")
            await told.wait()
            del self._told[run_id, f"turn-{number}"]

    async def plain(self, run_id: str, turn_id: str) -> None:
        """Approve what waits."""
        await self._open(run_id, turn_id, "look", "write", "pay")
        await self._runtime.approve(run_id, turn_id=turn_id, invocation_id="pay")

    async def posted(self, run_id: str, turn_id: str) -> None:
        """Have another process approve."""
        await self._open(run_id, turn_id, "look", "write", "pay")
        decision = Decide(run_id=run_id, turn_id=turn_id, invocation_id="pay", approved=True)
        await submit(self._elsewhere, run_id, decision, within=SUBMITTED_WITHIN)

    async def denied(self, run_id: str, turn_id: str) -> None:
        """Deny, while another call fails."""
        await self._open(run_id, turn_id, "fail", "write", "pay")
        await self._runtime.deny(run_id, turn_id=turn_id, invocation_id="pay", reason="no")

    async def interrupted(self, run_id: str, turn_id: str) -> None:
        """Interrupt a tool that hangs; nothing of such a turn is handed over."""
        await self._open(run_id, turn_id, "hang", "look", "pay")
        await asyncio.sleep(0.02)
        sequence = (await self._elsewhere.entry(run_id)).sequence
        await self._runtime.interrupt(run_id, turn_id=turn_id, grace=5.0)
        await self._follow(run_id, sequence, FactType.TURN_INTERRUPTED)
        self._told[run_id, turn_id].set()

    async def reopened(self, run_id: str, turn_id: str) -> None:
        """Let the run go between its turns, and take it again."""
        await self._runtime.close_run(run_id)
        await self._runtime.open_run(Run(run_id=run_id))
        await self.plain(run_id, turn_id)

    async def followed(self, run_id: str, turn_id: str) -> None:
        """Follow the facts of the turn, and some of those before it."""
        sequence = (await self._elsewhere.entry(run_id)).sequence
        await self.plain(run_id, turn_id)
        await self._follow(run_id, sequence, FactType.TURN_SETTLED)

    async def _follow(self, run_id: str, sequence: int, until: FactType) -> None:
        subscription = self._runtime.subscribe(run_id, after=max(0, sequence - 100))
        async for fact in subscription:
            if fact.type == until and fact.sequence > sequence:
                break
        await subscription.aclose()

    async def _open(self, run_id: str, turn_id: str, *names: str) -> None:
        calls = [
            Call(
                invocation_id=name,
                tool_name=name,
                arguments=ARGUMENTS.get(name, {}),
                requires_approval=False,
            )
            for name in names
        ]
        await self._runtime.open_turn(run_id, calls, turn_id=turn_id)

    async def _continue(self, told: Continuation) -> None:
        if (told.run_id, told.turn_id) in self._told:  # else it is handed over once more
            self._told[told.run_id, told.turn_id].set()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._seconds / SAMPLES)
            if self._over:
                return
            self.samples.append(self._sample())

    def _sample(self) -> Sample:
        gc.collect()
        beside = self._path.with_name(f"{self._path.name}-wal")
        return Sample(
            seconds=monotonic() - self._began,
            turns=self.played.total(),
            held={
                "resident": resident(),
                "blocks": sys.getallocatedblocks(),
                "handles": len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - names alone
                "threads": threading.active_count(),
                "tasks": len(asyncio.all_tasks()),
            },
            file=self._path.stat().st_size + (beside.stat().st_size if beside.exists() else 0),
        )


ARGUMENTS: Final[Mapping[str, Mapping[str, Json]]] = {
    "look": {"what": "the weather in Bern"},
    "write": {"text": "a line of a report, as long as most are"},
    "pay": {"amount": 5},
}
Turn = Callable[[Soak, str, str], Awaitable[None]]
TURNS: Final[Sequence[tuple[int, str, Turn]]] = (
    (97, "interrupted", Soak.interrupted),
    (41, "reopened", Soak.reopened),
    (23, "posted", Soak.posted),
    (17, "followed", Soak.followed),
    (7, "denied", Soak.denied),
    (1, "plain", Soak.plain),
)
"""Every how many turns of a run, and what; the first that fits."""


def resident() -> int:
    """Return the bytes of memory that the process has in RAM."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def slope(samples: Sequence[Sample], values: Sequence[float]) -> float:
    """Return how much is added by a turn: the line through the samples with the least squares."""
    return statistics.linear_regression([sample.turns for sample in samples], values).slope


def report(soak: Soak) -> bool:
    """Print what was found, and return whether nothing leaks."""
    samples = soak.samples[int(len(soak.samples) * WARM) :]
    first, last = samples[0], samples[-1]
    turns = last.turns - first.turns
    print(f"{last.turns:,} turns in {last.seconds:.0f} s: {dict(soak.played)}")
    print(f"judged: the last {turns:,} turns, {len(samples)} samples\n")
    print("| what | first | last | a turn adds | bound | verdict |")
    print("|---|---|---|---|---|---|")
    sound = True
    for name, bound in BOUNDS.items():
        each = slope(samples, [sample.held[name] for sample in samples])
        leaks = each * turns > bound.each_turn * turns + bound.slack
        sound = sound and not leaks
        unit = f" {bound.unit}" if bound.unit else ""
        print(
            f"| {name} | {first.held[name]:,}{unit} | {last.held[name]:,}{unit} | {each:.3g}{unit}"
            f" | {bound.each_turn:g} a turn + {bound.slack:,.0f} | {'LEAK' if leaks else 'none'} |"
        )
    grows = slope(samples, [sample.file for sample in samples])
    print(f"| file | {first.file:,} bytes | {last.file:,} bytes | {grows:,.0f} bytes | | |")
    print(f"\n{'Nothing leaks.' if sound else 'Something leaks.'}")
    return sound


def main() -> None:
    """Play, and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--trace", action="store_true", help="where what is new was allocated")
    asked = parser.parse_args()
    logging.disable(logging.WARNING)  # tools that fail are part of the play
    if asked.trace:
        tracemalloc.start(5)
    with TemporaryDirectory() as folder:
        soak = Soak(Path(folder) / "soak.db", seconds=asked.seconds)
        asyncio.run(soak.play())
        if asked.trace:
            gc.collect()
            for entry in tracemalloc.take_snapshot().statistics("lineno")[:25]:
                print(entry)
    sys.exit(not report(soak))


if __name__ == "__main__":
    main()
