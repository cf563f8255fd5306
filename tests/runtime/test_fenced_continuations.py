"""Who was taken over hands over nothing: before each call of the host it makes sure of its run."""

# Looks inside: to stop the heart of a process.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections import Counter

import attrs
import pytest

from turnlock import FactType, Run
from turnlock.runtime.dispatcher import Continuation
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tenure import Tenure
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

from .faulty_journal import Fault, FaultyJournal
from .test_runtime import calls, crash
from .virtual import LoopClock, run, settled

RUN = Run(run_id="r")


@attrs.define
class Model:
    """What the hosts of two processes were told, in a ledger of their own; it may be away."""

    journal: Journal = attrs.field(factory=MemoryJournal)
    told: Counter[str] = attrs.field(factory=Counter[str])
    away: bool = True

    def process(self, name: str) -> Runtime:
        """A process whose callback raises while the model is away."""

        async def on_continue(_: Continuation) -> None:
            self.told[name] += 1
            if self.away:
                raise ConnectionError("the model does not answer")

        @tool
        async def act() -> str:
            return "done"

        return Runtime(
            journal=self.journal,
            tools=Toolbox([act]),
            on_continue=on_continue,
            clock=LoopClock(),
            settings=Settings(takes_over=False),
        )


async def stalled(model: Model) -> Runtime:
    """A process that was told no once, and stands still until its lease is over."""
    zombie = model.process("zombie")
    await zombie.__aenter__()
    await zombie.open_run(RUN)
    await zombie.open_turn("r", calls("act"), turn_id="t1")
    await settled()
    assert model.told == {"zombie": 1}
    await zombie._watchers.cancel()
    return zombie


async def taken_over(model: Model) -> None:
    """Stand still before the second call; another takes over, is heard, and the first goes on."""
    zombie = await stalled(model)
    actor = zombie._actors["r"]
    actor.owned_until = LoopClock().now()  # it stood still for so long
    await model.journal.release("r", fence=actor.fence)
    async with model.process("heir") as heir:
        await heir.open_run(RUN)
        await settled()
        await asyncio.sleep(1_000)  # many pauses long
        model.away = False
        await asyncio.sleep(60)
    await crash(zombie)


def test_a_fenced_process_calls_its_callback_no_more() -> None:
    """It raised before, and would be called again for ever: it is the next owner's to call."""

    async def play() -> None:
        model = Model()
        await taken_over(model)
        assert model.told["zombie"] == 1
        assert model.told["heir"] > 1
        kept = [fact.type async for fact in model.journal.facts("r")]
        assert kept.count(FactType.CONTINUATION_TAKEN) == 1

    run(play())


def test_without_the_check_it_goes_on_calling(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""

    async def unasked(*_: object) -> None:
        """Instead of `Tenure.make_sure`."""

    async def play() -> None:
        model = Model()
        monkeypatch.setattr(Tenure, "make_sure", unasked)
        await taken_over(model)
        assert model.told["zombie"] > 1

    run(play())


def test_a_process_that_is_owner_still_goes_on() -> None:
    """Its lease was over, and nobody has taken the run: the journal says so, and it is called.

    The journal fails at first when it is asked: what is not known is not begun.
    """

    async def play() -> None:
        model = Model(journal=FaultyJournal(MemoryJournal()))
        zombie = await stalled(model)
        faulty = model.journal
        assert isinstance(faulty, FaultyJournal)
        zombie._actors["r"].owned_until = LoopClock().now()
        faulty.fail("renew", Fault.LOST)
        model.away = False
        await asyncio.sleep(60)
        assert (model.told["zombie"], faulty.calls["renew"]) == (2, 2)
        kept = [fact.type async for fact in model.journal.facts("r")]
        assert kept[-1] is FactType.CONTINUATION_TAKEN
        await crash(zombie)

    run(play())


def test_what_was_closed_and_opened_here_again_is_handed_over_still() -> None:
    """By the same task, which waits between two calls: once is enough, and none is forgotten."""

    async def play() -> None:
        model = Model()
        async with model.process("one") as runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await settled()
            await runtime.close_run("r")
            await runtime.open_run(RUN)
            model.away = False
            await asyncio.sleep(60)
            assert model.told == {"one": 2}
            kept = [fact.type async for fact in model.journal.facts("r")]
            assert kept[-1] is FactType.CONTINUATION_TAKEN

    run(play())


def test_a_callback_that_is_cancelled_by_something_of_its_own_is_called_again() -> None:
    """What it awaits may be cancelled, a request say: that is a failure like any other."""
    told = 0

    async def on_continue(_: Continuation) -> None:
        nonlocal told
        told += 1
        if told == 1:
            raise asyncio.CancelledError

    @tool
    async def act() -> str:
        return "done"

    async def play() -> None:
        runtime = Runtime(
            journal=MemoryJournal(),
            tools=Toolbox([act]),
            on_continue=on_continue,
            clock=LoopClock(),
        )
        async with runtime:
            await runtime.open_run(RUN)
            await runtime.open_turn("r", calls("act"), turn_id="t1")
            await asyncio.sleep(10)
            assert told == 2
            assert not (await runtime.view("r")).turn

    run(play())
