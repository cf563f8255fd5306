"""Doubt about what runs in this very process, and about what cannot even be tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from turnlock import FactType, Resolution, Run, Status
from turnlock.runtime.in_doubt import asks_a_person
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.errors import OutcomeUnknown
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.results import Happened, NeverHappened
from turnlock.runtime.tools.tool import Tool, tool

from .test_runtime import World, calls, crash
from .virtual import VirtualLoop, run, settled

RUN = Run(run_id="r")


def stand_still(seconds: float) -> None:
    """Let time pass as if a function had kept the loop so long."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.pass_time(seconds)


@pytest.mark.parametrize(
    "policy",
    [
        {"in_doubt": InDoubt.FAIL},
        {"safe_to_repeat": True},
        {"in_doubt": InDoubt.ASK},
    ],
    ids=["fail", "retry", "ask"],
)
def test_what_runs_here_is_waited_for_though_its_lease_is_over(policy: dict[str, Any]) -> None:
    """The loop stood still, so the lease was not renewed; but we know that the tool still runs."""

    async def play() -> None:
        world = World()
        slow = world.tool("slow", lambda: asyncio.sleep(100), lease=30.0, **policy)
        async with world.process(slow) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("slow"), turn_id="t1")
            await settled()
            stand_still(31)
            await asyncio.sleep(100)

        facts = await world.facts()
        assert FactType.EXECUTION_IN_DOUBT in facts
        assert world.ledger == {"slow": 1}
        assert world.told[0].results[0].status is Status.SUCCEEDED

    run(play())


def test_what_ran_on_in_doubt_and_is_lost_indeed_goes_the_way_of_its_policy() -> None:
    """It does not stop when its time is over, in doubt already: then nobody here can say either."""

    async def play() -> None:
        world = World()
        hang = asyncio.Event()

        async def stubborn() -> None:
            while not hang.is_set():
                with suppress(asyncio.CancelledError):
                    await hang.wait()

        act = world.tool("act", stubborn, timeout=60.0, lease=30.0, in_doubt=InDoubt.FAIL)
        async with world.process(act) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()
            stand_still(31)
            await asyncio.sleep(20)
            assert FactType.EXECUTION_IN_DOUBT in await world.facts()
            assert world.told == []
            await asyncio.sleep(60)
            assert world.told[0].results[0].status is Status.FAILED
            hang.set()

    run(play())


async def never_can_tell() -> None:
    raise OutcomeUnknown("the server went away")


def never_happened(_: ToolContext) -> NeverHappened:
    return NeverHappened()


@pytest.mark.parametrize(
    "policy",
    [{"safe_to_repeat": True}, {"probe": never_happened}],
    ids=["retry", "probe"],
)
def test_k_35_what_never_can_tell_is_run_again_less_and_less_often(policy: dict[str, Any]) -> None:
    """Nor is the journal filled, nor whoever is called asked without a pause."""

    async def play() -> None:
        world = World()
        settings = Settings(retry_first=1.0, retry_longest=8.0)

        async def unless_it_ran_too_often() -> None:
            if world.ledger["act"] < 50:  # else no time would ever pass
                await never_can_tell()

        act = world.tool("act", unless_it_ran_too_often, **policy)
        ran: list[int] = []
        async with world.process(act, settings=settings) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            for seconds in (0.5, 1.0, 2.0, 4.0, 8.0, 8.0):
                await asyncio.sleep(seconds)
                ran.append(world.ledger["act"])
            await runtime.close_run("r")
            await asyncio.sleep(60.0)  # nothing is left that wakes up for it

        assert ran == [2, 3, 4, 5, 6, 7]
        assert world.ledger == {"act": 7}

    run(play())


def test_k_35_a_rest_ends_with_a_decision() -> None:
    """A person was quicker: what he said stands, and it is not run again when the rest is over."""

    async def play() -> None:
        world = World()
        act = world.tool("act", never_can_tell, safe_to_repeat=True)
        async with world.process(act, settings=Settings(retry_first=5.0)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()
            await runtime.resolve(
                "r", turn_id="t1", invocation_id="act", attempt=2, resolution=Resolution.ERROR,
                error="looked it up",
            )  # fmt: skip
            await asyncio.sleep(60.0)

        assert [it.status for it in world.told[0].results] == [Status.FAILED]
        assert world.ledger == {"act": 2}

    run(play())


@pytest.mark.parametrize(("attempt", "after"), [(1, 31.0), (2, 33.0), (5, 39.0)])
def test_a_person_is_asked_once_a_probe_that_rested_has_found_nothing_out(
    attempt: int, after: float
) -> None:
    settings = Settings(retry_first=2.0, retry_longest=8.0)

    def asks(it: Tool | None, *, seconds: float) -> bool:
        return asks_a_person(it, attempt, seconds=seconds, settings=settings)

    probed = tool(name="act", description="", probe=never_happened)(never_can_tell)
    repeated = tool(name="act", description="", safe_to_repeat=True)(never_can_tell)
    plain = tool(name="act", description="")(never_can_tell)
    assert (asks(probed, seconds=after - 0.1), asks(probed, seconds=after)) == (False, True)
    assert (asks(plain, seconds=0.0), asks(None, seconds=0.0)) == (True, True)
    assert not asks(repeated, seconds=1e9)


def test_a_retry_that_cannot_be_started_settles_its_doubt() -> None:
    """It was authorised, so nobody else would look at it: the model is told all that is known."""

    async def play() -> None:
        world = World()
        policy: dict[str, Any] = {"safe_to_repeat": True}
        first = world.process(world.tool("act", lambda: asyncio.sleep(3600), **policy))
        await first.__aenter__()
        await first.open_run(RUN)
        await first.open_turn("r", calls("act"), turn_id="t1")
        await settled()
        await crash(first)
        await asyncio.sleep(31)

        async with world.process() as second:  # a host whose tool is not there any more
            await second.open_run(RUN)
            await settled()
            assert not world.told
            await second.resolve(
                "r", turn_id="t1", invocation_id="act", attempt=1, resolution=Resolution.RETRY
            )
            await settled()

        (result,) = world.told[0].results
        assert result.status is Status.FAILED
        assert "the outcome is unknown" in (result.error or "")
        assert "there is no tool 'act'" in (result.error or "")

    run(play())


def test_an_interrupted_call_that_waited_for_a_slot_is_not_even_prepared() -> None:
    """Its slot comes, and there is nothing to be done any more."""
    prepared: list[str] = []

    async def play() -> None:
        world = World()
        gate = asyncio.Event()

        async def prepare(arguments: Mapping[str, Any], _: ToolContext) -> Mapping[str, Any]:
            prepared.append("second")
            return arguments

        @tool(preprocessors=(prepare,))
        async def second() -> None:
            world.ledger["second"] += 1

        slow = world.tool("slow", gate.wait)
        async with world.process(slow, second, settings=Settings(executions=1)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("slow", "second"), turn_id="t1")
            await settled()
            await runtime.interrupt("r", turn_id="t1")
            gate.set()
            await settled()

        assert (world.ledger, prepared) == ({"slow": 1}, [])

    run(play())


@pytest.mark.parametrize("rests", [False, True], ids=["while it is probed", "while it rests"])
def test_k_35_a_run_that_is_let_go_and_opened_again_has_its_doubt_settled(*, rests: bool) -> None:
    """Whatever was begun for the doubt ended with the run as it was open before."""

    async def play() -> None:
        world = World()
        reopened = asyncio.Event()

        async def probe(_: ToolContext) -> Happened | NeverHappened:
            if rests and not reopened.is_set():
                return NeverHappened()
            await reopened.wait()
            return Happened("it did")

        act = world.tool("act", never_can_tell, probe=probe)
        async with world.process(act, settings=Settings(retry_first=5.0)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()
            await runtime.close_run("r")
            await runtime.open_run(RUN)
            await settled()
            reopened.set()
            await asyncio.sleep(20.0)

        assert [it.result for it in world.told[0].results] == ["it did"]

    run(play())
