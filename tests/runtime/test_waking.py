"""D-70: whatever a waker does – twice, late, on two hosts, never – each tool runs once.

Hosts that are woken share one journal; wakers are functions of the tests.
"""

# Looks inside: to switch a count off.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest

from turnlock import FactType, OpenTurn, Run, TurnlockError
from turnlock.runtime import Sweep, Woken
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.errors import Closed, JournalError, JournalReplaced
from turnlock.runtime.journal.contract import RunEntry
from turnlock.runtime.owners import new_owner
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.submitting import submit
from turnlock.runtime.tools.tool import Tool
from turnlock.runtime.tools.toolbox import Toolbox

from .test_runtime import World, calls, crash
from .virtual import LoopClock, run, settled

RUN = Run(run_id="r")
WOKEN = Settings(takes_over=False)
LEASE = WOKEN.ownership


async def opened(world: World, *names: str, run_id: str = "r", turn_id: str = "t1") -> None:
    """A turn that somebody opens who performs nothing: he owns the run at no time."""
    await world.journal.declare(Run(run_id=run_id))
    opening = OpenTurn(turn_id=turn_id, calls=tuple(calls(*names)))
    told = await submit(
        world.journal, run_id, opening, within=1, tools=Toolbox(), clock=LoopClock()
    )
    assert told.receipt["accepted"]


def swept(world: World, wake: Callable[[RunEntry], Awaitable[object]]) -> Sweep:
    return Sweep(journal=world.journal, wake=wake, clock=LoopClock())


async def once(world: World, *names: str) -> None:
    """Each of these tools has run once, and their turn has ended once."""
    assert world.ledger == dict.fromkeys(names, 1)
    assert [told.turn_id for told in world.told] == ["t1"]
    facts = await world.facts()
    assert facts.count(FactType.TURN_SETTLED) == facts.count(FactType.CONTINUATION_TAKEN) == 1
    entry = await world.journal.entry("r")
    assert (entry.busy, entry.owner) == (False, None)


def slow(world: World) -> Tool:
    """A tool that runs for five seconds."""
    return world.tool("slow", lambda: asyncio.sleep(5))


def test_d_71_a_turn_is_owned_performed_and_let_go() -> None:
    """Nothing is taken over unasked; once woken, the run ends free and owing nothing."""

    async def play() -> None:
        world = World()
        async with world.process(slow(world), settings=WOKEN) as runtime:
            await opened(world, "slow")
            await asyncio.sleep(2 * LEASE)
            assert world.ledger == {}  # the control: there was no waker
            assert await Woken(runtime).perform("r")
            assert runtime.runs == ()
            await once(world, "slow")

    run(play())


def test_d_70_woken_twice_on_one_host() -> None:
    """The second finds it performed here, the third that it owes nothing."""

    async def play() -> None:
        world = World()
        async with world.process(slow(world), settings=WOKEN) as runtime:
            await opened(world, "slow")
            woken = Woken(runtime)
            first, second = await asyncio.gather(woken.perform("r"), woken.perform("r"))
            assert (first, second) == (True, False)
            assert not await woken.perform("r")
            await once(world, "slow")

    run(play())


def test_d_70_woken_on_two_hosts() -> None:
    """One owns it; at the other it is `JournalOwned`, and that is all."""

    async def play() -> None:
        world = World()
        async with (
            world.process(slow(world), settings=WOKEN) as one,
            world.process(slow(world), settings=WOKEN) as other,
        ):
            await opened(world, "slow")
            performed = await asyncio.gather(Woken(one).perform("r"), Woken(other).perform("r"))
            assert sorted(performed) == [False, True]
            await once(world, "slow")

    run(play())


@pytest.mark.parametrize("waits", [0.1, 1000.0])
def test_d_70_woken_late(waits: float) -> None:
    """While another host performs it, and long after it was performed."""

    async def play() -> None:
        world = World()
        async with (
            world.process(slow(world), settings=WOKEN) as one,
            world.process(slow(world), settings=WOKEN) as other,
        ):
            await opened(world, "slow")
            first = asyncio.create_task(Woken(one).perform("r"))
            await asyncio.sleep(waits)
            assert not await Woken(other).perform("r")
            assert await first
            await once(world, "slow")

    run(play())


@pytest.mark.parametrize("sweeps", [True, False])
def test_d_70_never_woken(*, sweeps: bool) -> None:
    """The sweep finds it, at the second look: at the first, its waker may be on the way.

    The control is a host without the sweep.
    """

    async def play() -> None:
        world = World()
        async with world.process(slow(world), settings=WOKEN) as runtime:
            woken = Woken(runtime)
            await opened(world, "slow")
            sweep = swept(world, lambda entry: woken.perform(entry.run.run_id))
            looked = [await sweep.look(), await sweep.look()] if sweeps else []
            await asyncio.sleep(2 * LEASE)
            if sweeps:
                assert looked == [(), ("r",)]
                await once(world, "slow")
            else:
                assert world.ledger == {}

    run(play())


def test_d_70_woken_by_a_host_that_died_with_it() -> None:
    """The sweep of another finds it when the lease is over, and not before; the claim is in doubt.

    It is a name of no process that could be seen to be dead: only the lease tells.
    """

    async def play() -> None:
        world = World()
        died = Runtime(
            journal=world.journal,
            tools=Toolbox([world.tool("pay", lambda: asyncio.sleep(5))]),
            on_continue=_never,
            clock=LoopClock(),
            settings=WOKEN,
            owner="another host",
        )
        await opened(world, "pay")
        async with died, world.process(world.tool("pay"), settings=WOKEN) as other:
            waking = [asyncio.create_task(Woken(died).perform("r"))]
            await asyncio.sleep(1)
            await crash(died)
            woken = Woken(other)
            at: list[float] = []

            async def wake(entry: RunEntry) -> None:
                at.append(asyncio.get_running_loop().time())
                waking.append(asyncio.create_task(woken.perform(entry.run.run_id)))

            watching = asyncio.create_task(swept(world, wake).watch())
            await asyncio.sleep(3 * LEASE)
            watching.cancel()
            assert at[0] >= LEASE
            assert other.doubts("r")[0].invocation_id == "pay"
            assert world.ledger == {"pay": 1}
        for task in waking:
            with pytest.raises(Closed):
                await task

    run(play())


async def _never(_: Continuation) -> None:
    raise AssertionError


def test_a_turn_that_opens_while_its_run_is_let_go_is_performed() -> None:
    """Its own waking came while this host still had the run, and was told so.

    What is woken meanwhile is counted, and looked for before it ends. The control is a host that
    does not count: there the second turn waits for a sweep.
    """

    async def play(*, counts: bool) -> World:
        world = World()
        journal = world.journal
        async with world.process(world.tool("one"), world.tool("two"), settings=WOKEN) as runtime:
            await opened(world, "one")
            woken = Woken(runtime)
            entry_of = journal.entry
            asked = 0

            async def entry(run_id: str) -> RunEntry:
                nonlocal asked
                found = await entry_of(run_id)
                asked += 1
                if asked == 3:  # it was seen to owe nothing, and before that is known …
                    await opened(world, "two", turn_id="t2")
                    assert not await woken.perform("r")
                    if not counts:
                        woken._wakings["r"] = 0
                return found

            journal.entry = entry  # type: ignore[method-assign]
            await woken.perform("r")
            await settled()
        return world

    assert run(play(counts=True)).ledger == {"one": 1, "two": 1}
    assert run(play(counts=False)).ledger == {"one": 1}


@pytest.mark.parametrize("when", ["told", "let go"])
def test_who_posts_to_an_owner_that_lets_go_is_answered(when: str) -> None:
    """The next message comes at once: its sender has seen an owner, and asks him.

    The control does not look for such posts: then nobody is woken, for the run owes nothing.
    """
    opening = OpenTurn(turn_id="t2", calls=tuple(calls("two")))

    async def play(*, looks: bool) -> World:
        world = World()
        journal = world.journal
        release = journal.release

        async def tell(told: Continuation) -> None:
            if when == "told" and told.turn_id == "t1":
                await journal.post("r", opening)

        async def let_go(run_id: str, *, fence: int) -> None:
            if when == "let go" and fence == 1:
                await journal.post("r", opening)
            await release(run_id, fence=fence)

        journal.release = let_go  # type: ignore[method-assign]
        async with Runtime(
            journal=journal,
            tools=Toolbox([world.tool("one"), world.tool("two")]),
            on_continue=tell,
            clock=LoopClock(),
            settings=WOKEN,
        ) as runtime:
            await opened(world, "one")
            woken = Woken(runtime)
            if not looks:
                woken._posted = _nobody  # type: ignore[method-assign,assignment]
            assert await woken.perform("r")
        return world

    assert run(play(looks=True)).ledger == {"one": 1, "two": 1}
    assert run(play(looks=False)).ledger == {"one": 1}


async def _nobody(_: str) -> bool:
    return False


@attrs.define
class Chain:
    """A host whose callback opens the next turn, as an agent's does."""

    world: World
    runtime: Runtime | None = None

    async def take(self, told: Continuation) -> None:
        self.world.told.append(told)
        if told.turn_id == "t1":
            assert self.runtime is not None
            await self.runtime.open_turn("r", calls("two"), turn_id="t2", epoch=2)


def test_a_turn_that_the_callback_opens_is_performed_by_who_has_the_run() -> None:
    """It is not let go between them: what began at once would be stopped, and in doubt."""

    async def play() -> None:
        world = World()
        chain = Chain(world)
        tools = [world.tool("one"), world.tool("two", lambda: asyncio.sleep(100))]
        async with Runtime(
            journal=world.journal,
            tools=Toolbox(tools),
            on_continue=chain.take,
            clock=LoopClock(),
            settings=WOKEN,
        ) as runtime:
            chain.runtime = runtime
            await opened(world, "one")
            assert await Woken(runtime).perform("r")

        assert world.ledger == {"one": 1, "two": 1}
        assert [told.turn_id for told in world.told] == ["t1", "t2"]
        assert FactType.EXECUTION_IN_DOUBT not in await world.facts()
        assert (await world.journal.entry("r")).fence == 1

    run(play())


def test_who_is_fenced_ends() -> None:
    """A workflow that performed a run which another has taken is over, and harms nobody."""

    async def play() -> None:
        world = World()
        async with world.process(slow(world), settings=WOKEN) as runtime:
            await opened(world, "slow")
            performing = asyncio.create_task(Woken(runtime).perform("r"))
            await asyncio.sleep(1)
            await world.journal.own("r", owner="another", now=LoopClock().now() + 1e6, lease=9.0)
            await asyncio.sleep(LEASE)
            assert performing.done()
            assert await performing
            assert (await world.journal.entry("r")).owner == "another"

    run(play())


def test_who_is_closed_ends() -> None:
    """The runtime lets go of all; nothing is left that waits."""

    async def play() -> None:
        world = World()
        async with world.process(
            slow(world), settings=Settings(takes_over=False, drain=0.5)
        ) as runtime:
            await opened(world, "slow")
            performing = asyncio.create_task(Woken(runtime).perform("r"))
            await asyncio.sleep(1)
        with pytest.raises(Closed):
            await performing
        assert (await world.journal.entry("r")).owner is None

    run(play())


def test_a_sweep_leaves_alone_what_somebody_performs_or_nobody_may() -> None:
    """A living owner's run, one of another kind, one that was rewound, one that moved meanwhile."""

    async def play() -> None:
        world = World()
        journal = world.journal
        for name in ("owned", "moves", "rewound", "stands"):
            await opened(world, "pay", run_id=name)
        await journal.declare(Run(run_id="guarded", kind="guard"))
        now = LoopClock().now()
        await journal.own("owned", owner=new_owner(), now=now, lease=LEASE)
        await journal.mark_rewound("rewound", why="a test")
        woken: list[str] = []

        async def wake(entry: RunEntry) -> None:
            woken.append(entry.run.run_id)

        sweep = swept(world, wake)
        assert await sweep.look() == ()
        fence = await journal.own("moves", owner="somebody", now=now, lease=LEASE)
        await journal.release("moves", fence=fence)
        assert await sweep.look() == ("stands",)
        assert woken == ["stands"]
        assert await sweep.look() == ("moves", "stands")  # again, as long as it stands

    run(play())


def test_a_run_that_cannot_be_woken_keeps_no_other_from_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is told, and tried again."""

    async def play() -> None:
        world = World()
        for name in ("a", "b"):
            await opened(world, "pay", run_id=name)
        tried: list[str] = []

        async def wake(entry: RunEntry) -> None:
            tried.append(entry.run.run_id)
            if tried == ["a"]:
                raise ConnectionError("the engine is away")

        sweep = swept(world, wake)
        await sweep.look()
        assert await sweep.look() == ("b",)
        assert await sweep.look() == ("a", "b")

    run(play())
    assert "run 'a' could not be woken" in caplog.text


def failing(method: Callable[..., Awaitable[Any]], *errors: TurnlockError) -> Any:
    """A journal's method that fails so often before it does what it should."""
    left = list(errors)

    async def call(**asked: Any) -> Any:
        if left:
            raise left.pop()
        return await method(**asked)

    return call


def test_a_sweep_outlives_a_journal_that_fails_and_not_one_that_is_gone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The first is told in the log, and was no look; after the second there is nothing to see."""

    async def play() -> list[str]:
        world = World()
        await opened(world, "pay")
        woken: list[str] = []

        async def wake(entry: RunEntry) -> None:
            woken.append(entry.run.run_id)

        free = world.journal.free
        world.journal.free = failing(free, JournalError("it is away"))  # type: ignore[method-assign]
        watching = asyncio.create_task(swept(world, wake).watch())
        await asyncio.sleep(15)
        assert woken == []
        await asyncio.sleep(10)
        watching.cancel()
        world.journal.free = failing(free, JournalReplaced("gone"))  # type: ignore[method-assign]
        with pytest.raises(JournalReplaced):
            await swept(world, wake).watch()
        return woken

    assert run(play()) == ["r"]
    assert "not known which runs nobody performs: it is away" in caplog.text
