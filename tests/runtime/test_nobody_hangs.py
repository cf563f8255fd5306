"""Whatever goes wrong under a delivery, the caller hears of it, and the run can go on."""

# Looks inside: what is held, and who waits.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from turnlock import Call, Delivery, FactType, Kernel, OpenTurn, Run, Tick, TurnlockError, Verdict
from turnlock.runtime.actor import Actor
from turnlock.runtime.dispatcher import Dispatcher
from turnlock.runtime.journal.memory import MemoryJournal

from .faulty_journal import Fault, FaultyJournal
from .test_runtime import World, calls
from .virtual import run, settled

RUN = Run(run_id="r")
OPENED = OpenTurn(
    turn_id="t9",
    calls=(Call(invocation_id="a", tool_name="act", arguments={}, requires_approval=True),),
)


class Lying(Kernel):
    """A kernel with a defect."""

    def receive(self, delivery: Delivery, now: float) -> Verdict:
        raise ZeroDivisionError


def defect_of_the_kernel(actor: Actor, _: pytest.MonkeyPatch) -> None:
    actor.writer.kernel = Lying(actor.run)


def defect_of_the_host(_: Actor, patch: pytest.MonkeyPatch) -> None:
    def raises(*_: object) -> None:
        raise ZeroDivisionError

    patch.setattr(Dispatcher, "kept", raises)


@pytest.mark.parametrize("defect", [defect_of_the_kernel, defect_of_the_host])
def test_a_defect_is_told_to_all_who_wait_and_the_run_can_be_opened_again(
    defect: Callable[[Actor, pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody waits for ever, what was kept stays, and the defect is logged with its place."""

    async def play() -> None:
        world = World()
        async with world.process(world.tool("act", approval=True)) as runtime:
            await runtime.open_run(RUN)
            with monkeypatch.context() as patch:
                defect(runtime._actors["r"], patch)
                outcomes = await asyncio.gather(
                    runtime.deliver("r", OPENED),
                    runtime.deliver("r", Tick()),
                    return_exceptions=True,
                )
            assert [type(one) for one in outcomes] == [TurnlockError, TurnlockError]
            assert "ZeroDivisionError" in str(outcomes[0])
            assert runtime.runs == ()

            await runtime.open_run(RUN)
            assert (await runtime.deliver("r", Tick())).reason is None

    run(play())
    assert "this is a defect of turnlock" in caplog.text


def test_a_journal_that_was_closed_too_early_is_told() -> None:
    """The caller hears `Closed`'s words instead of waiting for an append that never comes."""

    async def play() -> None:
        world = World(journal=MemoryJournal())
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            await world.journal.close()
            with pytest.raises(TurnlockError, match="closed"):
                await runtime.open_turn("r", calls("act"), turn_id="t1")

    run(play())


def test_a_deadline_that_cannot_be_kept_is_tried_again_in_peace() -> None:
    """A full disk: the tick is delivered with pauses, not as fast as the loop can turn."""

    async def play() -> None:
        faulty = FaultyJournal(MemoryJournal())
        world = World(journal=faulty)
        pay = world.tool("pay", approval=True, approval_timeout=60.0)
        async with world.process(pay) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay"), turn_id="t1")
            appends = faulty.calls["append"]
            for number in range(1, 1_000):
                faulty.plan["append", appends + number] = Fault.FULL
            await asyncio.sleep(59)
            await asyncio.sleep(61)  # the deadline, and a minute of a full disk
            assert len(runtime._tasks) <= 2
            assert 4 <= faulty.calls["append"] - appends <= 12
            faulty.plan.clear()
            await asyncio.sleep(60)

        assert FactType.TOOL_DENIED in await world.facts()
        assert len(world.told) == 1

    run(play())


def test_thousands_of_refusals_do_not_hold_up_the_loop() -> None:
    """Refusals touch no journal, and yet the others get their turn between two batches."""

    async def play() -> None:
        world = World()
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            looking = asyncio.ensure_future(others())
            refused = [runtime.interrupt("r", turn_id="none") for _ in range(2_560)]
            verdicts = await asyncio.gather(*refused)
            looking.cancel()
            await settled()

        assert all(verdict.reason for verdict in verdicts)
        assert turns >= 10

    run(play())
