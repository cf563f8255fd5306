"""What a session is given, through a pooler and without one; and what a new timeline means."""

# Looks inside: at what a statement says.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Appended, open_journal
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.links import Link, open_link
from turnlock.runtime.journal.postgres.timeline import note_timeline
from turnlock.runtime.journal.postgres.url import place_of

from ....postgres.servers import journal_url
from ....postgres.stories import sooner_or_later
from ..stage import RUN, everything, facts, kept, note, owned

SETTINGS = ("synchronous_commit", "statement_timeout", "lock_timeout", "transaction_isolation")
WANTED = ["on", "0", "0", "read committed"]


def another_pid(_: object) -> int:
    """What a pooler gives for the server's process."""
    return 0


async def settings_of(connection: Any) -> list[str]:
    return [await connection.fetchval(f"SHOW {name}") for name in SETTINGS]


async def hostile(url: str) -> str:
    """A role whose settings lose what was acknowledged, and end what takes long."""
    schema = place_of(url).tables.schema
    connection = await asyncpg.connect(place_of(url).dsn)
    await connection.execute(
        f"CREATE ROLE r{schema} SUPERUSER LOGIN; ALTER ROLE r{schema} SET synchronous_commit = off;"
        f" ALTER ROLE r{schema} SET statement_timeout = '50s';"
        f" ALTER ROLE r{schema} SET lock_timeout = '50s';"
        f" ALTER ROLE r{schema} SET default_transaction_isolation = serializable"
    )
    await connection.close()
    return url.replace("//postgres@", f"//r{schema}@")


async def no_role(url: str) -> None:
    connection = await asyncpg.connect(place_of(url).dsn)
    await connection.execute(f"DROP ROLE r{place_of(url).tables.schema}")
    await connection.close()


@pytest.mark.parametrize("pooled", [False, True])
def test_d_36_what_a_transaction_needs_is_set_whatever_the_role_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pooled: bool
) -> None:
    """By the session; through a pooler by each transaction, and nothing is left there (D-59)."""
    if pooled:
        monkeypatch.setattr(asyncpg.Connection, "get_server_pid", another_pid)
    url = journal_url(tmp_path)

    async def run() -> None:
        link: Link = await open_link(place_of(await hostile(url)))
        assert link.pooled is pooled
        assert await link.transaction(settings_of) == WANTED
        assert await link.single(settings_of) == WANTED
        outside = await settings_of(link.connection)
        assert outside == (["off", "50s", "50s", "serializable"] if pooled else WANTED)
        await link.close()
        await no_role(url)

    asyncio.run(run())


def test_d_59_a_journal_works_through_a_pooler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without prepared statements, and without listening, which is said."""
    monkeypatch.setattr(asyncpg.Connection, "get_server_pid", another_pid)

    async def run() -> None:
        async with await open_journal(journal_url(tmp_path, prepared="off")) as journal:
            fence = await owned(journal)
            await kept(journal, facts(2), fence)
            answer = await journal.append(
                RUN.run_id, fence=fence, after=2, facts=facts(1, after=2), busy=True,
                notes=[note(id="n")],
            )  # fmt: skip
            assert answer is Appended.OK
            assert await everything(journal) == facts(3)
            while not caplog.messages:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
            assert not journal.hears

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert "not listened to through a pooler" in caplog.messages[0]


def test_d_62_a_new_timeline_is_told_and_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once: whoever comes next knows it."""
    url = journal_url(tmp_path)

    async def run() -> None:
        await (await open_journal(url)).close()
        place = place_of(url)
        connection = await asyncpg.connect(place.dsn)
        found = await connection.fetchval(f"SELECT timeline FROM {place.tables.meta}")  # noqa: S608
        assert found == 1
        await connection.execute(f"UPDATE {place.tables.meta} SET timeline = 7")  # noqa: S608
        for _ in range(2):
            async with await PostgresJournal.open(place) as journal:
                await journal.declare(RUN)
        assert await connection.fetchval(f"SELECT timeline FROM {place.tables.meta}") == 1  # noqa: S608
        await connection.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert [it for it in caplog.messages if "timeline 1, and was on 7" in it] == caplog.messages
    assert len(caplog.messages) == 1


def test_d_62_a_new_timeline_is_told_once_by_connections_that_come_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Both see the former one, and only one of them changes it."""
    place = place_of(journal_url(tmp_path))
    meta = place.tables.meta

    async def run() -> None:
        await (await PostgresJournal.open(place)).close()
        links = [await open_link(place) for _ in range(2)]
        person: Any = await asyncpg.connect(place.dsn)

        async def both_wait() -> bool:
            found: int = await person.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                " AND pid = ANY ($1)",
                [it.connection.get_server_pid() for it in links],
            )
            return found == len(links)

        await person.execute(f"UPDATE {meta} SET timeline = 7")  # noqa: S608
        await person.execute(f"BEGIN; SELECT FROM {meta} FOR UPDATE")
        notes = [asyncio.create_task(note_timeline(it, place.tables, place.shown)) for it in links]
        await sooner_or_later(both_wait)
        await person.execute("COMMIT")
        assert sorted(await asyncio.gather(*notes)) == [False, True]
        for it in links:
            await it.close()
        await person.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert len(caplog.messages) == 1


def test_d_59_a_pooler_that_mixes_up_prepared_statements_is_told_of(tmp_path: Path) -> None:
    """As PgBouncer before 1.21 does in transaction mode."""

    async def story() -> None:
        async with await PostgresJournal.open(place_of(journal_url(tmp_path))) as journal:
            with pytest.raises(JournalError, match=r"does not exist \(26000\); .*prepared=off"):
                await journal._read(lambda it: it.execute("EXECUTE nobody"))

    asyncio.run(story())
