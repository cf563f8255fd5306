"""A caller that is cancelled, at every step: at most one execution, and no claim that nobody runs.

Deterministic: guard, journal and caller share one loop, in which time passes only when nothing else
can happen; before and after all that the journal does there is a step at which it can be cancelled.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, cast
from unittest.mock import patch

import attrs
import msgspec
import pytest

from turnlock.guards import (
    At,
    Call,
    CallContext,
    Guard,
    InDoubt,
    Outcome,
    Stale,
    StillRunning,
    background,
)
from turnlock.guards import claimed as claims
from turnlock.guards.background import Background, _Life
from turnlock.guards.engine import Engine
from turnlock.lifecycle.phases import Phase
from turnlock.models.codec import to_json, write
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.verification.traces.log import check

from ..runtime.faulty_journal import WrappedJournal
from ..runtime.virtual import LoopClock, run
from .engines import settings

HERE: Final = At("r", "t", "c")
ONCE: Final = At("once/r/t/c", "once", "c")
PAY: Final[dict[str, Any]] = {"amount": 5}
LONG: Final = 1.0
"""Seconds of virtual time: who lets more pass has waited for a claim that nobody runs."""


class Stepped(WrappedJournal):
    """A journal that takes a step before and after each thing it does."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)

    async def append(self, *given: Any, **named: Any) -> Any:
        return await _stepped(super().append(*given, **named))

    async def read(self, *given: Any, **named: Any) -> Any:
        return await _stepped(super().read(*given, **named))

    async def entry(self, *given: Any, **named: Any) -> Any:
        return await _stepped(super().entry(*given, **named))

    async def snapshot(self, *given: Any, **named: Any) -> Any:
        return await _stepped(super().snapshot(*given, **named))

    async def declare(self, *given: Any, **named: Any) -> Any:
        return await _stepped(super().declare(*given, **named))

    async def put_worker(self, *given: Any, **named: Any) -> Any:
        return await _stepped(super().put_worker(*given, **named))


async def _stepped(work: Awaitable[Any]) -> Any:
    """As a journal in a thread: what has begun is done, and who is cancelled learns it then."""

    async def doing() -> Any:
        await asyncio.sleep(0)
        found = await work
        await asyncio.sleep(0)
        return found

    task = asyncio.ensure_future(doing())
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()


class Here(Background[Engine]):
    """The background of a guard whose loop is its caller's."""

    def __init__(self, engine: Engine) -> None:
        async def make() -> Engine:
            return engine

        super().__init__("here", make=make, unmake=Engine.close)
        life: Any = cast("Any", _Life).__new__(_Life)
        given = {
            "_name": "here",
            "_make": make,
            "_unmake": Engine.close,
            "loop": asyncio.get_running_loop(),
            "works": set[Any](),
            "ending": False,
            "ended": threading.Event(),
            "_making": None,
            "thread": threading.Thread(),
        }
        for name, value in given.items():
            setattr(life, name, value)
        self._life = life


@attrs.define
class Tool:
    """Takes some steps, each of which may be where it is cancelled."""

    ran: list[int] = attrs.field(factory=list[int])
    ended: int = 0

    async def __call__(self, context: CallContext) -> str:
        self.ran.append(context.attempt)
        for _ in range(3):
            await asyncio.sleep(0)
        self.ended += 1
        return "paid"


Begins = Callable[[Guard, Tool], Awaitable[Outcome[str]]]


async def in_a_turn(guard: Guard, tool: Tool) -> Outcome[str]:
    return await guard.acall(HERE, "pay", PAY, tool)


async def once(guard: Guard, tool: Tool) -> Outcome[str]:
    return await guard.aonce(HERE, "pay", PAY, tool)


async def play(begins: Begins, *, steps: int, again: int | None = None) -> tuple[list[str], bool]:
    """Cancel a call after so many steps; return what is wrong, and whether it had ended by then.

    With `again` it is cancelled a second time, so many steps later.
    """
    journal = Stepped(MemoryJournal())
    engine = Engine(journal, settings(wait=30.0, patience=30.0), clock=LoopClock())
    guard = Guard(Here(engine))
    call = Call(invocation_id="c", tool_name="pay", arguments=PAY, requires_approval=False)
    await guard.aopen_turn("r", "t", [call])
    first, second = Tool(), Tool()
    calling = asyncio.ensure_future(begins(guard, first))
    await _steps(calling, steps)
    ended = calling.done()
    began = asyncio.get_running_loop().time()
    calling.cancel()
    if again is not None:
        await _steps(calling, again)
        calling.cancel()
    await asyncio.wait([calling])
    wrong: list[str] = []
    if not ended and not calling.cancelled():
        wrong.append("the cancellation did not come out")
    if len(engine._holding):
        wrong.append("a claim is held that nobody runs")
    here = HERE if begins is in_a_turn else ONCE
    wrong += [f"afterwards: {it}" for it in await _claims_left(guard, here)]
    doubt = False
    try:
        await begins(guard, second)
    except InDoubt:
        doubt = True
    except StillRunning:
        wrong.append("nobody runs it, and the next who asks is refused")
    if asyncio.get_running_loop().time() - began > LONG:
        wrong.append("somebody has waited for a claim that nobody runs")
    if len(first.ran) + len(second.ran) != 1:
        wrong.append(f"it ran {len(first.ran)} and {len(second.ran)} times")
    if doubt != (len(first.ran) == 1 and not first.ended):
        wrong.append(f"in doubt: {doubt}, though it ran {first.ran} and ended {first.ended}")
    wrong += [f"at the end: {it}" for it in await _claims_left(guard, here)]
    wrong += await _conforms(journal, here.run)
    await engine.close()
    return wrong, ended


async def _claims_left(guard: Guard, at: At) -> list[str]:
    with suppress(Stale):  # it was cancelled before it was opened
        if (await guard.alook(at)).phase is Phase.STARTED:
            return ["it is claimed, and nobody runs it"]
    return []


async def _steps(calling: asyncio.Future[Any], count: int) -> None:
    for _ in range(count):
        if calling.done():
            return
        await asyncio.sleep(0)


async def _conforms(journal: Journal, run_id: str) -> list[str]:
    """Hold the journal against the specification, as `turnlock check` does."""
    entry = await journal.entry(run_id)
    facts = [fact async for fact in journal.facts(run_id)]
    declared = msgspec.json.encode({"run": write(entry.run)})
    outcome = check(iter([line + b"\n" for line in (declared, *map(to_json, facts))]))
    return [] if outcome.broken is None else [f"conforms: {outcome.broken}"]


def sweep(begins: Begins, *, again: int | None = None) -> dict[int, list[str]]:
    """Cancel at every step, until the call has ended before; return what is wrong, by step."""
    found: dict[int, list[str]] = {}
    for steps in range(1_000):
        wrong, ended = run(play(begins, steps=steps, again=again))
        if wrong:
            found[steps] = wrong
        if ended:
            assert steps > 20, "there is nothing to sweep"
            return found
    raise AssertionError("the call never ends")


@pytest.mark.parametrize("begins", [in_a_turn, once])
def test_cancelled_at_every_step_it_runs_at_most_once_and_no_claim_is_left(begins: Begins) -> None:
    """Claiming: the next runs it. In the tool: in doubt. Reporting: recorded all the same."""
    assert sweep(begins) == {}


@pytest.mark.parametrize("again", [0, 1, 2, 5])
def test_cancelled_twice_it_is_no_different(again: int) -> None:
    assert sweep(in_a_turn, again=again) == {}


@contextmanager
def kept_claims() -> Generator[None]:
    """Give nothing back that was claimed for somebody who was cancelled."""

    async def nothing(*_: object) -> None:
        """Do nothing."""

    def no_drop(_: object) -> None:
        """Do nothing."""

    with (
        patch.object(Engine, "_unwanted", nothing),
        patch.object(claims.Claimed, "hand_back", nothing),
        patch.object(claims.Claimed, "drop", no_drop),
    ):
        yield


def test_without_handing_back_claims_are_left_that_nobody_runs() -> None:
    """The negative control: the sweep sees what it looks for."""
    with kept_claims():
        found = sweep(in_a_turn)
    assert len(found) > 3
    told = {it for wrong in found.values() for it in wrong}
    assert "a claim is held that nobody runs" in told
    assert "afterwards: it is claimed, and nobody runs it" in told


def test_without_waiting_the_cancellation_comes_out_too_early() -> None:
    """The negative control of the order: what is to be recorded is recorded before."""

    async def at_once(_: object) -> None:
        """Wait for nothing."""

    with patch.object(background, "uninterrupted", at_once):
        found = sweep(in_a_turn)
    assert "a claim is held that nobody runs" in {it for wrong in found.values() for it in wrong}


def test_cancelled_at_random_over_threads_and_a_file(tmp_path: Path) -> None:
    """The guard's own loop and the file's threads go on meanwhile: the same must hold."""
    draw = random.Random(17)
    names = [f"c{number}" for number in range(40)]
    ran: list[str] = []
    ended: list[str] = []

    async def act(context: CallContext) -> str:
        ran.append(context.at.call)
        await asyncio.sleep(0.001)
        ended.append(context.at.call)
        return "paid"

    async def play() -> None:
        async with Guard.open(tmp_path / "agent.db", wait=5.0) as guard:
            calls = [
                Call(invocation_id=name, tool_name="pay", arguments=PAY, requires_approval=False)
                for name in names
            ]
            await guard.aopen_turn("r", "t", calls)
            for name in names:
                at = At("r", "t", name)
                calling = asyncio.ensure_future(guard.acall(at, "pay", PAY, act))
                await asyncio.sleep(draw.uniform(0, 0.008))
                calling.cancel()
                with suppress(asyncio.CancelledError):
                    await calling
                assert (await guard.alook(at)).phase is not Phase.STARTED
                with suppress(InDoubt):
                    await guard.acall(at, "pay", PAY, act)
                assert ran.count(name) == 1
                phase = (await guard.alook(at)).phase
                assert phase is (Phase.SUCCEEDED if name in ended else Phase.IN_DOUBT)

    asyncio.run(asyncio.wait_for(play(), 120))
