"""What goes wrong around a runtime, and what it honestly makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import attrs
import pytest

from turnlock import Call, Fact, FactType, Run
from turnlock.models.facts import ExecutionInDoubt
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.streams import Subscription
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox

from .crash.depth import DEEP
from .crash.explore import Stage, crashed_everywhere, played, points
from .crash.life import Life
from .crash.usecase import UseCase, acting
from .crash.usecases import (
    CHAINED,
    DENIED,
    DOUBTS,
    EXPIRED,
    FREE,
    GRANTED,
    INTERRUPTED,
    POSTED,
    SNAPSHOTS,
    STREAMED,
    USE_CASES,
)
from .crash.world import World
from .faulty_journal import Fault, FaultyJournal
from .virtual import LoopClock, VirtualLoop, run, settled

RUN: Final = Run(run_id="r")
FAULTED: Final = USE_CASES if DEEP else (FREE, GRANTED, INTERRUPTED, SNAPSHOTS, POSTED, STREAMED)
TRANSIENT: Final = (Fault.FULL, Fault.UNACKNOWLEDGED, Fault.CONFLICT)
METHODS: Final = ("append", "own", "renew", "read", "snapshot", "keep_snapshot", "posts", "answer")


@pytest.mark.parametrize("case", FAULTED, ids=lambda case: case.name)
def test_whichever_call_of_the_journal_fails_nothing_is_lost_or_repeated(case: UseCase) -> None:
    """A disk that is full for once, an acknowledgement that is lost, a conflict: it goes on."""
    journal = played(
        case, stage=Stage(journal=lambda: FaultyJournal(MemoryJournal()))
    ).world.journal
    assert isinstance(journal, FaultyJournal)
    planned = [
        ((method, number), fault)
        for method in METHODS
        for number in range(1, journal.calls[method] + 1)
        for fault in TRANSIENT
        if fault is not Fault.CONFLICT or method == "append"
    ]

    wrong: list[object] = []
    for place, fault in planned:
        stage = Stage(
            journal=lambda place=place, fault=fault: FaultyJournal(MemoryJournal(), {place: fault})  # type: ignore[misc] # bound now
        )
        one = played(case, stage=stage)
        wrong += [(place, fault, one.wrong)] if one.wrong else []

    assert wrong == []
    assert len(planned) > 20


@attrs.frozen
class ShiftedClock:
    """Another machine's clock, or one that is set while it runs."""

    shift: float
    after: float = 0.0
    """Seconds of the loop's time before it is shifted."""

    def now(self) -> float:
        gone = asyncio.get_running_loop().time()
        return LoopClock().now() + (self.shift if gone >= self.after else 0.0)


@pytest.mark.parametrize("shift", [-1_000.0, 10_000.0])
@pytest.mark.parametrize("case", [GRANTED, EXPIRED, DOUBTS[0], INTERRUPTED], ids=lambda it: it.name)
def test_the_clock_jumps_between_two_lives(case: UseCase, shift: float) -> None:
    """Time in a run never goes back (K-10); a jump forward lets deadlines run out, and no more."""
    stage = Stage(clocks=lambda number: ShiftedClock(shift if number > 1 else 0.0))

    steps = points(case)
    plays = [played(case, [step], stage=stage) for step in range(1, steps + 1, 1 if DEEP else 41)]

    assert [(one.deaths, one.wrong) for one in plays if one.wrong] == []
    for one in plays:
        times = [fact.at for fact in one.world.facts()]
        assert times == sorted(times)


@pytest.mark.parametrize("shift", [-3_600.0, 3_600.0])
@pytest.mark.parametrize("case", [FREE, DENIED, CHAINED, *DOUBTS], ids=lambda it: it.name)
def test_the_clock_jumps_within_a_life(case: UseCase, shift: float) -> None:
    """Forward, deadlines run out; what runs is in no doubt, for its process knows that it does."""
    for after in (0.0, 0.5, 1.0, 1.5):
        one = played(case, stage=Stage(clocks=lambda _, after=after: ShiftedClock(shift, after)))  # type: ignore[misc] # bound now

        assert one.wrong == ()


def _blocking(world: World, life: Life, policy: Mapping[str, Any]) -> tuple[Tool, ...]:
    async def act(context: ToolContext) -> str:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        world.begins(life, context)
        loop.pass_time(100.0)  # it does not give way: nothing else can happen meanwhile
        world.ends(life, context)
        return "done"

    return (tool(name="act", description="", **policy)(act),)


@pytest.mark.parametrize(
    "policy",
    [{}, {"in_doubt": InDoubt.RETRY_IF_SAFE, "safe_to_repeat": True}],
    ids=["ask", "retry"],
)
def test_a_lease_that_expires_while_the_tool_blocks_the_loop(policy: dict[str, Any]) -> None:
    """In doubt for a moment, then settled by the report, which is true; nothing runs again."""

    def tools(world: World, life: Life) -> tuple[Tool, ...]:
        return _blocking(world, life, policy)

    one = played(attrs.evolve(DOUBTS[0], tools=tools))

    assert one.wrong == ()
    facts = [fact.type for fact in one.world.facts()]
    assert facts.count(FactType.EXECUTION_IN_DOUBT) == 1
    assert len(one.world.begun) == 1


def test_a_lease_that_expires_in_a_crash_is_in_doubt_all_the_same() -> None:
    """The next life comes long after the lease: the kernel's own deadline says so first (K-34)."""

    def tools(world: World, life: Life) -> tuple[Tool, ...]:
        return (acting(world, life, "act", lease=3.0, in_doubt=InDoubt.PROBE, probed=True),)

    case = attrs.evolve(DOUBTS[3], tools=tools, pause=500.0)
    plays = crashed_everywhere(case)

    assert [(one.deaths, one.wrong) for one in plays if one.wrong] == []
    assert any(isinstance(fact, ExecutionInDoubt) for one in plays for fact in one.world.facts())


def test_subscribers_that_raise_hang_or_are_slow_harm_nobody() -> None:
    """One raises, one never reads, one falls behind and misses nothing; the run goes on."""
    told: list[Continuation] = []

    async def on_continue(continuation: Continuation) -> None:
        told.append(continuation)

    async def play() -> None:
        runtime = Runtime(
            journal=MemoryJournal(),
            tools=Toolbox([tool(name="act", description="")(_act)]),
            on_continue=on_continue,
            clock=LoopClock(),
            settings=Settings(buffer=4),
        )
        async with runtime:
            await runtime.open_run(RUN)
            runtime.subscribe("r")  # hangs: it is never read
            slow = runtime.subscribe("r")
            first = asyncio.ensure_future(_next(slow))
            raising = asyncio.ensure_future(_raises(runtime))
            good = asyncio.ensure_future(_collected(runtime, 10))
            await settled()
            await _turn(runtime, 1)
            seen = [await first]
            await _turn(runtime, 2)

            while len(seen) < 10:
                seen.append(await anext(slow))

            assert await good == seen
            assert [fact.sequence for fact in seen] == list(range(1, 11))
            assert isinstance((await asyncio.gather(raising, return_exceptions=True))[0], OSError)
        assert [one.turn_id for one in told] == ["t1", "t2"]

    run(play())


async def _act() -> str:
    return "done"


async def _turn(runtime: Runtime, number: int) -> None:
    call = Call(invocation_id="a", tool_name="act", arguments={}, requires_approval=False)
    await runtime.open_turn("r", [call], turn_id=f"t{number}", epoch=number)
    await settled()


async def _raises(runtime: Runtime) -> None:
    async for _ in runtime.subscribe("r"):
        raise OSError("the subscriber's own affair")


async def _next(facts: Subscription) -> Fact:
    return await anext(facts)


async def _collected(runtime: Runtime, count: int) -> list[Fact]:
    facts = runtime.subscribe("r")
    return [await anext(facts) for _ in range(count)]
