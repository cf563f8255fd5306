"""The way to the server breaks before, in and after a commit: what is read then stays so."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.ledger import Domain, Note
from turnlock.runtime.journal.postgres.database import Database
from turnlock.runtime.journal.postgres.failures import Away, NotKnown
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.tables import key_of

from .cluster import Cluster, cluster
from .proxy import Proxy, When, proxy
from .stories import (
    APPEND,
    RUN,
    append,
    fact,
    opened,
    owned,
    read,
    set_patience,
    sooner_or_later,
)


@pytest.fixture(scope="module")
def server() -> Generator[Cluster]:
    """One for this file."""
    with cluster() as it:
        yield it


@pytest.fixture
def way(server: Cluster) -> Generator[Proxy]:
    """A way to it, and no journal there."""
    server.sql("DROP SCHEMA IF EXISTS turnlock CASCADE")
    with proxy(server) as it:
        yield it


async def append_noted(journal: PostgresJournal, fence: int) -> Appended:
    """Append the first fact and a note: a transaction of more than one statement."""
    note = Note(domain=Domain.MESSAGE, kind="k", body={"n": 1}, at=1.0)
    return await journal.append(
        RUN.run_id, fence=fence, after=0, facts=[fact(1)], busy=True, notes=[note]
    )


@pytest.mark.parametrize("when", When)
def test_d_40_an_append_whose_connection_is_cut_is_not_known_and_then_read(
    way: Proxy, when: When
) -> None:
    """D-40, D-18: before, in and after; it is read once, and stays so; the journal goes on."""

    async def story() -> None:
        async with opened(way.url) as journal:
            fence = await owned(journal)
            assert await append(journal, 1, fence=fence) is Appended.OK
            plan = way.at(APPEND, when)
            with pytest.raises(NotKnown, match="not known whether this was written"):
                await append(journal, 2, fence=fence)
            assert plan.reached.is_set()
            found = await read(journal)
            if when is not When.SENT:
                assert found == ([1] if when is When.BEFORE else [1, 2])
            for number in range(len(found) + 1, 5):
                assert await append(journal, number, fence=fence) is Appended.OK
            assert await read(journal) == [1, 2, 3, 4]

    asyncio.run(story())


@pytest.mark.parametrize("when", When)
def test_d_40_a_cut_at_commit_is_not_known_and_one_before_it_has_written_nothing(
    way: Proxy, when: When
) -> None:
    """D-40: the transaction of an append with notes, which has a COMMIT."""

    async def story() -> None:
        async with opened(way.url) as journal:
            fence = await owned(journal)
            way.at(APPEND, when)
            with pytest.raises(JournalError, match="nothing was written"):
                await append_noted(journal, fence)
            assert await read(journal) == []
            way.at("^COMMIT", when)
            with pytest.raises(NotKnown):
                await append_noted(journal, fence)
            found = await read(journal)
            if when is not When.SENT:
                assert found == ([] if when is When.BEFORE else [1])
            assert len(await journal.notes(RUN.run_id)) == len(found)
            if not found:
                assert await append_noted(journal, fence) is Appended.OK

    asyncio.run(story())


async def late(way: Proxy, journal: PostgresJournal) -> tuple[Any, Any]:
    """What is read of an append that is held up, and again when it has arrived."""
    fence = await owned(journal)
    assert await append(journal, 1, fence=fence) is Appended.OK
    plan = way.at(APPEND, When.BEFORE, held=True)
    set_patience(journal, 0.2)
    with pytest.raises(NotKnown):
        await append(journal, 2, fence=fence)
    set_patience(journal)
    await plan.met()
    before = await read(journal)
    way.release(plan)
    assert await asyncio.to_thread(plan.over.wait, 60.0)
    return before, await read(journal)


def test_d_41_a_statement_that_arrives_late_writes_nothing(way: Proxy) -> None:
    """D-41: what a read has said of it stays so, and the run goes on."""

    async def story() -> None:
        async with opened(way.url, listen="off") as journal:
            assert await late(way, journal) == ([1], [1])
            entry = await journal.entry(RUN.run_id)
            assert await append(journal, 2, fence=entry.fence) is Appended.OK

    asyncio.run(story())


def test_d_41_without_its_number_the_truth_changes(
    way: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: settling that only locks the row keeps what a read has denied."""

    async def locks_alone(self: Database, connection: Any, run: str) -> Any:
        return await connection.fetchrow(
            f"SELECT number, settle FROM {self.tables.runs} WHERE key = $1 FOR UPDATE",  # noqa: S608
            key_of(run),
        )

    monkeypatch.setattr(Database, "_raise", locks_alone)

    async def story() -> None:
        async with opened(way.url, listen="off") as journal:
            assert await late(way, journal) == ([1], [1, 2])

    asyncio.run(story())


def test_d_36_a_server_that_hangs_is_waited_for_so_long(way: Proxy) -> None:
    """D-36: the connection is dropped, no request to cancel is sent, and the outcome is read."""

    async def story() -> None:
        async with opened(way.url, listen="off") as journal:
            fence = await owned(journal)
            assert await append(journal, 1, fence=fence) is Appended.OK
            way.server.freeze()
            set_patience(journal, 0.2)
            with pytest.raises(NotKnown, match="not known"):
                await append(journal, 2, fence=fence)
            set_patience(journal)
            way.server.thaw()
            found = await read(journal)
            assert await read(journal) == found
            assert await append(journal, len(found) + 1, fence=fence) is Appended.OK

    asyncio.run(story())
    assert way.cancels == 0


def test_a_network_that_loses_packets_is_one_that_hangs(way: Proxy) -> None:
    """Section 10: nothing answers, reads and writes fail; once it passes again both go on."""

    async def story() -> None:
        async with opened(way.url, listen="off") as journal:
            fence = await owned(journal)
            assert await append(journal, 1, fence=fence) is Appended.OK
            way.lose()
            set_patience(journal, 0.2)
            with pytest.raises(NotKnown):
                await append(journal, 2, fence=fence)
            set_patience(journal)
            way.pass_on()
            found = await read(journal)
            assert await append(journal, len(found) + 1, fence=fence) is Appended.OK
            assert await read(journal) == [*found, len(found) + 1]

    asyncio.run(story())


def test_d_42_while_the_server_is_away_nothing_is_written_and_nothing_queues(
    way: Proxy,
) -> None:
    """D-42: appends fail at once and say so; the first after it is back is kept."""

    async def story() -> None:
        async with opened(way.url, listen="off") as journal:
            fence = await owned(journal)
            assert await append(journal, 1, fence=fence) is Appended.OK
            way.refuse()
            said: list[str] = []
            for _ in range(20):
                with pytest.raises(JournalError) as caught:
                    await append(journal, 2, fence=fence)
                said.append(type(caught.value).__name__)
            assert said[-1] == Away.__name__
            assert set(said[1:]) <= {Away.__name__, JournalError.__name__}
            way.take()

            async def goes_on() -> bool:
                try:
                    found = await read(journal)
                    answer = await append(journal, len(found) + 1, fence=fence)
                except JournalError:
                    return False
                return answer is Appended.OK

            await sooner_or_later(goes_on)

    asyncio.run(story())


@pytest.mark.parametrize("when", When)
def test_d_43_what_is_lost_and_asked_again_is_done_once(way: Proxy, when: When) -> None:
    """D-43: `own` twice is the same owner's, with a later fence; a note with an id is kept once."""

    async def story() -> None:
        async with opened(way.url, listen="off") as journal:
            await journal.declare(RUN)
            way.at("^COMMIT", when)
            with pytest.raises(JournalError):
                await journal.own(RUN.run_id, owner="ada", now=journal.time(), lease=3_600.0)
            fence = await journal.own(RUN.run_id, owner="ada", now=journal.time(), lease=3_600.0)
            note = Note(domain=Domain.MESSAGE, kind="k", body={"n": 1}, at=1.0, id="one")
            way.at("^COMMIT", when)
            with pytest.raises(JournalError):
                await journal.note(RUN.run_id, fence=fence, notes=[note])
            assert await journal.note(RUN.run_id, fence=fence, notes=[note]) is Appended.OK
            assert len(await journal.notes(RUN.run_id)) == 1
            assert await append(journal, 1, fence=fence) is Appended.OK

    asyncio.run(story())
