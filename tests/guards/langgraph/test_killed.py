"""What a tool leaves that did not end: a host that gave up, a kill -9, a sibling, an interrupt."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool
from langgraph.types import Command, interrupt

from turnlock.guards import At, Forked, InDoubt, Policy, Resolution
from turnlock.guards.guard import Guard

from .kit import THREAD, Bank, FileSaver, agent, answers, ask, asks, go, graph, pays, question, says

ROOT = Path(__file__).parents[3]
BOUND = 60.0
"""Seconds that a wait may last at most, on however loaded a machine."""

# G-3


def slow(bank: list[int], inside: asyncio.Event) -> BaseTool:
    """Return a tool that hangs the first time."""

    @tool
    async def pay(amount: int) -> str:
        """Pay somebody."""
        bank.append(amount)
        if not inside.is_set():
            inside.set()
            await asyncio.Event().wait()
        return f"paid {amount}"

    return pay


async def given_up(it: Any, inside: asyncio.Event) -> None:
    """Cancel an agent inside its tool, as `asyncio.wait_for` does when the time is over."""
    running = asyncio.ensure_future(it.ainvoke(ask(), THREAD))
    await asyncio.wait_for(inside.wait(), BOUND)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_g_3_bare_a_host_that_gave_up_and_retries_pays_twice() -> None:
    async def story() -> list[int]:
        paid, inside = list[int](), asyncio.Event()
        it = agent(says(pays()), [slow(paid, inside)])
        await given_up(it, inside)
        await it.ainvoke(None, THREAD)
        return paid

    assert asyncio.run(story()) == [5, 5]


def test_g_3_guarded_a_host_that_gave_up_is_in_doubt(guard: Guard) -> None:
    async def story() -> list[int]:
        paid, inside = list[int](), asyncio.Event()
        it = agent(says(pays()), [slow(paid, inside)], guard=guard)
        await given_up(it, inside)

        with pytest.raises(InDoubt) as doubt:
            await it.ainvoke(None, THREAD)

        await guard.aresolve(doubt.value.at, Resolution.RESULT, result="paid, says the bank")
        assert answers(await it.ainvoke(None, THREAD)) == ["paid, says the bank"]
        return paid

    assert asyncio.run(story()) == [5]


def test_g_3_guarded_what_still_runs_is_waited_for(guard: Guard) -> None:
    """A thread cannot be cancelled: it goes on, and whoever asks again is told its result."""
    inside, go_on = threading.Event(), threading.Event()

    def hangs(_: int) -> None:
        inside.set()
        assert go_on.wait(BOUND)

    bank, told = Bank(hangs), list[dict[str, Any]]()
    it = agent(says(pays()), [bank.pay], guard=guard, records_model=True)
    first = threading.Thread(target=lambda: told.append(go(it, ask())))
    first.start()
    assert inside.wait(BOUND)
    second = threading.Thread(target=lambda: told.append(go(it, None)))
    second.start()
    go_on.set()
    for thread in (first, second):
        thread.join(BOUND)
        assert not thread.is_alive()

    assert bank.paid == [5]
    assert [answers(it) for it in told] == [["paid 5"], ["paid 5"]]


# G-4, and G-15 with a real kill


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    code = "from tests.guards.langgraph.killed import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        cwd=ROOT, timeout=4 * BOUND, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def ledger(place: Path) -> list[int]:
    return [int(it) for it in place.with_suffix(".ledger").read_text().split()]


def test_g_4_bare_a_kill_in_the_tool_pays_twice(crashed: Path) -> None:
    bank = Bank()
    it = agent(says("paid"), [bank.pay], saver=FileSaver(crashed / "tool-bare.saver"))

    go(it, None)

    assert ledger(crashed / "tool-bare") + bank.paid == [5, 5]


@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_g_4_guarded_a_kill_in_the_tool_is_in_doubt(crashed: Path, way: str) -> None:
    place, bank = crashed / f"tool-{way}", Bank()
    with Guard.open(place.with_suffix(".db")) as guard:
        it = agent(says("paid"), [bank.pay], guard=guard,
                   saver=FileSaver(place.with_suffix(".saver")))  # fmt: skip
        with pytest.raises(InDoubt):
            go(it, None, way=way)
        with pytest.raises(InDoubt) as doubt:
            go(it, None, way=way)

        guard.resolve(doubt.value.at, Resolution.RESULT, result="paid 5")
        told = go(it, None, way=way)

    assert ledger(place) + bank.paid == [5]
    assert answers(told) == ["paid 5"]


def test_g_4_guarded_a_doubt_is_not_closed_by_a_user_who_goes_on(crashed: Path) -> None:
    bank, place = Bank(), crashed / "tool-moved-on"
    with Guard.open(place.with_suffix(".db")) as guard:
        it = agent(says("and what now?"), [bank.pay], guard=guard,
                   saver=FileSaver(place.with_suffix(".saver")))  # fmt: skip
        with pytest.raises(InDoubt):
            go(it, ask("thanks"))

    assert ledger(place) + bank.paid == [5]


def test_g_15_bare_a_kill_before_the_checkpoint_pays_again(crashed: Path) -> None:
    bank = Bank()
    it = agent(says(pays(5, "c2")), [bank.pay], saver=FileSaver(crashed / "answer-bare.saver"))

    go(it, ask())

    assert ledger(crashed / "answer-bare") + bank.paid == [5, 5]


@pytest.mark.parametrize("records", [False, True])
def test_g_15_guarded_a_kill_before_the_checkpoint_pays_once(crashed: Path, records: bool) -> None:
    place, bank = crashed / ("answer-records" if records else "answer-guarded"), Bank()
    with Guard.open(place.with_suffix(".db")) as guard:
        saver = FileSaver(place.with_suffix(".saver"))
        model = says("thanks") if records else says(pays(5, "c2"))
        it = agent(model, [bank.pay], guard=guard, saver=saver, records_model=records)
        if records:
            assert answers(go(it, ask())) == ["paid 5"]
        else:
            with pytest.raises(Forked):
                go(it, ask())

    assert ledger(place) + bank.paid == [5]


# G-12


@tool
def boom() -> str:
    """Raise."""
    raise RuntimeError("boom")


BOTH = asks(("pay", {"amount": 5}, "c1"), ("boom", {}, "c2"))


def test_g_12_bare_a_sibling_that_raised_repeats_the_others() -> None:
    bank = Bank()
    it = graph(says(BOTH), [bank.pay, boom])
    for given in (ask(), None):
        with pytest.raises(RuntimeError, match="boom"):
            go(it, given)

    assert bank.paid == [5, 5]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_g_12_guarded_a_sibling_that_raised_repeats_nothing(guard: Guard, way: str) -> None:
    """The first time the exception comes out; then the model is told the recorded failure."""
    done = threading.Event()
    bank = Bank(lambda _: done.set())

    @tool("boom")
    def after() -> str:
        """Raise, when the other has ended: asyncio would cancel it otherwise."""
        assert done.wait(BOUND)
        while guard.look(At("t1", turn[0], "c1")).outcome is None:
            pass
        raise RuntimeError("boom")

    turn = ["answer"]
    model = says(BOTH.model_copy(update={"id": turn[0]}))
    it = graph(model, [bank.pay, after], guard=guard)
    with pytest.raises(RuntimeError, match="boom"):
        go(it, ask(), way=way)

    told = go(it, None, way=way)

    assert bank.paid == [5]
    assert answers(told) == ["paid 5", "RuntimeError: boom"]
    assert [m.status for m in told["messages"] if m.type == "tool"] == ["success", "error"]


# G-13


def pauses(paid: list[int]) -> BaseTool:
    @tool
    def pay(amount: int) -> str:
        """Pay somebody, then ask."""
        paid.append(amount)
        return f"paid {amount}: {interrupt('well?')}"

    return pay


def test_g_13_bare_an_interrupt_inside_a_tool_runs_it_twice() -> None:
    paid: list[int] = []
    it = agent(says(pays()), [pauses(paid)])
    go(it, ask())

    go(it, Command(resume="fine"))

    assert paid == [5, 5]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_g_13_guarded_an_interrupt_inside_a_tool_is_in_doubt(guard: Guard, way: str) -> None:
    paid: list[int] = []
    it = agent(says(pays()), [pauses(paid)], guard=guard)
    assert question(go(it, ask(), way=way)) == "well?"  # type: ignore[comparison-overlap]

    with pytest.raises(InDoubt):
        go(it, Command(resume="fine"), way=way)

    assert paid == [5]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_g_13_guarded_a_tool_that_is_safe_to_repeat_resumes(db: Path, way: str) -> None:
    paid: list[int] = []
    with Guard.open(db, policies={"pay": Policy(safe_to_repeat=True)}) as guard:
        it = agent(says(pays()), [pauses(paid)], guard=guard)
        go(it, ask(), way=way)

        told = go(it, Command(resume="fine"), way=way)

    assert paid == [5, 5]
    assert answers(told) == ["paid 5: fine"]
