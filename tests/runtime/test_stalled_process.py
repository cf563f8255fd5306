"""A process that stood still beyond its lease: what it starts, and what its lookers-on hear."""

# Looks inside: to stop the heart of a process.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from turnlock import FactType, Run, Status
from turnlock.runtime.errors import RunFenced
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.tools.calling import ToolContext

from .faulty_journal import Fault, FaultyJournal
from .test_runtime import World, calls, crash
from .virtual import run, settled

RUN = Run(run_id="r")


TOGETHER = pytest.mark.parametrize("together", [True, False], ids=["together", "apart"])
"""Whether the claim is kept in the append of the opening, or in one of its own."""


async def as_given(arguments: Mapping[str, Any], _: ToolContext) -> Mapping[str, Any]:
    """Prepare nothing, by code of the tool's own: so its claim waits for that."""
    return arguments


def heard(opening: asyncio.Future[Any]) -> None:
    """Hear how it ended: nobody waits for it."""
    opening.exception()


async def claimed_late(
    world: World, journal: FaultyJournal, *, together: bool, **policy: Any
) -> Runtime:
    """Let a process claim, and hold the journal's answer back until its lease is long over."""
    if not together:
        policy["preprocessors"] = (as_given,)
    process = world.process(world.tool("act", **policy))
    await process.__aenter__()
    await process.open_run(RUN)
    await process._watchers.cancel()  # it stands still: nothing is renewed
    claim = journal.calls["append"] + (1 if together else 2)
    journal.plan["append", claim] = Fault.HELD
    opening = asyncio.ensure_future(process.open_turn("r", calls("act"), turn_id="t1"))
    opening.add_done_callback(heard)
    await settled()
    assert FactType.TOOL_EXECUTION_STARTED in await world.facts()
    assert journal.calls["append"] == claim
    await asyncio.sleep(61)
    return process


@TOGETHER
def test_a_claim_that_was_answered_after_a_take_over_starts_nothing(together: bool) -> None:
    """The journal is asked again: the run is somebody else's, and the tool has not begun."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        world = World(journal=journal)
        await claimed_late(world, journal, together=together)
        async with world.process(world.tool("act")) as heir:
            assert heir.runs == ("r",)
            await settled()
            journal.gate.set()
            await settled()
            assert world.ledger == {}
            assert FactType.EXECUTION_IN_DOUBT in await world.facts()

    run(play())


@TOGETHER
def test_a_claim_that_was_answered_late_and_is_still_ours_starts(together: bool) -> None:
    """Nobody took the run meanwhile: the lease of the tool runs anew, and it runs."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        world = World(journal=journal)
        process = await claimed_late(world, journal, together=together, lease=1_000.0)
        journal.gate.set()
        await settled()

        assert world.ledger == {"act": 1}
        assert FactType.LEASE_RENEWED in await world.facts()
        assert world.told[0].results[0].status is Status.SUCCEEDED
        await crash(process)

    run(play())


@TOGETHER
def test_what_was_claimed_and_not_started_is_reported_so(together: bool) -> None:
    """The lease of the tool was over, too: it is in doubt until the true report ends that."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        world = World(journal=journal)
        await claimed_late(world, journal, together=together)
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


def test_an_opening_and_its_claim_that_arrive_after_a_take_over_are_fenced() -> None:
    """They were on their way for that long: nothing of them is kept, nothing has begun."""

    async def play() -> None:
        journal = FaultyJournal(MemoryJournal())
        world = World(journal=journal)
        process = world.process(world.tool("act"))
        await process.__aenter__()
        await process.open_run(RUN)
        await process.open_turn("r", calls("act"), turn_id="t1")
        await settled()
        await process._watchers.cancel()
        journal.fail("append", Fault.DELAYED)
        opening = asyncio.ensure_future(process.open_turn("r", calls("act"), turn_id="t2"))
        await asyncio.sleep(61)
        assert len(process._runtime.slots) == 1
        async with world.process(world.tool("act")) as heir:
            await heir.open_run(RUN)
            await heir.open_turn("r", calls("act"), turn_id="t2")
            await settled()
            journal.gate.set()
            with pytest.raises(RunFenced):
                await opening
            await settled()

        assert len(process._runtime.slots) == 0
        assert world.ledger == {"act": 2}
        assert (await world.facts()).count(FactType.TOOL_EXECUTION_STARTED) == 2
        await crash(process)

    run(play())
