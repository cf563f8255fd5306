"""Locks, deadlocks, timeouts, a full disk, too many connections: what a server says, and waits."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg
import pytest

from turnlock import Run
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.postgres import links
from turnlock.runtime.journal.postgres.database import Database
from turnlock.runtime.journal.postgres.failures import NotKnown
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.url import place_of

from .cluster import SAFE, Cluster, Connection, cluster
from .servers import with_options
from .stories import (
    RUN,
    append,
    fact,
    opened,
    owned,
    read,
    set_patience,
    sooner_or_later,
)

OTHER = Run(run_id="other")
DISKS = ["size", "wal_size"]
LOCKS = "SELECT FROM turnlock.runs WHERE run_id = $1 FOR NO KEY UPDATE"


@pytest.fixture(scope="module")
def shared() -> Generator[Cluster]:
    """One for this file."""
    with cluster() as it:
        yield it


@pytest.fixture
def server(shared: Cluster) -> Cluster:
    """It, without a journal, and as roles and databases are by themselves."""
    shared.sql("ALTER DATABASE postgres RESET ALL", "DROP SCHEMA IF EXISTS turnlock CASCADE")
    return shared


def test_a_lock_of_a_persons_is_waited_for_then_not_known_then_settled(server: Cluster) -> None:
    """Section 10: the append waits, then it is not known; settling waits as well; then it is."""

    async def story() -> None:
        async with opened(server.url) as journal, server.session() as person:
            fence, others = await owned(journal), await owned(journal, OTHER)
            assert await append(journal, 1, fence=fence) is Appended.OK
            await person.execute("BEGIN")
            await person.execute(LOCKS, b"r")
            set_patience(journal, 0.2)
            with pytest.raises(NotKnown):
                await append(journal, 2, fence=fence)
            with pytest.raises(JournalError, match="not known yet"):
                await read(journal)
            set_patience(journal)
            assert await append(journal, 1, fence=others, run=OTHER) is Appended.OK
            await person.execute("ROLLBACK")
            found = await read(journal)
            assert await append(journal, len(found) + 1, fence=fence) is Appended.OK
            assert await read(journal) == [*found, len(found) + 1]

    asyncio.run(story())


def test_people_who_go_to_lunch_in_a_transaction_are_put_out_by_their_role(
    server: Cluster,
) -> None:
    """Section 10: with the setting that the text asks for, the append waits for no longer."""

    async def story() -> None:
        async with opened(server.url) as journal, server.session() as person:
            fence = await owned(journal)
            await person.execute("SET idle_in_transaction_session_timeout = '200ms'")
            await person.execute("BEGIN")
            await person.execute(LOCKS, b"r")
            assert await append(journal, 1, fence=fence) is Appended.OK

    asyncio.run(story())


def test_d_32_a_deadlock_is_done_again(server: Cluster) -> None:
    """D-32: the server ends our transaction; it is tried again, and nobody is told."""

    async def story() -> None:
        async with opened(server.url) as journal, server.session() as person:
            fence, others = await owned(journal), await owned(journal, OTHER)
            await person.execute("SET deadlock_timeout = '1h'")  # so that it is ours which ends
            await person.execute("BEGIN")
            await person.execute(LOCKS, b"other")
            ours = asyncio.gather(
                append(journal, 1, fence=fence), append(journal, 1, fence=others, run=OTHER)
            )
            await sooner_or_later(lambda: is_waiting(server))
            crossed = asyncio.create_task(person.execute(LOCKS, b"r"))
            await crossed
            await person.execute("COMMIT")
            assert set(await ours) == {Appended.OK}
            assert journal._database.counts.retries >= 1
            assert (await read(journal), await read(journal, OTHER)) == ([1], [1])

    asyncio.run(story())


async def is_waiting(server: Cluster) -> bool:
    """Whether somebody waits for a lock of another."""
    async with server.session() as connection:
        found = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        )
    return bool(found)


def test_d_36_what_role_and_database_say_does_not_count(server: Cluster) -> None:
    """D-30, D-36: a statement's time, what a commit waits for, and how it is isolated."""
    server.sql(
        "ALTER DATABASE postgres SET statement_timeout = '150ms'",
        "ALTER DATABASE postgres SET synchronous_commit = 'off'",
        "ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'",
        "ALTER DATABASE postgres SET default_transaction_read_only = 'off'",
    )

    async def story() -> None:
        async with opened(server.url) as journal, server.session() as person:
            fence = await owned(journal)
            await person.execute("SET statement_timeout = 0")
            await person.execute("BEGIN")
            await person.execute(LOCKS, b"r")
            waits = asyncio.create_task(append(journal, 1, fence=fence))
            await sooner_or_later(lambda: is_waiting(server))
            await asyncio.sleep(0.3)
            await person.execute("ROLLBACK")
            assert await waits is Appended.OK
            told = await journal._write(
                lambda it: it.fetchrow(
                    "SELECT current_setting('synchronous_commit'),"
                    " current_setting('statement_timeout'),"
                    " current_setting('transaction_isolation')"
                )
            )
            assert tuple(told or ()) == ("on", "0", "read committed")

    asyncio.run(story())


def only_when_it_appends(_: Database) -> None:
    """Connect then, and so with the settings of then."""


def test_d_36_without_settings_of_its_own_a_session_is_ended_by_its_roles(
    server: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control; and 57014 says that nothing was kept, which is so."""
    monkeypatch.setattr(links, "_SET", "SELECT 1")
    monkeypatch.setattr(Database, "expect_appends", only_when_it_appends)

    async def story() -> None:
        async with opened(server.url) as journal, server.session() as person:
            fence = await owned(journal)
            await person.execute("ALTER DATABASE postgres SET statement_timeout = '100ms'")
            await person.execute("BEGIN")
            await person.execute(LOCKS, b"r")
            with pytest.raises(JournalError, match=r"nothing was written.*57014") as caught:
                await append(journal, 1, fence=fence)
            assert not isinstance(caught.value, NotKnown)
            await person.execute("ROLLBACK")
            assert await read(journal) == []

    asyncio.run(story())


def test_a_statement_that_somebody_cancels_has_kept_nothing(server: Cluster) -> None:
    """Section 10: `pg_cancel_backend` while it waits for a lock: 57014, nothing kept."""

    async def story() -> None:
        async with opened(server.url) as journal, server.session() as person:
            fence = await owned(journal)
            await person.execute("BEGIN")
            await person.execute(LOCKS, b"r")
            waits = asyncio.create_task(append(journal, 1, fence=fence))
            await sooner_or_later(lambda: is_waiting(server))
            await person.execute(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            )
            with pytest.raises(JournalError, match=r"nothing was written.*57014"):
                await waits
            await person.execute("ROLLBACK")
            assert await read(journal) == []
            assert await append(journal, 1, fence=fence) is Appended.OK

    asyncio.run(story())


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system of a test's own needs root")
@pytest.mark.parametrize("disk", DISKS)
def test_a_full_disk_keeps_nothing_and_goes_on_when_there_is_room(disk: str) -> None:
    """Section 10: for data 53100, nothing kept, the server lives; for WAL it stops, as killed."""

    async def story(server: Cluster) -> None:
        async with opened(server.url, listen="off") as journal:
            fence = await owned(journal)
            full = server.data if disk == "size" else server.data / "pg_wal"
            (full / "stuff").write_bytes(bytes(free_in(full, but=LOG if disk == "size" else 0)))
            after, refused = 0, None
            while refused is None:
                try:
                    assert await append_much(journal, after + 1, fence=fence) is Appended.OK
                except JournalError as error:
                    refused = error
                else:
                    after += 1
            (full / "stuff").unlink()
            if disk == "size":
                assert "nothing was written" in str(refused)
                assert "disk is full" in str(refused)
                assert await read(journal) == list(range(1, after + 1))
                assert await append_much(journal, after + 1, fence=fence) is Appended.OK
                return
            assert isinstance(refused, NotKnown)
            await sooner_or_later(lambda: goes_on_where_it_runs(server, journal, fence))
            assert 1 <= len(await read(journal)) - after <= 3

    # No checkpoint comes before 1 GB: one would make room, and one without room stops the server.
    with cluster(**{disk: "80m"}, max_wal_size="1GB", checkpoint_timeout="1h") as server:
        asyncio.run(story(server))


LOG = 6_000_000
"""Bytes that the server's own log may be given meanwhile."""


def free_in(folder: Path, *, but: int) -> int:
    """Bytes that are free there, but for so many."""
    place = os.statvfs(folder)
    return max(0, place.f_bavail * place.f_frsize - but)


async def append_much(journal: PostgresJournal, number: int, *, fence: int) -> Appended:
    """Append a fact of half a megabyte that cannot be made smaller."""
    said = os.urandom(250_000).hex()
    told = [fact(number, turn_id=said)]
    return await journal.append(RUN.run_id, fence=fence, after=number - 1, facts=told, busy=True)


def test_too_many_connections_are_said_by_name_and_a_lane_tries_again() -> None:
    """Section 10: opening fails and says why; a lane without a connection has written nothing."""

    async def story(server: Cluster) -> None:
        async with opened(server.url, listen="off") as journal:
            fence = await owned(journal)
            assert await append(journal, 1, fence=fence) is Appended.OK
            async with all_others(server) as others:
                with pytest.raises(JournalError, match="too many clients"):
                    await PostgresJournal.open(place_of(with_options(server.url, unsafe="on")))
                await end_all_but(others)
                await take_rest(server, others)
                said = [await what_is_said(journal, fence) for _ in range(3)]
                assert "nothing was written" in said[-1]
                assert "too many clients" in said[-1]
            await sooner_or_later(lambda: goes_on(journal, fence))

    with cluster(max_connections="10", superuser_reserved_connections="0") as server:
        asyncio.run(story(server))


@asynccontextmanager
async def all_others(server: Cluster) -> AsyncGenerator[list[Connection]]:
    """All connections that there still are, let go in any case."""
    found: list[Connection] = []
    try:
        await take_rest(server, found)
        yield found
    finally:
        for connection in found:
            connection.terminate()
        await asyncio.sleep(0)  # for their sockets


async def take_rest(server: Cluster, found: list[Connection]) -> None:
    """Take what connections there are into these, until the server refuses one."""
    with suppress(asyncpg.TooManyConnectionsError):
        while True:
            found.append(await asyncpg.connect(server.url))


async def end_all_but(kept: Sequence[Connection]) -> None:
    """Have the server end all others, and wait for each: it is counted until it has ended."""
    await kept[0].execute(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE pid <> ALL ($1)"
        " AND backend_type = 'client backend'",
        [it.get_server_pid() for it in kept],
    )


async def what_is_said(journal: PostgresJournal, fence: int) -> str:
    """What the next append is told that fails."""
    with pytest.raises(JournalError) as caught:
        await append(journal, 2, fence=fence)
    return str(caught.value)


async def goes_on(journal: PostgresJournal, fence: int) -> bool:
    """Whether the next fact is kept."""
    try:
        found = await read(journal)
        return await append(journal, len(found) + 1, fence=fence) is Appended.OK
    except JournalError:
        return False


async def goes_on_where_it_runs(server: Cluster, journal: PostgresJournal, fence: int) -> bool:
    """Whether the next fact is kept; a server that found no room to begin in is begun by us."""
    if server.has_ended:
        await asyncio.to_thread(server.restart)
    return await goes_on(journal, fence)


def test_d_36_a_server_that_syncs_nothing_is_refused(server: Cluster) -> None:
    """D-36: but for tests, which say so; one that syncs is taken."""

    async def story() -> None:
        with pytest.raises(JournalError, match="fsync = off"):
            async with opened(server.url, unsafe="off"):
                pass
        server.configure(fsync="on")
        await asyncio.to_thread(server.reload)
        async with opened(server.url, unsafe="off") as journal:
            assert await append(journal, 1, fence=await owned(journal)) is Appended.OK

    asyncio.run(story())
    server.configure(fsync="off")
    server.reload()


def test_d_55_no_password_is_shown_anywhere(
    server: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """D-55: wrong passwords, hosts that are not there, and what is logged of them."""
    caplog.set_level(logging.DEBUG)
    secret = "s3cret-%41-x"  # noqa: S105 - of nobody
    right = server.url.replace("postgres@", f"postgres:{secret}@")
    urls = [
        right.replace("/postgres", "/nowhere"),
        right.replace(f":{server.port}/", ":1/"),
        right.replace("127.0.0.1", "no-such-host.invalid"),
        right.replace("postgres:", "nobody-here:"),
        with_options(right, lanes="many"),
        with_options(right, sslmode="perhaps"),
        f"{right}&schema=pg_x",
    ]

    async def story() -> None:
        for url in urls:
            with pytest.raises(JournalError) as caught:
                await anywhere(url)
            told = [caught.value, caught.value.__cause__, caught.value.__context__]
            for error in told:
                assert_hidden(f"{error} {error!r}")
        async with opened(right) as journal:
            assert_hidden(repr(journal) + journal._where + repr(journal._database.place))

    async def anywhere(url: str) -> PostgresJournal:
        return await PostgresJournal.open(place_of(url))

    def assert_hidden(text: str) -> None:
        for form in (secret, "s3cret", "-A-x"):
            assert form not in text

    asyncio.run(story())
    assert_hidden(caplog.text)


def test_fsync_is_on_where_servers_are_killed() -> None:
    """What the crash tests stand on."""
    assert SAFE["fsync"] == "on"
