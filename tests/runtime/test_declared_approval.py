"""What a tool declares about approval holds for every call of it, whoever brings the call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from turnlock import AddCall, FactType, Kernel, OpenTurn, Run
from turnlock.models.record import changed
from turnlock.runtime import declared
from turnlock.runtime.running import Running
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.submitting import SharedRun, submit
from turnlock.runtime.tools.policy import Policy
from turnlock.runtime.tools.threads import Threads

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
    policies = runtime.tools("r").policies
    await runtime.close_run("r")
    opening = OpenTurn(turn_id="t1", calls=(PAY,))
    submitted = await submit(
        world.journal,
        "r",
        opening,
        within=1,
        policies=policies,
        clock=LoopClock(),
    )
    assert (submitted.by_owner, submitted.receipt["accepted"]) == (False, True)
    await runtime.open_run(RUN)


async def by_shared_run(runtime: Runtime, world: World) -> None:
    policies = runtime.tools("r").policies
    await runtime.close_run("r")
    shared = await SharedRun.open(world.journal, "r", policies=policies, clock=LoopClock())
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


def broken(_: object) -> bool:
    raise ValueError("which account?")


def exits(_: object) -> bool:
    raise SystemExit(3)


def interrupts(_: object) -> bool:
    raise KeyboardInterrupt


class Rude:
    """Has opinions about what it is and how it looks."""

    def __repr__(self) -> str:
        raise SystemExit(4)

    def __bool__(self) -> bool:
        raise SystemExit(5)


PREDICATES: list[tuple[Callable[[object], Any], str]] = [
    (broken, "which account?"),
    (exits, "SystemExit: 3"),
    (interrupts, "KeyboardInterrupt"),
    (lambda _: Rude(), "the approval predicate failed: SystemExit: 4"),
]


@pytest.mark.parametrize(("predicate", "why"), PREDICATES)
def test_a_predicate_that_fails_to_say_is_told(
    caplog: pytest.LogCaptureFixture, predicate: Callable[[object], Any], why: str
) -> None:
    """A person decides, and whoever wrote the predicate can find out why one was asked.

    It is asked in a thread, so whatever it does ends neither the host nor the run.
    """
    threads: set[bool] = set()

    def asked(arguments: object) -> Any:
        threads.add(threading.current_thread() is threading.main_thread())
        return predicate(arguments)

    async def play() -> None:
        world = World()
        async with world.process(world.tool("pay", approval=asked)) as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", [PAY], turn_id="t1")
            assert len(runtime.pending("r")) == 1

    asyncio.run(play())
    assert why in caplog.text
    assert threads == {False}


def test_a_predicate_that_hangs_holds_up_neither_the_loop_nor_its_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After its bound a person is asked; all calls of a delivery share one bound."""
    monkeypatch.setattr(declared, "ANSWER", 0.1)
    hanging, gate = threading.Event(), threading.Event()
    answered: list[bool] = []

    def hangs(_: object) -> bool:
        hanging.set()
        answered.append(gate.wait(60))
        return False

    async def play() -> None:
        world = World()
        tools = [world.tool(name, approval=hangs) for name in ("pay", "pay2")]
        async with world.process(*tools) as runtime:
            await runtime.open_run(RUN)
            turn = asyncio.ensure_future(runtime.open_turn("r", calls("pay", "pay2"), turn_id="t1"))
            while not hanging.is_set():  # noqa: ASYNC110 - a thread sets it
                await asyncio.sleep(0.001)
            assert answered == []  # the loop turns
            await turn
            assert answered == []  # and nobody has waited for them
            assert len(runtime.pending("r")) == 2

    try:
        asyncio.run(play())
    finally:
        gate.set()
    assert caplog.text.count("did not answer within 0.1 s") == 2


async def facts_of_a_tool_beside_hanging_predicates(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Have a tool run whose lease is shorter than what two predicates take that hang."""

    async def hung(*_: object, until: float) -> None:
        await asyncio.sleep(until - asyncio.get_running_loop().time())

    monkeypatch.setattr(declared, "_asked", hung)

    async def works() -> str:
        await asyncio.sleep(4 * declared.ANSWER)
        return "done"

    world = World()
    tools = world.tool("works", works, lease=declared.ANSWER / 2), world.tool("pay", approval=bool)
    async with world.process(*tools) as runtime:
        await runtime.open_run(RUN)
        await runtime.open_turn("r", calls("works"), turn_id="t1", sealed=False)
        await asyncio.sleep(0.1)
        for name in ("c2", "c3"):
            await runtime.add_call("r", changed(PAY, invocation_id=name), turn_id="t1")
        await asyncio.sleep(4 * declared.ANSWER)
        return await world.facts()


def test_predicates_that_hang_put_nothing_in_doubt_that_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its renewals wait behind them: that nothing was judged is no silence of the tool."""
    facts = run(facts_of_a_tool_beside_hanging_predicates(monkeypatch))
    assert FactType.EXECUTION_IN_DOUBT not in facts
    assert FactType.TOOL_EXECUTION_SUCCEEDED in facts


def test_without_a_word_for_what_was_held_up_it_is_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""

    def unheard(*_: object) -> None:
        """Say nothing."""

    monkeypatch.setattr(Running, "held_up", unheard)
    facts = run(facts_of_a_tool_beside_hanging_predicates(monkeypatch))
    assert FactType.EXECUTION_IN_DOUBT in facts


def test_predicates_that_hang_have_a_bound_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it none is asked, and a person decides."""
    monkeypatch.setattr(declared, "ANSWER", 0.05)
    monkeypatch.setattr(declared, "ASKING", Threads(lost=1, bound="LOST"))
    gate, asked = threading.Event(), 0

    def hangs(_: object) -> bool:
        nonlocal asked
        asked += 1
        gate.wait(20)
        return False

    async def play() -> None:
        known = declared.Declared(policies={"pay": Policy(approval=hangs)})
        for _ in range(3):
            opened = await known.apply(OpenTurn(turn_id="t1", calls=(PAY,)), Kernel(RUN))
            assert isinstance(opened, OpenTurn)
            assert opened.calls[0].requires_approval

    try:
        asyncio.run(play())
    finally:
        gate.set()
    assert asked == 1
