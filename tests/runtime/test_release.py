"""Runs let go and taken: nobody owns what nobody performs, and what is owed is not forgotten."""

# Looks inside: what is held, and who waits.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from turnlock import FactType, Run, Status
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.errors import Closed, JournalError
from turnlock.runtime.executions import Executions
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.ownership import STOPPING
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.tool import Tool
from turnlock.runtime.tools.toolbox import Toolbox

from .faulty_journal import Fault, FaultyJournal
from .test_runtime import World, calls, crash
from .virtual import LoopClock, run, settled

RUN = Run(run_id="r")


async def owner_of(world: World, run_id: str = "r") -> str | None:
    return (await world.journal.entry(run_id)).owner


def test_what_waited_for_a_slot_when_its_run_was_let_go_runs_once_it_is_open_again() -> None:
    """The old attempt can claim nothing any more: it must not stand in the way of the new one."""

    async def play() -> None:
        world = World()
        gate = asyncio.Event()
        first = world.tool("first", gate.wait)
        async with world.process(
            first, world.tool("second"), settings=Settings(executions=1)
        ) as runtime:
            await runtime.open_run(Run(run_id="other"))
            await runtime.open_turn("other", calls("first"), turn_id="t1")
            await settled()
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("second"), turn_id="t1")
            await settled()
            await runtime.close_run("r")
            await runtime.open_run(RUN)
            gate.set()
            await asyncio.sleep(1)

        assert world.ledger == {"first": 1, "second": 1}
        assert (await world.facts())[-1] is FactType.CONTINUATION_TAKEN

    run(play())


def test_a_tool_that_ends_after_its_run_was_opened_here_again_is_heard() -> None:
    """Closing the run stops it; that end is a true report, and goes to whoever performs the run."""

    async def play() -> None:
        world = World()
        slow = world.tool("slow", lambda: asyncio.sleep(3600))
        async with world.process(slow) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("slow"), turn_id="t1")
            await settled()
            let_go = runtime._actors["r"]
            runtime._actors.remove(let_go)
            let_go.stop(Closed("let go"))
            await runtime.open_run(RUN)
            runtime._dispatcher.executions.abandon("r")
            await asyncio.sleep(1)

        assert FactType.EXECUTION_IN_DOUBT not in await world.facts()
        assert world.told[0].results[0].status is Status.FAILED

    run(play())


def test_a_run_that_cannot_be_folded_is_not_kept_from_others() -> None:
    """It was taken, and cannot be performed: nobody may renew it for ever."""

    async def play() -> None:
        faulty = FaultyJournal(MemoryJournal())
        world = World(journal=faulty)
        async with world.process(world.tool("act")) as runtime:
            faulty.fail("read", Fault.LOST)
            with pytest.raises(JournalError):
                await runtime.open_run(RUN)
            assert (await owner_of(world), runtime.runs) == (None, ())
            await runtime.open_run(RUN)
            assert await owner_of(world) == runtime.owner

    run(play())


@pytest.mark.parametrize("method", ["own", "snapshot", "read"])
def test_who_gives_up_while_a_run_is_taken_leaves_it_free(method: str) -> None:
    """`wait_for` around `open_run`: what it had begun is undone."""

    async def play() -> None:
        faulty = FaultyJournal(MemoryJournal())
        world = World(journal=faulty)
        async with world.process(world.tool("act")) as runtime:
            faulty.fail(method, Fault.HELD)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(runtime.open_run(RUN), 5)
            assert (await owner_of(world), runtime.runs) == (None, ())

    run(play())


def test_a_run_that_is_being_taken_when_the_runtime_ends_is_let_go() -> None:
    """`open_run` in another task: it hears that the runtime is closed, and nobody owns the run."""

    async def play() -> None:
        faulty = FaultyJournal(MemoryJournal())
        world = World(journal=faulty)
        async with world.process(world.tool("act")) as runtime:
            faulty.fail("read", Fault.HELD)
            opening = asyncio.ensure_future(runtime.open_run(RUN))
            await settled()
        faulty.gate.set()

        with pytest.raises(Closed):
            await opening
        assert await owner_of(world) is None

    run(play())


def test_the_run_of_an_owner_that_dies_later_is_taken_over_later() -> None:
    """No proof of its death, and its lease in force when we began: it is not left for ever."""

    async def play() -> None:
        world = World()
        first = world.process(world.tool("act", approval=True))
        await first.__aenter__()
        await first.open_run(RUN)
        await first.open_turn("r", calls("act"), turn_id="t1")
        await settled()
        async with world.process(world.tool("act", approval=True)) as heir:
            assert list(heir.runs) == []
            await crash(first)
            await asyncio.sleep(61)
            assert list(heir.runs) == ["r"]

    run(play())


def test_what_was_closed_on_purpose_is_not_taken_back_unasked() -> None:
    """A host that lets a busy run go meant it; opened again, it is as any other."""

    async def play() -> None:
        world = World()
        async with world.process(world.tool("act", approval=True)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await runtime.close_run("r")
            await asyncio.sleep(100)
            assert (runtime.runs, await owner_of(world)) == ((), None)
            await runtime.open_run(RUN)
            assert len(runtime.pending("r")) == 1

    run(play())


def test_what_is_being_written_when_a_run_is_closed_is_settled_before() -> None:
    """The caller gets its verdict, not a fence of our own making."""

    async def play() -> None:
        faulty = FaultyJournal(MemoryJournal())
        world = World(journal=faulty)
        async with world.process(world.tool("act", approval=True)) as runtime:
            await runtime.open_run(RUN)
            faulty.fail("append", Fault.DELAYED)
            opening = asyncio.ensure_future(runtime.open_turn("r", calls("act"), turn_id="t1"))
            await settled()
            closing = asyncio.ensure_future(runtime.close_run("r"))
            await settled()
            faulty.gate.set()
            assert [fact.sequence for fact in (await opening).facts] == [1, 2]
            await closing
            assert await owner_of(world) is None
            assert runtime._dispatcher.observed().oldest_pending_approval is None

    run(play())


def test_a_callback_that_cannot_be_cancelled_does_not_hold_the_end_up() -> None:
    """It is let go after a bound, which is said; its turn stays owed."""

    async def play() -> None:
        world = World()
        gate = asyncio.Event()

        async def stubborn(_: Continuation) -> None:
            while not gate.is_set():
                with suppress(asyncio.CancelledError):
                    await gate.wait()

        runtime = Runtime(
            journal=world.journal,
            tools=Toolbox([world.tool("act")]),
            on_continue=stubborn,
            clock=LoopClock(),
        )
        async with asyncio.timeout(60):
            async with runtime:
                await runtime.open_run(RUN)
                await runtime.open_turn("r", calls("act"), turn_id="t1")
                await settled()
        assert await owner_of(world) is None
        gate.set()
        await settled()
        assert (await world.facts())[-1] is FactType.TURN_SETTLED

    run(play())


def test_an_end_that_is_cancelled_lets_go_all_the_same() -> None:
    """Ctrl-C while it drains: the tools are stopped and the runs handed over at once."""

    async def play() -> None:
        world = World()
        slow = world.tool("slow", lambda: asyncio.sleep(3600))

        async def lives() -> None:
            async with world.process(slow, settings=Settings(drain=1e6)) as runtime:
                await runtime.open_run(RUN)
                await runtime.open_turn("r", calls("slow"), turn_id="t1")
                await settled()

        living = asyncio.ensure_future(lives())
        await asyncio.sleep(1)
        living.cancel()
        with pytest.raises(asyncio.CancelledError):
            await living
        assert await owner_of(world) is None
        assert len(asyncio.all_tasks()) == 1

    run(play())


def test_many_at_once_open_a_run_once() -> None:
    """One of them takes it, even if the first of them fails; no two actors of one run."""

    async def play() -> None:
        faulty = FaultyJournal(MemoryJournal())
        world = World(journal=faulty)
        async with world.process(world.tool("act")) as runtime:
            faulty.fail("read", Fault.LOST)
            outcomes = await asyncio.gather(
                *(runtime.open_run(RUN) for _ in range(5)), return_exceptions=True
            )
            assert [one for one in outcomes if one is None] == [None] * 4
            assert faulty.calls["own"] == 2

    run(play())


async def closed_while_it_runs(
    world: World, slow: Tool, *, drain: float | None = None
) -> tuple[str, ...]:
    """Close a run while its tool runs, and leave the process; the next owner is another."""
    async with world.process(slow, settings=Settings(drain=50.0)) as runtime:
        await runtime.open_run(RUN)
        await runtime.open_turn("r", calls("slow", "next"), turn_id="t1")
        await settled()
        began = asyncio.get_running_loop().time()
        dropped = await runtime.close_run("r", drain=drain)
        world.ledger["seconds"] = round(asyncio.get_running_loop().time() - began)
        assert (runtime.runs, await owner_of(world)) == ((), None)
    return dropped


def test_closing_a_run_waits_for_the_tool_that_runs() -> None:
    """Its result is kept; what comes after it is begun by the next owner, and not here."""

    async def play() -> None:
        world = World()
        slow = world.tool("slow", lambda: asyncio.sleep(30), sequential=True)
        then = world.tool("next", sequential=True)
        async with world.process(slow, then, settings=Settings(drain=50.0)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("slow", "next"), turn_id="t1")
            await settled()
            assert await runtime.close_run("r") == ()
            assert world.ledger == {"slow": 1}
            assert (await world.facts())[-1] is FactType.TOOL_EXECUTION_SUCCEEDED
            assert await owner_of(world) is None
            await runtime.open_run(RUN)
            await settled()
        assert world.ledger == {"slow": 1, "next": 1}
        assert [result.status for result in world.told[0].results] == [Status.SUCCEEDED] * 2

    run(play())


def test_without_waiting_a_true_result_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the run is let go at once."""

    async def play() -> None:
        world = World()
        slow = world.tool("slow", lambda: asyncio.sleep(1))

        def nothing(*_: object) -> dict[object, str]:
            return {}

        monkeypatch.setattr(Executions, "to_be_told", nothing)
        assert await closed_while_it_runs(world, slow) == ()
        assert FactType.TOOL_EXECUTION_SUCCEEDED not in await world.facts()

    run(play())


def test_a_tool_that_does_not_end_in_time_is_stopped_and_heard() -> None:
    """That is a true report: nothing is dropped, and nobody is in doubt."""

    async def play() -> None:
        world = World()
        slow = world.tool("slow", lambda: asyncio.sleep(3_600))
        assert await closed_while_it_runs(world, slow, drain=5.0) == ()
        assert world.ledger["seconds"] == 5
        assert FactType.TOOL_EXECUTION_FAILED in await world.facts()
        assert FactType.EXECUTION_IN_DOUBT not in await world.facts()

    run(play())


@pytest.mark.parametrize("drain", [0.0, None])
def test_what_is_dropped_is_said(caplog: pytest.LogCaptureFixture, drain: float | None) -> None:
    """A tool that heeds nothing: it is named, and its next owner is told of the doubt."""

    async def play() -> None:
        world = World()
        gate = asyncio.Event()

        async def stubborn() -> None:
            while not gate.is_set():
                with suppress(asyncio.CancelledError):
                    await gate.wait()

        slow = world.tool("slow", stubborn, timeout=1e6)
        assert await closed_while_it_runs(world, slow, drain=drain) == ("slow (slow)",)
        gate.set()
        await settled()
        assert world.ledger["seconds"] == (STOPPING if drain == 0 else 50 + STOPPING)
        assert "was let go while slow (slow) ran: what comes of it is dropped" in caplog.text
        assert FactType.TOOL_EXECUTION_SUCCEEDED not in await world.facts()
        async with world.process(world.tool("slow")):
            await settled()
            assert FactType.EXECUTION_IN_DOUBT in await world.facts()

    run(play())


def test_who_gives_up_closing_has_let_go_all_the_same() -> None:
    """`wait_for` around `close_run`: nobody owns the run, and the tool was asked to stop."""

    async def play() -> None:
        world = World()
        slow = world.tool("slow", lambda: asyncio.sleep(3_600))
        async with world.process(slow) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("slow"), turn_id="t1")
            await settled()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(runtime.close_run("r", drain=1e6), 5)
            assert (runtime.runs, await owner_of(world)) == ((), None)

    run(play())


def test_a_host_that_cannot_go_on_while_it_closes_holds_nobody_up() -> None:
    """Its callback opens the next turn, which a closing runtime refuses: the next owner is told."""

    async def play() -> None:
        world = World()
        told: list[str] = []

        async def on_continue(continuation: Continuation) -> None:
            told.append(continuation.turn_id)
            await asyncio.sleep(1.0)
            if continuation.turn_id == "t1":
                await runtime.open_turn("r", calls("act"), turn_id="t2")

        def process() -> Runtime:
            return Runtime(
                journal=world.journal,
                tools=Toolbox([world.tool("act")]),
                on_continue=on_continue,
                clock=LoopClock(),
                settings=Settings(drain=1e3),
            )

        async with process() as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < 10.0
        assert told == ["t1"]
        async with process() as runtime:
            await asyncio.sleep(5.0)
            assert told == ["t1", "t1", "t2"]

    run(play())
