"""What a tool declares about approval holds for every call of it, whoever brings the call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from turnlock import AddCall, OpenTurn, Run
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.writer import SharedRun, submit

from .test_runtime import World, calls
from .virtual import LoopClock, run, settled

RUN = Run(run_id="r")
(PAY,) = calls("pay")


async def by_open_turn(runtime: Runtime, _: World) -> None:
    await runtime.open_turn("r", [PAY], turn_id="t1")


async def by_delivery(runtime: Runtime, _: World) -> None:
    await runtime.deliver("r", OpenTurn(turn_id="t1", calls=(PAY,)))


async def by_add_call(runtime: Runtime, _: World) -> None:
    await runtime.open_turn("r", [], turn_id="t1", sealed=False)
    await runtime.add_call("r", PAY, turn_id="t1")
    await runtime.seal_turn("r", turn_id="t1")


async def by_post(_: Runtime, world: World) -> None:
    await world.journal.post("r", OpenTurn(turn_id="t1", calls=(), sealed=False))
    await world.journal.post("r", AddCall(turn_id="t1", call=PAY))


async def by_submit(runtime: Runtime, world: World) -> None:
    await runtime.close_run("r")
    opening = OpenTurn(turn_id="t1", calls=(PAY,))
    submitted = await submit(
        world.journal,
        "r",
        opening,
        within=1,
        policies=runtime.tools.policies,
        clock=LoopClock(),
    )
    assert (submitted.by_owner, submitted.receipt["accepted"]) == (False, True)
    await runtime.open_run(RUN)


async def by_shared_run(runtime: Runtime, world: World) -> None:
    await runtime.close_run("r")
    shared = await SharedRun.open(
        world.journal, "r", policies=runtime.tools.policies, clock=LoopClock()
    )
    await shared.submit(
        OpenTurn(turn_id="t1", calls=(), sealed=False), AddCall(turn_id="t1", call=PAY)
    )
    await runtime.open_run(RUN)


@pytest.mark.parametrize(
    "bring", [by_open_turn, by_delivery, by_add_call, by_post, by_submit, by_shared_run]
)
def test_nobody_gets_round_the_approval_of_a_tool(
    bring: Callable[[Runtime, World], Awaitable[None]],
) -> None:
    """The call says that it needs none, and waits for it all the same."""

    async def play() -> None:
        world = World()
        async with world.process(world.tool("pay", approval=True)) as runtime:
            await runtime.open_run(RUN)
            await bring(runtime, world)
            await asyncio.sleep(1)
            await settled()
            assert [one.tool_name for one in runtime.pending("r")] == ["pay"]

        assert world.ledger == {}

    run(play())


def test_a_predicate_that_fails_to_say_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """A person decides, and whoever wrote the predicate can find out why one was asked."""

    def broken(_: object) -> bool:
        raise ValueError("which account?")

    async def play() -> None:
        world = World()
        async with world.process(world.tool("pay", approval=broken)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", [PAY], turn_id="t1")
            assert len(runtime.pending("r")) == 1

    run(play())
    assert "which account?" in caplog.text
