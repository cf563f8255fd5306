"""An owner keeps anew what its journal has lost of what it was told, and goes on (D-62).

Its journal goes on from an older state, as a standby does that was promoted; an independent ledger
says what was done.
"""

# Looks inside: the journal is rewound there.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from turnlock import FactType, Run
from turnlock.models.errors import TurnlockError
from turnlock.models.record import changed
from turnlock.runtime import restoring
from turnlock.runtime.errors import Conflict, JournalError, JournalRewound
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.journal.ledger import Domain, Note
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.tools.calling import ToolContext
from turnlock.runtime.tools.tool import Tool

from .faulty_journal import Fault, FaultyJournal
from .test_runtime import World, calls
from .virtual import LoopClock, run, settled

RUN = Run(run_id="r")
LEASE = Settings().ownership


class Standby(MemoryJournal):
    """A journal that may go on from an older state while it is open."""

    @property
    def rewinds(self) -> bool:
        return True

    def fall_back(self, to: int, *, fence: int | None = None, notes: int = 0) -> None:
        """Be what it was after this fact and so many notes; with a token, when nobody owned it."""
        kept = self._runs["r"]
        ledger = kept.ledger
        del kept.facts[to:], ledger._lines[to:], ledger._notes[notes:]
        ledger._ends = max((it.noted.cursor for it in ledger._notes), default=type(ledger._ends)(0))
        ledger._ids = {it.noted.note.id: it for it in ledger._notes if it.noted.note.id is not None}
        kept.sequence, kept.snapshot, kept.busy = to, None, True
        if fence is not None:
            kept.owner = kept.owned_until = None
            kept.fence = fence


def standby(world: World) -> Standby:
    assert isinstance(world.journal, Standby)
    return world.journal


async def paid(world: World, runtime: Runtime) -> list[Any]:
    """Have it paid, and another call wait for a person; return the facts."""
    await runtime.open_run(RUN)
    await runtime.open_turn("r", calls("pay", "ask"), turn_id="t1")
    await settled()
    assert world.ledger == {"pay": 1}
    return [fact async for fact in world.journal.facts("r")]


async def as_given(arguments: Mapping[str, Any], _: ToolContext) -> Mapping[str, Any]:
    """Prepare nothing, by code of the tool's own: its claim is an append of its own then."""
    return arguments


def tools_of(world: World, *, apart: bool = True) -> tuple[Tool, Tool]:
    """One that runs at once, whose claim is kept apart or not, and one that a person is asked."""
    prepared = (as_given,) if apart else ()
    return world.tool("pay", preprocessors=prepared), world.tool("ask", approval=True)


def a_world(*, apart: bool = True) -> tuple[World, Runtime]:
    world = World(journal=Standby())
    return world, world.process(*tools_of(world, apart=apart))


async def approve(runtime: Runtime) -> None:
    """Approve what waits; again, where the journal had lost its end meanwhile."""
    with suppress(Conflict):
        await runtime.approve("r", turn_id="t1", invocation_id="ask")
        return
    await runtime.approve("r", turn_id="t1", invocation_id="ask")


async def whole(world: World, before: list[Any]) -> None:
    """All that was told is there again as it was, it went on, and each tool was run once."""
    await settled()
    facts = [fact async for fact in world.journal.facts("r")]
    assert facts[: len(before)] == before
    assert facts[-1].type is FactType.CONTINUATION_TAKEN
    assert world.ledger == {"pay": 1, "ask": 1}
    assert len(world.told) == 1
    entry = await world.journal.entry("r")
    assert entry.rewound is None
    assert not entry.busy
    assert await world.journal.check() == ()


ENDS = ((0, True), (2, True), (3, True), (0, False), (3, False))
"""Where appends ended: the turn with what it asks, the claim – apart or not – and its report."""


@pytest.mark.parametrize(("to", "apart"), ENDS)
def test_d_62_an_owner_keeps_its_tail_anew_and_goes_on(to: int, apart: bool) -> None:
    """However much is lost; nothing is paid again, and nobody need decide."""

    async def play() -> None:
        world, runtime = a_world(apart=apart)
        async with runtime:
            before = await paid(world, runtime)
            standby(world).fall_back(to)
            fence = (await world.journal.entry("r")).fence
            await approve(runtime)
            await whole(world, before)
            assert (await world.journal.entry("r")).fence > fence

    run(play())


def test_d_62_without_it_the_run_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: it is no accident of the journal that all is there again."""
    monkeypatch.setattr(Standby, "rewinds", False)

    async def play() -> None:
        world, runtime = a_world()
        async with runtime:
            before = await paid(world, runtime)
            standby(world).fall_back(len(before) - 2)
            with pytest.raises(JournalRewound):
                await approve(runtime)
            assert runtime.runs == ()

    run(play())


@pytest.mark.parametrize("lost", ["told by a renewal", "told by an append"])
def test_d_62_who_owned_the_run_may_be_lost_too(lost: str) -> None:
    """Then it looks taken over: but a token is never smaller than one that was given."""

    async def play() -> None:
        world, runtime = a_world()
        async with runtime:
            before = await paid(world, runtime)
            standby(world).fall_back(2, fence=0)
            if lost == "told by a renewal":
                await asyncio.sleep(LEASE)
                assert [fact async for fact in world.journal.facts("r")] == before
            await approve(runtime)
            await whole(world, before)

    run(play())


def test_d_62_a_mark_is_taken_off_by_who_has_all_of_it() -> None:
    """A journal that goes on from an older state may mark what was under way, lost or not."""

    async def play() -> None:
        world, runtime = a_world()
        async with runtime:
            before = await paid(world, runtime)
            await world.journal.mark_rewound("r", why="another server has taken over")
            await approve(runtime)
            await whole(world, before)

    run(play())


def test_d_62_notes_are_kept_anew_where_they_stood() -> None:
    """Between the facts, and behind the last."""

    def said(text: str, **more: Any) -> Note:
        return Note(domain=Domain.MESSAGE, kind="said", body={"text": text}, at=1.0, **more)

    async def play() -> None:
        world, runtime = a_world()
        async with runtime:
            await runtime.open_run(RUN)
            await runtime.note("r", said("one"), said("two"))
            before = await paid(world, runtime)
            await runtime.note("r", said("three", id="n3"))
            await runtime.note("r", said("four"))
            notes = await world.journal.notes("r")
            ledger = await world.journal.ledger("r")
            for left in (4, 3, 2, 0):
                standby(world).fall_back(len(before) if left > 2 else 0, notes=left)
                await world.journal.mark_rewound("r", why="another server has taken over")
                with pytest.raises(JournalError, match="deliver again"):
                    await runtime.note("r", said("five"))
                await settled()
                assert await world.journal.notes("r") == notes
                assert await world.journal.ledger("r") == ledger
            await approve(runtime)
            await whole(world, before)

    run(play())


def other_facts(journal: Standby) -> None:
    """Others have gone on from the older state."""
    journal.fall_back(3)
    facts = journal._runs["r"].facts
    facts[2] = changed(facts[2], at=1.0)


@pytest.mark.parametrize("why", ["its end was let go", "others went on", "another owns it"])
def test_d_62_where_nobody_has_the_tail_the_run_stands_still(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """What is ready in the new timeline is put to a person: nothing of it is run again."""
    if why == "its end was let go":
        monkeypatch.setattr(restoring, "HELD", 1)
        monkeypatch.setattr(restoring.Restoring.__init__, "__kwdefaults__", {"held": 1})

    async def play() -> None:
        world, runtime = a_world()
        async with runtime:
            await paid(world, runtime)
            happens: dict[str, Callable[[], None]] = {
                "its end was let go": lambda: standby(world).fall_back(2),
                "others went on": lambda: other_facts(standby(world)),
                "another owns it": lambda: standby(world).fall_back(2, fence=0),
            }
            happens[why]()
            if why == "another owns it":
                now = LoopClock().now()
                await world.journal.own("r", owner="another-host", now=now, lease=LEASE)
            with pytest.raises(TurnlockError):
                await approve(runtime)
            await settled()
            assert runtime.runs == ()
            assert world.ledger == {"pay": 1}
            if why != "another owns it":
                assert (await world.journal.entry("r")).rewound is not None

    run(play())


def test_d_62_what_was_kept_and_not_acknowledged_is_held_too() -> None:
    """The answer was lost, and the journal had it: it is told by looking, and lost afterwards."""

    async def play() -> None:
        journal = Standby()
        faulty = FaultyJournal(journal)
        world = World(journal=faulty)
        tools = world.tool("pay"), world.tool("ask", approval=True)
        async with world.process(*tools) as runtime:
            await runtime.open_run(RUN)
            faulty.fail("append", Fault.UNACKNOWLEDGED)
            with pytest.raises(JournalError):
                await runtime.open_turn("r", calls("pay", "ask"), turn_id="t1")
            await asyncio.sleep(1)
            before = [fact async for fact in faulty.facts("r")]
            journal.fall_back(0)
            await approve(runtime)
            await settled()
            assert [fact async for fact in faulty.facts("r")][: len(before)] == before
            assert world.ledger == {"pay": 1, "ask": 1}

    run(play())


def test_d_62_a_journal_that_fails_meanwhile_is_asked_again() -> None:
    """What is not known is neither run again nor given up."""

    class Fails(Standby):
        left = 3

        async def restore(self, run_id: str, **more: Any) -> int:
            if self.left:
                self.left -= 1
                raise JournalError("the server is away")
            return await super().restore(run_id, **more)

    async def play() -> None:
        world = World(journal=Fails())
        async with world.process(*tools_of(world)) as runtime:
            before = await paid(world, runtime)
            standby(world).fall_back(2)
            with pytest.raises(JournalError, match="away"):
                await approve(runtime)
            await asyncio.sleep(60)
            await approve(runtime)
            await whole(world, before)

    run(play())


def test_what_is_held_is_bounded() -> None:
    """Over all runs: the oldest goes first, and a run that was let go is not held."""

    async def play() -> None:
        journal: Journal = Standby()
        world = World(journal=journal)
        held = restoring.Restoring(
            journal=journal, owner="o", now=LoopClock().now, lease=LEASE, held=7
        )
        async with world.process(world.tool("pay")) as runtime:
            for name in ("a", "b"):
                await runtime.open_run(Run(run_id=name))
                await held.begin(name)
                await runtime.open_turn(name, calls("pay"), turn_id="t1")
                await settled()
                for fact in [fact async for fact in journal.facts(name)]:
                    held.told(name, facts=[fact])
                    assert held._held <= 7
        kept = {name: len(it.units) for name, it in held._histories.items()}
        assert sum(kept.values()) == 7
        assert kept["b"] > kept["a"]
        held.forget("b")
        assert "b" not in held._histories

    run(play())
