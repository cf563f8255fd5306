"""Tables as each version has made them, with a host of that version beside one of today (D-57)."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from turnlock import Run
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Summary, open_journal
from turnlock.runtime.journal.postgres import migrating
from turnlock.runtime.journal.postgres.tables import MIGRATIONS, Tables
from turnlock.runtime.journal.postgres.url import place_of
from turnlock.views.status import Status

from ....postgres.servers import journal_url
from ..latest_runs import IDLE, asks, listed, says

DAY = 86_400.0
STOPPED = Summary(busy=False, status=Status.INTERRUPTED, waiting=0, doubts=0)
OLD = """
    UPDATE {runs} r SET sequence = 2, told = 2, changed = $2, status = $3
    WHERE run_id = convert_to($1, 'UTF8')"""
"""What version 1 says of a run at each append, beside the facts."""


async def as_version_1(folder: Path, changed: dict[str, float]) -> None:
    """Make the tables as version 1 did, with runs that changed then, in this order."""
    tables = place_of(journal_url(folder)).tables
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(migrating, "MIGRATIONS", MIGRATIONS[:1])
        await (await open_journal(journal_url(folder))).close()
        async with await open_journal(journal_url(folder)) as journal:
            for run_id in changed:
                await journal.declare(Run(run_id=run_id))
    for run_id, at in changed.items():
        await changed_by_version_1(folder, tables, run_id, at)


async def changed_by_version_1(
    folder: Path, tables: Tables, run_id: str, at: float, status: Status = Status.IDLE
) -> None:
    connection: Any = await asyncpg.connect(place_of(journal_url(folder)).dsn)
    try:
        await connection.execute(OLD.format(runs=tables.runs), run_id, at, str(status))
    finally:
        await connection.close()


def test_d_57_tables_of_version_1_are_brought_up_to_date(tmp_path: Path) -> None:
    """No row of them is written; the list is as it was, and what changes since is on its top."""
    url = journal_url(tmp_path)

    async def story() -> None:
        await as_version_1(tmp_path, {"b": 2 * DAY, "c": 3 * DAY, "a": DAY})
        with pytest.raises(JournalError, match="of version 1, and this turnlock reads 3"):
            await open_journal(url, read_only=True)
        async with await open_journal(url) as journal:
            for limit in (1, 2, 50):
                assert await listed(journal, limit=limit) == ["c", "b", "a"]
            await says(journal, "new", IDLE, at=3 * DAY + 1)
            await journal.declare(Run(run_id="unborn"))
            await says(journal, "waits", asks(4 * DAY), at=4 * DAY)
            for limit in (1, 2, 50):
                assert await listed(journal, limit=limit) == [
                    "waits", "new", "c", "b", "a", "unborn",
                ]  # fmt: skip
        async with await open_journal(url, read_only=True) as journal:
            assert len(await listed(journal)) == 6

    asyncio.run(story())


@pytest.mark.parametrize(("version", "waits"), [(2, True), (3, False)])
def test_d_56_who_reads_waits_for_no_index(tmp_path: Path, version: int, *, waits: bool) -> None:
    """While a million runs are gone through for it; for a column everybody waits, and not long."""
    place = place_of(journal_url(tmp_path))

    async def story() -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(migrating, "MIGRATIONS", MIGRATIONS[: version - 1])
            await (await open_journal(journal_url(tmp_path))).close()
        migrates: Any = await asyncpg.connect(place.dsn)
        reads: Any = await asyncpg.connect(place.dsn)
        await migrates.execute("BEGIN")
        await migrates.execute(";\n".join(MIGRATIONS[version - 1](place.tables)))
        await reads.execute("SET lock_timeout = '100ms'")
        with pytest.raises(asyncpg.LockNotAvailableError) if waits else nullcontext():
            await reads.execute(f"SELECT FROM {place.tables.runs}, {place.tables.posts}")
        await migrates.close()
        await reads.close()

    asyncio.run(story())


def test_d_57_a_host_of_version_1_goes_on_beside(tmp_path: Path) -> None:
    """What it writes is listed, once, lower than it should until somebody of today writes it."""
    url = journal_url(tmp_path)

    async def story() -> None:
        tables = place_of(url).tables
        await as_version_1(tmp_path, {"a": DAY, "b": 2 * DAY})
        async with await open_journal(url) as journal:
            await says(journal, "x", IDLE, at=3 * DAY)
            await says(journal, "y", IDLE, at=4 * DAY)
            await changed_by_version_1(tmp_path, tables, "x", 5 * DAY)
            await changed_by_version_1(tmp_path, tables, "a", 6 * DAY)
            for limit in (1, 2, 3, 50):
                assert await listed(journal, limit=limit) == ["y", "x", "a", "b"]
            await says(journal, "x", IDLE, at=7 * DAY, after=2)
            assert await listed(journal, limit=1) == ["x", "y", "a", "b"]

    asyncio.run(story())


def test_d_57_runs_that_version_1_left_interrupted_are_found(tmp_path: Path) -> None:
    """By their status; of one that it interrupts beside us it is told once somebody writes it."""
    url = journal_url(tmp_path)

    async def story() -> None:
        tables = place_of(url).tables
        await as_version_1(tmp_path, {"a": DAY, "b": 2 * DAY, "c": 3 * DAY})
        for run_id, at in (("a", 4 * DAY), ("c", 3 * DAY)):
            await changed_by_version_1(tmp_path, tables, run_id, at, Status.INTERRUPTED)
        async with await open_journal(url) as journal:

            async def interrupted() -> list[str]:
                page = await journal.latest(status=Status.INTERRUPTED)
                return [it.run.run_id for it in page.entries]

            assert await interrupted() == ["a", "c"]
            await changed_by_version_1(tmp_path, tables, "a", 5 * DAY)
            await changed_by_version_1(tmp_path, tables, "b", 6 * DAY, Status.INTERRUPTED)
            assert await interrupted() == ["c"]
            await says(journal, "b", STOPPED, at=7 * DAY, after=2)
            assert await interrupted() == ["b", "c"]
            await says(journal, "c", IDLE, at=8 * DAY, after=2)
            assert await interrupted() == ["b"]

    asyncio.run(story())


@pytest.mark.parametrize("at", [-1e300, -1.0, 0.0, 599.9, 1e18, 1e300])
def test_any_time_has_a_period(tmp_path: Path, at: float) -> None:
    """A clock that is far off keeps no fact from being kept, and no run from the list."""

    async def story() -> None:
        async with await open_journal(journal_url(tmp_path)) as journal:
            await says(journal, "r", IDLE, at=at)
            await says(journal, "s", IDLE, at=600.0)
            found = await listed(journal, limit=1)
            assert found == (["r", "s"] if at > 600.0 else ["s", "r"])

    asyncio.run(story())
