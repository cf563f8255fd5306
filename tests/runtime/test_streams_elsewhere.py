"""Who follows a run is told of all its facts, whoever performs it; nobody waits for ever."""

# Looks inside: who performs what, and what is followed.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from turnlock import Fact, FactType, Run
from turnlock.runtime.errors import JournalError, JournalOwned
from turnlock.runtime.journal.contract import PAGE
from turnlock.runtime.journal.ledger import Cursor
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.streams import Streams

from .faulty_journal import WrappedJournal
from .test_runtime import RUN, World, calls
from .virtual import run, settled


async def followed(runtime: Runtime, last: FactType, *, within: float = 60.0) -> list[int]:
    """Follow the run to a fact of this type; return the sequences."""
    seen: list[int] = []

    async def follow() -> None:
        facts = runtime.subscribe("r")
        async for fact in facts:
            seen.append(fact.sequence)
            if fact.type is last:
                break
        await facts.aclose()

    await asyncio.wait_for(follow(), within)
    return seen


async def looked_on(world: World) -> list[int]:
    """Have one process follow what another performs: the approval comes after it has begun to."""
    pay = world.tool("pay", approval=True)
    async with world.process(pay) as owner, world.process() as other:
        await owner.open_run(RUN)
        await owner.open_turn("r", calls("pay"), turn_id="t1")
        following = asyncio.ensure_future(followed(other, FactType.CONTINUATION_TAKEN))
        await asyncio.sleep(5)
        await owner.approve("r", turn_id="t1", invocation_id="pay")
        return await following


def test_who_follows_what_another_process_performs_sees_it_go_on() -> None:
    """Each fact once, in order, from the journal."""

    async def play() -> None:
        world = World()
        seen = await looked_on(world)

        assert seen == list(range(1, len(await world.facts()) + 1))

    run(play())


def test_without_a_look_at_the_journal_it_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""

    async def never(*_: object, **__: object) -> None:
        """Do not look."""

    monkeypatch.setattr(Streams, "_look", never)
    with pytest.raises(TimeoutError):
        run(looked_on(World()))


def test_who_lets_a_run_go_follows_its_next_owner() -> None:
    """The subscription of who performed it goes on where its own facts end."""

    async def play() -> None:
        world = World()
        pay = world.tool("pay", approval=True)
        async with world.process(pay) as first, world.process(pay) as second:
            await first.open_run(RUN)
            await first.open_turn("r", calls("pay"), turn_id="t1")
            following = asyncio.ensure_future(followed(first, FactType.CONTINUATION_TAKEN))
            await settled()
            await first.close_run("r")
            await second.open_run(RUN)
            await second.approve("r", turn_id="t1", invocation_id="pay")

            assert await following == list(range(1, len(await world.facts()) + 1))
            assert not first._streams._facts

    run(play())


class Failing(WrappedJournal):
    """Does not say where runs end, nor what is in them, once it fails."""

    fails = False

    async def ends(self, run_ids: Sequence[str]) -> Mapping[str, Cursor]:
        if self.fails:
            raise JournalError("the disk is gone")
        return await super().ends(run_ids)

    async def read(self, run_id: str, *, after: int = 0, limit: int = PAGE) -> tuple[Fact, ...]:
        if self.fails:
            raise JournalError("the disk is gone")
        return await super().read(run_id, after=after, limit=limit)


def test_who_follows_is_told_that_the_journal_fails() -> None:
    """By what the journal raises to him."""

    async def play() -> None:
        journal = Failing(MemoryJournal())
        world = World(journal=journal)
        async with world.process() as other:
            await journal.declare(RUN)
            following = asyncio.ensure_future(followed(other, FactType.TURN_OPENED))
            await asyncio.sleep(5)
            journal.fails = True
            with pytest.raises(JournalError, match="the disk is gone"):
                await following

    run(play())


def test_two_owners_who_want_each_others_runs_are_refused_at_once() -> None:
    """Nobody waits: each hears who has it and until when, and gets it when it is let go."""

    async def play() -> None:
        world = World()
        other = Run(run_id="s")
        async with world.process() as ada, world.process() as bob:
            await ada.open_run(RUN)
            await bob.open_run(other)
            began = asyncio.get_running_loop().time()
            for runtime, wanted, owner in ((ada, other, bob), (bob, RUN, ada)):
                with pytest.raises(JournalOwned, match=rf"{owner.owner} owns it until"):
                    await runtime.open_run(wanted)
            assert asyncio.get_running_loop().time() == began

            await ada.close_run("r")
            await bob.open_run(RUN)

            assert (ada.runs, bob.runs) == ((), ("s", "r"))

    run(play())
