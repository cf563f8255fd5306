"""Turns of turnlock as workflows of DBOS: DBOS says when and where, the journal judges (D-70).

Whoever opens a turn puts its workflow into a queue by `ON_BUSY`, in the transaction that keeps the
turn. The executors of DBOS take it from there. What no workflow performs, `wake` puts there again.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final
from uuid import uuid4

from dbos import DBOS, DBOSConfig, SetWorkflowID

from turnlock.runtime import PostgresJournal, RunEntry, Runtime, Sweep, Woken

QUEUE: Final = "turns"
WORKFLOW: Final = "turnlock.turn"

ON_BUSY: Final = """
SELECT dbos.enqueue_workflow(
    workflow_name => 'turnlock.turn',
    queue_name => 'turns',
    workflow_id => 'turnlock:' || run_key || ':' || turn_epoch,
    positional_args => ARRAY[run_id::json]
) FROM busy
"""
"""The same id twice is one workflow; one that was rolled back is none."""


def database_of(url: str) -> str:
    """Return a journal's database, as DBOS is given it: what follows the ? is the journal's own."""
    return url.partition("?")[0]


async def open_waking(url: str) -> PostgresJournal:
    """Open the journal of a URL; what opens turns in it wakes DBOS, whose tables are made first."""
    await asyncio.to_thread(DBOS.migrate, database_of(url))
    return await PostgresJournal.open(url, on_busy=ON_BUSY)


_here: list[Woken] = []
"""What performs in this process; DBOS has one executor in each."""
_turns: set[asyncio.Task[object]] = set()
"""The workflows that perform here now."""
EVERY: Final = 10.0
"""Seconds between two looks for runs that nobody performs."""


@DBOS.workflow(name=WORKFLOW)
async def turn(run_id: str) -> bool:
    """Own a run, perform it until it owes nothing, let it go; return whether that was here."""
    task = asyncio.current_task()
    if task is not None:
        _turns.add(task)
        task.add_done_callback(_turns.discard)
    return await _here[-1].perform(run_id)


def workflows_of(run_id: str) -> str:
    """Return what the ids of a run's workflows begin with; the number of its turn follows."""
    return f"turnlock:{hashlib.sha256(run_id.encode()).hexdigest()}:"


async def wake(entry: RunEntry, *, every: float = EVERY) -> None:
    """Have a run performed that nobody performs: what a sweep asks for each `every` seconds.

    What waits in the queue waits on: that is what the queue is for. A workflow that began before
    the last look, and performs nothing, has died with its executor: it goes into the queue again.
    In the open-source DBOS nobody else does that, unless an executor of the same name is started;
    and it would count for ever among those that run at once.
    """
    ours = workflows_of(entry.run.run_id)
    known = await DBOS.list_workflows_async(
        workflow_id_prefix=ours,
        status=["ENQUEUED", "DELAYED", "PENDING"],
        load_input=False,
        load_output=False,
    )
    if not known:
        with SetWorkflowID(f"{ours}swept/{uuid4()}"):
            await DBOS.enqueue_workflow_async(QUEUE, turn, entry.run.run_id)
    elif all(it.status == "PENDING" for it in known):
        long_ago = (time.time() - every) * 1_000
        for it in known:
            if (it.dequeued_at or 0) < long_ago:
                await DBOS.resume_workflow_async(it.workflow_id, queue_name=QUEUE)


@asynccontextmanager
async def executor(
    runtime: Runtime,
    url: str,
    *,
    name: str,
    every: float | None = EVERY,
    at_once: int | None = None,
) -> AsyncGenerator[None]:
    """Be an executor of DBOS under a name of its own, until left: perform what is woken.

    `url` is that of the journal. Each `every` seconds it is looked for
    what nobody performs, unless that is None. `at_once` are the turns under way over all hosts.
    """
    config: DBOSConfig = {
        "name": "turnlock-turns",
        "system_database_url": database_of(url),
        "executor_id": name,
        "application_version": "turnlock-1",
        "log_level": "ERROR",
    }
    _here.append(Woken(runtime))
    DBOS(config=config)
    DBOS.launch()  # in the loop that its workflows are to run in, where the runtime lives
    sweeping: asyncio.Task[None] | None = None
    if every is not None:
        sweep = Sweep(journal=runtime.journal, wake=partial(wake, every=every), every=every)
        sweeping = asyncio.create_task(sweep.watch())
    try:
        await DBOS.register_queue_async(
            QUEUE, global_concurrency=at_once, polling_interval_sec=0.1, on_conflict="always_update"
        )
        yield
    finally:
        left = [*_turns, *([sweeping] if sweeping else [])]
        for task in left:
            task.cancel()  # runs are let go, their workflows stay pending: another performs them
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.to_thread(DBOS.destroy)
        _here.pop()
