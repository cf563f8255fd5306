"""A claim kept together with what asked for it: one append, and all that it takes is reserved.

Where something happens outside between the two, or something is not there at once, it claims by
itself, as it always could.
"""

# Looks inside: what is reserved, and by whom.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from turnlock import (
    Call,
    Cancel,
    Claim,
    Decide,
    Execute,
    Fact,
    FactType,
    Interrupt,
    Run,
)
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.slots import Limiter, Slot
from turnlock.runtime.tools.toolbox import Toolbox
from turnlock.runtime.writer import Batch, RunWriter

from .faulty_journal import FaultyJournal
from .test_runtime import World, calls
from .virtual import LoopClock, run, settled

RUN: Final = Run(run_id="r")
OPENED: Final = FactType.TURN_OPENED
APPROVED: Final = FactType.TOOL_APPROVED
STARTED: Final = FactType.TOOL_EXECUTION_STARTED
SUCCEEDED: Final = FactType.TOOL_EXECUTION_SUCCEEDED
DOUBT: Final = FactType.EXECUTION_IN_DOUBT


class Appends(FaultyJournal):
    """Notes what each append brought, and fails as it is told."""

    def __init__(self) -> None:
        super().__init__(MemoryJournal())
        self.brought: list[list[Fact]] = []

    async def append(self, run_id: str, **given: Any) -> Any:
        self.brought.append(list(given["facts"]))
        return await super().append(run_id, **given)

    @property
    def types(self) -> list[list[FactType]]:
        return [[fact.type for fact in facts] for facts in self.brought]


def a_world() -> tuple[World, Appends]:
    journal = Appends()
    return World(journal=journal), journal


def reserved(runtime: Runtime) -> int:
    """How many slots are taken."""
    return len(runtime._runtime.slots)


async def opened(runtime: Runtime, *names: str, run_id: str = "r", turn_id: str = "t1") -> None:
    await runtime.open_run(Run(run_id=run_id))
    await runtime.open_turn(run_id, calls(*names), turn_id=turn_id)
    await settled()


def test_k_9_the_claim_is_kept_in_the_append_of_the_opening() -> None:
    """Two commits, one append; the tool begins after it."""

    async def play() -> None:
        world, journal = a_world()
        kept: list[int] = []
        act = world.tool("act", lambda: kept.append(len(journal.brought)))
        async with world.process(act) as runtime:
            await opened(runtime, "act")

        first, second, third = journal.types
        assert first == [OPENED, STARTED]
        assert [fact.commit for fact in journal.brought[0]] == [1, 2]
        assert second[0] is SUCCEEDED
        assert third == [FactType.CONTINUATION_TAKEN]
        assert kept == [1]
        assert world.ledger == {"act": 1}

    run(play())


def test_k_9_the_claims_of_one_turn_are_kept_with_it_and_those_of_approvals_with_them() -> None:
    """What waits for a person is claimed once he has said so, in the append of his word."""

    async def play() -> None:
        world, journal = a_world()
        tools = world.tool("one"), world.tool("two"), world.tool("pay", approval=True)
        async with world.process(*tools) as runtime:
            await opened(runtime, "one", "two", "pay")
            assert journal.types[0] == [
                OPENED,
                FactType.TOOL_APPROVAL_REQUESTED,
                STARTED,
                STARTED,
            ]
            before = len(journal.brought)
            await runtime.approve("r", turn_id="t1", invocation_id="pay", arguments={})
            await settled()

        assert journal.types[before] == [APPROVED, STARTED]
        assert world.ledger == {"one": 1, "two": 1, "pay": 1}

    run(play())


def test_k_58_an_observed_call_is_nobodys_to_claim_here() -> None:
    async def play() -> None:
        world, journal = a_world()
        seen = Call(
            invocation_id="a",
            tool_name="act",
            arguments={},
            requires_approval=False,
            observed=True,
        )
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", [seen], turn_id="t1")
            await settled()

        assert journal.types == [[OPENED]]
        assert world.ledger == {}

    run(play())


class Elsewhere:
    """Who performs the runs of another kind: it is told, and starts what it likes."""

    def __init__(self) -> None:
        self.asked: list[Execute | Cancel] = []

    def perform(self, run_id: str, effect: Execute | Cancel) -> None:
        self.asked.append(effect)

    def learn(self, run_id: str, facts: Any) -> None:
        pass

    def lose(self, run_id: str) -> None:
        pass


def test_k_61_what_another_runtime_performs_is_not_claimed_here() -> None:
    async def play() -> None:
        journal = Appends()
        elsewhere = Elsewhere()
        world = World(journal=journal)
        runtime = Runtime(
            journal=journal,
            tools=Toolbox([world.tool("act")]),
            on_continue=nobody,
            clock=LoopClock(),
            kind="codex",
            performer=elsewhere,
        )
        async with runtime:
            await runtime.open_run(Run(run_id="r", kind="codex"))
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()
            assert not runtime._runtime.worker.is_known

        assert journal.types == [[OPENED]]
        assert [type(it) for it in elsewhere.asked] == [Execute]
        assert world.ledger == {}

    run(play())


async def nobody(_: object) -> None:
    """Take a continuation: none comes."""


def test_what_is_over_in_the_same_batch_is_not_claimed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Opened and stopped in one tick: it is denied, and no slot is taken for it."""

    def never(*_: object) -> Batch:
        raise AssertionError("it is claimed")

    async def play() -> None:
        world, journal = a_world()
        monkeypatch.setattr(RunWriter, "judge_also", never)
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            await asyncio.gather(
                runtime.open_turn("r", calls("act"), turn_id="t1"),
                runtime.deliver("r", Interrupt(turn_id="t1")),
            )
            await settled()
            assert reserved(runtime) == 0

        assert len(journal.brought) == 1
        assert STARTED not in await world.facts()
        assert world.ledger == {}

    run(play())


def test_what_somebody_else_claims_in_the_same_batch_is_his() -> None:
    """K-33: two executors that hold the same approval execute once."""

    async def play() -> None:
        world, journal = a_world()
        async with world.process(world.tool("act", approval=True)) as runtime:
            await opened(runtime, "act")
            decided, claimed = await asyncio.gather(
                runtime.deliver("r", Decide(turn_id="t1", invocation_id="act", approved=True)),
                runtime.deliver("r", Claim(turn_id="t1", invocation_id="act", attempt=1)),
            )
            await settled()
            assert (decided.reason, claimed.reason) == (None, None)
            assert reserved(runtime) == 0

        assert [types.count(STARTED) for types in journal.types] == [0, 1]
        assert world.ledger == {}

    run(play())


def test_where_the_ownership_is_to_be_looked_at_nothing_is_claimed() -> None:
    """The opening shows whether the run is ours; the claim asks the journal first, as ever."""

    async def play() -> None:
        world, journal = a_world()
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            runtime._actors["r"].owned_until = 0.0
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()

        assert journal.types[:2] == [[OPENED], [STARTED]]
        assert world.ledger == {"act": 1}

    run(play())


def test_s_50_before_the_worker_is_known_nothing_is_claimed() -> None:
    async def play() -> None:
        world, journal = a_world()
        async with world.process(world.tool("act")) as runtime:
            await runtime.open_run(RUN)
            runtime._runtime.worker.is_known = False
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()

        assert journal.types[:2] == [[OPENED], [STARTED]]

    run(play())


class Jumps(LoopClock):
    """A clock that can be set forward."""

    ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


def test_k_34_no_time_passes_between_a_decision_and_the_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock jumps while the slot is taken: what runs beside it was not silent (K-35)."""
    clock = Jumps()
    take = Limiter.take

    def slow(limiter: Limiter, slot: Slot) -> bool:
        clock.ahead += 1_000.0
        return take(limiter, slot)

    async def play() -> None:
        world, journal = a_world()
        gate = asyncio.Event()
        runtime = Runtime(
            journal=journal,
            tools=Toolbox([world.tool("long", gate.wait), world.tool("pay", approval=True)]),
            on_continue=nobody,
            clock=clock,
            settings=Settings(ownership=10_000.0),
        )
        async with runtime:
            await opened(runtime, "long", "pay")
            monkeypatch.setattr(Limiter, "take", slow)
            await runtime.approve("r", turn_id="t1", invocation_id="pay", arguments={})
            await settled()
            gate.set()
            await settled()

        assert [APPROVED, STARTED] in journal.types
        assert DOUBT not in await world.facts()
        assert world.ledger == {"long": 1, "pay": 1}

    run(play())


def test_what_is_decided_too_late_is_not_claimed() -> None:
    """K-34: the approval has timed out, whatever is said then."""

    async def play() -> None:
        world, _ = a_world()
        pay = world.tool("pay", approval=True, approval_timeout=10.0)
        async with world.process(pay) as runtime:
            await opened(runtime, "pay")
            await asyncio.sleep(11.0)
            verdict = await runtime.approve("r", turn_id="t1", invocation_id="pay", arguments={})
            await settled()
            assert verdict.reason is not None
            assert reserved(runtime) == 0

        assert STARTED not in await world.facts()
        assert world.ledger == {}

    run(play())
