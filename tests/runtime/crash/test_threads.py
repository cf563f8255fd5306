"""A short form of the crashes with what virtual time cannot have: threads, SQLite, real time."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

from turnlock.models.facts import ToolApprovalRequested
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.results import Happened, NeverHappened, ProbeAnswer
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox

from .checks import violations
from .depth import DEEP
from .host import Host
from .kills import moved
from .life import LIFE, Crash, Life, task_factory
from .usecase import call, nothing_more
from .world import LivingJournal, World

CRASHES: Final = 150 if DEEP else 12
"""Plays in which one life ends."""
STEPS: Final = 100
"""Steps that a life has which nobody ends, about: threads come back when they do."""
SETTINGS: Final = Settings(ownership=0.15, poll=0.05, drain=1.0)


def test_crashes_with_threads_and_sqlite(tmp_path: Path) -> None:
    """What a dead process had sent to its threads may still be kept; it goes on all the same."""
    draw = random.Random(5)
    deaths = 0
    for number in range(CRASHES):
        folder = tmp_path / str(number)
        folder.mkdir()
        world = World()
        for life in (Life(number=1, dies_at=draw.randint(1, STEPS)), Life(number=2)):
            _lived(life, folder, world)
            deaths += life.where is not None
            if life.where is None:
                break
            time.sleep(SETTINGS.ownership)
        _brought_up(world, folder)

        assert violations(world, ["t1"]) == [], (number, life.steps)
    assert deaths > CRASHES // 2


def _lived(life: Life, folder: Path, world: World) -> None:
    """Be a process on a loop of its own, which is left where it dies."""
    loop = asyncio.SelectorEventLoop()
    loop.set_task_factory(task_factory)
    loop.set_exception_handler(lambda _loop, _context: None)
    journal = loop.run_until_complete(SqliteJournal.open(folder / "journal.db"))
    host = Host(world=world, life=life, continued=nothing_more, pause=0.02)
    host.runtime = Runtime(
        journal=LivingJournal(journal, life=life, world=world),
        tools=Toolbox(_tools(world, life)),
        on_continue=host.on_continue,
        settings=SETTINGS,
    )
    try:
        with suppress(Crash):
            loop.run_until_complete(_process(host, life))
    finally:
        life.bury()
        host.runtime._threads.shutdown(wait=True)
        for worker in filter(None, (journal._reader, journal._writer)):
            worker._queue.put(None)
            worker._thread.join()
        loop.close()


async def _process(host: Host, life: Life) -> None:
    LIFE.set(life)
    await asyncio.wait_for(asyncio.ensure_future(_driven(host)), 20)


async def _driven(host: Host) -> None:
    async with host.runtime:
        await host.own()
        calls = [call("ask"), call("probe"), call("pay")]
        await host.open("t1", calls, epoch=1)
        await host.until(lambda fact: isinstance(fact, ToolApprovalRequested))
        await host.approve("t1", "pay")
        await host.until_closed("t1")


def _tools(world: World, life: Life) -> tuple[Tool, ...]:
    def act(context: ToolContext) -> str:
        world.begins(life, context)
        time.sleep(0.003)
        world.ends(life, context)
        return "done"

    def probe(context: ToolContext) -> ProbeAnswer:
        done = context.idempotency_key in world.ended
        return Happened("was done") if done else NeverHappened()

    return (
        tool(name="ask", description="")(act),
        tool(name="probe", description="", in_doubt=InDoubt.PROBE, probe=probe)(act),
        tool(name="pay", description="", approval=True)(act),
    )


def _brought_up(world: World, folder: Path) -> None:
    """Give the world what SQLite has kept; how much that was at each moment, nobody noted."""
    kept = len(asyncio.run(moved(folder, world)))
    world.begun = [attrs.evolve(one, kept=kept) for one in world.begun]
    world.heard = [attrs.evolve(one, kept=kept) for one in world.heard]
    world.taken = [attrs.evolve(one, kept=0) for one in world.taken]
    world.shown = [(fact, kept) for fact, _ in world.shown]
