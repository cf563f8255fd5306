"""The runtime as its users have it: turns opened, tools run, people asked, crashes survived."""

# Looks inside: what is held, and who waits.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from turnlock import (
    Call,
    Claim,
    FactType,
    Interrupt,
    Reason,
    Resolution,
    Resolve,
    Run,
    Status,
    UnknownRun,
)
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.errors import Closed, JournalOwned, RunFenced
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.results import Happened, NeverHappened
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox

from .faulty_journal import Fault, FaultyJournal
from .virtual import LoopClock, run, settled

RUN = Run(run_id="r")


@attrs.define
class World:
    """What outlives a process: the journal, the ledger of tools, what the model was told."""

    journal: Journal = attrs.field(factory=MemoryJournal)
    ledger: Counter[str] = attrs.field(factory=Counter[str])
    told: list[Continuation] = attrs.field(factory=list[Continuation])

    def tool(self, name: str, work: Callable[[], object] | None = None, **policy: Any) -> Tool:
        """A tool that writes what it does into the ledger, and waits as it is told."""

        async def act() -> str:
            self.ledger[name] += 1
            outcome = None if work is None else work()
            if asyncio.isfuture(outcome) or asyncio.iscoroutine(outcome):
                await outcome
            return f"{name} done"

        return tool(name=name, description="", **policy)(act)

    def process(self, *tools: Tool, settings: Settings | None = None) -> Runtime:
        """A process of the host, which ends when its runtime is left."""

        async def on_continue(continuation: Continuation) -> None:
            self.told.append(continuation)

        return Runtime(
            journal=self.journal,
            tools=Toolbox(tools),
            on_continue=on_continue,
            clock=LoopClock(),
            settings=settings or Settings(),
        )

    async def facts(self, run_id: str = "r") -> list[FactType]:
        return [fact.type async for fact in self.journal.facts(run_id)]


def calls(*names: str) -> list[Call]:
    """One call of each tool, under the tool's name."""
    return [
        Call(invocation_id=name, tool_name=name, arguments={}, requires_approval=False)
        for name in names
    ]


async def crash(runtime: Runtime) -> None:
    """End a process without a word: nothing it has not kept is kept."""
    await runtime._watchers.cancel()
    for actor in runtime._actors.all():
        actor.stop(Closed("crashed"))
    await runtime._tasks.cancel()


def test_a_turn_runs_from_its_calls_to_its_continuation() -> None:
    """Free calls run at once, and the host is told all results in the order of the calls."""

    async def play() -> None:
        world = World()
        async with world.process(world.tool("one"), world.tool("two")) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("one", "two"), turn_id="t1")
            await settled()

        assert [result.result for result in world.told[0].results] == ["one done", "two done"]
        assert (await world.facts())[-2:] == [FactType.TURN_SETTLED, FactType.CONTINUATION_TAKEN]
        assert world.ledger == {"one": 1, "two": 1}

    run(play())


def test_what_needs_approval_waits_for_it() -> None:
    """The policy of the tool gates the call; the decision echoes the digest that was shown."""

    async def play() -> None:
        world = World()
        async with world.process(world.tool("pay", approval=True)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay"), turn_id="t1")
            await settled()
            (waiting,) = runtime.pending("r")
            assert (waiting.tool_name, world.ledger) == ("pay", {})

            wrong = await runtime.approve(
                "r", turn_id="t1", invocation_id="pay", arguments_digest="another"
            )
            right = await runtime.approve(
                "r", turn_id="t1", invocation_id="pay", arguments_digest=waiting.arguments_digest
            )
            await settled()

            assert (wrong.reason, right.reason) == (Reason.ARGUMENTS_MISMATCH, None)
            assert (runtime.pending("r"), world.ledger) == ((), {"pay": 1})

    run(play())


def test_a_denied_call_never_runs_and_the_model_is_told() -> None:
    """K-51: a denial is a result like any other."""

    async def play() -> None:
        world = World()
        async with world.process(world.tool("pay", approval=True)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay"), turn_id="t1")
            await runtime.deny("r", turn_id="t1", invocation_id="pay", reason="too much")
            await settled()

        (result,) = world.told[0].results
        assert (result.status, result.reason) == (Status.DENIED, "too much")
        assert world.ledger == {}

    run(play())


def test_an_approval_expires_by_the_timer() -> None:
    """`wake`: nobody delivers anything, and yet the deadline is seen."""

    async def play() -> None:
        world = World()
        pay = world.tool("pay", approval=True, approval_timeout=60.0)
        async with world.process(pay) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("pay"), turn_id="t1")
            await asyncio.sleep(59)
            assert world.told == []
            await asyncio.sleep(2)

        assert world.told[0].results[0].status is Status.DENIED

    run(play())


def test_a_missing_tool_is_rejected() -> None:
    """A model may ask for anything."""

    async def play() -> None:
        world = World()
        async with world.process() as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("nope"), turn_id="t1")
            await settled()

        assert world.told[0].results[0].error == "there is no tool 'nope'"

    run(play())


def test_a_callback_that_raises_is_called_again_with_the_same_id() -> None:
    """The turn stays owed until the callback returns (K-52)."""

    async def play() -> None:
        world = World()
        heard: list[str] = []

        async def on_continue(continuation: Continuation) -> None:
            heard.append(continuation.effect_id)
            if len(heard) < 3:
                raise RuntimeError("the model is not there")

        async with Runtime(
            journal=world.journal,
            tools=Toolbox([world.tool("one")]),
            on_continue=on_continue,
            clock=LoopClock(),
        ) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("one"), turn_id="t1")
            await asyncio.sleep(60)

        assert heard == ["continue/r/1/t1"] * 3
        assert (await world.facts()).count(FactType.CONTINUATION_TAKEN) == 1

    run(play())


def test_an_interrupt_cancels_what_runs_and_denies_what_has_not_begun() -> None:
    """K-53: the tool is asked to stop, and what it says of its end is a true report."""

    async def play() -> None:
        world = World()
        slow = world.tool("slow", lambda: asyncio.sleep(3600))
        async with world.process(slow, world.tool("pay", approval=True)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("slow", "pay"), turn_id="t1")
            await settled()
            await runtime.interrupt("r", turn_id="t1")
            await settled()

        facts = await world.facts()
        assert facts[-1] is FactType.TURN_INTERRUPTED
        assert {FactType.TOOL_DENIED, FactType.TOOL_EXECUTION_FAILED} < set(facts)
        assert (world.told, world.ledger) == ([], {"slow": 1})

    run(play())


def test_a_lease_is_renewed_as_long_as_the_tool_runs() -> None:
    """A tool that takes longer than its lease is not in doubt while its process lives."""

    async def play() -> None:
        world = World()
        slow = world.tool("slow", lambda: asyncio.sleep(100), lease=30.0)
        async with world.process(slow) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("slow"), turn_id="t1")
            await asyncio.sleep(101)

        facts = await world.facts()
        assert FactType.EXECUTION_IN_DOUBT not in facts
        assert facts.count(FactType.LEASE_RENEWED) >= 3
        assert world.told[0].results[0].status is Status.SUCCEEDED

    run(play())


def _happened(_: ToolContext) -> Happened:
    return Happened("yes")


def _never_happened(_: ToolContext) -> NeverHappened:
    return NeverHappened()


POLICIES: list[tuple[dict[str, Any], int, Status | None]] = [
    ({"in_doubt": InDoubt.ASK}, 1, None),
    ({"in_doubt": InDoubt.FAIL}, 1, Status.FAILED),
    ({"in_doubt": InDoubt.RETRY_IF_SAFE}, 1, None),
    ({"in_doubt": InDoubt.RETRY_IF_SAFE, "safe_to_repeat": True}, 2, Status.SUCCEEDED),
    ({"in_doubt": InDoubt.PROBE, "probe": _happened}, 1, Status.SUCCEEDED),
    ({"in_doubt": InDoubt.PROBE, "probe": _never_happened}, 2, Status.SUCCEEDED),
]


@pytest.mark.parametrize(
    ("policy", "runs", "status"),
    POLICIES,
    ids=["ask", "fail", "unsafe retry", "safe retry", "probe: yes", "probe: no"],
)
def test_what_a_dead_process_ran_is_in_doubt_and_its_policy_decides(
    policy: dict[str, Any], runs: int, status: Status | None
) -> None:
    """K-35: recovery never executes again in silence; a retry is a fact, and declared."""

    async def play() -> None:
        world = World()
        brief = Settings(ownership=0.2)
        first = world.process(
            world.tool("act", lambda: asyncio.sleep(3600), **policy), settings=brief
        )
        await first.__aenter__()
        await first.open_run(RUN)
        await first.open_turn("r", calls("act"), turn_id="t1")
        await settled()
        await crash(first)
        await asyncio.sleep(0.25)

        async with world.process(world.tool("act", **policy), settings=brief) as second:
            await asyncio.sleep(0.15)  # real time for a probe, which runs in a thread
            assert second.runs == ("r",)
        facts = await world.facts()

        assert FactType.EXECUTION_IN_DOUBT in facts
        assert world.ledger["act"] == runs
        assert facts.count(FactType.EXECUTION_RETRIED) == runs - 1
        assert [told.results[0].status for told in world.told] == ([status] if status else [])

    (asyncio.run if "probe" in policy else run)(play())


def test_a_living_owner_keeps_its_run() -> None:
    """Two processes: the second is told who has it; when the lease is over, it takes the run."""

    async def play() -> None:
        world = World()
        slow = world.tool("slow", lambda: asyncio.sleep(3600))
        async with world.process(slow) as first:
            await first.open_run(RUN)
            async with world.process() as second:
                with pytest.raises(JournalOwned, match=first.owner):
                    await second.open_run(RUN)
                with pytest.raises(UnknownRun):
                    second.pending("r")

    run(play())


def test_a_zombie_is_fenced_and_starts_nothing() -> None:
    """An owner that stood still beyond its lease wakes up: its claim is not kept, nothing runs."""

    async def play() -> None:
        world = World()
        zombie = world.process(world.tool("pay", approval=True))
        await zombie.__aenter__()
        await zombie.open_run(RUN)
        await zombie.open_turn("r", calls("pay"), turn_id="t1")
        await zombie._watchers.cancel()  # it stands still: nothing is renewed
        await asyncio.sleep(31)

        async with world.process(world.tool("pay", approval=True)) as heir:
            with pytest.raises(RunFenced):
                await zombie.approve("r", turn_id="t1", invocation_id="pay")
            await heir.approve("r", turn_id="t1", invocation_id="pay")
            await settled()

        assert world.ledger == {"pay": 1}
        await crash(zombie)

    run(play())


@pytest.mark.parametrize("fault", [Fault.FULL, Fault.UNACKNOWLEDGED])
@pytest.mark.parametrize("number", range(1, 5))
def test_a_journal_that_fails_for_a_while_neither_loses_nor_repeats(
    number: int, fault: Fault
) -> None:
    """Claim, report, settle, acknowledge: whichever append fails, the tool runs once."""

    async def play() -> None:
        faulty = FaultyJournal(MemoryJournal(), {("append", number): fault})
        world = World(journal=faulty)
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            while FactType.TURN_OPENED not in await world.facts():
                try:
                    await runtime.open_turn("r", calls("act"), turn_id="t1", epoch=1)
                except Exception:  # noqa: BLE001 - the host tries again, whatever it was
                    await asyncio.sleep(1)
            await asyncio.sleep(60)

        facts = await world.facts()
        assert world.ledger == {"act": 1}
        assert facts.count(FactType.TURN_SETTLED) == facts.count(FactType.CONTINUATION_TAKEN) == 1
        assert {told.effect_id for told in world.told} == {"continue/r/1/t1"}

    run(play())


def test_a_clean_end_waits_for_what_runs() -> None:
    """Drained: the report is kept before the process lets go."""

    async def play() -> None:
        world = World()
        async with world.process(world.tool("slow", lambda: asyncio.sleep(5))) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("slow"), turn_id="t1")
            await settled()

        assert FactType.TURN_SETTLED in await world.facts()
        with pytest.raises(Closed):
            await runtime.deliver("r", Interrupt(turn_id="t1"))

    run(play())


def test_a_claim_of_another_make_is_left_to_its_lease() -> None:
    """Recovery loses what dead runtimes ran, not what others run."""

    async def play() -> None:
        world = World()
        async with world.process(world.tool("act", approval=True)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            runtime._dispatcher.executions.stop_starting()
            await runtime.approve("r", turn_id="t1", invocation_id="act")
            await runtime.deliver(
                "r", Claim(turn_id="t1", invocation_id="act", attempt=1, worker="elsewhere")
            )

        async with world.process(world.tool("act", approval=True)) as heir:
            await settled()
            assert FactType.EXECUTION_IN_DOUBT not in await world.facts()
            unasked = await heir.deliver(
                "r",
                Resolve(turn_id="t1", invocation_id="act", attempt=1, resolution=Resolution.RETRY),
            )
            assert unasked.reason is Reason.NOT_IN_DOUBT

    run(play())
