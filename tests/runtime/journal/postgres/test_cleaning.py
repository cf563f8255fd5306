"""Owners that are gone for long are removed, and never one that owns something (D-22, D-31)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

import asyncpg
import pytest

from turnlock import Run
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.postgres import cleaning
from turnlock.runtime.journal.postgres.cleaning import EVERY, KEPT, clean_owners
from turnlock.runtime.journal.postgres.doors import Connection
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.owning import Lease, owning
from turnlock.runtime.journal.postgres.url import place_of

from ....postgres.servers import journal_url
from ..stage import LEASE, NOW, OTHER, RUN, owned
from .between import Between

LATER = NOW + LEASE + KEPT + 1
"""When an owner of `NOW` is gone for long."""

WAITS: Final = 30.0
"""Seconds after which somebody should wait on a busy machine."""

Story = Callable[[PostgresJournal], Awaitable[None]]


def play(folder: Path, story: Story) -> None:
    async def run() -> None:
        async with await PostgresJournal.open(place_of(journal_url(folder))) as journal:
            await story(journal)

    asyncio.run(run())


@asynccontextmanager
async def connected(folder: Path) -> AsyncGenerator[Connection]:
    connection = await asyncpg.connect(place_of(journal_url(folder)).dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def names(folder: Path) -> list[str]:
    """Who has a row."""
    async with connected(folder) as connection:
        tables = place_of(journal_url(folder)).tables
        rows: Any = await connection.fetch(f"SELECT name FROM {tables.owners} ORDER BY number")  # noqa: S608 - ours
        return [name.decode() for (name,) in map(tuple, rows)]


async def was_there(journal: PostgresJournal, owner: str) -> None:
    """Somebody has owned a run, and has let it go."""
    fence = await owned(journal, Run(run_id=f"of-{owner}"), owner=owner)
    await journal.release(f"of-{owner}", fence=fence)


def test_who_is_gone_for_long_is_removed_at_a_renewal(tmp_path: Path) -> None:
    """Neither who owns something still, nor who was there lately; tokens go on where they were."""

    async def story(journal: PostgresJournal) -> None:
        await was_there(journal, "ada")
        await owned(journal, OTHER, owner="dead")
        await journal.declare(RUN)
        await journal.own(RUN.run_id, owner="eve", now=LATER, lease=LEASE)
        assert await journal.renew(owner="eve", now=LATER, lease=LEASE) == {RUN.run_id}
        assert await names(tmp_path) == ["dead", "eve"]
        assert (await journal.entry(OTHER.run_id)).owner == "dead"
        assert await journal.own("of-ada", owner="ada", now=LATER, lease=LEASE) == 2
        assert (await journal.entry("of-ada")).owner == "ada"

    play(tmp_path, story)


def test_who_was_removed_owns_nothing_when_it_renews(tmp_path: Path) -> None:
    async def story(journal: PostgresJournal) -> None:
        await was_there(journal, "ada")
        await journal.renew(owner="eve", now=LATER, lease=LEASE)
        assert await names(tmp_path) == []
        assert await journal.renew(owner="ada", now=LATER, lease=LEASE) == frozenset()

    play(tmp_path, story)


def test_few_are_removed_at_once_and_once_in_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaning, "MOST", 2)

    async def story(journal: PostgresJournal) -> None:
        for owner in "abcde":
            await was_there(journal, owner)
        for now, left in ((LATER, 3), (LATER + EVERY - 1, 3), (LATER + EVERY, 1)):
            await journal.renew(owner="eve", now=now, lease=LEASE)
            assert len(await names(tmp_path)) == left

    play(tmp_path, story)


def test_a_lease_is_renewed_though_nobody_can_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object, **__: object) -> int:
        raise JournalError("so")

    monkeypatch.setattr("turnlock.runtime.journal.postgres.runs.clean_owners", fails)

    async def story(journal: PostgresJournal) -> None:
        await owned(journal, RUN)
        assert await journal.renew(owner="ada", now=NOW, lease=LEASE) == {RUN.run_id}

    play(tmp_path, story)


def test_d_31_who_is_about_to_own_is_not_removed(tmp_path: Path) -> None:
    """Its row was read, and the run does not name it yet: without a lock nobody would own it."""

    async def story(journal: PostgresJournal) -> None:
        tables = place_of(journal_url(tmp_path)).tables
        await was_there(journal, "ada")
        async with connected(tmp_path) as taker, connected(tmp_path) as cleaner:
            removed: list[int] = []

            async def clean() -> None:
                async with cleaner.transaction():
                    removed.append(await clean_owners(cleaner, tables, now=LATER))

            between = cast("Connection", Between(taker, before=3, happens=clean))
            lease = Lease(run_id="of-ada", owner="ada", now=LATER, until=LATER + LEASE, gone=None)
            async with taker.transaction():
                (outcome,) = await owning(tables)(between, [lease])
            assert outcome.error is None
            assert removed == [0]
        assert (await journal.entry("of-ada")).owner == "ada"

    play(tmp_path, story)


def test_d_31_who_is_being_removed_owns_under_a_row_that_is_new(tmp_path: Path) -> None:
    """It waits until it is removed, and is written down again."""

    async def story(journal: PostgresJournal) -> None:
        tables = place_of(journal_url(tmp_path)).tables
        await was_there(journal, "ada")
        taking: list[asyncio.Task[int]] = []
        async with connected(tmp_path) as cleaner, connected(tmp_path) as watcher:

            async def take() -> None:
                own = journal.own("of-ada", owner="ada", now=LATER, lease=LEASE)
                taking.append(asyncio.create_task(own))
                async with asyncio.timeout(WAITS):
                    while not await watcher.fetchval(  # noqa: ASYNC110 - nobody tells
                        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE"
                        " wait_event_type = 'Lock' AND position($1 IN query) > 0)",
                        tables.owners,
                    ):
                        await asyncio.sleep(0.01)

            async with cleaner.transaction():
                between = cast("Connection", Between(cleaner, before=2, happens=take))
                assert await clean_owners(between, tables, now=LATER) == 1
        assert await taking[0] == 2
        assert (await journal.entry("of-ada")).owner == "ada"

    play(tmp_path, story)
