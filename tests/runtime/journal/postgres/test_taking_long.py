"""What may take longer than an answer: a list of many runs, what is large, to remove much."""

# Looks inside: at a lane.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import attrs
import pytest

from turnlock import Run
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import RunsPage
from turnlock.runtime.journal.postgres import latest
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.lanes import Kind, Outcome
from turnlock.runtime.journal.postgres.url import place_of

from ....postgres.servers import journal_url, url
from ..forgetting import ended
from ..stage import LEASE, NOW, RUN, owned

ANSWER = 2.0
"""Seconds for which these journals wait for an answer: all else is quicker on a busy machine."""
LONGER = f"SELECT pg_sleep({1.3 * ANSWER})"


def play(
    folder: Path, story: Callable[[PostgresJournal], Awaitable[None]], *, within: float = ANSWER
) -> None:
    async def run() -> None:
        place = attrs.evolve(place_of(journal_url(folder)), answer_within=within)
        async with await PostgresJournal.open(place) as journal:
            await story(journal)

    asyncio.run(run())


def test_a_list_may_take_longer_than_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = latest.latest

    async def slow(connection: Any, *args: Any, **more: Any) -> RunsPage:
        await connection.execute(LONGER)
        return await real(connection, *args, **more)

    monkeypatch.setattr(latest, "latest", slow)

    async def story(journal: PostgresJournal) -> None:
        await journal.declare(RUN)
        assert len((await journal.latest()).entries) == 1

    play(tmp_path, story)


def test_to_remove_a_run_may_take_longer_and_no_lease_waits_for_it(tmp_path: Path) -> None:
    """Somebody holds the run's row meanwhile, as a removal that takes long would."""

    async def story(journal: PostgresJournal) -> None:
        await ended(journal)
        await owned(journal, Run(run_id="mine"))
        person = await asyncpg.connect(url())
        try:
            await person.execute("BEGIN")
            await person.execute(
                f"SELECT FROM {place_of(journal_url(tmp_path)).tables.runs} FOR UPDATE"
            )
            removing = asyncio.create_task(journal.forget(RUN.run_id, fence=1, after=3, at=NOW))
            for _ in range(2):
                await asyncio.sleep(0.7 * ANSWER)
                assert await journal.renew(owner="ada", now=NOW, lease=LEASE) == {"mine"}
            assert not removing.done()
            await person.execute("COMMIT")
            await removing
        finally:
            await person.close()
        assert (await journal.entry(RUN.run_id)).forgotten == NOW

    play(tmp_path, story)


def test_a_journal_is_closed_once_what_takes_long_is_done(tmp_path: Path) -> None:
    """It was asked for before, as whatever waits in a lane was."""

    async def story(journal: PostgresJournal) -> None:
        await ended(journal)
        removing = asyncio.create_task(journal.forget(RUN.run_id, fence=1, after=3, at=NOW))
        await asyncio.sleep(0)
        await journal.close()
        await removing

    play(tmp_path, story, within=10.0)


@pytest.mark.parametrize("single", [True, False])
def test_d_36_what_is_large_is_waited_for_longer(tmp_path: Path, *, single: bool) -> None:
    """A slow way takes its time for fifty megabytes; what is small is waited for as ever."""

    async def slow(connection: Any, works: Any) -> list[Outcome]:
        await connection.execute(LONGER)
        return [Outcome("done") for _ in works]

    async def story(journal: PostgresJournal) -> None:
        kind = Kind(slow, single=single)
        assert await journal._database.do(kind, None, size=50_000_000) == "done"
        with pytest.raises(JournalError):
            await journal._database.do(kind, None, size=100)

    play(tmp_path, story)
