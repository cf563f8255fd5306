"""An executor of DBOS is killed with turns under way, and another is there to go on with them.

    python examples/dbos/recovery.py postgresql://USER@HOST/DATABASE FOLDER [TURNS [SECONDS]]

The first host takes so many turns, and is killed with -9 in their tools. The second, under a name
of its own, is given so many seconds: in the open-source DBOS it recovers none, for recovery is of
the workflows of an executor of the same name. Then its sweep looks for runs that are busy and that
nobody performs, and brings all of them to their end.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from multiprocessing import Process
from pathlib import Path

from dbos import DBOS
from host import runtime_of, serve
from waker import executor, open_waking, wake

from turnlock import Call, OpenTurn, Run
from turnlock.runtime import Journal, Sweep, Toolbox, submit

PATIENCE = 120.0
"""Seconds after which something is amiss."""


async def open_turns(journal: Journal, turns: int) -> None:
    """Open a turn of one call in so many runs; each wakes in its own transaction."""
    call = Call(invocation_id="c1", tool_name="work", arguments={}, requires_approval=False)

    async def open_turn(number: int) -> None:
        run = Run(run_id=f"run-{number}")
        await journal.declare(run)
        opening = OpenTurn(turn_id="t1", calls=(call,))
        await submit(journal, run.run_id, opening, within=10, tools=Toolbox())

    await asyncio.gather(*map(open_turn, range(turns)))


def counted(ledger: Path, who: str) -> Counter[str]:
    """Count, for each run, what a host has begun, or, of `told`, the ends of turns."""
    lines = [line.split() for line in ledger.read_text(encoding="utf-8").splitlines()]
    return Counter(run for run, by, *_ in lines if by == who)


async def until(what: str, met: Callable[[], bool]) -> float:
    """Wait until it is so; return the seconds."""
    began = time.monotonic()
    while not met():
        if time.monotonic() - began > PATIENCE:
            raise SystemExit(f"{what}: not in {PATIENCE:g} s")
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def pending() -> int:
    """Count the workflows that DBOS thinks are under way."""
    return len(await DBOS.list_workflows_async(status="PENDING", load_input=False))


async def killed(url: str, ledger: Path, turns: int) -> None:
    """Have a host begin so many turns, and kill it."""
    async with await open_waking(url) as journal:
        await open_turns(journal, turns)
    os.environ["WORK_SECONDS"] = "3600"
    first = Process(target=serve, args=(url, "one", ledger), daemon=True)
    first.start()
    os.environ["WORK_SECONDS"] = "0"
    await until("the first host", lambda: len(counted(ledger, "one")) == turns)
    first.kill()
    first.join()


async def recovered(url: str, ledger: Path, turns: int, seconds: float) -> None:
    """Be the second host, first without a sweep."""
    journal = await open_waking(url)
    runtime = runtime_of(journal, "two", ledger)
    async with journal, runtime, executor(runtime, url, name="two", every=None):
        await asyncio.sleep(seconds)
        print(f"another executor, in {seconds:g} s: {len(counted(ledger, 'two'))} of {turns}")
        print(f"workflows that DBOS has for pending: {await pending()}")
        sweep = Sweep(journal=journal, wake=partial(wake, every=1.0), every=1.0)
        sweeping = asyncio.create_task(sweep.watch())
        took = await until("the sweep", lambda: len(counted(ledger, "told")) == turns)
        async with asyncio.timeout(PATIENCE):
            while left := await pending():  # noqa: ASYNC110 - it is a row in a database
                await asyncio.sleep(0.1)
        sweeping.cancel()
        again, told = counted(ledger, "two"), counted(ledger, "told")
        print(f"with a sweep, in {took:.1f} s: {len(again)} of {turns}")
        print(f"begun again, where that is safe: at most {max(again.values())} times")
        print(f"turns ended: {len(told)}, at most {max(told.values())} times each")
        print(f"workflows that DBOS has for pending: {left}")


def main(url: str, folder: Path, turns: int, seconds: float) -> None:
    """Play it, and print what happened."""
    folder.mkdir(parents=True)
    ledger = folder / "ledger"
    ledger.touch()
    asyncio.run(killed(url, ledger, turns))
    print(f"killed with {turns} turns in their tools")
    asyncio.run(recovered(url, ledger, turns, seconds))


if __name__ == "__main__":
    place, given, *more = sys.argv[1:]
    count, patience = (more + ["200", "10"][len(more) :])[:2]
    main(place, Path(given), int(count), float(patience))
