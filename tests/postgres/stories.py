"""What is told of faults: a journal on a server of a test's own, facts, and what is read."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import attrs

from turnlock import Run
from turnlock.models.fact import Fact
from turnlock.models.facts import TurnSealed
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.url import ANSWER, place_of

from .servers import with_options

RUN: Final = Run(run_id="r")
APPEND: Final = r"INSERT INTO .*appends"
"""What every statement has that keeps facts."""
PATIENCE: Final = 60.0


@asynccontextmanager
async def opened(url: str, **options: str) -> AsyncGenerator[PostgresJournal]:
    """A journal in the default schema of a server, which may be one that syncs nothing."""
    place = place_of(with_options(url, **{"unsafe": "on", "poll": "0.05", **options}))
    async with await PostgresJournal.open(place) as journal:
        yield journal


def set_patience(journal: PostgresJournal, seconds: float = ANSWER) -> None:
    """Wait for an answer so long from now on, also over the connection that appends.

    What is done before and after has all its time, however busy the machine is.
    """
    database = journal._database
    patient = attrs.evolve(database.place, answer_within=seconds)
    setattr(database, "place", patient)  # noqa: B010 - it is nobody's to change otherwise
    for lane in database._facts:
        if lane._link is not None:
            lane._link.answer_within = seconds


async def owned(journal: PostgresJournal, run: Run = RUN, *, lease: float = 3_600.0) -> int:
    """Declare a run, and take it."""
    await journal.declare(run)
    return await journal.own(run.run_id, owner="ada", now=journal.time(), lease=lease)


def fact(number: int, run: Run = RUN, *, turn_id: str = "t") -> Fact:
    """The fact of this number, a commit by itself."""
    return TurnSealed(run_id=run.run_id, sequence=number, commit=number, at=1.0, turn_id=turn_id)


async def append(journal: PostgresJournal, number: int, *, fence: int, run: Run = RUN) -> Appended:
    """Append the fact of this number."""
    told = [fact(number, run)]
    return await journal.append(run.run_id, fence=fence, after=number - 1, facts=told, busy=True)


async def read(journal: PostgresJournal, run: Run = RUN) -> Sequence[int]:
    """The numbers of all facts that are there."""
    found = [it.sequence async for it in journal.facts(run.run_id)]
    assert found == list(range(1, len(found) + 1))
    return found


async def sooner_or_later(reached: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it is so."""
    until = time.monotonic() + PATIENCE
    while not await reached():
        assert time.monotonic() < until, reached
        await asyncio.sleep(0.01)
