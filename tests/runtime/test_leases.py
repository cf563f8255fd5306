"""A clock step robs nobody: the steps of a Jepsen clock nemesis, and machines that slept.

Two processes on one journal without a clock of its own, each with its clock; names of owners are
those of this process, which is seen to live.
"""

# Looks inside: to stop the heart of a process.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import attrs
import pytest

from turnlock import FactType, Interrupt, Run
from turnlock.runtime import leases
from turnlock.runtime.errors import JournalOwned
from turnlock.runtime.owners import is_alive, new_owner
from turnlock.runtime.running import Running
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.submitting import SharedRun, Unanswered, submit
from turnlock.runtime.tools.toolbox import Toolbox

from .test_owners import SAY_WHO
from .test_runtime import World, calls, crash
from .virtual import START, LoopClock, run, settled

RUN = Run(run_id="r")
LEASE = 30.0
DAY = 86_400.0
STEPS = (45.0, -45.0, DAY, -DAY)
HOUR = 3_600.0


@attrs.define(eq=False)
class Set(LoopClock):
    """The time of the loop, and how far somebody has set it forward."""

    ahead: float = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


def process(world: World, clock: Set) -> Runtime:
    """A process whose tool runs for 100 s."""

    async def on_continue(_: object) -> None:
        """Be told."""

    slow = world.tool("slow", lambda: asyncio.sleep(100))
    return Runtime(
        journal=world.journal,
        tools=Toolbox([slow]),
        on_continue=on_continue,
        clock=clock,
        settings=Settings(ownership=LEASE),
    )


async def nemesis(
    owners: Set, others: Set, *, after: float, step: float, ours: float = 0.0
) -> World:
    """Have a tool run at its owner's, another look on, and their clocks set after a while."""
    world = World()
    async with process(world, owners) as owner:
        await owner.open_run(RUN)
        await owner.open_turn("r", calls("slow"), turn_id="t1")
        await settled()
        await asyncio.sleep(after)
        async with process(world, others):
            await asyncio.sleep(11)
            others.ahead += step
            owners.ahead += ours
            await asyncio.sleep(150)
    return world


async def is_whole(world: World) -> bool:
    """Whether the tool was run once, by one owner, and its result was kept without a doubt."""
    facts = await world.facts()
    return (
        (await world.journal.entry("r")).fence == 1
        and world.ledger == {"slow": 1}
        and FactType.EXECUTION_IN_DOUBT not in facts
        and FactType.TOOL_EXECUTION_SUCCEEDED in facts
    )


@pytest.mark.parametrize("step", STEPS)
def test_a_process_whose_clock_was_set_robs_nobody(step: float) -> None:
    """The owner lives, and renews between two looks."""

    async def play() -> None:
        world = await nemesis(Set(), Set(), after=0, step=step)
        assert await is_whole(world)

    run(play())


@pytest.mark.parametrize("step", STEPS)
def test_an_owner_whose_clock_was_set_is_not_robbed(step: float) -> None:
    """Nor does it doubt its own tool, of which it knows that it runs."""

    async def play() -> None:
        world = await nemesis(Set(), Set(), after=0, step=0.0, ours=step)
        assert await is_whole(world)

    run(play())


@pytest.mark.parametrize("after", [*range(11), 85, 88])
def test_a_machine_that_slept_robs_nobody(after: int) -> None:
    """Both see the lease over when it wakes, whoever of them looks first."""

    async def play() -> None:
        ours = theirs = Set()
        world = await nemesis(ours, theirs, after=after, step=HOUR)
        assert await is_whole(world)

    run(play())


@pytest.mark.parametrize("slept", [False, True])
def test_with_one_look_the_owner_is_robbed(monkeypatch: pytest.MonkeyPatch, *, slept: bool) -> None:
    """The control: the lease alone counts."""

    def unseen(_: str) -> bool:
        return False

    monkeypatch.setattr(leases, "is_alive", unseen)

    async def play() -> None:
        robbed = False
        for after in range(11):
            ours = Set()
            theirs = ours if slept else Set()
            world = await nemesis(ours, theirs, after=after, step=HOUR)
            robbed = robbed or not await is_whole(world)
        assert robbed

    run(play())


@pytest.mark.parametrize("step", [45.0, DAY])
def test_without_a_word_for_it_the_owner_doubts_its_own_tool(
    monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    """The control: its kernel is told of the time that has passed, and of nothing else."""

    def silent(*_: object) -> tuple[()]:
        return ()

    monkeypatch.setattr(Running, "overtaken", silent)

    async def play() -> None:
        world = await nemesis(Set(), Set(), after=0, step=0.0, ours=step)
        assert FactType.EXECUTION_IN_DOUBT in await world.facts()

    run(play())


def test_an_owner_that_stands_still_is_replaced() -> None:
    """It lives, and does not renew: whoever looks twice takes its runs."""

    async def play() -> None:
        world = World()
        zombie = process(world, Set())
        await zombie.__aenter__()
        await zombie.open_run(RUN)
        await zombie.open_turn("r", calls("slow"), turn_id="t1")
        await zombie._watchers.cancel()
        async with process(world, Set()) as heir:
            await asyncio.sleep(LEASE)
            assert list(heir.runs) == []
            await asyncio.sleep(LEASE)
            assert list(heir.runs) == ["r"]
        await crash(zombie)

    run(play())


@pytest.mark.parametrize("renews", [False, True])
def test_opening_a_run_of_a_silent_owner_waits_for_a_sign_of_it(*, renews: bool) -> None:
    """It gives one, and keeps its run; or gives none, and loses it."""

    async def play() -> None:
        world = World()
        owner = process(world, Set())
        await owner.__aenter__()
        await owner.open_run(RUN)
        if not renews:
            await owner._watchers.cancel()
        async with process(world, Set(ahead=DAY)) as other:
            if renews:
                with pytest.raises(JournalOwned, match=r"'r': its owner .* lives, though"):
                    await other.open_run(RUN)
            else:
                await other.open_run(RUN)
            entry = await world.journal.entry("r")
            assert (entry.owner, entry.fence) == ((owner if renews else other).owner, 2 - renews)
        await crash(owner)

    run(play())


def test_visitors_post_to_an_owner_that_lives() -> None:
    """Its lease seems to be over to them: they neither take its run nor write it."""

    async def play() -> None:
        world = World()
        stop = Interrupt(turn_id="t1")
        ahead = Set(ahead=DAY)
        async with process(world, Set()) as owner:
            await owner.open_run(RUN)
            await owner.open_turn("r", calls("slow"), turn_id="t1")
            shared = await SharedRun.open(world.journal, "r", policies=None, clock=ahead)
            with pytest.raises(JournalOwned):
                await shared.submit(stop)
            told = await submit(world.journal, "r", stop, within=5, clock=ahead)
            assert (told.by_owner, told.receipt["accepted"]) == (True, True)
            assert (await world.journal.entry("r")).fence == 1

    run(play())


def test_a_visitor_of_an_owner_that_hangs_is_told_so() -> None:
    """Nobody has answered; the post is kept."""

    async def play() -> None:
        world = World()
        await world.journal.declare(RUN)
        await world.journal.own("r", owner=new_owner(), now=START, lease=-1.0)
        with pytest.raises(Unanswered):
            await submit(world.journal, "r", Interrupt(turn_id="t1"), within=0, clock=Set())
        assert len(await world.journal.posts(["r"])) == 1

    run(play())


def test_who_lives_is_seen_and_nobody_else() -> None:
    """Not who has ended and was not waited for yet, nor who began at another time, elsewhere."""
    with subprocess.Popen(
        [sys.executable, "-c", SAY_WHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        owner = f"turnlock:{child.stdout.readline().strip()}"
        assert is_alive(owner)
        child.kill()
        while is_alive(owner):
            time.sleep(0.001)
        assert child.returncode is None

    parts = new_owner().split(":")
    for place, other in ((3, "another boot"), (4, "1.2"), (5, "1"), (5, "-"), (2, "pid")):
        assert not is_alive(":".join([*parts[:place], other, *parts[place + 1 :]]))
    assert not any(map(is_alive, (None, "ada", "turnlock:life-1")))
    assert is_alive(":".join(parts))
