"""What becomes of a claim that is kept with what asked for it, where the journal fails or is slow.

Its slot is reserved meanwhile; nothing starts before it is known that the claim is kept, and what
was not kept is not remembered.
"""

# Looks inside: what is reserved, and by whom.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from turnlock import Call, FactType, Interrupt, OpenTurn, Resolution, Run, Status
from turnlock.models.errors import TurnlockError
from turnlock.runtime.errors import JournalError, Overloaded, RunFenced
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.sealing import Seals
from turnlock.runtime.tools.tool import tool

from .faulty_journal import Fault
from .test_claims_together import (
    DOUBT,
    OPENED,
    RUN,
    STARTED,
    SUCCEEDED,
    Appends,
    a_world,
    opened,
    reserved,
)
from .test_runtime import World, calls
from .virtual import run, settled


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.FULL, Fault.CONFLICT])
def test_what_was_not_kept_has_not_started_and_is_not_remembered(fault: Fault) -> None:
    """The turn is opened again under the same ids, with other arguments: those are what runs."""

    async def play() -> None:
        world, journal = a_world()
        given: list[int] = []

        @tool(name="act", description="")
        async def act(n: int) -> None:
            given.append(n)

        def opening(n: int) -> OpenTurn:
            call = Call(
                invocation_id="a", tool_name="act", arguments={"n": n}, requires_approval=False
            )
            return OpenTurn(turn_id="t1", calls=(call,))

        async with world.process(act) as runtime:
            await runtime.open_run(RUN)
            journal.fail("append", fault)
            with pytest.raises(JournalError):
                await runtime.deliver("r", opening(1))
            verdict = await runtime.deliver("r", opening(2))
            assert verdict.reason is None
            await settled()
            assert reserved(runtime) == 0

        assert given == [2]
        assert world.told[0].results[0].status is Status.SUCCEEDED
        assert (await world.facts()).count(STARTED) == 1

    run(play())


class TooMuch(Appends):
    """Refuses what is more than one commit, as a journal may that bounds what it takes."""

    async def append(self, run_id: str, **given: Any) -> Any:
        if len({fact.commit for fact in given["facts"]}) > 1:
            raise Overloaded("too much at once")
        return await super().append(run_id, **given)


def test_what_is_too_much_together_is_kept_one_by_one() -> None:
    """Whoever opened is told, and opens again; nothing was started meanwhile."""

    async def play() -> None:
        journal = TooMuch()
        world = World(journal=journal)
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            with pytest.raises(Overloaded):
                await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()
            assert (world.ledger, reserved(runtime)) == ({}, 0)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()

        assert journal.types[:2] == [[OPENED], [STARTED]]
        assert world.ledger == {"act": 1}

    run(play())


def test_what_is_fenced_while_it_is_claimed_starts_nothing() -> None:
    """The run is another's: nothing was kept, nothing begins, its slot is free."""

    async def play() -> None:
        world, journal = a_world()
        async with world.process(world.tool("act", concurrency=1)) as runtime:
            await runtime.open_run(RUN)
            journal.fail("append", Fault.FENCED)
            with pytest.raises(RunFenced):
                await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()
            assert (world.ledger, reserved(runtime)) == ({}, 0)
            assert not runtime._dispatcher.executions._under_way
            await opened(runtime, "act", run_id="s")
            assert world.ledger == {"act": 1}

        assert await world.facts() == []

    run(play())


def test_a_defect_while_it_is_reserved_leaves_nothing_reserved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run is served no more, and whoever opened is told; no slot is held for ever."""
    clear, asked = Seals.clear_arguments, list[None]()

    def broken(*args: Any) -> Any:
        asked.append(None)
        if len(asked) == 2:
            raise ZeroDivisionError("a defect of ours")
        return clear(*args)

    async def play() -> None:
        world, journal = a_world()
        async with world.process(world.tool("one"), world.tool("two")) as runtime:
            await runtime.open_run(RUN)
            monkeypatch.setattr(Seals, "clear_arguments", broken)
            with pytest.raises(TurnlockError, match="defect of ours"):
                await runtime.open_turn("r", calls("one", "two"), turn_id="t1")
            await settled()
            assert (world.ledger, reserved(runtime), journal.types) == ({}, 0, [])
            assert not runtime._dispatcher.executions._under_way

    run(play())


@pytest.mark.parametrize("fault", [Fault.HELD, Fault.DELAYED, Fault.UNACKNOWLEDGED])
def test_k_53_what_is_stopped_while_it_is_claimed_is_told_and_never_in_doubt(fault: Fault) -> None:
    """The interrupt waits for the append before it: it meets an attempt, and ends it."""

    async def play() -> None:
        world, journal = a_world()
        never = asyncio.Event()
        async with world.process(world.tool("act", never.wait)) as runtime:
            await runtime.open_run(RUN)
            journal.fail("append", fault)
            opening = asyncio.ensure_future(runtime.open_turn("r", calls("act"), turn_id="t1"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            stopping = asyncio.ensure_future(runtime.deliver("r", Interrupt(turn_id="t1")))
            await settled()
            journal.gate.set()
            await asyncio.wait([opening, stopping])
            await settled()
            assert (opening.exception() is None) is (fault is not Fault.UNACKNOWLEDGED)
            if stopping.exception() is not None:  # it was told that nothing is known
                await runtime.deliver("r", Interrupt(turn_id="t1"))
                await settled()
            assert reserved(runtime) == 0
            assert runtime.doubts("r") == ()

        facts = await world.facts()
        assert facts.count(STARTED) == 1
        assert facts[-1] is FactType.TURN_INTERRUPTED
        assert DOUBT not in facts
        assert world.ledger.total() <= 1

    run(play())


def test_after_a_failure_it_claims_by_itself_until_something_is_kept() -> None:
    """What is too much together may go one by one."""

    async def play() -> None:
        world, journal = a_world()
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            journal.fail("append", Fault.FULL)
            with pytest.raises(JournalError):
                await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()
            for number in (1, 2):
                await runtime.open_turn("r", calls("act"), turn_id=f"t{number}")
                await settled()

        openings = [types for types in journal.types if OPENED in types]
        assert openings == [[OPENED, STARTED], [OPENED], [OPENED, STARTED]]

    run(play())


def test_what_was_kept_and_nobody_said_so_starts_once_the_journal_shows_it() -> None:
    """It is in no doubt: its worker is here, and has not begun."""

    async def play() -> None:
        world, journal = a_world()
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            journal.fail("append", Fault.UNACKNOWLEDGED)
            with pytest.raises(JournalError):
                await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()
            again = await runtime.open_turn("r", calls("act"), turn_id="t1")
            assert again.reason is not None

        facts = await world.facts()
        assert facts.count(STARTED) == 1
        assert DOUBT not in facts
        assert world.ledger == {"act": 1}

    run(play())


def test_k_34_what_is_found_kept_when_its_lease_is_over_does_not_start() -> None:
    """The journal could not be read for so long: a person is asked, and nothing has run."""

    async def play() -> None:
        world, journal = a_world()
        settings = Settings(retry_first=100.0, retry_longest=100.0, ownership=10_000.0)
        act = world.tool("act", lease=30.0)
        async with world.process(act, settings=settings) as runtime:
            await runtime.open_run(RUN)
            journal.fail("append", Fault.UNACKNOWLEDGED)
            journal.fail("read", Fault.LOCKED)
            with pytest.raises(JournalError):
                await runtime.open_turn("r", calls("act"), turn_id="t1")
            await asyncio.sleep(200.0)
            await settled()
            (doubt,) = runtime.doubts("r")
            assert reserved(runtime) == 0
            assert world.ledger == {}
            await runtime.resolve(
                "r",
                turn_id="t1",
                invocation_id="act",
                attempt=doubt.attempt,
                resolution=Resolution.RETRY,
            )
            await settled()

        assert [FactType.RETRY_AUTHORISED, FactType.EXECUTION_RETRIED] in journal.types
        assert world.ledger == {"act": 1}

    run(play())


@pytest.mark.parametrize("fault", [Fault.HELD, Fault.DELAYED])
def test_nothing_starts_before_the_append_is_durable(fault: Fault) -> None:
    """Whether it is kept already or not: its slot is taken, and the tool waits for the word."""

    async def play() -> None:
        world, journal = a_world()
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            journal.fail("append", fault)
            opening = asyncio.ensure_future(runtime.open_turn("r", calls("act"), turn_id="t1"))
            await asyncio.sleep(5.0)
            assert (world.ledger, reserved(runtime), opening.done()) == ({}, 1, False)
            journal.gate.set()
            await settled()
            assert (world.ledger, reserved(runtime), opening.done()) == ({"act": 1}, 0, True)

    run(play())


def test_a_run_that_is_let_go_waits_for_what_it_is_claiming() -> None:
    """The claim may be kept: what it comes to is told before the run is another's."""

    async def play() -> None:
        world, journal = a_world()
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            journal.fail("append", Fault.HELD)
            opening = asyncio.ensure_future(runtime.open_turn("r", calls("act"), turn_id="t1"))
            await settled()
            letting = asyncio.ensure_future(runtime.close_run("r"))
            await asyncio.sleep(1.0)
            journal.gate.set()
            assert await letting == ()
            assert (await opening).reason is None

        facts = await world.facts()
        assert facts[-2:] == [SUCCEEDED, FactType.TURN_SETTLED]
        assert world.ledger == {"act": 1}

    run(play())


def test_a_run_that_is_let_go_while_its_journal_fails_holds_nothing() -> None:
    """Nothing was kept, and nobody folds it here any more: the slot is free, no task is left."""

    async def play() -> None:
        world, journal = a_world()
        async with world.process(world.tool("act", concurrency=1)) as runtime:
            await runtime.open_run(RUN)
            journal.fail("append", Fault.LOST)
            journal.plan["read", 1] = Fault.LOCKED
            opening = asyncio.ensure_future(runtime.open_turn("r", calls("act"), turn_id="t1"))
            with pytest.raises(JournalError):
                await opening
            assert reserved(runtime) == 1  # it could not be folded yet
            await runtime.close_run("r", drain=0.0)
            await settled()
            assert reserved(runtime) == 0
            assert not runtime._dispatcher.executions._under_way
            await opened(runtime, "act", run_id="s")
            assert world.ledger == {"act": 1}

    run(play())


def test_a_run_that_is_closed_while_it_is_written_starts_nothing() -> None:
    """It was claimed, and is another's to find: in doubt, though nothing has run (K-35)."""

    async def play() -> None:
        world, journal = a_world()
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            journal.fail("append", Fault.HELD)
            opening = asyncio.ensure_future(runtime.open_turn("r", calls("act"), turn_id="t1"))
            await settled()
            letting = asyncio.ensure_future(runtime.close_run("r", drain=0.0))
            await asyncio.sleep(10.0)
            journal.gate.set()
            await letting
            assert (await opening).reason is None
            await settled()
            assert reserved(runtime) == 0

        assert world.ledger == {}
        assert (await world.facts())[-1] is STARTED

    run(play())


def test_while_it_ends_or_lets_a_run_go_nothing_is_claimed() -> None:
    """What is owed stays owed, for whoever owns the run next."""

    async def play() -> None:
        world, journal = a_world()
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            runtime._actors["r"].leaving = True
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()
        assert journal.types == [[OPENED]]
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(Run(run_id="s"))
            runtime._dispatcher.stop_performing()
            await runtime.open_turn("s", calls("act"), turn_id="t1")
            await settled()
        assert [OPENED] in journal.types[1:]

    run(play())
