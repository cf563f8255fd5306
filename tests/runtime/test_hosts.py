"""Many hosts on one journal: who takes what, and how they hear of each other (D-44 … D-48)."""

# Looks inside: to fail a release, and to see what a look finds.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from turnlock import Decide, FactType, OpenTurn, Run
from turnlock.models.errors import InvalidValue
from turnlock.runtime import submitting
from turnlock.runtime.errors import JournalOwned
from turnlock.runtime.journal.contract import Journal, RunEntry
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.left_alone import LeftAlone
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.scheduling import Clock
from turnlock.runtime.settings import Settings
from turnlock.runtime.submitting import Unanswered, submit

from .faulty_journal import Fault, FaultyJournal
from .hearing import HearingJournal
from .test_leases import Set
from .test_runtime import World, calls, crash
from .virtual import START, LoopClock, VirtualLoop, run, settled

RUN = Run(run_id="r")
APPROVE = Decide(turn_id="t1", invocation_id="pay", approved=True)
LEASE = Settings().ownership
THIRD = LEASE / 3


async def busy_runs(journal: Journal, many: int, owner: str | None = None) -> None:
    """So many runs in which a turn is open; nobody's, or of this owner for a lease."""
    for number in range(1, many + 1):
        name = f"r{number}"
        await journal.declare(Run(run_id=name))
        shared = await submitting.SharedRun.open(journal, name, policies={}, clock=LoopClock())
        await shared.submit(OpenTurn(turn_id="t1", calls=(), sealed=False))
        if owner is not None:
            await journal.own(name, owner=owner, now=LoopClock().now(), lease=LEASE)


def count(runtime: Runtime) -> int:
    """How many runs are performed there."""
    return len(runtime.runs)


class Counted(MemoryJournal):
    """Counts the portions in which runs are taken, and what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.portions: list[int] = []
        self.asked = 0
        self.workers: list[str] = []

    async def free(self, **more: Any) -> tuple[RunEntry, ...]:
        self.asked += 1
        return await super().free(**more)

    async def worker(self, worker: str) -> str | None:
        self.workers.append(worker)
        return await super().worker(worker)

    async def take(
        self,
        seen: Sequence[RunEntry],
        *,
        owner: str,
        now: float,
        lease: float,
        gone: Collection[str] = (),
    ) -> Mapping[str, int]:
        self.portions.append(len(seen))
        return await super().take(seen, owner=owner, now=now, lease=lease, gone=gone)


def test_d_47_free_runs_are_taken_in_portions() -> None:
    """All of them, if there is room: each portion in one go."""

    async def play() -> None:
        journal = Counted()
        await busy_runs(journal, 250)
        async with World(journal=journal).process() as runtime:
            assert count(runtime) == 250
            assert journal.portions == [100, 100, 50]

    run(play())


def test_d_47_a_host_takes_no_more_than_it_has_room_for() -> None:
    """The first one up leaves the rest to others; what a host opens by name is not counted out."""

    async def play() -> None:
        world = World(journal=Counted())
        await busy_runs(world.journal, 5)
        async with world.process(settings=Settings(runs=2)) as first:
            assert count(first) == 2
            async with world.process(settings=Settings(runs=2)) as second:
                assert count(second) == 2
                await first.open_run(RUN)
                await first.open_run(Run(run_id="r9"))
                assert count(first) == 4
                await second.close_run(second.runs[0])
                await asyncio.sleep(2 * THIRD)
                assert count(second) == 2  # the last of five, and not the one that it let go
                assert count(first) == 4
                held = {*first.runs, *second.runs}
                free = await world.journal.free(now=LoopClock().now())
                assert len(free) == 1
                assert free[0].run.run_id not in held

    run(play())


def test_d_47_without_a_bound_the_first_one_takes_all() -> None:
    """The control."""

    async def play() -> None:
        world = World()
        await busy_runs(world.journal, 5)
        async with world.process() as first, world.process() as second:
            assert (count(first), second.runs) == (5, ())

    run(play())


@pytest.mark.parametrize("runs", [0, -1, 1.5, True])
def test_d_47_the_bound_is_a_number_of_runs(runs: Any) -> None:
    """None is none."""
    with pytest.raises(InvalidValue, match="runs"):
        Settings(runs=runs)


@pytest.mark.parametrize("lag", [0.0, 1.5])
def test_d_47_a_host_whose_loop_lags_takes_nothing_more(lag: float) -> None:
    """It could not renew what it has; when its loop is well again it goes on. The control is 0."""

    async def play() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        world = World()
        await busy_runs(world.journal, 3)
        lags = True

        async def hold_up() -> None:
            while lags:
                if lag:
                    loop.pass_time(lag)
                await asyncio.sleep(0)

        holding = asyncio.create_task(hold_up())
        async with world.process() as runtime:
            assert count(runtime) == (0 if lag else 3)
            lags = False
            await holding
            await asyncio.sleep(THIRD + 1)
            assert count(runtime) == 3

    run(play())


def test_d_47_what_was_let_go_is_taken_once_somebody_else_has_had_it() -> None:
    """It was closed here on purpose; whoever opened it since has died."""

    async def play() -> None:
        world = World()
        await busy_runs(world.journal, 1)
        async with world.process() as runtime:
            await runtime.close_run("r1")
            await asyncio.sleep(3 * THIRD)
            assert runtime.runs == ()
            await world.journal.own("r1", owner="another", now=LoopClock().now(), lease=LEASE)
            await asyncio.sleep(LEASE + 2 * THIRD)
            assert list(runtime.runs) == ["r1"]

    run(play())


def test_d_47_a_dead_hosts_runs_wait_a_lease_and_a_third_at_most() -> None:
    """Its lease cannot be cut short: nobody sees whether it lives."""

    async def play() -> None:
        world = World()
        async with world.process() as runtime:
            await busy_runs(world.journal, 1, owner="another-host")
            await asyncio.sleep(LEASE - 1)
            assert runtime.runs == ()
            await asyncio.sleep(THIRD + 1)
            assert list(runtime.runs) == ["r1"]

    run(play())


def test_what_a_dead_worker_stands_for_is_asked_once_for_all_its_runs() -> None:
    """As many of them were performed there, as many calls are in doubt."""

    async def play() -> None:
        journal = Counted()
        world = World(journal=journal)
        dead = world.process(world.tool("act", lambda: asyncio.sleep(3600)))
        await dead.__aenter__()
        for name in ("r1", "r2", "r3"):
            await dead.open_run(Run(run_id=name))
            await dead.open_turn(name, calls("act"), turn_id="t1")
        await settled()
        await crash(dead)
        await asyncio.sleep(LEASE + 1)
        async with world.process(world.tool("act")) as heir:
            assert len(heir.runs) == 3
            for name in heir.runs:
                assert FactType.EXECUTION_IN_DOUBT in await world.facts(name)
        assert journal.workers == [dead._runtime.worker.name]

    run(play())


def test_d_49_a_run_that_could_not_be_released_is_not_kept_from_others() -> None:
    """Its owner renews all that it has, and would renew that one for ever."""

    async def play() -> None:
        faulty = FaultyJournal(MemoryJournal())
        world = World(journal=faulty)
        async with world.process() as runtime:
            await runtime.open_run(RUN)
            faulty.fail("release", Fault.LOCKED)
            await runtime.close_run("r")
            assert (await faulty.entry("r")).owner == runtime.owner
            await asyncio.sleep(THIRD + 1)
            assert (await faulty.entry("r")).owner is None

    run(play())


def test_d_71_a_process_that_is_woken_looks_for_nothing() -> None:
    """It performs what it is given, and lets the runs of the dead be."""

    async def play() -> None:
        journal = Counted()
        world = World(journal=journal)
        await busy_runs(journal, 2)
        async with world.process(settings=Settings(takes_over=False)) as woken:
            await asyncio.sleep(10 * LEASE)
            assert (woken.runs, journal.asked) == ((), 0)
            await woken.open_run(Run(run_id="r1"))
            assert woken.runs == ("r1",)
            assert (await journal.entry("r1")).owned_until > LoopClock().now()  # type: ignore[operator]
        async with world.process() as other:  # the control
            assert count(other) == 2

    run(play())


class TimedJournal(MemoryJournal):
    """A journal with a clock of its own, which may be off by so much."""

    def __init__(self, *, patience: float = 0.0) -> None:
        super().__init__()
        self._patience = patience

    @property
    def clock(self) -> Clock:
        return LoopClock()

    @property
    def patience(self) -> float:
        return self._patience


@pytest.mark.parametrize("patience", [0.0, 1.0])
def test_d_44_takers_wait_as_long_as_the_journals_clock_may_be_off(patience: float) -> None:
    """Whoever opens a run, and whoever looks for it; the control waits for nothing."""

    async def play() -> None:
        journal = TimedJournal(patience=patience)
        world = World(journal=journal)
        async with world.process(settings=Settings(takes_over=False)) as runtime:
            await busy_runs(journal, 2, owner="another-host")
            await asyncio.sleep(LEASE + 0.5)
            if patience:
                assert await runtime.take_over() == ()
                with pytest.raises(JournalOwned):
                    await runtime.open_run(Run(run_id="r1"))
                await asyncio.sleep(0.5)
            await runtime.open_run(Run(run_id="r1"))
            assert await runtime.take_over() == ("r2",)

    run(play())


@pytest.mark.parametrize("own_clock", [True, False])
def test_d_44_a_host_that_is_ahead_takes_nothing_by_the_journals_clock(own_clock: bool) -> None:
    """The control is a journal without one: then it takes what others have."""

    async def play() -> None:
        journal = TimedJournal() if own_clock else MemoryJournal()
        world = World(journal=journal)
        await busy_runs(journal, 1, owner="another-host")
        runtime = world.process()
        ahead = Set(2 * LEASE)
        hasty = type(runtime)(
            journal=journal, on_continue=runtime._runtime.on_continue, clock=ahead
        )
        async with hasty:
            await settled()
            assert hasty.runs == (() if own_clock else ("r1",))
            entry = await journal.entry("r1")
            assert entry.owner == ("another-host" if own_clock else hasty.owner)
            if own_clock:
                assert entry.owned_until == START + LEASE

    run(play())


def test_d_48_a_decision_is_heard_at_once_by_the_owner_and_its_answer_by_who_posted() -> None:
    """No time passes, though nobody would look for minutes; each has looked a few times."""

    async def play() -> None:
        journal = HearingJournal()
        world = World(journal=journal)
        slow = Settings(poll=600.0)
        async with world.process(world.tool("pay", approval=True), settings=slow) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay"), turn_id="t1")
            await settled()
            began = asyncio.get_running_loop().time()
            told = await submit(journal, "r", APPROVE, within=5, policies={}, clock=LoopClock())
            assert told.receipt["accepted"]
            assert told.by_owner
            assert asyncio.get_running_loop().time() - began < 0.01
            assert journal.looks < 10
            await settled()
            assert FactType.TOOL_APPROVED in await world.facts()

    run(play())


def test_d_51_a_hint_that_is_lost_is_made_up_for_by_looking() -> None:
    """By owner and poster alike."""

    async def play() -> None:
        journal = HearingJournal()
        world = World(journal=journal)
        async with world.process(world.tool("pay", approval=True)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay"), turn_id="t1")
            await settled()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(journal, "hint", lambda: None)
                began = asyncio.get_running_loop().time()
                told = await submit(journal, "r", APPROVE, within=5, policies={}, clock=LoopClock())
            assert told.receipt["accepted"]
            assert 0.1 < asyncio.get_running_loop().time() - began < 1

    run(play())


def test_d_10_who_waits_in_vain_asks_seldom_where_the_journal_hears(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred visitors would ask 2,000 times a second; the control is a journal that is deaf."""

    async def looks(journal: HearingJournal) -> int:
        await journal.declare(RUN)
        await journal.own("r", owner="hangs", now=LoopClock().now(), lease=LEASE)
        with pytest.raises(Unanswered):
            await submit(journal, "r", APPROVE, within=5, policies={}, clock=LoopClock())
        return journal.looks

    async def play() -> None:
        # without the virtual loop's time the wait would be real
        monkeypatch.setattr("time.monotonic", asyncio.get_running_loop().time)
        assert await looks(HearingJournal()) < 30

        class Deaf(HearingJournal):
            @property
            def hears(self) -> bool:
                return False

        assert await looks(Deaf()) > 90

    run(play())


def test_d_12_a_look_does_not_list_what_others_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every busy run of every host would be: only what is free, and of that a portion."""

    async def play() -> None:
        world = World()
        await busy_runs(world.journal, 3, owner="another-host")
        async with world.process() as runtime:

            def listed(*_: Any) -> bool:
                raise AssertionError("a run of another host was listed")

            monkeypatch.setattr(LeftAlone, "is_wanted", listed)
            assert await runtime.take_over() == ()

    run(play())
