"""Use cases played to their end, through as many crashes and zombies as are asked for."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from contextvars import copy_context
from functools import cache, partial
from typing import Final

import attrs

from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.scheduling import Clock
from turnlock.runtime.tools.toolbox import Toolbox

from ..virtual import LoopClock
from .checks import violations
from .host import Host
from .life import LIFE, Life, play
from .machine import ClockNemesis, Machine
from .usecase import UseCase
from .world import LivingJournal, World

TIMEOUT: Final = 4_000.0
"""Seconds of virtual time in which every life must have come to its end."""
LINGERING: Final = 100.0
"""Seconds of virtual time that a process has which stood still, to do what it still can."""


def _as_it_is(journal: Journal) -> Journal:
    return journal


@attrs.frozen(kw_only=True)
class Stage:
    """What a use case is played on; the controls do wrong here."""

    journal: Callable[[], Journal] = MemoryJournal
    wrapped: Callable[[Journal], Journal] = _as_it_is
    """Put around each life's way to the journal."""
    clocks: Callable[[int], Clock | None] = lambda _number: LoopClock()
    """By the number of the life; None: it counts by the journal's."""


@attrs.frozen(kw_only=True)
class Played:
    """One play: where lives ended, how many steps each had, and what is wrong."""

    deaths: tuple[str, ...]
    steps: tuple[int, ...]
    wrong: tuple[str, ...]
    world: World


def played(case: UseCase, dies_at: Sequence[int] = (), *, stage: Stage | None = None) -> Played:
    """Play a use case; life n dies before its step `dies_at[n]`, the one after those goes on."""
    stage = stage or Stage()
    world = World(journal=stage.journal())
    lives: list[Life] = []
    at = 0.0
    for number, dies in enumerate((*dies_at, 0), start=1):
        life = Life(number=number, dies_at=dies)
        lives.append(life)
        at = play(_alone(case, world, life, stage), life, at=at) + case.pause
        if life.where is None:
            break
    return _outcome(case, world, lives)


def haunted(
    case: UseCase,
    pauses_at: int,
    *,
    wakes_after: float | None,
    stage: Stage | None = None,
    nemesis: ClockNemesis | None = None,
) -> Played:
    """Play it with an owner who stands still at this step until its lease is over.

    It goes on so many seconds after another has begun; None: when that one has done everything.
    Clocks may go wrong when it stands still; then both see whether the other lives.
    """
    machine = None if nemesis is None else Machine()
    stage = _staged(stage, machine)
    world = World(journal=stage.journal())
    zombie, heir = Life(number=1, pauses_at=pauses_at), Life(number=2)
    pair = _Pair(zombie, heir, TIMEOUT if wakes_after is None else wakes_after)
    with ExitStack() as stack:
        if machine is not None and nemesis is not None:
            stack.enter_context(machine.seen(world, zombie, heir))
            machine.suffers(nemesis, when=zombie.pausing)
        play(_beside(case, world, pair, stage), zombie, heir, at=0.0)
    return _outcome(case, world, [zombie, heir])


def rivalled(
    case: UseCase,
    at: int,
    nemesis: ClockNemesis,
    *,
    dies_at: int = 0,
    sees: bool = True,
    agrees: bool = True,
) -> Played:
    """Play it with a second process that begins when the first comes by this step, and wants the
    run; clocks go wrong at that moment. The first may die at another step, and the second with it:
    then a third goes on.

    All are on one machine; each sees whether the others live, unless `sees` is False, and counts by
    the journal's clock, unless `agrees` is False.
    """
    machine = Machine(sees=sees, agrees=agrees)
    stage = _staged(None, machine)
    world = World(journal=stage.journal())
    first, second = Life(number=1, passes=at, dies_at=dies_at), Life(number=2)
    third = Life(number=3)
    with machine.seen(world, first, second, third):
        machine.suffers(nemesis, when=first.passing)
        over = play(_with_rival(case, world, first, second, stage), first, second, at=0.0)
        if first.dead and first.where is not None:
            play(_alone(case, world, third, stage), third, at=over + case.pause)
            return _outcome(case, world, [first, second, third])
    return _outcome(case, world, [first, second])


def _staged(stage: Stage | None, machine: Machine | None) -> Stage:
    stage = stage or Stage()
    if machine is None:
        return stage
    return attrs.evolve(stage, clocks=machine.clock, journal=machine.journal)


def cancelled(case: UseCase, at: int) -> Played:
    """Play it with a first life whose main task is cancelled at this step: it ends cleanly."""
    world = World()
    first, second = Life(number=1, cancelled_at=at), Life(number=2)
    begins = play(_alone(case, world, first, Stage()), first, at=0.0)
    play(_alone(case, world, second, Stage()), second, at=begins + case.pause)
    return _outcome(case, world, [first, second])


@cache
def points(case: UseCase) -> int:
    """Count the steps of a use case in which nobody dies."""
    undisturbed = played(case)
    assert not undisturbed.wrong, (case.name, undisturbed.wrong)
    (steps,) = undisturbed.steps
    return steps


@cache
def crashed_everywhere(case: UseCase) -> Sequence[Played]:
    """Play it once for each of its steps, dying there."""
    return [played(case, [step]) for step in range(1, points(case) + 1)]


def _outcome(case: UseCase, world: World, lives: Sequence[Life]) -> Played:
    return Played(
        deaths=tuple(life.where for life in lives if life.where is not None),
        steps=tuple(life.steps for life in lives),
        wrong=tuple(violations(world, case.turns)),
        world=world,
    )


async def _alone(case: UseCase, world: World, life: Life, stage: Stage) -> None:
    """Have one process live; what others do who do not die goes on beside it."""
    others = asyncio.ensure_future(case.others(world))
    process = begun(case, world, life, stage)
    await asyncio.wait({process}, timeout=TIMEOUT)
    if not process.done():
        world.failed.append(f"life {life.number} does not end")
    elif process.cancelled():
        others.cancel()
    elif (error := process.exception()) is not None:
        world.failed.append(f"life {life.number} raised {error!r}")
    else:
        await others


def _going_on(others: asyncio.Future[None], _: World) -> asyncio.Future[None]:
    return others


async def _with_rival(case: UseCase, world: World, first: Life, second: Life, stage: Stage) -> None:
    """Begin a second process beside one that nothing happens to, unless it dies."""
    others = asyncio.ensure_future(case.others(world))
    passing = asyncio.ensure_future(first.passing.wait())
    process = begun(case, world, first, stage)
    await asyncio.wait({process, passing}, timeout=TIMEOUT, return_when="FIRST_COMPLETED")
    meanwhile = attrs.evolve(case, others=partial(_going_on, others))
    await _alone(meanwhile, world, second, stage)
    await asyncio.wait({process}, timeout=LINGERING)
    passing.cancel()


@attrs.frozen
class _Pair:
    """Who stands still, who takes over, and when the first goes on."""

    zombie: Life
    heir: Life
    wakes_after: float


async def _beside(case: UseCase, world: World, pair: _Pair, stage: Stage) -> None:
    """Have one stand still, another take over, and the first go on meanwhile or after it."""
    others = asyncio.ensure_future(case.others(world))
    zombie = pair.zombie
    pausing = asyncio.ensure_future(zombie.pausing.wait())
    first = begun(case, world, zombie, stage)
    await asyncio.wait({first, pausing}, timeout=TIMEOUT, return_when="FIRST_COMPLETED")
    await asyncio.sleep(case.pause)
    meanwhile = attrs.evolve(case, others=partial(_going_on, others))
    second = asyncio.ensure_future(_alone(meanwhile, world, pair.heir, stage))
    await asyncio.wait({second}, timeout=pair.wakes_after)
    zombie.resume()
    await second
    await asyncio.wait({first}, timeout=LINGERING)
    pausing.cancel()


def begun(case: UseCase, world: World, life: Life, stage: Stage) -> asyncio.Task[None]:
    """Begin a process: its tasks are this life's."""
    context = copy_context()
    context.run(LIFE.set, life)
    work = _process(case, world, life, stage)
    life.main = asyncio.get_running_loop().create_task(work, context=context)
    return life.main


async def _process(case: UseCase, world: World, life: Life, stage: Stage) -> None:
    """Be one process from its start to its clean end."""
    world.lives = max(world.lives, life.number)
    host = Host(world=world, life=life, continued=case.continued)
    host.runtime = Runtime(
        journal=stage.wrapped(LivingJournal(world.journal, life=life, world=world)),
        tools=Toolbox(case.tools(world, life)),
        on_continue=host.on_continue,
        clock=stage.clocks(life.number),
        settings=case.settings,
        owner=life.owner,
    )
    async with host.runtime as runtime:
        for run in case.first:
            await host.own(run)
        await case.drive(host)
        for run_id in runtime.runs:
            actor = runtime._actors[run_id]
            while actor._serving is not None:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(1)
            if world.lives == life.number:
                world.live[run_id] = actor.kernel.snapshot()
    world.over.add(life.number)
