"""What an engine costs: the same turns on the journal alone, and as workflows of DBOS.

One host and one PostgreSQL server that waits for its disk; many runs at once, each with turns of
one call that does nothing, one after the other. On the journal alone a runtime owns all runs. Where
it is woken, each turn is opened by a visitor, and its run owned, performed and let go: by nothing
but a function call; as a workflow of DBOS, started directly; and as one that the transaction which
opens the turn puts into DBOS's queue (examples/dbos). Beside them DBOS without a journal, each call
a step. Medians of the rounds, in wall time; the processor's is the host's, without the server's.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter, process_time
from typing import Final, TypeAlias

import attrs
from dbos import DBOS
from servers import postgres_cluster
from timing import QUICK, Line

from turnlock import Call, OpenTurn, Run
from turnlock.runtime import (
    Continuation,
    PostgresJournal,
    Runtime,
    Settings,
    Toolbox,
    Woken,
    submit,
    tool,
)

sys.path.append(str(Path(__file__).parents[1] / "examples" / "dbos"))

import waker

RUNS: Final = 50
TURNS: Final = 4
"""Of each run in a round."""
QUICK_RUNS: Final = 5
LEAST: Final = 5.0
"""Times as many turns a second the journal alone is to make (distributed.md, section 15)."""


@tool
async def work() -> str:
    """Do nothing."""
    return "done"


@DBOS.step()
async def work_in_a_step() -> str:
    """Do nothing, and have it recorded."""
    return "done"


@DBOS.workflow()
async def workflow_of_a_step() -> str:
    """Do nothing in a step."""
    return await work_in_a_step()


TOOLS: Final = Toolbox([work])
WOKEN: Final = Settings(takes_over=False)
_turns: Final = count(1)

Play: TypeAlias = Callable[[str], Awaitable[None]]
"""Performs one turn of a run, from its opening to where its host was told."""
Kind: TypeAlias = Callable[[str, Sequence[str]], AbstractAsyncContextManager[Play]]
"""Makes a host, given the URL of the journal and the runs."""


class _Told:
    """Takes the continuations of a host."""

    def __init__(self) -> None:
        self._told: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def take(self, told: Continuation) -> None:
        self._told[told.run_id].set()

    async def wait(self, run_id: str) -> None:
        await self._told[run_id].wait()
        self._told[run_id].clear()


def _opening() -> OpenTurn:
    call = Call(invocation_id="c1", tool_name="work", arguments={}, requires_approval=False)
    return OpenTurn(turn_id=f"t{next(_turns)}", calls=(call,))


@asynccontextmanager
async def _alone(url: str, runs: Sequence[str]) -> AsyncGenerator[Play]:
    told = _Told()
    async with (
        await PostgresJournal.open(url) as journal,
        Runtime(journal=journal, tools=TOOLS, on_continue=told.take) as runtime,
    ):
        await asyncio.gather(*(runtime.open_run(Run(run_id=it)) for it in runs))

        async def play(run_id: str) -> None:
            await runtime.deliver(run_id, _opening())
            await told.wait(run_id)

        yield play


@asynccontextmanager
async def _called(url: str, runs: Sequence[str]) -> AsyncGenerator[Play]:
    told = _Told()
    async with (
        await PostgresJournal.open(url) as journal,
        Runtime(journal=journal, tools=TOOLS, on_continue=told.take, settings=WOKEN) as runtime,
    ):
        await asyncio.gather(*(journal.declare(Run(run_id=it)) for it in runs))
        woken = Woken(runtime)

        async def play(run_id: str) -> None:
            await submit(journal, run_id, _opening(), within=60, tools=TOOLS)
            await woken.perform(run_id)

        yield play


@asynccontextmanager
async def _woken(url: str, runs: Sequence[str], *, queued: bool) -> AsyncGenerator[Play]:
    told = _Told()
    async with AsyncExitStack() as stack:
        journal = await (waker.open_waking(url) if queued else PostgresJournal.open(url))
        await stack.enter_async_context(journal)
        runtime = await stack.enter_async_context(
            Runtime(journal=journal, tools=TOOLS, on_continue=told.take, settings=WOKEN)
        )
        await stack.enter_async_context(waker.executor(runtime, url, name="bench", every=None))
        await asyncio.gather(*(journal.declare(Run(run_id=it)) for it in runs))

        async def play(run_id: str) -> None:
            await submit(journal, run_id, _opening(), within=60, tools=TOOLS)
            if not queued:
                handle = await DBOS.start_workflow_async(waker.turn, run_id)
                await handle.get_result()
            await told.wait(run_id)
            while (await journal.entry(run_id)).owner is not None:  # noqa: ASYNC110 - a row
                await asyncio.sleep(0.005)  # who asks an owner that lets go waits for his answer

        yield play


@asynccontextmanager
async def _steps(url: str, _: Sequence[str]) -> AsyncGenerator[Play]:
    async with (
        await PostgresJournal.open(url) as journal,
        Runtime(journal=journal, settings=WOKEN) as runtime,
        waker.executor(runtime, url, name="bench", every=None),
    ):

        async def play(_: str) -> None:
            handle = await DBOS.start_workflow_async(workflow_of_a_step)
            await handle.get_result()

        yield play


ALONE: Final = "the journal alone"
CALLED: Final = "owned and let go for a turn, no engine"
DIRECT: Final = "a workflow a turn, started directly"
QUEUED: Final = "a workflow a turn, by the queue"
STEPS: Final = "DBOS alone, a step a call"

KINDS: Final[Mapping[str, Kind]] = {
    ALONE: _alone,
    CALLED: _called,
    DIRECT: partial(_woken, queued=False),
    QUEUED: partial(_woken, queued=True),
    STEPS: _steps,
}


@attrs.frozen
class _Played:
    """One round; seconds for each turn."""

    wall: float
    processor: float


async def _played(kind: Kind, url: str, runs: int, turns: int) -> _Played:
    """Play turns of many runs at once; what is begun first is not counted."""
    ids = [f"run-{next(_turns)}" for _ in range(runs)]
    async with kind(url, ids) as play:

        async def played(run_id: str, count: int) -> None:
            for _ in range(count):
                await play(run_id)

        await asyncio.gather(*(played(it, 1) for it in ids))
        gc.collect()
        began, spent = perf_counter(), process_time()
        await asyncio.gather(*(played(it, turns) for it in ids))
        wall, processor = perf_counter() - began, process_time() - spent
    return _Played(wall / (runs * turns), processor / (runs * turns))


def measure(rounds: int) -> list[Line]:
    """Measure each kind in turn, on one server."""
    runs, turns = (RUNS, TURNS) if rounds > QUICK else (QUICK_RUNS, 1)
    found: defaultdict[str, list[_Played]] = defaultdict(list)
    with postgres_cluster() as server:
        for _ in range(rounds):
            for name, kind in KINDS.items():
                found[name].append(asyncio.run(_played(kind, server.url, runs, turns)))
    wall = {name: statistics.median(it.wall for it in found[name]) for name in KINDS}
    spent = {name: statistics.median(it.processor for it in found[name]) for name in KINDS}
    return [
        *(Line(name=f"turns a second, {name}", value=1 / wall[name], unit="/s") for name in KINDS),
        *(Line(name=f"processor, {it}", value=1e3 * spent[it], unit="ms/turn") for it in KINDS),
        *(
            Line(
                name=f"turns a second, {name} / alone",
                value=wall[ALONE] / wall[name],
                unit="ratio",
                bound=1 / LEAST if name in {DIRECT, QUEUED} else None,
            )
            for name in KINDS
            if name != ALONE
        ),
        *(
            Line(name=f"processor, {name} / alone", value=spent[name] / spent[ALONE], unit="ratio")
            for name in KINDS
            if name != ALONE
        ),
    ]
