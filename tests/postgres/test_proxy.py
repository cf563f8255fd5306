"""The way to a server that breaks: where it is broken decides what was kept."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

import asyncpg
import pytest

from .cluster import Cluster, Connection, cluster
from .proxy import Proxy, When, proxy

INSERT = "INSERT INTO t VALUES ($1)"
LOST = (OSError, asyncpg.PostgresConnectionError)


@pytest.fixture(scope="module")
def server() -> Generator[Cluster]:
    """One for this file, with a table."""
    with cluster() as it:
        it.sql("CREATE TABLE t (n int)")
        yield it


@pytest.fixture
def way(server: Cluster) -> Generator[Proxy]:
    """A way to it, to an empty table."""
    server.sql("TRUNCATE t")
    with proxy(server) as it:
        yield it


async def connected(way: Proxy) -> Connection:
    return await asyncpg.connect(way.url)


async def insert(connection: Connection, begin: str | None) -> None:
    if begin is None:
        await connection.execute(INSERT, 1)
        return
    await connection.execute(begin)
    await connection.execute(INSERT, 1)
    await connection.execute("COMMIT")


def kept(way: Proxy) -> int:
    return int(way.server.sql("SELECT count(*) FROM t"))


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_nobody_breaks_passes(way: Proxy) -> None:
    async def story() -> None:
        connection = await connected(way)
        await connection.execute(INSERT, 1)
        async with connection.transaction():
            await connection.execute(INSERT, 2)
        await connection.close()

    asyncio.run(story())
    assert kept(way) == 2
    assert way.statements.count(INSERT) == 2
    assert any(it.startswith("COMMIT") for it in way.statements)


@pytest.mark.parametrize("text", ["INSERT", "COMMIT"])
@pytest.mark.parametrize("when", When)
def test_a_cut_before_keeps_nothing_and_one_after_keeps_it(
    way: Proxy, text: str, when: When
) -> None:
    """In the middle nobody knows; here the server is let finish, and it is kept."""

    async def story() -> None:
        connection = await connected(way)
        plan = way.at(text, when)
        with pytest.raises(LOST):
            await insert(connection, "BEGIN" if text == "COMMIT" else None)
        assert plan.reached.is_set()
        connection.terminate()
        again = await connected(way)
        assert await again.fetchval("SELECT 1") == 1
        await again.close()

    asyncio.run(story())
    if when is When.BEFORE:
        assert kept(way) == 0
    else:
        until(lambda: kept(way) == 1)


def test_what_is_held_up_arrives_when_its_sender_is_gone(way: Proxy) -> None:
    async def story() -> None:
        connection = await connected(way)
        plan = way.at("INSERT", When.BEFORE, held=True)
        sent = asyncio.ensure_future(connection.execute(INSERT, 1))
        await plan.met()
        connection.terminate()
        with pytest.raises(LOST):
            await sent
        assert await asyncio.to_thread(kept, way) == 0
        way.release(plan)

    asyncio.run(story())
    until(lambda: kept(way) == 1)


def test_an_answer_that_is_held_up_comes_when_it_is_let_go(way: Proxy) -> None:
    async def story() -> str:
        connection = await connected(way)
        plan = way.at("INSERT", When.DONE, held=True)
        sent = asyncio.ensure_future(connection.execute(INSERT, 1))
        await plan.met()
        assert await asyncio.to_thread(kept, way) == 1
        assert not sent.done()
        way.release(plan)
        told = await sent
        await connection.close()
        return told

    assert asyncio.run(story()) == "INSERT 0 1"


def test_packets_are_lost_until_they_pass_again(way: Proxy) -> None:
    async def story() -> None:
        connection = await connected(way)
        way.lose()
        asked: asyncio.Task[int] = asyncio.create_task(connection.fetchval("SELECT 7"))
        await asyncio.sleep(0.05)
        assert not asked.done()
        way.pass_on()
        assert await asked == 7
        await connection.close()

    asyncio.run(story())


def test_a_request_to_cancel_is_counted(way: Proxy) -> None:
    async def story() -> None:
        connection = await connected(way)
        with pytest.raises(TimeoutError):
            await connection.execute("SELECT pg_sleep(60)", timeout=0.05)
        await asyncio.to_thread(until, lambda: way.cancels == 1)
        connection.terminate()

    asyncio.run(story())


def test_who_is_refused_comes_in_later(way: Proxy) -> None:
    async def story() -> None:
        way.refuse()
        with pytest.raises(LOST):
            await connected(way)
        way.take()
        connection = await connected(way)
        await connection.close()

    asyncio.run(story())


def test_it_leaves_no_thread(server: Cluster, tmp_path: Path) -> None:
    before = threading.active_count()
    with proxy(server):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
