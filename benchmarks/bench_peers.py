"""turnlock beside others that keep a turn durably in SQLite: the same turn of three calls on each.

Two calls run at once, the third waits for an approval; then the results are handed back, and all of
it is kept. A run is opened within the time that is measured. Each peer is as its documentation
shows it (benchmarks/peers), all play in turn in one process, and every round has files of its own.
Many runs are at once in one event loop; in them a turn is approved as soon as it can be, in a run
alone after a rest, as by a person. Wall time, because it waits for the disk, and processor time.

After a kill a new process goes on: its time counts from its start, imports included. How often the
payment began is counted in a file that no peer knows of. Bounds: turns a second of turnlock are at
least 8 × those of the quickest LangGraph, and 3 × those of the quickest DBOS, with 100 and 1,000
runs (the ratios here are theirs over ours).
"""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Final

import attrs
from peers.killed import Resumed, resumed
from peers.known import OURS, PEERS
from peers.missing import missing, skipped, versions
from peers.turn import CALLS, PAY, Peer, Session, Tools, key_of
from timing import QUICK, Line

TURNS: Final = {1: 40, 100: 2, 1_000: 1}
"""By how many runs are at once: the turns of each."""
ROUNDS: Final = {1: 3, 100: 3, 1_000: 2}
REST: Final = 0.02
"""Seconds between a turn and its approval where a run is alone: nothing is under way then."""
WARM: Final = 2
"""Turns that are played first, in a run of their own."""
LEAST: Final = {"LangGraph": 8, "DBOS": 3}
"""Times as many turns a second as those whose names begin so, from so many runs on:"""
MANY: Final = 100
KILLS: Final = 2


@attrs.frozen(kw_only=True)
class Load:
    """What one round of a peer came to, for each turn."""

    seconds: float
    processor: float
    size: float
    """In bytes."""
    wait: float
    """The median from an approval to the first line of its tool, in seconds."""


def measure(rounds: int) -> list[Line]:
    """Measure all that are here, and say why the others were not."""
    quick = rounds <= QUICK
    reasons = {name: missing(*it.packages) for name, it in PEERS.items()}
    here = [name for name, reason in reasons.items() if not reason]
    peers = {name: PEERS[name].load() for name in here}
    lines = [
        Line(
            name=f"{name}: kept", value=None, unit="", note=f"{it.keeps}; {versions(*it.packages)}"
        )
        if name in peers
        else skipped(name, reasons[name])
        for name, it in PEERS.items()
    ]
    for runs, turns in TURNS.items():
        if not quick or runs <= MANY:
            loads = _loads(peers, runs, max(1, turns // 10) if quick else turns, quick=quick)
            lines += _lines(runs, loads)
    for name in here:
        lines += _after_kills(name, 1 if quick else KILLS)
    return lines


def _loads(
    peers: Mapping[str, Peer], runs: int, turns: int, *, quick: bool
) -> dict[str, list[Load]]:
    loads: defaultdict[str, list[Load]] = defaultdict(list)
    for number in range(1 if quick else ROUNDS[runs]):
        for name in peers if number % 2 else reversed(list(peers)):
            loads[name].append(load_of(peers[name], runs, turns))
    return {name: loads[name] for name in peers}


def load_of(peer: Peer, runs: int, turns: int) -> Load:
    """Play so many turns of each of so many runs, in a folder of their own."""
    with TemporaryDirectory() as before, TemporaryDirectory() as folder:
        asyncio.run(_warmed(peer, Path(before)))
        gc.collect()
        load = asyncio.run(_load(peer, Path(folder), runs, turns))
        grown = size_of(Path(folder)) - size_of(Path(before))
    return attrs.evolve(load, size=grown / (runs * turns))


async def _warmed(peer: Peer, folder: Path) -> None:
    """Play what is played before anything is measured, so that its size can be taken off."""
    async with peer.open(folder, Tools(lambda _: None)) as session:
        await play(session, "warm", WARM, {})


async def _load(peer: Peer, folder: Path, runs: int, turns: int) -> Load:
    begun: defaultdict[str, list[float]] = defaultdict(list)
    asked: dict[str, float] = {}
    rest = REST if runs == 1 else 0.0
    tools = Tools(lambda key: begun[key].append(perf_counter()))
    async with peer.open(folder, tools) as session:
        await play(session, "warm", WARM, asked)
        asked.clear()
        ids = [f"run-{number}" for number in range(runs)]
        began, processor = perf_counter(), process_time()
        await asyncio.gather(*(play(session, run, turns, asked, rest) for run in ids))
        seconds = perf_counter() - began - rest * turns
        processor = process_time() - processor
    _check(ids, turns, begun, asked)
    waits = [begun[key][0] - at for key, at in asked.items()]
    count = runs * turns
    return Load(
        seconds=seconds / count,
        processor=processor / count,
        size=0.0,  # it is seen when the files are closed
        wait=statistics.median(waits),
    )


async def play(
    session: Session, run: str, turns: int, asked: dict[str, float], rest: float = 0.0
) -> None:
    """Play turns of one run, one after the other, and note when each payment was approved."""
    for turn in range(turns):
        await session.begin(run, turn)
        if rest:
            await asyncio.sleep(rest)
        asked[key_of(run, turn, PAY)] = perf_counter()
        await session.approve(run, turn)


def _check(
    ids: Sequence[str],
    turns: int,
    begun: Mapping[str, Sequence[float]],
    asked: Mapping[str, float],
) -> None:
    """See that each tool ran once, and none before its approval: otherwise it is no turn."""
    for run in ids:
        for turn in range(turns):
            counts = Counter({name: len(begun[key_of(run, turn, name)]) for name in CALLS})
            if set(counts.values()) != {1}:
                raise AssertionError(f"{run}, turn {turn}: {counts}")
            key = key_of(run, turn, PAY)
            if begun[key][0] < asked[key]:
                raise AssertionError(f"{key} began before it was approved")


def size_of(folder: Path) -> int:
    """Return the bytes of all files, with what was in each -wal merged."""
    for path in folder.glob("*.db"):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _lines(runs: int, loads: Mapping[str, Sequence[Load]]) -> list[Line]:
    of = f"{runs:,} runs" if runs > 1 else "1 run"

    def least(name: str, figure: Callable[[Load], float]) -> float:
        return min(map(figure, loads[name]))

    lines = [
        Line(
            name=f"{name}: turns a second, {of}",
            value=1 / least(name, lambda it: it.seconds),
            median=1 / statistics.median(it.seconds for it in found),
            unit="/s",
            note=f"{least(name, lambda it: it.processor) * 1e3:.2f} ms of the processor a turn",
        )
        for name, found in loads.items()
    ]
    lines += [
        Line(
            name=f"{name}: approve to the tool, {of}",
            value=least(name, lambda it: it.wait) * 1e3,
            median=statistics.median(it.wait for it in found) * 1e3,
            unit="ms",
            note="median of the approvals",
        )
        for name, found in loads.items()
    ]
    if runs == MANY:
        lines += [
            Line(
                name=f"{name}: on disk", value=least(name, lambda it: it.size), unit="bytes a turn"
            )
            for name in loads
        ]
    for family, times in LEAST.items():
        theirs = [name for name in loads if name.startswith(family)]
        if OURS in loads and theirs:
            ours = least(OURS, lambda it: it.seconds)
            processor = least(OURS, lambda it: it.processor)
            best = min(least(name, lambda it: it.seconds) for name in theirs)
            cheapest = min(least(name, lambda it: it.processor) for name in theirs)
            lines.append(
                Line(
                    name=f"{family} / turnlock, turns a second, {of}",
                    value=ours / best,
                    unit="ratio",
                    bound=1 / times if runs >= MANY else None,
                    note=f"turnlock makes {best / ours:.1f} × as many, "
                    f"with the processor's time of 1/{cheapest / processor:.1f}",
                )
            )
    return lines


def _after_kills(name: str, count: int) -> list[Line]:
    waiting = [resumed(name, "wait", "approve") for _ in range(count)]
    inside = [resumed(name, "inside", "resume") for _ in range(count)]
    return [
        _resumed(f"{name}: killed while it waits, to the tool", waiting, lambda it: it.paid),
        _resumed(f"{name}: killed in the payment, to an answer", inside, lambda it: it.ended),
    ]


def _resumed(
    name: str, found: Sequence[Resumed], figure: Callable[[Resumed], float | None]
) -> Line:
    took = [at for it in found if (at := figure(it)) is not None]
    after = [at - it.imported for it, at in zip(found, took, strict=True)]
    said = sorted({f"{it.standing}; the payment began {it.begun[PAY]} ×" for it in found})
    return Line(
        name=name,
        value=min(took) * 1e3,
        median=statistics.median(took) * 1e3,
        unit="ms",
        note=f"{' or '.join(said)}; {min(after) * 1e3:.0f} ms after its imports",
    )
