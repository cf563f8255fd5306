"""The faulty journal fails as planned, and otherwise keeps the contract."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.memory import MemoryJournal

from .faulty_journal import Fault, FaultyJournal
from .journal.contract import JournalContract
from .journal.stage import RUN, everything, facts, kept, owned

Told = Callable[[FaultyJournal], Awaitable[None]]


class TestFaultyJournal(JournalContract):
    """With nothing planned it is a journal like any other."""

    async def open_journal(self, place: Path) -> FaultyJournal:
        return FaultyJournal(MemoryJournal())


def play(story: Told) -> None:
    """Tell a story on a journal in which one fact is kept."""

    async def run() -> None:
        journal = FaultyJournal(MemoryJournal())
        await kept(journal, facts(1), await owned(journal))
        await story(journal)

    asyncio.run(run())


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.FULL, Fault.LOCKED])
def test_an_error_before_the_commit_keeps_nothing(fault: Fault) -> None:
    """Once, and the next call works."""

    async def story(journal: FaultyJournal) -> None:
        journal.fail("append", fault)
        with pytest.raises(JournalError, match=fault.value):
            await kept(journal, facts(1, after=1), 1)
        assert await everything(journal) == facts(1)
        await kept(journal, facts(1, after=1), 1)

    play(story)


def test_a_lost_acknowledgement_is_no_lost_append() -> None:
    """It was kept, and the error does not say so."""

    async def story(journal: FaultyJournal) -> None:
        journal.fail("append", Fault.UNACKNOWLEDGED)
        with pytest.raises(JournalError, match="not known"):
            await kept(journal, facts(1, after=1), 1)
        assert await everything(journal) == facts(2)

    play(story)


@pytest.mark.parametrize(
    ("fault", "answer"), [(Fault.FENCED, Appended.FENCED), (Fault.CONFLICT, Appended.CONFLICT)]
)
def test_an_answer_can_be_planned(fault: Fault, answer: Appended) -> None:
    """Nothing is kept, as with a true one."""

    async def story(journal: FaultyJournal) -> None:
        journal.fail("append", fault)
        told = facts(1, after=1)
        said = await journal.append(RUN.run_id, fence=1, after=1, facts=told, busy=True)
        assert said is answer
        assert await everything(journal) == facts(1)

    play(story)


@pytest.mark.parametrize(("fault", "while_waiting"), [(Fault.DELAYED, 1), (Fault.HELD, 2)])
def test_a_slow_journal_waits_for_its_gate(fault: Fault, while_waiting: int) -> None:
    """Before the commit, or between the commit and the answer."""

    async def story(journal: FaultyJournal) -> None:
        journal.plan["append", 2] = fault
        begun = asyncio.create_task(kept(journal, facts(1, after=1), 1))
        for _ in range(5):
            await asyncio.sleep(0)
        assert await everything(journal) == facts(while_waiting)
        assert not begun.done()

        journal.gate.set()
        await begun
        assert await everything(journal) == facts(2)
        assert journal.calls["append"] == 2

    play(story)
