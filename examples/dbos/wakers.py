"""Wakers of every kind: whatever they do, each tool runs once, and each turn ends once.

    python examples/dbos/wakers.py postgresql://USER@HOST/DATABASE FOLDER

A turn is woken by its own transaction; another by four workflows at once; a third again when it is
over; and a fourth by nobody, so that the sweep finds it.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from functools import partial
from pathlib import Path

from dbos import DBOS, WorkflowHandleAsync
from host import runtime_of
from waker import QUEUE, executor, open_waking, turn, wake, workflows_of

from turnlock import Call, OpenTurn, Run
from turnlock.runtime import Journal, PostgresJournal, Sweep, Toolbox, submit


async def opened(journal: Journal, run_id: str) -> None:
    """Open a turn of one call; who is told of it is the journal's to say."""
    await journal.declare(Run(run_id=run_id))
    call = Call(invocation_id="c1", tool_name="work", arguments={}, requires_approval=False)
    opening = OpenTurn(turn_id="t1", calls=(call,))
    await submit(journal, run_id, opening, within=10, tools=Toolbox())


async def ended(journal: Journal, run_id: str) -> None:
    """Wait until a run owes nothing, and nobody has it."""
    entry = await journal.entry(run_id)
    while entry.busy or entry.owner is not None:
        await asyncio.sleep(0.05)
        entry = await journal.entry(run_id)


async def woken(run_id: str, times: int) -> list[bool]:
    """Wake so many times; return of each workflow whether it has performed the run."""
    handles = [await DBOS.enqueue_workflow_async(QUEUE, turn, run_id) for _ in range(times)]
    return [await it.get_result(polling_interval_sec=0.1) for it in handles]


async def own(run_id: str) -> bool:
    """Return whether the workflow that a turn's own transaction has woken performed it."""
    handle: WorkflowHandleAsync[bool] = await DBOS.retrieve_workflow_async(
        f"{workflows_of(run_id)}1"
    )
    return await handle.get_result(polling_interval_sec=0.1)


async def main(url: str, ledger: Path) -> None:
    """Play it, and print what happened."""
    journal = await open_waking(url)
    runtime = runtime_of(journal, "one", ledger)
    async with (
        journal,
        await PostgresJournal.open(url) as silent,
        runtime,
        executor(runtime, url, name="one", every=None),
    ):
        await opened(journal, "once")
        await ended(journal, "once")
        await opened(journal, "often")
        often = [*await woken("often", 3), await own("often")]
        late = [await own("once"), *await woken("once", 1)]
        await opened(silent, "never")
        await asyncio.sleep(1)
        waited = (await journal.entry("never")).busy
        sweep = Sweep(journal=journal, wake=partial(wake, every=1.0))
        found = (await sweep.look(), await sweep.look())
        await ended(journal, "never")
    print(f"of four workflows at once: {sum(often)} performed it")
    print(f"of one, and another afterwards: {sum(late)} performed it, the first: {late[0]}")
    print(f"of none: busy after a second: {waited}; two looks of a sweep found {found}")


def told(ledger: Path) -> None:
    """Print what the tool and the callback have written."""
    lines = [line.split() for line in ledger.read_text(encoding="utf-8").splitlines()]
    print(f"tools ran: {dict(Counter(run for run, by, *_ in lines if by == 'one'))}")
    print(f"turns ended: {dict(Counter(run for run, by, *_ in lines if by == 'told'))}")


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True)
    asyncio.run(main(sys.argv[1], folder / "ledger"))
    told(folder / "ledger")
