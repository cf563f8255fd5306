"""How the tables of a journal are made, and which servers and tables are refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest

from turnlock import Run
from turnlock.runtime.errors import JournalError, NoJournal
from turnlock.runtime.journal.contract import open_journal
from turnlock.runtime.journal.postgres.tables import MIGRATIONS, Tables
from turnlock.runtime.journal.postgres.url import place_of

from ....postgres.servers import journal_url, with_options


async def sql(url: str, statement: str) -> None:
    connection = await asyncpg.connect(place_of(url).dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def made(url: str) -> None:
    await (await open_journal(url)).close()


def tables(url: str) -> Tables:
    return place_of(url).tables


def test_d_56_many_make_it_at_once(tmp_path: Path) -> None:
    """One does, the others wait for it; and each can write."""
    url = journal_url(tmp_path)

    async def opens(n: int) -> None:
        async with await open_journal(url) as journal:
            await journal.declare(Run(run_id=f"run-{n}"))

    async def run() -> None:
        await asyncio.gather(*map(opens, range(6)))
        async with await open_journal(url, create=False) as journal:
            assert len(await journal.runs()) == 6

    asyncio.run(run())


def test_what_must_be_there_is_not_made(tmp_path: Path) -> None:
    url = journal_url(tmp_path)
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(NoJournal, match=r"there is none in this schema; .*journal init"):
            asyncio.run(_opened(url, **options))


async def _opened(url: str, **options: bool) -> None:
    await (await open_journal(url, **options)).close()


def test_d_57_tables_of_a_newer_version_are_refused_by_name(tmp_path: Path) -> None:
    url, newer = journal_url(tmp_path), len(MIGRATIONS) + 1

    async def run() -> None:
        await made(url)
        await sql(url, f"UPDATE {tables(url).meta} SET version = {newer}")  # noqa: S608
        for options in ({}, {"read_only": True}):
            with pytest.raises(JournalError, match=f"of version {newer}, and this turnlock knows"):
                await _opened(url, **options)

    asyncio.run(run())


def test_d_5_names_of_schemas_are_quoted(tmp_path: Path) -> None:
    """Also one that would be another statement, without being quoted."""
    name = 'We"ird;DROP'
    url = with_options(journal_url(tmp_path), schema=name)

    async def run() -> None:
        try:
            async with await open_journal(url) as journal:
                await journal.declare(Run(run_id="r"))
                assert len(await journal.runs()) == 1
        finally:
            await sql(url, f"DROP SCHEMA {tables(url).quoted} CASCADE")

    asyncio.run(run())


def test_d_36_a_server_that_does_not_wait_for_its_disk_is_refused(tmp_path: Path) -> None:
    """That of most tests is one; it is taken because they say `unsafe`. Reading harms nobody."""
    url = journal_url(tmp_path)
    safe = with_options(url, unsafe="off")

    async def run() -> None:
        with pytest.raises(JournalError, match=r"fsync = off.*\?unsafe=on"):
            await made(safe)
        await made(url)
        await _opened(safe, read_only=True)

    asyncio.run(run())


def test_what_is_only_read_is_not_written(tmp_path: Path) -> None:
    url = journal_url(tmp_path)

    async def run() -> None:
        await made(url)
        async with await open_journal(url, read_only=True) as journal:
            assert await journal.runs() == ()
            with pytest.raises(JournalError, match="opened to be read only"):
                await journal.declare(Run(run_id="r"))

    asyncio.run(run())


def test_d_58_what_a_user_may_not_do_is_said(tmp_path: Path) -> None:
    """With the rights that are missing, and without the password."""
    url = journal_url(tmp_path)
    name = "u" + tables(url).schema

    async def run() -> None:
        await made(url)
        await sql(url, f"CREATE ROLE {name} LOGIN PASSWORD 's3cret'")
        other = place_of(url).dsn.replace("//postgres@", f"//{name}:s3cret@")
        other = with_options(other, schema=tables(url).schema, unsafe="on")
        try:
            with pytest.raises(
                JournalError, match=r"permission denied.*GRANT CREATE ON DATABASE"
            ) as told:
                await made(other)
            assert "s3cret" not in str(told.value)
        finally:
            await sql(url, f"DROP ROLE {name}")

    asyncio.run(run())
