"""Notices are hints (D-51): lost, or with nobody to listen, all is found by looking."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest

from turnlock import Decide
from turnlock.runtime.journal.postgres.journal import PostgresJournal

from .cluster import Cluster, cluster
from .stories import RUN, opened, owned, sooner_or_later

DECISION = Decide(
    run_id=RUN.run_id, turn_id="t", invocation_id="a", approved=False, decided_by="bob"
)


@pytest.fixture(scope="module")
def server() -> Generator[Cluster]:
    """One for this file."""
    with cluster() as it:
        yield it


async def end_listeners(server: Cluster) -> None:
    """End the connections that listen, as a network does that was idle too long."""
    async with server.session() as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^LISTEN'"
        )


async def look(journal: PostgresJournal) -> int:
    """Look for posts as their owner does: whenever it has heard of something, and now and then."""
    while True:
        if posts := await journal.posts([RUN.run_id]):
            return posts[0].number
        await journal.heard(0.1)


def test_d_51_with_a_dead_listener_posts_and_answers_are_found_by_looking(
    server: Cluster,
) -> None:
    """D-51, section 10: and once it listens again it is told at once."""

    async def story() -> None:
        async with opened(server.url) as owner, opened(server.url, listen="off") as visitor:
            await owned(owner)

            async def hears() -> bool:
                return owner.hears

            await sooner_or_later(hears)
            for _ in range(3):
                await end_listeners(server)
                number = await visitor.post(RUN.run_id, DECISION)
                assert await look(owner) == number
                await owner.answer(RUN.run_id, number, {"accepted": False})
                while await visitor.answered(RUN.run_id, number) is None:
                    await visitor.heard(0.1)
            await sooner_or_later(hears)

    asyncio.run(story())


def test_d_52_without_listening_all_is_found_by_looking(server: Cluster) -> None:
    """D-52: `listen=off` polls alone."""

    async def story() -> None:
        async with opened(server.url, listen="off") as owner, opened(server.url) as visitor:
            assert not owner.hears
            await owned(owner)
            number = await visitor.post(RUN.run_id, DECISION)
            assert await look(owner) == number
            await owner.answer(RUN.run_id, number, {"accepted": False})

    asyncio.run(story())
