"""Many processes on one file: each call runs once; one that is killed leaves doubt at once."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
from pathlib import Path

import pytest

from turnlock import FactType
from turnlock.guards.engine import Engine, Held
from turnlock.guards.errors import InDoubt
from turnlock.guards.values import Abandons, At
from turnlock.models.deliveries import Resolution

from .engines import call, conforms, facts_of, settings, starts

PROCESSES = 4
CALLS = 20
PATIENCE = 120.0
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(autouse=True)
def _find_this_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the other processes import what they are to do."""
    root = str(Path(__file__).resolve().parents[2])
    monkeypatch.setattr(sys, "path", [root, *sys.path])


async def opened(path: Path) -> Engine:
    return await Engine.open(path, settings(lease=60.0, wait=60.0, patience=60.0))


async def open_calls(guard: Engine, number: int) -> None:
    calls = [call(f"c{it}") for it in range(number)]
    await guard.open_turn("r", "t1", calls, after=None, abandons=Abandons.WAITING)


def race(path: Path, ran: Path, name: str) -> None:
    """Run whatever is not run, and wait for the rest; say what was run in a file."""

    async def one(guard: Engine, number: int) -> None:
        found = await guard.claim(At("r", "t1", f"c{number}"), "read", {})
        if isinstance(found, Held):
            with (ran / name).open("a") as told:
                told.write(f"{number}\n")
            await guard.succeeded(found, number)
        else:
            assert found.value == number

    async def play() -> None:
        guard = await opened(path)
        await open_calls(guard, CALLS)
        for number in range(CALLS):
            await one(guard, number)
        await guard.close()

    asyncio.run(play())


def test_processes_that_race_run_each_call_once(tmp_path: Path) -> None:
    path, ran = tmp_path / "a.db", tmp_path / "ran"
    ran.mkdir()
    racing = [
        SPAWN.Process(target=race, args=(path, ran, f"p{number}")) for number in range(PROCESSES)
    ]
    for process in racing:
        process.start()
    for process in racing:
        process.join(PATIENCE)
        assert process.exitcode == 0
    told = [int(line) for file in ran.iterdir() for line in file.read_text().split()]
    assert sorted(told) == list(range(CALLS))

    async def look() -> None:
        guard = await opened(path)
        facts = await facts_of(guard._journal)
        assert starts(facts) == CALLS
        assert sum(fact.type is FactType.TURN_SETTLED for fact in facts) == 1
        await conforms(guard._journal)
        await guard.close()

    asyncio.run(look())


def claim_and_hang(path: Path, claimed: Path) -> None:
    async def play() -> None:
        guard = await opened(path)
        await open_calls(guard, 1)
        assert isinstance(await guard.claim(At("r", "t1", "c0"), "read", {}), Held)
        claimed.touch()  # noqa: ASYNC240 - nothing else goes on here
        await asyncio.sleep(PATIENCE)

    asyncio.run(play())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="nobody proves a death here")
def test_a_process_that_is_killed_leaves_doubt_at_once_and_no_owner(tmp_path: Path) -> None:
    path, claimed = tmp_path / "a.db", tmp_path / "claimed"
    process = SPAWN.Process(target=claim_and_hang, args=(path, claimed))
    process.start()
    assert process.pid is not None

    async def until_claimed() -> None:
        async with asyncio.timeout(PATIENCE):
            while not claimed.exists():
                assert process.is_alive()
                await asyncio.sleep(0.02)

    asyncio.run(until_claimed())
    os.kill(process.pid, signal.SIGKILL)
    process.join(PATIENCE)

    async def play() -> None:
        guard = await opened(path)
        at = At("r", "t1", "c0")
        entry = await guard._journal.entry("r")
        assert entry.owner is None
        async with asyncio.timeout(50):  # less than its lease
            with pytest.raises(InDoubt) as refused:
                await guard.claim(at, "read", {})
        assert refused.value.worker is not None
        assert refused.value.worker.endswith(f":{process.pid}")
        await guard.resolve(at, Resolution.RETRY)
        held = await guard.claim(at, "read", {})
        assert isinstance(held, Held)
        assert held.attempt == 2
        await guard.succeeded(held, 1)
        await conforms(guard._journal)
        await guard.close()

    asyncio.run(play())
