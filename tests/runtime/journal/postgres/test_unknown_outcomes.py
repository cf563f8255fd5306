"""What is said of a write whose answer never came, and that what is read afterwards stays so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import asyncpg
import attrs
import pytest

from turnlock import Interrupt, Run
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.postgres.database import Database
from turnlock.runtime.journal.postgres.failures import Away, NotKnown
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.tables import key_of
from turnlock.runtime.journal.postgres.url import place_of

from ....postgres.cluster import Cluster, cluster
from ....postgres.proxy import Proxy, When, proxy
from ....postgres.servers import with_options
from ..stage import LEASE, NOW, RUN, everything, facts, kept, note, owned

Story: TypeAlias = Callable[[PostgresJournal, Proxy], Awaitable[None]]

APPEND = "INSERT INTO .*appends"
COMMIT = "^COMMIT$"
ANSWER = 1.0
OURS = 1 + 3
"""Connections to the server once a late one is done with: who counts, two lanes and a reader."""


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


@asynccontextmanager
async def opened(way: Proxy, **options: str) -> AsyncGenerator[PostgresJournal]:
    place = place_of(with_options(way.url, unsafe="on", **options))
    place = attrs.evolve(place, answer_within=ANSWER)
    async with await PostgresJournal.open(place) as journal:
        yield journal


def play(way: Proxy, story: Story, **options: str) -> None:
    async def run() -> None:
        async with opened(way, **options) as journal:
            await story(journal, way)

    asyncio.run(run())


async def append(journal: PostgresJournal, fence: int | None, *, after: int) -> Appended:
    return await journal.append(
        RUN.run_id, fence=fence, after=after, facts=facts(1, after=after), busy=True
    )


async def nobody_asks(way: Proxy, connections: int) -> None:
    """Wait until the server has done with whoever went away."""
    deadline = time.monotonic() + 30
    count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    while int(await asyncio.to_thread(way.server.sql, count)) > connections:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def late_write(way: Proxy) -> list[int]:
    """Facts that are read after an append that is held up in the network, and once it arrived."""
    found: list[int] = []

    async def story(journal: PostgresJournal, way: Proxy) -> None:
        fence = await owned(journal)
        await kept(journal, facts(1), fence)
        plan = way.at(APPEND, When.BEFORE, held=True)
        with pytest.raises(NotKnown, match="it is not known whether this was written"):
            await append(journal, fence, after=1)
        found.append(len(await everything(journal)))
        way.release(plan)
        await nobody_asks(way, OURS)
        found.append(len(await everything(journal)))
        if found[0] == found[1]:
            assert await append(journal, fence, after=1) is Appended.OK

    play(way, story, listen="off")
    return found


def test_d_41_what_was_read_stays_so_however_late_a_write_arrives(way: Proxy) -> None:
    assert late_write(way) == [1, 1]
    assert way.cancels == 0


def test_without_the_token_it_does_not(way: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: settled by the lock alone, the late write changes what was read."""

    async def lock_alone(self: Database, connection: Any, run: str) -> Any:
        return await connection.fetchrow(
            f"SELECT number, settle FROM {self.tables.runs} WHERE key = $1 FOR NO KEY UPDATE",  # noqa: S608
            key_of(run),
        )

    monkeypatch.setattr(Database, "_raise", lock_alone)
    assert late_write(way) == [1, 2]


@pytest.mark.parametrize("when", [*When])
@pytest.mark.parametrize("noted", [False, True])
def test_d_40_what_was_cut_is_read_back_as_it_is(way: Proxy, when: When, noted: bool) -> None:
    """It is not known; and what is read first is read again, and gone on from."""

    async def story(journal: PostgresJournal, way: Proxy) -> None:
        fence = await owned(journal)
        await kept(journal, facts(1), fence)
        way.at(COMMIT if noted else APPEND, when)
        with pytest.raises(NotKnown):
            await journal.append(
                RUN.run_id,
                fence=fence,
                after=1,
                facts=facts(1, after=1),
                busy=True,
                notes=[note(id="n")] if noted else (),
            )
        found = len(await everything(journal))
        assert found in {When.BEFORE: {1}, When.SENT: {1, 2}, When.DONE: {2}}[when]
        assert (await journal.find_note(RUN.run_id, "n") is not None) is (noted and found == 2)
        assert len(await everything(journal)) == found
        assert await append(journal, fence, after=found) is Appended.OK
        assert await journal.check() == ()

    play(way, story)


@pytest.mark.parametrize("when", [*When])
def test_d_43_what_else_was_lost_is_safe_to_repeat(way: Proxy, when: When) -> None:
    async def story(journal: PostgresJournal, way: Proxy) -> None:
        await journal.declare(RUN)
        way.at(COMMIT, when)
        with pytest.raises(NotKnown):
            await journal.own(RUN.run_id, owner="ada", now=NOW, lease=LEASE)
        fence = await journal.own(RUN.run_id, owner="ada", now=NOW, lease=LEASE)
        assert await append(journal, fence, after=0) is Appended.OK
        way.at(COMMIT, when)
        with pytest.raises(NotKnown):
            await journal.release(RUN.run_id, fence=fence)
        await journal.release(RUN.run_id, fence=fence)
        assert (await journal.entry(RUN.run_id)).owner is None
        way.at(COMMIT, when)
        with pytest.raises(NotKnown):
            await journal.post(RUN.run_id, Interrupt(turn_id="turn-1"))
        await journal.post(RUN.run_id, Interrupt(turn_id="turn-1"))
        assert len(await journal.posts([RUN.run_id])) in {1, 2}

    play(way, story)


def test_before_commit_nothing_was_written(way: Proxy) -> None:
    """A connection that ends inside a transaction: that is known."""

    async def story(journal: PostgresJournal, way: Proxy) -> None:
        await journal.declare(RUN)
        way.at("UPDATE .*epoch", When.DONE)
        with pytest.raises(JournalError, match="nothing was written") as told:
            await journal.own(RUN.run_id, owner="ada", now=NOW, lease=LEASE)
        assert not isinstance(told.value, NotKnown)
        assert (await journal.entry(RUN.run_id)).fence == 0

    play(way, story)


async def append_away(journal: PostgresJournal, fence: int) -> None:
    """Have the journal find out that its connections are gone."""
    with pytest.raises(JournalError):
        await append(journal, fence, after=1)
    with pytest.raises(JournalError):
        await journal.read(RUN.run_id)


def test_d_42_while_the_server_is_away_writes_fail_at_once(way: Proxy) -> None:
    """Nothing waits; and once it is there again, they go on."""

    async def story(journal: PostgresJournal, way: Proxy) -> None:
        fence = await owned(journal)
        await kept(journal, facts(1), fence)
        way.refuse()
        await append_away(journal, fence)
        for _ in range(3):
            with pytest.raises(Away, match="nothing was written: the server is away"):
                await append(journal, fence, after=1)
        way.take()
        deadline = time.monotonic() + 30
        while True:
            try:
                assert await append(journal, fence, after=1) is Appended.OK
            except JournalError:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
            else:
                break
        assert len(await everything(journal)) == 2

    play(way, story)


def test_a_server_that_says_nothing_is_not_waited_for(way: Proxy) -> None:
    """The connection is dropped after `answer_within`; no request to cancel is sent (D-36)."""

    async def story(journal: PostgresJournal, way: Proxy) -> None:
        fence = await owned(journal)
        await kept(journal, facts(1), fence)
        way.lose()
        with pytest.raises(NotKnown, match="not known"):
            await append(journal, fence, after=1)
        way.pass_on()
        found = len(await everything(journal))
        assert await append(journal, fence, after=found) is Appended.OK

    play(way, story)
    assert way.cancels == 0


def test_d_36_a_warning_beside_a_commit_makes_it_unknown(way: Proxy) -> None:
    """As where a commit that waits for its standby is cancelled: success, with a notice."""

    async def story(journal: PostgresJournal, way: Proxy) -> None:
        fence = await owned(journal)
        await asyncio.to_thread(
            way.server.sql,
            "CREATE FUNCTION turnlock.warn() RETURNS trigger LANGUAGE plpgsql AS"
            " $$BEGIN RAISE WARNING 'canceling wait'; RETURN NULL; END$$",
            "CREATE CONSTRAINT TRIGGER warns AFTER INSERT ON turnlock.appends"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION turnlock.warn()",
        )
        with pytest.raises(NotKnown, match="canceling wait"):
            await append(journal, fence, after=0)
        assert len(await everything(journal)) == 1

    play(way, story)


def test_a_row_that_a_person_holds_is_waited_for(way: Proxy) -> None:
    """Appends of that run are not known, and what became of them is known once it is let go."""

    async def story(journal: PostgresJournal, way: Proxy) -> None:
        fence = await owned(journal)
        other = await owned(journal, Run(run_id="other"))
        person = await asyncpg.connect(way.server.url)
        transaction = person.transaction()
        await transaction.start()
        await person.execute("SELECT FROM turnlock.runs WHERE number = 1 FOR UPDATE")
        with pytest.raises(NotKnown):
            await append(journal, fence, after=0)
        with pytest.raises(JournalError, match="not known yet"):
            await journal.read(RUN.run_id)
        await kept(journal, facts(1, run_id="other"), other)  # others are not held up
        await transaction.rollback()
        await person.close()
        found = await everything(journal)
        await asyncio.sleep(0.1)
        assert await everything(journal) == found
        assert await append(journal, fence, after=len(found)) is Appended.OK

    play(way, story)
