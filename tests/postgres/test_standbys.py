"""Standbys: what is promised across a promotion, with one that is waited for and with another."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

import pytest

from turnlock import Run
from turnlock.runtime.errors import JournalError, JournalRewound
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.postgres.failures import NotKnown
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.links import Link
from turnlock.runtime.journal.postgres.url import place_of

from .cluster import SUPERUSER, Cluster, cluster, ground
from .servers import with_options
from .stories import RUN, append, opened, owned, read, sooner_or_later

SECOND = "second"
NAMES = "synchronous_standby_names"


@contextmanager
def pair() -> Generator[tuple[Cluster, Cluster, str]]:
    """A primary, a standby that follows it, and the URL that names both."""
    with cluster() as primary:
        standby = ground().standby(primary, name=SECOND)
        try:
            standby.start()
            hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
            yield primary, standby, f"postgresql://{SUPERUSER}@{hosts}/postgres"
        finally:
            standby.close()


def set_synchronous(primary: Cluster, names: str) -> None:
    primary.configure(**{NAMES: names})
    primary.reload()


async def setting_is(server: Cluster, value: str) -> bool:
    async with server.session() as connection:
        found: str = await connection.fetchval(f"SHOW {NAMES}")
    return found == value


async def is_followed(primary: Cluster) -> bool:
    async with primary.session() as connection:
        state: str = await connection.fetchval("SELECT sync_state FROM pg_stat_replication")
    return state == "sync"


async def waits_for_a_standby(server: Cluster) -> bool:
    """Whether a commit waits."""
    async with server.session() as connection:
        found = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        )
    return bool(found)


async def cancel_commits(server: Cluster) -> None:
    async with server.session() as connection:
        await connection.execute(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        )


async def cancelled(server: Cluster, journal: PostgresJournal) -> Appended:
    """An append whose commit waits for a standby that never comes, and is cancelled."""
    fence = await owned(journal)
    await asyncio.to_thread(set_synchronous, server, "nobody")
    await sooner_or_later(lambda: setting_is(server, "nobody"))
    waits = asyncio.create_task(append(journal, 1, fence=fence))
    await sooner_or_later(lambda: waits_for_a_standby(server))
    await cancel_commits(server)
    try:
        return await waits
    finally:
        await asyncio.to_thread(set_synchronous, server, "")
        await sooner_or_later(lambda: setting_is(server, ""))


def test_d_36_a_commit_that_was_cancelled_while_a_standby_is_waited_for_is_not_known() -> None:
    """D-36, section 10: the server calls it a success, with a notice; it is kept here, at least."""

    async def story(server: Cluster) -> None:
        async with opened(server.url, listen="off") as journal:
            with pytest.raises(NotKnown, match="synchronous replication"):
                await cancelled(server, journal)
            assert await read(journal) == [1]

    with cluster() as server:
        asyncio.run(story(server))


def test_d_36_whoever_does_not_listen_to_notices_is_told_that_it_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The negative control: what may be gone after a failover was acknowledged."""

    def deaf(self: Link, _: object, message: object) -> None:
        """Hear nothing."""

    monkeypatch.setattr(Link, "note", deaf)

    async def story(server: Cluster) -> None:
        async with opened(server.url, listen="off") as journal:
            assert await cancelled(server, journal) is Appended.OK

    with cluster() as server:
        asyncio.run(story(server))


def test_d_60_with_a_synchronous_standby_nothing_acknowledged_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """D-60, D-62: killed under load and promoted; runs go on by themselves, fences hold."""
    caplog.set_level(logging.WARNING)
    runs = [Run(run_id=f"run {number}") for number in range(8)]
    told = {run.run_id: 0 for run in runs}

    async def write(journal: PostgresJournal, run: Run, fence: int, until: asyncio.Event) -> None:
        number = 1
        while not until.is_set():
            try:
                answer = await append(journal, number, fence=fence, run=run)
            except JournalError:
                await sooner_or_later(lambda: can_be_read(journal, run))
                number = len(await read(journal, run)) + 1
                assert number > told[run.run_id], "what was read is what was acknowledged, at least"
            else:
                assert answer is Appended.OK
                told[run.run_id] = number
                number += 1

    async def story(primary: Cluster, standby: Cluster, url: str) -> None:
        async with opened(url, listen="off") as journal:
            fences = [await owned(journal, run) for run in runs]
            until = asyncio.Event()
            writing = [
                asyncio.create_task(write(journal, run, fence, until))
                for run, fence in zip(runs, fences, strict=True)
            ]
            await sooner_or_later(enough(told, dict.fromkeys(told, 5)))
            await asyncio.to_thread(primary.kill)
            await asyncio.sleep(0.2)
            await asyncio.to_thread(standby.promote)
            before = dict(told)
            await sooner_or_later(enough(told, {it: count + 5 for it, count in before.items()}))
            until.set()
            await asyncio.gather(*writing)
            for run, fence in zip(runs, fences, strict=True):
                assert len(await read(journal, run)) >= told[run.run_id]
                entry = await journal.entry(run.run_id)
                assert (entry.fence, entry.rewound) == (fence, None)

    with pair() as (primary, standby, url):
        set_synchronous(primary, SECOND)
        asyncio.run(until_followed(primary))
        asyncio.run(story(primary, standby, url))
    assert "another one has taken over" in caplog.text


async def can_be_read(journal: PostgresJournal, run: Run) -> bool:
    """Whether it is known again what is there: what was lost is settled before."""
    try:
        await read(journal, run)
    except JournalError:
        return False
    return True


async def until_followed(primary: Cluster) -> None:
    await sooner_or_later(lambda: is_followed(primary))


def enough(told: dict[str, int], least: dict[str, int]) -> Callable[[], Awaitable[bool]]:
    """Whether each run was told of so many facts."""

    async def reached() -> bool:
        return all(told[run_id] >= count for run_id, count in least.items())

    return reached


async def lag(primary: Cluster, standby: Cluster) -> None:
    """Let the standby have all, and then hear of nothing more."""

    async def caught_up() -> bool:
        async with primary.session() as connection:
            found = await connection.fetchval(
                "SELECT replay_lsn = pg_current_wal_lsn() FROM pg_stat_replication"
            )
        return bool(found)

    await sooner_or_later(caught_up)
    await asyncio.to_thread(standby.stop)


def fail_over(primary: Cluster, standby: Cluster) -> None:
    """Kill the one, and promote the other as it is."""
    primary.kill()
    standby.start()
    standby.promote()


def test_d_62_what_an_asynchronous_standby_has_lost_is_said_and_not_gone_on_from() -> None:
    """D-61, D-62: the next append is `JournalRewound`; the run stands still for everybody."""

    async def story(primary: Cluster, standby: Cluster, url: str) -> None:
        async with opened(url, listen="off") as journal:
            fence = await owned(journal)
            assert await append(journal, 1, fence=fence) is Appended.OK
            await lag(primary, standby)
            assert await append(journal, 2, fence=fence) is Appended.OK
            assert await append(journal, 3, fence=fence) is Appended.OK
            await asyncio.to_thread(fail_over, primary, standby)
            await sooner_or_later(lambda: is_said(journal, fence))
            assert (await journal.entry(RUN.run_id)).rewound is not None
            assert await read(journal) == [1]
            with pytest.raises(JournalRewound):
                await append(journal, 2, fence=fence)
            async with opened(url, listen="off") as other:
                with pytest.raises(JournalRewound):
                    await other.own(RUN.run_id, owner="bob", now=journal.time() + 1e6, lease=1.0)

    with pair() as (primary, standby, url):
        asyncio.run(story(primary, standby, url))


async def is_said(journal: PostgresJournal, fence: int) -> bool:
    """Whether the append after those that are gone says so; never that it was kept."""
    try:
        answer = await append(journal, 4, fence=fence)
    except JournalRewound:
        return True
    except JournalError:
        return False
    raise AssertionError(answer)


def test_d_62_who_remembers_nothing_takes_it_for_a_conflict_and_goes_on() -> None:
    """The negative control: without what it was told, the shorter journal is gone on from."""

    async def story(primary: Cluster, standby: Cluster, url: str) -> None:
        async with opened(url, listen="off") as journal:
            fence = await owned(journal)
            assert await append(journal, 1, fence=fence) is Appended.OK
            await lag(primary, standby)
            assert await append(journal, 2, fence=fence) is Appended.OK
            journal._acknowledged.drop(RUN.run_id)
            await asyncio.to_thread(fail_over, primary, standby)
            answers: list[Appended] = []

            async def answered() -> bool:
                try:
                    answers.append(await append(journal, 3, fence=fence))
                except JournalError:
                    return False
                return True

            await sooner_or_later(answered)
            assert answers == [Appended.CONFLICT]
            assert await append(journal, 2, fence=fence) is Appended.OK

    with pair() as (primary, standby, url):
        asyncio.run(story(primary, standby, url))


def test_a_standby_that_is_not_promoted_yet_keeps_nothing() -> None:
    """Section 10: neither does it open one; once it is promoted, appends go on."""

    async def story(primary: Cluster, standby: Cluster, url: str) -> None:
        async with opened(url, listen="off") as journal:
            fence = await owned(journal)
            assert await append(journal, 1, fence=fence) is Appended.OK
            await lag(primary, standby)
            await asyncio.to_thread(standby.start)
            await asyncio.to_thread(primary.kill)
            with pytest.raises(JournalError):  # it was lost
                await append(journal, 2, fence=fence)
            alone = with_options(standby.url, unsafe="on")
            with pytest.raises(JournalError, match="standby"):
                await PostgresJournal.open(place_of(alone))
            reading = await PostgresJournal.open(place_of(alone), read_only=True)
            assert await read(reading) == [1]
            await reading.close()
            with pytest.raises(JournalError):
                await append(journal, 2, fence=fence)
            await asyncio.to_thread(standby.promote)

            async def goes_on() -> bool:
                try:
                    return await append(journal, 2, fence=fence) is Appended.OK
                except JournalError:
                    return False

            await sooner_or_later(goes_on)
            assert await read(journal) == [1, 2]

    with pair() as (primary, standby, url):
        asyncio.run(story(primary, standby, url))


def test_25006_says_that_nothing_was_kept() -> None:
    """Section 10: of a server that has become one that takes no writes."""

    async def story(server: Cluster) -> None:
        async with opened(server.url, listen="off") as journal:
            fence = await owned(journal)
            assert await append(journal, 1, fence=fence) is Appended.OK
            link = journal._database._facts[0]._link
            assert link is not None
            await link.connection.execute("SET default_transaction_read_only = on")
            with pytest.raises(JournalError, match=r"nothing was written.*25006") as caught:
                await append(journal, 2, fence=fence)
            assert not isinstance(caught.value, NotKnown)
            assert await read(journal) == [1]

    with cluster() as server:
        asyncio.run(story(server))


def test_d_63_an_old_primary_is_not_taken_for_the_new_one_where_it_follows() -> None:
    """D-63: that it does not come back as one is the operator's; as a standby it is passed over."""

    async def story(primary: Cluster, standby: Cluster, url: str) -> None:
        async with opened(url, listen="off") as journal:
            fence = await owned(journal)
            assert await append(journal, 1, fence=fence) is Appended.OK
            await asyncio.to_thread(primary.stop, mode=signal.SIGINT)
            await asyncio.to_thread(standby.promote)
            (primary.data / "standby.signal").touch()
            primary.installed.give(primary.data)
            target = f"host=127.0.0.1 port={standby.port} user={SUPERUSER}"
            primary.configure(primary_conninfo=target, recovery_target_timeline="latest")
            await asyncio.to_thread(primary.start)
        async with opened(url, listen="off") as journal:
            assert await read(journal) == [1]
            fence = await owned(journal)
            assert await append(journal, 2, fence=fence) is Appended.OK
            async with standby.session() as connection:
                count = await connection.fetchval("SELECT count(*) FROM turnlock.appends")
            assert count == 2

    with pair() as (primary, standby, url):
        asyncio.run(story(primary, standby, url))
