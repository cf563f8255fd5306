"""Notices: one channel a journal, hints alone; whoever listens anew is told once (D-50 … D-52)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from pathlib import Path

import asyncpg
import pytest

from turnlock import Interrupt, Run
from turnlock.runtime.journal.contract import Journal, open_journal
from turnlock.runtime.journal.postgres.listening import Ears
from turnlock.runtime.journal.postgres.url import place_of

from ....postgres.cluster import Cluster, cluster
from ....postgres.proxy import Proxy, proxy
from ....postgres.servers import journal_url, with_options
from ..stage import RUN, facts, kept

LONG = 60.0
"""Nothing here is waited for so long."""
POST = Interrupt(turn_id="turn-1")


async def heard(journal: Journal, *, answer: int | None = None) -> bool:
    """Whether something was said before the time was over."""
    began = time.monotonic()
    await journal.heard(LONG, answer=answer)
    return time.monotonic() - began < LONG / 2


async def listening(journal: Journal) -> None:
    """Wait until it listens, and was told once for that."""
    while not journal.hears:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)
    assert await heard(journal)


def test_d_48_posts_and_answers_are_heard_of_by_others(tmp_path: Path) -> None:
    """Each by a process of its own: at once, and not after its time."""
    url = journal_url(tmp_path)

    async def run() -> None:
        async with await open_journal(url) as owner, await open_journal(url) as visitor:
            await owner.declare(RUN)
            await listening(owner)
            await listening(visitor)
            waiting = asyncio.create_task(heard(owner))
            await asyncio.sleep(0.05)
            number = await visitor.post(RUN.run_id, POST)
            assert await waiting
            answered = asyncio.create_task(heard(visitor, answer=number))
            await asyncio.sleep(0.05)
            await owner.answer(RUN.run_id, number, {"accepted": True})
            assert await answered
            assert await visitor.answered(RUN.run_id, number) == {"accepted": True}

    asyncio.run(run())


def test_d_50_a_notice_holds_numbers_alone(tmp_path: Path) -> None:
    """Everybody with the right to connect may listen; no id and no content is said.

    Appends say nothing: the server commits those that do one after the other (D-39).
    """
    url = journal_url(tmp_path)
    said: list[str] = []

    def told(_connection: object, _pid: int, _channel: str, payload: object) -> None:
        said.append(str(payload))

    async def run() -> None:
        async with await open_journal(url) as journal:
            listener = await asyncpg.connect(place_of(url).dsn)
            channel = place_of(url).tables.channel
            await listener.add_listener(channel, told)
            await journal.declare(RUN)
            fence = await journal.own(RUN.run_id, owner="ada", now=1.0, lease=9.0)
            await kept(journal, facts(1), fence)
            number = await journal.post(RUN.run_id, POST)
            await journal.answer(RUN.run_id, number, {})
            await journal.release(RUN.run_id, fence=fence)
            await listener.fetchval("SELECT 1")
            await asyncio.sleep(0.1)
            await listener.close()

    asyncio.run(run())
    assert said == ["p1", "a1"]
    assert max(map(len, said)) <= 24


def test_d_52_without_listening_it_is_polled(tmp_path: Path) -> None:
    url = journal_url(tmp_path, listen="off", poll="0.05")

    async def run() -> None:
        async with await open_journal(url) as journal:
            assert not journal.hears
            assert await heard(journal)

    asyncio.run(run())


@pytest.fixture(scope="module")
def server() -> Generator[Cluster]:
    """One for this file."""
    with cluster() as it:
        yield it


@pytest.fixture
def way(server: Cluster) -> Generator[Proxy]:
    """A way to it."""
    server.sql("DROP SCHEMA IF EXISTS turnlock CASCADE")
    with proxy(server) as it:
        yield it


def test_d_51_who_listens_anew_is_told_once(way: Proxy) -> None:
    """What was said meanwhile is lost, so everybody looks."""

    async def run() -> None:
        async with await open_journal(with_options(way.url, unsafe="on")) as journal:
            await journal.declare(Run(run_id="r"))
            await listening(journal)
            waiting = asyncio.create_task(heard(journal, answer=7))
            await asyncio.sleep(0.05)
            way.cut()
            assert await waiting
            assert journal.hears

    asyncio.run(run())


def test_each_task_is_told_what_came_since_it_was_told_last() -> None:
    """So nothing slips in between two looks; and what is about another answer is left out."""

    async def waits(ears: Ears, seconds: float, *, answer: int | None = None) -> bool:
        began = time.monotonic()
        await ears.wait(seconds, answer=answer)
        return time.monotonic() - began < seconds

    async def run() -> None:
        ears = Ears()
        assert not await waits(ears, 0.05)
        ears.tell("p1")
        assert await waits(ears, LONG)
        assert not await waits(ears, 0.05)
        ears.tell("a4")
        assert not await waits(ears, 0.05, answer=5)
        ears.tell("a5")
        assert await waits(ears, LONG, answer=5)
        ears.tell("a" + "9" * 400)  # no number of ours
        ears.tell_all()
        assert await waits(ears, LONG, answer=6)

    asyncio.run(run())
