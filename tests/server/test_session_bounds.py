"""How many sessions there are at once, and what one more means (section 15, S-6)."""

from __future__ import annotations

import asyncio

import pytest
from tests.calls_made import calls_made

from turnlock.adapters.contract import CommandRefused
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.server.bounds import Budget, SessionSettings

from ..runtime.virtual import run
from .peers import World, said, serving, spec, steps
from .scripted import KIND, ScriptedAdapter

FEW = SessionSettings(sessions=3)


def test_s_6_sessions_at_work_are_bounded_and_those_that_wait_for_a_person_are_not() -> None:
    """One more at work is `limit_reached`; ten that wait for approval count nothing."""

    async def play() -> None:
        world = World(gate=asyncio.Event())
        async with serving(MemoryJournal(), world, settings=FEW) as it:
            for number in range(10):
                await it.sessions.create(spec(f"p{number}"), prompt="pay", message_id="m")
                await it.asked(f"p{number}")
            for number in range(3):
                await it.sessions.create(spec(f"w{number}"), prompt="wait", message_id="m")
            await it.until(lambda: world.asked.count("wait") == 3)
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.create(spec("more"), prompt="wait", message_id="m")
            assert refused.value.code == "limit_reached"
            world.gate.set()  # type: ignore[union-attr]
            await it.idle("w0")
            await it.sessions.create(spec("more"), prompt="hi", message_id="m")

    run(play())


def test_s_6_idle_sessions_are_put_to_rest_the_oldest_first() -> None:
    """Three are kept; a prompt restores one that rests, and its conversation goes on."""

    async def play() -> None:
        journal = MemoryJournal()
        async with serving(journal, settings=FEW) as it:
            for number in range(6):
                await it.sessions.create(spec(f"r{number}"), prompt="hi", message_id="m")
                await it.until(lambda n=number: it.sessions.life.active[f"r{n}"].idle)  # type: ignore[misc]
            await it.until(lambda: len(it.sessions.life.active) <= 4)
            assert "r0" not in it.sessions.life.active
            assert "r5" in it.sessions.life.active
            assert await steps(journal, "r0") == ["session", "epoch", "closed"]
            taken = await it.sessions.prompt("r0", "ho", message_id="n")
            assert taken.restored
            await it.idle("r0")
            assert await said(journal, "r0") == ["hi", "> done: hi", "ho", "> done: ho"]

    run(play())


def test_s_6_a_process_counts_as_long_as_it_lives() -> None:
    """Sessions of another kind: an idle one makes room for the next; at work none does."""

    async def play() -> None:
        scripted = ScriptedAdapter()
        async with serving(others=[scripted], settings=FEW) as it:
            for number in range(3):
                await it.sessions.create(spec(f"r{number}", kind=KIND))
                await it.idle(f"r{number}")
            await it.sessions.create(spec("more", kind=KIND))
            await it.until(lambda: bool(scripted.told("kill")))
            assert scripted.told("kill") == [("kill", "r0")]
            for run_id in ("r1", "r2", "more"):
                await it.sessions.prompt(run_id, "go", message_id="m")
            await it.until(lambda: len(scripted.told("took")) == 3)
            with pytest.raises(CommandRefused) as refused:
                await it.sessions.create(spec("another", kind=KIND))
            assert refused.value.code == "limit_reached"

    run(play())


def test_s_54_the_budget_is_so_many_in_so_long() -> None:
    """It is spent, is back after a while, and forgets runs that need none."""
    budget = Budget(SessionSettings(restarts=2, restarts_within=10.0))
    assert [budget.spend("r", now=0.0), budget.spend("r", now=1.0)] == [1.0, 2.0]
    assert not budget.left("r", now=9.0)
    assert budget.left("other", now=9.0)
    with pytest.raises(CommandRefused) as refused:
        budget.spend("r", now=9.0)
    assert refused.value.extra == {"retry_after": 1}
    assert budget.left("r", now=10.5)
    assert budget.spend("r", now=20.0) == 1.0


def test_s_6_runs_that_wait_for_a_person_cost_next_to_nothing() -> None:
    """A minute of 100 of them makes some 170,000 calls, 0.12 s: 1,000 are ≤ 2 % of a core."""

    async def play() -> None:
        async with serving(MemoryJournal()) as it:
            count = 100
            for number in range(count):
                await it.sessions.create(spec(f"r{number}"), prompt="pay", message_id="m")
                await it.asked(f"r{number}")
            with calls_made() as calls:
                await asyncio.sleep(60)
            assert calls.made < 600_000

    run(play())
