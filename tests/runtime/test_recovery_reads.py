"""What a recovery reads: the facts behind the snapshot, however long the run is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from turnlock import Claim, Delivery, Fact, Kernel, OpenTurn, Report, Run
from turnlock.models.deliveries import Acknowledge
from turnlock.runtime import submitting
from turnlock.runtime.journal.contract import Appended, Journal, RunEntry
from turnlock.runtime.journal.memory import MemoryJournal
from turnlock.runtime.journal.sqlite import SqliteJournal
from turnlock.runtime.settings import Settings
from turnlock.runtime.submitting import SNAPSHOT_EVERY, SharedRun

from .test_listing import Counted
from .test_runtime import RUN, World, calls
from .virtual import run, settled

FACTS = 50_000
TURN = 5
"""Facts of a turn of one call."""


def turn(number: int) -> list[Delivery]:
    """What brings a whole turn of one call."""
    turn_id = f"t{number}"
    return [
        OpenTurn(turn_id=turn_id, calls=tuple(calls("a"))),
        Claim(turn_id=turn_id, invocation_id="a", attempt=1, worker="me"),
        Report(turn_id=turn_id, invocation_id="a", attempt=1, result=1),
        Acknowledge(turn_id=turn_id),
    ]


def long_run() -> Iterator[Fact]:
    """The facts of so many turns, ten minutes apart."""
    kernel = Kernel(RUN)
    for number in range(FACTS // TURN):
        for delivery in turn(number):
            yield from kernel.receive(delivery, 600.0 * number).facts


async def _filled(journal: Journal) -> None:
    await journal.declare(RUN)
    for page in _pages(long_run(), 1_000):
        after = page[0].sequence - 1
        kept = await journal.append("r", fence=None, after=after, facts=page, busy=False)
        assert kept is Appended.OK


def _pages(facts: Iterator[Fact], size: int) -> Iterator[list[Fact]]:
    page: list[Fact] = []
    for fact in facts:
        page.append(fact)
        if len(page) == size:
            yield page
            page = []
    if page:
        yield page


def test_fifty_thousand_facts_are_read_once(tmp_path: Path) -> None:
    """Whoever opens the run next reads what is behind the snapshot, owner or not."""

    async def play() -> None:
        async with await SqliteJournal.open(tmp_path / "a.db") as inner:
            await _filled(inner)
            journal = Counted(inner)
            shared = await SharedRun.open(journal, "r", policies={})
            assert journal.facts_read == FACTS  # no snapshot yet: the negative control
            await shared.submit(*turn(FACTS))
            assert (await journal.entry("r")).snapped == FACTS + TURN
            journal.facts_read = 0

            again = await SharedRun.open(journal, "r", policies={})
            assert again.kernel.snapshot() == shared.kernel.snapshot()
            world = World(journal=journal)
            async with world.process(world.tool("a")) as runtime:
                await runtime.open_run(RUN)
                assert journal.facts_read == 0
                await runtime.close_run("r")
                await runtime.open_run(RUN)
                assert journal.facts_read == 1  # whether what it had acknowledged is there still
                await runtime.view("r")
                assert journal.facts_read == 2  # the view's latest

    asyncio.run(play())


def test_a_run_that_is_opened_again_and_again_stays_quick_to_open() -> None:
    """Its owners bring less than is between two snapshots, and still one is kept in time."""

    async def play() -> None:
        journal = Counted(MemoryJournal())
        world = World(journal=journal)
        settings = Settings(snapshot_every=20)
        most = 0
        for number in range(40):
            async with world.process(world.tool("a"), settings=settings) as runtime:
                journal.facts_read = 0
                await runtime.open_run(RUN)
                most = max(most, journal.facts_read)
                await runtime.open_turn("r", calls("a"), turn_id=f"t{number}")
                await settled()
        assert (await journal.entry("r")).sequence == 40 * TURN
        assert most < 20 + 2 * TURN

    run(play())


class Unsnapped(Counted):
    """Tells every writer that the snapshot is as new as the run is: as it took it to be before."""

    async def entry(self, run_id: str) -> RunEntry:
        entry = await self.inner.entry(run_id)
        return attrs.evolve(entry, snapped=entry.sequence)


@pytest.mark.parametrize(("kind", "is_flat"), [(Counted, True), (Unsnapped, False)])
def test_a_shared_run_whose_writers_come_and_go_stays_quick_to_open(
    monkeypatch: pytest.MonkeyPatch, kind: type[Counted], *, is_flat: bool
) -> None:
    """None of them brings enough for a snapshot; together they do."""
    monkeypatch.setattr(submitting, "SNAPSHOT_EVERY", 20)

    async def play() -> None:
        journal = kind(MemoryJournal())
        await journal.declare(RUN)
        most = 0
        for number in range(40):
            journal.facts_read = 0
            shared = await SharedRun.open(journal, "r", policies={})
            most = max(most, journal.facts_read)
            await shared.submit(*turn(number))

        assert (most < 20 + TURN) is is_flat

    run(play())


def test_a_large_turn_of_a_shared_run_is_not_copied_again_and_again() -> None:
    """As of an owned one: a snapshot costs as much as the turn is large."""

    async def play() -> None:
        journal = MemoryJournal()
        await journal.declare(Run(run_id="r"))
        shared = await SharedRun.open(journal, "r", policies={})
        names = [f"call {number}" for number in range(SNAPSHOT_EVERY)]
        await shared.submit(OpenTurn(turn_id="t", calls=tuple(calls(*names))))
        claims = [Claim(turn_id="t", invocation_id=name, attempt=1, worker="me") for name in names]
        await shared.submit(*claims)
        assert (await journal.entry("r")).snapped == 0

    run(play())
