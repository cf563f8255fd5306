"""A process that is forked while a journal is open: it says nothing on its parent's connections."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from turnlock import Run
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Journal, open_journal

from ....postgres.servers import journal_url
from ..stage import NOW, RUN, everything, facts, kept, owned
from ..test_forked import Child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")


async def tried(journal: Journal) -> list[str]:
    """What a child is told that goes on with its parent's journal, and closes it."""
    asks: list[Callable[[], Awaitable[object]]] = [
        lambda: journal.entry(RUN.run_id),
        lambda: journal.declare(Run(run_id="child")),
        lambda: journal.release(RUN.run_id, fence=1),
        lambda: journal.append(RUN.run_id, fence=1, after=1, facts=facts(1, after=1), busy=True),
        lambda: journal.own(RUN.run_id, owner="child", now=NOW, lease=1.0),
        journal.gauges,
    ]
    told: list[str] = []
    for ask in asks:
        try:
            told.append(repr(await ask()))
        except JournalError as error:
            told.append(str(error))
    await journal.close()
    return told


async def anew(url: str) -> list[str]:
    """What a child writes that opens the journal anew."""
    async with await open_journal(url) as journal:
        await journal.declare(Run(run_id="child"))
        return [entry.run.run_id async for entry in journal.run_entries()]


def test_a_child_is_told_to_open_it_anew(tmp_path: Path) -> None:
    """Its parent goes on, undisturbed; and so does a child that does what it was told."""

    async def story() -> None:
        url = journal_url(tmp_path)
        async with await open_journal(url) as journal:
            fence = await owned(journal)
            await kept(journal, facts(1), fence)

            told = await asyncio.to_thread(Child(lambda _: asyncio.run(tried(journal))).ends)
            assert len(told) == 6
            for error in told:
                assert "was opened by the process from which this one was forked" in error
                assert "open it anew in this process" in error
            child = Child(lambda _: asyncio.run(anew(url)))
            assert await asyncio.to_thread(child.ends) == [RUN.run_id, "child"]

            await kept(journal, facts(1, after=1), fence)
            assert await everything(journal) == facts(2)

    asyncio.run(story())
