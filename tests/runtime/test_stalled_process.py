"""A process that stood still beyond its lease: what it starts, and what its lookers-on hear."""

# Looks inside: to stop the heart of a process.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio

import pytest

from turnlock import FactType, Run, Status
from turnlock.runtime.errors import RunFenced
from turnlock.runtime.journal.memory import MemoryJournal

from .faulty_journal import Fault, FaultyJournal
from .test_runtime import World, calls, crash
from .virtual import run, settled

RUN = Run(run_id="r")


async def claimed_late(world: World, journal: FaultyJournal) -> None:
    """Let a process claim, and hold the journal's answer back until its lease is long over."""
    process = world.process(world.tool("act"))
    await process.__aenter__()
    await process.open_run(RUN)
    await process._watchers.cancel()  # it stands still: nothing is renewed
    journal.plan["append", journal.calls["append"] + 2] = Fault.HELD  # the claim
    await process.open_turn("r", calls("act"), turn_id="t1")
    await settled()
    await asyncio.sleep(61)


def test_a_claim_that_was_answered_after_a_take_over_starts_nothing() -> None:
    """The journal is asked again: the run is somebody else's, and the tool has not begun."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        world = World(journal=journal)
        await claimed_late(world, journal)
        async with world.process(world.tool("act")) as heir:
            assert heir.runs == ("r",)
            await settled()
            journal.gate.set()
            await settled()
            assert world.ledger == {}
            assert FactType.EXECUTION_IN_DOUBT in await world.facts()

    run(play())


def test_a_claim_that_was_answered_late_and_is_still_ours_starts() -> None:
    """Nobody took the run meanwhile: the lease of the tool runs anew, and it runs."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        world = World(journal=journal)
        slow = world.tool("act", lease=1_000.0)
        process = world.process(slow)
        await process.__aenter__()
        await process.open_run(RUN)
        await process._watchers.cancel()
        journal.plan["append", journal.calls["append"] + 2] = Fault.HELD
        await process.open_turn("r", calls("act"), turn_id="t1")
        await asyncio.sleep(61)
        journal.gate.set()
        await settled()

        assert world.ledger == {"act": 1}
        assert FactType.LEASE_RENEWED in await world.facts()
        assert world.told[0].results[0].status is Status.SUCCEEDED
        await crash(process)

    run(play())


def test_what_was_claimed_and_not_started_is_reported_so() -> None:
    """The lease of the tool was over, too: it is in doubt until the true report ends that."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        world = World(journal=journal)
        await claimed_late(world, journal)
        journal.gate.set()
        await settled()

        assert world.ledger == {}
        (result,) = world.told[0].results
        assert result.status is Status.FAILED
        assert result.error == ("it was not started: this process had stood still beyond its lease")

    run(play())


def test_who_looks_on_in_a_fenced_process_is_told() -> None:
    """It reads what the journal holds, and then hears that the run goes on elsewhere."""

    async def play() -> None:
        world = World()
        zombie = world.process(world.tool("pay", approval=True))
        await zombie.__aenter__()
        await zombie.open_run(RUN)
        await zombie.open_turn("r", calls("pay"), turn_id="t1")
        looking = zombie.subscribe("r")
        seen: list[int] = []

        async def look() -> None:
            async for fact in looking:
                seen.append(fact.sequence)  # noqa: PERF401 - kept as it comes: it raises

        reading = asyncio.ensure_future(look())
        await settled()
        await zombie._watchers.cancel()
        await asyncio.sleep(31)
        async with world.process(world.tool("pay", approval=True)) as heir:
            with pytest.raises(RunFenced):
                await zombie.deny("r", turn_id="t1", invocation_id="pay")
            with pytest.raises(RunFenced):
                await reading
            assert seen == list(range(1, len(await world.facts()) + 1))
            assert heir.runs == ("r",)
        await crash(zombie)

    run(play())
