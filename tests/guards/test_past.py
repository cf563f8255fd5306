"""What the kernel has forgotten is known to the journal: replayed, compared, never run again."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from turnlock import Kernel, OpenTurn, Run
from turnlock.guards.errors import DecidedOtherwise, Differs, Forked, Stale
from turnlock.guards.past import TURNS, Past, Unread
from turnlock.guards.values import BEGINNING, At
from turnlock.guards.visits import RUNS, SNAPSHOT_EVERY
from turnlock.models.deliveries import Resolution
from turnlock.models.run import Limits
from turnlock.runtime.journal.contract import Journal, open_journal
from turnlock.runtime.journal.memory import MemoryJournal

from ..runtime.faulty_journal import FaultyJournal
from ..runtime.virtual import run
from .engines import (
    GATED,
    call,
    claimed,
    conforms,
    engine,
    facts_of,
    open_turn,
    replayed,
    starts,
)

TINY = Limits(remembered=3, remember_for=1e9)
"""A kernel that forgets nearly at once."""
BRIEF = Limits(remembered=10_000, remember_for=0.0)


async def long_run(journal: Journal, turns: int, *, limits: Limits | None = TINY) -> None:
    """Have a run of so many turns of one call each."""
    guard = engine(journal, limits=limits)
    for number in range(turns):
        after = f"t{number - 1}" if number else BEGINNING
        await open_turn(guard, f"t{number}", call("a", arguments={"n": number}), after=after)
        held = await claimed(guard, "a", arguments={"n": number}, turn=f"t{number}")
        await guard.succeeded(held, number)


@pytest.mark.parametrize("limits", [TINY, BRIEF, None])
def test_old_outcomes_are_replayed_and_old_answers_never_opened_again(
    limits: Limits | None,
) -> None:
    async def play() -> None:
        journal = MemoryJournal()
        await long_run(journal, 8, limits=limits)
        before = await facts_of(journal)
        for number in (0, 3, 7):
            guard, turn = engine(journal), f"t{number}"
            outcome = await replayed(guard, "a", arguments={"n": number}, turn=turn)
            assert outcome.value == number
            await open_turn(guard, turn, call("a", arguments={"n": number}))
            with pytest.raises(Differs):
                await open_turn(guard, turn, call("a", arguments={"n": -1}))
            with pytest.raises(Differs):
                await replayed(guard, "a", arguments={"n": -1}, turn=turn)
            look = await guard.look(At("r", turn, "a"))
            assert look.outcome is not None
            assert look.outcome.value == number
        with pytest.raises(Stale):
            await claimed(engine(journal), "a", turn="t8")
        assert (await replayed(engine(journal), "a", arguments={"n": 7}, turn=None)).value == 7
        with pytest.raises(Stale):
            await claimed(engine(journal), "z", turn=None)
        assert await facts_of(journal) == before
        assert starts(before) == 8

    run(play())


def test_the_control_a_kernel_that_has_forgotten_opens_it_again() -> None:
    """Without an epoch, and without the past: that is what is held off here (K-55)."""

    async def play() -> None:
        journal = MemoryJournal()
        await long_run(journal, 8)
        kernel = Kernel.recover((await journal.entry("r")).run, await facts_of(journal))
        late = kernel.sequence + 2e9
        again = OpenTurn(turn_id="t0", calls=(call("a", arguments={"n": 0}),))
        assert kernel.receive(again, late).reason is None

    run(play())


@pytest.mark.parametrize("limits", [TINY, None])
def test_a_fork_is_found_however_long_ago_it_was(limits: Limits | None) -> None:
    async def play() -> None:
        journal = MemoryJournal()
        await long_run(journal, 8, limits=limits)
        guard = engine(journal)
        for after, came in ((BEGINNING, "t0"), ("t0", "t1"), ("t3", "t4"), ("t6", "t7")):
            with pytest.raises(Forked) as refused:
                await open_turn(guard, "x", call("a"), after=after)
            assert refused.value.came == came
        await open_turn(guard, "x", call("a"), after="t7")
        with pytest.raises(Forked):
            await open_turn(guard, "y", call("a"), after="t7")

    run(play())


def test_what_was_decided_and_resolved_long_ago_stays_so() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        guard = engine(journal, limits=TINY, policies=GATED)
        await open_turn(guard, "p", call("a", "pay"))
        (asked,) = await guard.waiting("r")
        await guard.decide(asked.at, approved=True, digest=asked.digest)
        await guard.lost(await claimed(guard, "a", "pay", turn="p"))
        await guard.resolve(asked.at, Resolution.RESULT, result=1)
        await long_run_after(journal, "p")
        for one in (guard, engine(journal)):
            await one.decide(asked.at, approved=True, digest=asked.digest)
            with pytest.raises(DecidedOtherwise):
                await one.decide(asked.at, approved=False, digest=asked.digest)
            await one.resolve(asked.at, Resolution.RESULT, result=1)
            with pytest.raises(DecidedOtherwise):
                await one.resolve(asked.at, Resolution.RETRY)

    run(play())


async def long_run_after(journal: Journal, turn: str) -> None:
    guard = engine(journal)
    for number in range(5):
        await open_turn(guard, f"u{number}", call("a"), after=turn)
        turn = f"u{number}"
        await guard.succeeded(await claimed(guard, "a", turn=turn), number)


def test_nothing_is_read_back_as_long_as_the_kernel_remembers() -> None:
    async def play() -> None:
        inner = MemoryJournal()
        await long_run(inner, 30, limits=None)
        journal = FaultyJournal(inner)
        guard = engine(journal)
        await open_turn(guard, "x", call("a"), after="t29")
        first = journal.calls["read"]
        await claimed(guard, "a", turn="x")
        assert journal.calls["read"] == first <= 4

    run(play())


def test_a_run_that_has_forgotten_reads_its_order_once() -> None:
    async def play() -> None:
        inner = MemoryJournal()
        await long_run(inner, 30)
        journal = FaultyJournal(inner)
        guard = engine(journal)
        await open_turn(guard, "x0", call("a"), after="t29")
        first = journal.calls["read"]
        for number in range(1, 10):
            await guard.succeeded(await claimed(guard, "a", turn=f"x{number - 1}"), 1)
            await open_turn(guard, f"x{number}", call("a"), after=f"x{number - 1}")
        assert journal.calls["read"] - first <= 20

    run(play())


def test_what_is_kept_is_bounded() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        await long_run(journal, TURNS + 5, limits=None)
        guard = engine(journal)
        for number in range(TURNS + 5):
            await replayed(guard, "a", arguments={"n": number}, turn=f"t{number}")
        assert len(guard._visits._visited["r"].past._told) == TURNS
        for number in range(RUNS + 5):
            await open_turn(guard, "t", call("a"), run=f"s{number}")
        assert len(guard._visits._visited) == RUNS

    run(play())


def test_what_is_lacking_is_asked_for() -> None:
    journal = MemoryJournal()
    past, kernel = Past(journal, "r"), Kernel(Run(run_id="r", limits=TINY))
    assert past.since(kernel, None) == []
    assert past.since(kernel, "t1") is None
    with pytest.raises(Unread) as asked:
        past.told("t1")
    assert asked.value.turn_id == "t1"


def test_the_first_look_at_a_long_run_is_quick(tmp_path: Path) -> None:
    """Of 550 calls, with the snapshot that the guard keeps; the facts before it are not read."""

    async def make() -> None:
        quick = MemoryJournal()
        await long_run(quick, 550, limits=None)
        snapshot = await quick.snapshot("r")
        assert snapshot is not None
        async with await open_journal(tmp_path / "a.db") as journal:
            await journal.declare((await quick.entry("r")).run)
            facts = await facts_of(quick)
            await journal.append("r", fence=None, after=0, facts=facts, busy=True)
            await journal.keep_snapshot(snapshot, fence=None)

    async def first_look() -> float:
        async with await open_journal(tmp_path / "a.db") as journal:
            entry = await journal.entry("r")
            assert entry.sequence - entry.snapped < SNAPSHOT_EVERY
            guard = engine(journal)
            began = time.perf_counter()
            assert await guard.waiting("r") == ()
            took = time.perf_counter() - began
            await open_turn(guard, "x", call("a"), after="t549")
            await conforms(journal)
            return took

    asyncio.run(make())
    took = min(asyncio.run(first_look()) for _ in range(3))
    print(f"{took * 1_000:.1f} ms")
    assert took < 0.5, took  # 20 ms alone; a loaded machine is no fault
