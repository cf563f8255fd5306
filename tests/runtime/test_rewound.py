"""A journal that ends before what it acknowledged: nothing more is done before a person decides."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from turnlock import Claim, FactType, Run
from turnlock.runtime import (
    JournalError,
    JournalRewound,
    MemoryJournal,
    Settings,
    SharedRun,
    submit,
)
from turnlock.runtime.acknowledged import Acknowledged
from turnlock.runtime.actors import Actors
from turnlock.runtime.journal.contract import PROBLEM
from turnlock.runtime.recovery import WORKER, recover
from turnlock.runtime.tools.policy import InDoubt

from .test_runtime import World, calls
from .test_shared_run import call, claim, opened, report
from .virtual import LoopClock, run, settled

RUN = Run(run_id="r")


def rewind(journal: Any, *, to: int) -> None:
    """Have the run end earlier, as a store does that was restored or failed over."""
    kept = journal._runs["r"]
    del kept.facts[to:]
    kept.sequence = to


def paying(world: World, **policy: Any) -> tuple[Any, Any]:
    """A tool that pays, and one that a person is asked about."""
    return world.tool("pay", **policy), world.tool("ask", approval=True)


async def paid_and_rewound(world: World, runtime: Any) -> None:
    """Have it paid, and take from the journal all that came after the turn was opened."""
    await runtime.open_run(RUN)
    await runtime.open_turn("r", calls("pay", "ask"), turn_id="t1")
    await settled()
    assert world.ledger == {"pay": 1}
    facts = [fact async for fact in world.journal.facts("r")]
    claimed = next(it.sequence for it in facts if it.type is FactType.TOOL_EXECUTION_STARTED)
    rewind(world.journal, to=claimed - 1)


async def approve(runtime: Any) -> None:
    await runtime.approve("r", turn_id="t1", invocation_id="ask")


def test_an_owner_performs_nothing_on_a_journal_that_ends_before_what_it_was_told() -> None:
    """Its caller is told, the run stands still, here and everywhere, until it is recovered."""

    async def play() -> None:
        world = World()
        pay, ask = paying(world)
        async with world.process(pay, ask) as runtime:
            await paid_and_rewound(world, runtime)
            with pytest.raises(JournalRewound, match=r"had acknowledged fact.*turnlock recover"):
                await approve(runtime)
            await settled()
            assert runtime.runs == ()
            with pytest.raises(JournalRewound):
                await runtime.open_run(RUN)
            assert await runtime.take_over() == ()
        async with world.process(pay, ask) as runtime:
            assert runtime.runs == ()
        assert world.ledger == {"pay": 1}
        entry = await world.journal.entry("r")
        assert "ends with fact" in (entry.rewound or "")
        for write in (
            lambda: submit(world.journal, "r", claim("pay"), within=1),
            lambda: SharedRun.open(world.journal, "r", policies=None),
        ):
            with pytest.raises(JournalRewound):
                await write()

        recovered = await recover(journal=world.journal, run_id="r", clock=LoopClock())

        assert [it.invocation_id for it in recovered.doubted] == ["pay"]
        assert [it.invocation_id for it in recovered.waiting] == ["ask"]
        async with world.process(pay, ask) as runtime:
            await runtime.open_run(RUN)
            await settled()
            assert world.ledger == {"pay": 1}  # in doubt: its policy is to ask
            assert (await world.facts()).count(FactType.EXECUTION_IN_DOUBT) == 1
        again = await recover(journal=world.journal, run_id="r", clock=LoopClock())
        assert again.why is None

    run(play())


def test_without_that_check_it_is_paid_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control, by an independent ledger."""

    async def believed(*_: Any, **__: Any) -> None:
        return

    monkeypatch.setattr(Acknowledged, "check", believed)

    async def play() -> None:
        world = World()
        async with world.process(*paying(world)) as runtime:
            await paid_and_rewound(world, runtime)
            with pytest.raises(JournalError, match="deliver again"):
                await approve(runtime)
            await settled()
        assert world.ledger == {"pay": 2}

    run(play())


def failed_over(journal: Any) -> None:
    """Have the store be what it was before this process owned the run: that is lost, too."""
    rewind(journal, to=1)
    kept = journal._runs["r"]
    kept.owner = kept.owned_until = kept.snapshot = None
    kept.fence, kept.busy = 0, True


async def paid_and_failed_over(world: World, runtime: Any) -> None:
    """Have it paid; then the store has neither that nor who has paid, and leases pass."""
    await runtime.open_run(RUN)
    await runtime.open_turn("r", calls("pay"), turn_id="t1")
    await settled()
    assert world.ledger == {"pay": 1}
    failed_over(world.journal)
    await asyncio.sleep(2 * Settings().ownership)


def test_an_owner_that_seems_to_be_fenced_by_an_older_store_takes_nothing_from_it() -> None:
    """Where the store has lost who owns the run, the run looks taken over, and then free."""

    async def play() -> None:
        world = World()
        pay, ask = paying(world)
        async with world.process(pay, ask) as runtime:
            await paid_and_failed_over(world, runtime)
            assert runtime.runs == ()
            assert world.ledger == {"pay": 1}
            with pytest.raises(JournalRewound, match=r"had acknowledged fact 5.*ends with fact 1"):
                await runtime.open_run(RUN)

            recovered = await recover(journal=world.journal, run_id="r", clock=LoopClock())

            assert [it.invocation_id for it in recovered.doubted] == ["pay"]
            await runtime.open_run(RUN)  # a person has decided: it is not marked again
            await settled()
            assert world.ledger == {"pay": 1}  # in doubt: its policy is to ask
            await runtime.close_run("r")
            await runtime.open_run(RUN)

    run(play())


def test_without_what_was_acknowledged_here_the_same_process_pays_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The negative control, by an independent ledger."""

    async def believed(*_: Any, **__: Any) -> None:
        return

    monkeypatch.setattr(Actors, "check_left", believed)

    async def play() -> None:
        world = World()
        async with world.process(*paying(world)) as runtime:
            await paid_and_failed_over(world, runtime)
        assert world.ledger == {"pay": 2}

    run(play())


def test_another_fact_in_the_place_of_one_that_was_kept_is_noticed() -> None:
    """Others have gone on where the store was restored: as long, and not what this one was told."""

    async def play() -> None:
        journal = MemoryJournal()
        await journal.declare(RUN)
        shared = await SharedRun.open(journal, "r", policies={}, clock=LoopClock())
        await shared.submit(opened(call("a"), call("b")))
        before = shared.kernel.sequence
        await shared.submit(claim("a"))
        rewind(journal, to=before)
        other = await SharedRun.open(journal, "r", policies={}, clock=LoopClock())
        await other.submit(claim("b"))
        await other.submit(report("b"))

        with pytest.raises(JournalRewound, match="holds another one in its place"):
            await shared.submit(report("a"))
        with pytest.raises(JournalRewound):
            await other.submit(claim("a"))

    run(play())


def test_a_shared_run_that_ends_earlier_is_no_endless_conflict() -> None:
    async def play() -> None:
        journal = MemoryJournal()
        await journal.declare(RUN)
        shared = await SharedRun.open(journal, "r", policies={}, clock=LoopClock())
        await shared.submit(opened(call("a"), call("b")))
        before = shared.kernel.sequence
        await shared.submit(claim("a"))
        rewind(journal, to=before)
        with pytest.raises(JournalRewound, match=f"ends with fact {before}"):
            await shared.refresh()
        with pytest.raises(JournalRewound):
            await shared.submit(report("a"))

    run(play())


@pytest.mark.parametrize("ready", [True, False])
def test_a_policy_settles_what_a_recovery_puts_in_doubt(ready: bool) -> None:
    """Whether it was ready in what is left, or had been started."""

    async def play() -> None:
        world = World()
        pay, ask = paying(world, in_doubt=InDoubt.FAIL)
        await world.journal.declare(RUN)
        shared = await SharedRun.open(world.journal, "r", policies={}, clock=LoopClock())
        await shared.submit(opened(call("pay", "pay")))
        if not ready:
            await shared.submit(Claim(turn_id="t1", invocation_id="pay", attempt=1, worker="w"))
        await world.journal.mark_rewound("r", why="it was restored")

        recovered = await recover(journal=world.journal, run_id="r", clock=LoopClock())

        assert [it.invocation_id for it in recovered.doubted] == ["pay"]
        started = [
            fact
            async for fact in world.journal.facts("r")
            if fact.type is FactType.TOOL_EXECUTION_STARTED
        ]
        assert [getattr(it, "worker", None) for it in started] == [WORKER if ready else "w"]
        async with world.process(pay, ask) as runtime:
            await runtime.open_run(RUN)
            await settled()
        assert world.ledger == {}
        assert [it.status for it in world.told[0].results] == ["failed"]

    run(play())


def test_a_continuation_is_handed_over_again_under_the_same_id() -> None:
    """It may have been taken in what is lost; its host deduplicates by the id."""

    async def play() -> None:
        world = World()
        pay, ask = paying(world)
        async with world.process(pay, ask) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay"), turn_id="t1")
            await settled()
        (taken,) = [
            it.sequence
            async for it in world.journal.facts("r")
            if it.type is FactType.CONTINUATION_TAKEN
        ]
        rewind(world.journal, to=taken - 1)
        await world.journal.mark_rewound("r", why="it was restored")
        recovered = await recover(journal=world.journal, run_id="r", clock=LoopClock())
        assert recovered.continued == (world.told[0].effect_id,)
        async with world.process(pay, ask) as runtime:
            await runtime.open_run(RUN)
            await settled()
        assert [it.effect_id for it in world.told] == 2 * [world.told[0].effect_id]
        assert world.ledger == {"pay": 1}

    run(play())


def test_who_posted_what_cannot_be_read_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner sets it aside; its poster does not wait in vain."""

    async def play() -> None:
        journal = MemoryJournal()
        await journal.declare(RUN)
        await journal.own("r", owner="somebody", now=LoopClock().now(), lease=60.0)

        async def answered(*_: object) -> dict[str, Any]:
            return {"accepted": False, PROBLEM: "it is damaged", "facts": []}

        monkeypatch.setattr(journal, "answered", answered)
        with pytest.raises(JournalError, match=r"could not read post 1 \(it is damaged"):
            await submit(journal, "r", claim("a"), within=1, clock=LoopClock())

    run(play())
