"""What goes wrong around a claim: callers that go away, journals that fail, owners, an end."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio

import pytest

from turnlock import FactType
from turnlock.guards.engine import Held
from turnlock.guards.errors import InDoubt, StillRunning
from turnlock.guards.values import Abandons, At
from turnlock.models.errors import InvalidValue
from turnlock.runtime.errors import Closed, JournalError, JournalOwned, JournalReplaced
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.owners import new_owner
from turnlock.runtime.tools.policy import Policy

from ..runtime.faulty_journal import Fault, FaultyJournal
from ..runtime.virtual import START, run, settled
from .engines import (
    call,
    claimed,
    conforms,
    engine,
    facts_of,
    open_turn,
    replayed,
    starts,
    types_of,
)

A = At("r", "t1", "a")


@pytest.mark.parametrize("fault", [Fault.DELAYED, Fault.HELD])
@pytest.mark.parametrize("cancels", [1, 3])
def test_a_caller_who_is_cancelled_leaves_nothing_claimed(fault: Fault, cancels: int) -> None:
    """However late, and however often: when it comes out, whoever comes next may run it."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"))
        journal.fail("append", fault)
        asking = asyncio.create_task(claimed(guard, "a"))
        await settled()
        for _ in range(cancels):
            asking.cancel()
            await settled()
        assert not asking.done()
        journal.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert len(guard._holding) == 0
        held = await claimed(engine(journal), "a")
        assert held.attempt == 2
        await conforms(journal)

    run(play())


def test_cancelled_at_every_step_it_is_executed_at_most_once_and_nothing_is_left() -> None:
    async def play(step: int) -> bool:
        journal = MemoryJournal()
        guard, ran = engine(journal), 0
        await open_turn(guard, "t1", call("a"))

        async def one() -> None:
            nonlocal ran
            held = await guard.claim(A, "read", {})
            assert isinstance(held, Held)
            ran += 1
            await guard.succeeded(held, 1)

        work = asyncio.create_task(one())
        for _ in range(step):
            await asyncio.sleep(0)
        ended = work.done()
        work.cancel()
        await asyncio.wait({work})
        await settled()
        assert len(guard._holding) == 0
        try:
            found = await guard.claim(A, "read", {})
        except InDoubt:
            assert ran == 1
        else:
            assert isinstance(found, Held) is (ran == 0)
        await conforms(journal)
        return ended

    step = 0
    while not run(play(step)):
        step += 1
    assert step > 3


@pytest.mark.parametrize("fault", [Fault.UNACKNOWLEDGED, Fault.FULL])
def test_a_claim_of_which_nobody_knows_was_surely_never_begun(fault: Fault) -> None:
    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"))
        journal.fail("append", fault)
        with pytest.raises(JournalError):
            await claimed(guard, "a")
        with_retry = fault is Fault.UNACKNOWLEDGED
        held = await claimed(guard, "a")
        assert held.attempt == (2 if with_retry else 1)
        await guard.lost(held)  # and what has begun since is in doubt like any other
        with pytest.raises(InDoubt):
            await claimed(guard, "a")
        await conforms(journal)

    run(play())


def test_what_another_claimed_is_not_taken_for_our_own_that_failed() -> None:
    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        guard, other = engine(journal, wait=0.0), engine(journal)
        await open_turn(guard, "t1", call("a"))
        journal.fail("append", Fault.FULL)
        with pytest.raises(JournalError):
            await claimed(guard, "a")
        held = await claimed(other, "a")
        with pytest.raises(StillRunning):
            await claimed(guard, "a")
        await other.lost(held)
        with pytest.raises(InDoubt):
            await claimed(guard, "a")
        assert starts(await facts_of(journal)) == 1

    run(play())


@pytest.mark.parametrize("fault", [Fault.UNACKNOWLEDGED, Fault.FULL])
def test_a_report_that_failed_may_be_made_again(fault: Fault) -> None:
    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"))
        held = await claimed(guard, "a")
        journal.fail("append", fault)
        with pytest.raises(JournalError):
            await guard.succeeded(held, 1)
        assert len(guard._holding) == 0  # its lease ends, if nobody comes back
        await guard.succeeded(held, 1)
        assert (await replayed(guard, "a")).value == 1
        await conforms(journal)

    run(play())


def test_what_could_not_be_given_back_is_given_back_when_it_is_met() -> None:
    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"))
        held = await claimed(guard, "a")
        journal.fail("append", Fault.FULL)
        with pytest.raises(JournalError):
            await guard.never_began(held)
        await asyncio.sleep(40)  # its lease is over, too
        assert (await claimed(guard, "a")).attempt == 2

    run(play())


def test_a_run_that_somebody_owns_is_tried_again_until_patience_is_over() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal, patience=10.0)
        await open_turn(guard, "t1", call("a"))
        owner = new_owner()
        fence = await journal.own("r", owner=owner, now=START, lease=1_000.0)
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(JournalOwned):
            await claimed(guard, "a")
        assert 9 <= loop.time() - began <= 11
        asking = asyncio.create_task(claimed(guard, "a"))
        await asyncio.sleep(5)
        assert not asking.done()
        await journal.release("r", fence=fence)
        assert (await asking).attempt == 1

    run(play())


class Replaced(FaultyJournal):
    """A journal whose file is another one from some moment on."""

    is_replaced = False

    async def append(self, *given: object, **more: object) -> object:  # type: ignore[override]
        if self.is_replaced:
            raise JournalReplaced("it was replaced")
        return await super().append(*given, **more)  # type: ignore[arg-type]


def test_what_no_repetition_mends_comes_out_as_it_is() -> None:
    async def play() -> None:
        journal = Replaced(MemoryJournal())
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"))
        journal.is_replaced = True
        began = asyncio.get_running_loop().time()
        with pytest.raises(JournalReplaced):
            await claimed(guard, "a")
        assert asyncio.get_running_loop().time() == began

    run(play())


def test_at_the_end_what_is_held_is_lost_and_nothing_hangs() -> None:
    async def play() -> None:
        journal = Lasting(MemoryJournal())
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"), call("b"))
        await open_turn(guard, "t1", call("a"), run="s")
        held = await claimed(guard, "a")
        await claimed(guard, "b")
        await claimed(guard, "a", run="s")
        await guard.close()
        await guard.close()
        other = engine(journal)
        for name, in_run in (("a", "r"), ("b", "r"), ("a", "s")):
            with pytest.raises(InDoubt):
                await claimed(other, name, run=in_run)
        for asked in (
            guard.claim(A, "read", {}),
            guard.look(A),
            guard.waiting("r"),
            guard.open_turn("r", "t2", (), after=None, abandons=Abandons.WAITING),
        ):
            with pytest.raises(Closed):
                await asked
        assert held.attempt == 1

    run(play())


class Lasting(FaultyJournal):
    """A journal that others have open, too."""

    async def close(self) -> None:
        pass


def test_an_end_does_not_wait_for_a_journal_that_does_not_answer() -> None:
    async def play() -> None:
        journal = Lasting(MemoryJournal())
        guard = engine(journal)
        await open_turn(guard, "t1", call("a"))
        await claimed(guard, "a")
        journal.fail("append", Fault.DELAYED)
        await guard.close()
        assert asyncio.get_running_loop().time() < 6

    run(play())


def test_with_its_last_report_a_run_of_one_call_has_nothing_left_to_do() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal)
        for name, report in (("r", guard.succeeded), ("s", guard.failed)):
            await open_turn(guard, "once", call("a"), run=name)
            held = await claimed(guard, "a", turn="once", run=name)
            await report(held, "told", acknowledge=True)
            assert not (await journal.entry(name)).busy
        await open_turn(guard, "t1", call("a"), call("b"), run="u")
        await guard.succeeded(await claimed(guard, "a", run="u"), 1, acknowledge=True)
        assert (await journal.entry("u")).busy
        assert FactType.CONTINUATION_TAKEN not in await types_of(journal, "u")

    run(play())


@pytest.mark.parametrize(
    "given",
    [
        {"lease": 0.0},
        {"lease": -1.0},
        {"lease": float("inf")},
        {"wait": -1.0},
        {"patience": float("nan")},
        {"policies": {"pay": Policy(keep_result="sealed")}},
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(InvalidValue):
        engine(MemoryJournal(), **given)


def test_many_tasks_of_one_engine_run_each_call_once() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal, wait=60.0)
        names = [f"c{number}" for number in range(10)]
        await open_turn(guard, "t1", *map(call, names))
        ran: list[str] = []

        async def one(name: str) -> object:
            found = await guard.claim(At("r", "t1", name), "read", {})
            if not isinstance(found, Held):
                return found.value
            ran.append(name)
            await asyncio.sleep(1)
            await guard.succeeded(found, name)
            return name

        values = await asyncio.gather(*(one(name) for name in names * 4))
        assert values == names * 4
        assert sorted(ran) == names
        await conforms(journal)

    run(play())
