"""A zombie starts nothing: the clock is read in the frame that makes the call.

A process claims, and is blocked between the journal's answer and the first line of its tool – its
loop, or the thread that the tool was given. Meanwhile another takes the run over, asks the bank
whether it was paid, hears no, and pays. Then the first goes on.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final

import attrs
import pytest

from turnlock import FactType, Run
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.scheduling import Clock
from turnlock.runtime.tools import performing
from turnlock.runtime.tools.calling import Admitted, Calling, ToolContext, always, begin
from turnlock.runtime.tools.policy import InDoubt
from turnlock.runtime.tools.results import Happened, NeverHappened, ProbeAnswer
from turnlock.runtime.tools.threads import Lease
from turnlock.runtime.tools.tool import Tool, tool
from turnlock.runtime.tools.toolbox import Toolbox

from .test_runtime import calls
from .virtual import START, LoopClock, run, settled

RUN: Final = Run(run_id="r")
STALL: Final = 61.0
"""Seconds: two leases, and a bit."""


class SetClock:
    """Shows what it is set to."""

    def __init__(self) -> None:
        self.shown = START

    def now(self) -> float:
        return self.shown


@attrs.define
class Heir(LoopClock):
    """The clock of a process that begins after the stall."""

    def now(self) -> float:
        return super().now() + STALL


@attrs.define
class Bank:
    """Who paid, with which attempt and token; it takes no keys. And the journal of its payers."""

    journal: MemoryJournal = attrs.field(factory=MemoryJournal)
    booked: list[tuple[str, int, int | None]] = attrs.field(
        factory=list[tuple[str, int, "int | None"]]
    )
    clock: SetClock = attrs.field(factory=SetClock)
    blocked: bool = False

    def tool(self, who: str, *, in_thread: bool, lease: float = 30.0) -> Tool:
        def pay(context: ToolContext) -> str:
            self.booked.append((who, context.attempt, context.fencing_token))
            return "paid"

        async def pay_on_the_loop(context: ToolContext) -> str:
            return pay(context)

        async def was_paid(_: ToolContext) -> ProbeAnswer:
            return Happened("paid") if self.booked else NeverHappened()

        policy: dict[str, Any] = {"in_doubt": InDoubt.PROBE, "probe": was_paid, "lease": lease}
        return tool(name="pay", description="", **policy)(pay if in_thread else pay_on_the_loop)

    def process(self, paying: Tool, clock: Clock) -> Runtime:
        async def on_continue(_: object) -> None:
            """Be told."""

        return Runtime(
            journal=self.journal, tools=Toolbox([paying]), on_continue=on_continue, clock=clock
        )

    def stall(self, meanwhile: Callable[[], None]) -> None:
        """Stand still, once, while something else happens in the world."""
        if not self.blocked:
            self.blocked = True
            other = threading.Thread(target=meanwhile)
            other.start()
            other.join()
            self.clock.shown += STALL + 1_000.0

    def inherited(self) -> None:
        """Take the run over, find out, and pay: a whole process."""

        async def live() -> None:
            async with self.process(self.tool("heir", in_thread=False), Heir()) as heir:
                await heir.open_run(RUN)
                await asyncio.sleep(1)

        run(live())

    async def pay(self, *, in_thread: bool, lease: float = 30.0) -> None:
        """Be the process that is blocked."""
        paying = self.tool("zombie", in_thread=in_thread, lease=lease)
        async with self.process(paying, self.clock) as zombie:
            await zombie.open_run(RUN)
            await zombie.open_turn("r", calls("pay"), turn_id="t1")
            while not self.blocked:  # noqa: ASYNC110 - threads are real
                await asyncio.sleep(0.001)
            await settled()
            await asyncio.sleep(0.05)

    async def facts(self) -> list[FactType]:
        return [fact.type async for fact in self.journal.facts("r")]


def nobody() -> None:
    """Nobody takes the run over."""


def block_the_loop(
    monkeypatch: pytest.MonkeyPatch, bank: Bank, meanwhile: Callable[[], None], *, checked: bool
) -> None:
    """Have the loop blocked once everything was asked, right before the call is begun."""

    def late(
        call: Callable[..., Any],
        args: tuple[object, ...],
        kwargs: Mapping[str, Any],
        *,
        admitted: Admitted,
        **others: Any,
    ) -> Calling:
        bank.stall(meanwhile)
        return begin(call, args, kwargs, admitted=admitted if checked else always, **others)

    monkeypatch.setattr(performing, "begin", late)


def block_the_thread(
    monkeypatch: pytest.MonkeyPatch, bank: Bank, meanwhile: Callable[[], None]
) -> None:
    """Have the thread that the tool was given wait before it makes the call."""
    submit = Lease.submit

    def late(self: Lease, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        def waiting() -> Any:
            bank.stall(meanwhile)
            return fn(*args)

        return submit(self, waiting)

    monkeypatch.setattr(Lease, "submit", late)


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_blocked_loop_starts_nothing_that_another_has_done(
    monkeypatch: pytest.MonkeyPatch, *, in_thread: bool
) -> None:
    """It is booked once, by the heir, whose token is the higher one."""
    bank = Bank()
    block_the_loop(monkeypatch, bank, bank.inherited, checked=True)

    asyncio.run(bank.pay(in_thread=in_thread))

    assert bank.booked == [("heir", 2, 2)]
    assert asyncio.run(bank.facts())[-1] is FactType.CONTINUATION_TAKEN


def test_a_thread_that_waited_starts_nothing_that_another_has_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop went on meanwhile; it is the thread that looks at the clock."""
    bank = Bank()
    block_the_thread(monkeypatch, bank, bank.inherited)

    asyncio.run(bank.pay(in_thread=True))

    assert bank.booked == [("heir", 2, 2)]


@pytest.mark.parametrize("in_thread", [False, True])
def test_without_the_look_at_the_clock_it_is_booked_twice(
    monkeypatch: pytest.MonkeyPatch, *, in_thread: bool
) -> None:
    """The control."""
    bank = Bank()
    block_the_loop(monkeypatch, bank, bank.inherited, checked=False)

    asyncio.run(bank.pay(in_thread=in_thread))

    assert bank.booked == [("heir", 2, 2), ("zombie", 1, 1)]


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_late_start_of_a_run_that_nobody_took_is_made(
    monkeypatch: pytest.MonkeyPatch, *, in_thread: bool
) -> None:
    """The journal says that it is ours still: it is begun again, and once."""
    bank = Bank()
    block_the_loop(monkeypatch, bank, nobody, checked=True)

    asyncio.run(bank.pay(in_thread=in_thread, lease=1e6))

    assert bank.booked == [("zombie", 1, 1)]
    assert FactType.EXECUTION_IN_DOUBT not in asyncio.run(bank.facts())
