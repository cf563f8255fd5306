"""The server is killed under load: what was acknowledged is read, each round (section 10, 15)."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from typing import Final

import attrs
import pytest

from turnlock import Run
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.postgres import links
from turnlock.runtime.journal.postgres.journal import PostgresJournal

from .cluster import SAFE, Cluster, cluster
from .stories import append, opened, owned, read, sooner_or_later

DEEP: Final = os.environ.get("TURNLOCK_CRASHES") == "deep"
ROUNDS: Final = 40 if DEEP else 2
LUCKLESS: Final = ROUNDS + 20
"""Rounds after which no more is hoped for one in which an append was under way."""
RUNS: Final = [Run(run_id=f"run {number}") for number in range(20)]
LATER: Final = {"wal_writer_delay": "10s"}
"""So that a commit that does not wait for the disk is lost with the processes."""


@attrs.define
class Writer:
    """Appends to one run, one fact after the other, and remembers what it was told."""

    journal: PostgresJournal
    run: Run
    fence: int
    told: int = 0
    """The last fact that was acknowledged."""
    unknown: int = 0
    """Appends of which it was not told."""

    async def write(self, until: asyncio.Event) -> None:
        """Append until it is enough."""
        while not until.is_set():
            try:
                answer = await append(self.journal, self.told + 1, fence=self.fence, run=self.run)
            except JournalError:
                self.unknown += 1
                await self._look(until)
            else:
                assert answer is Appended.OK
                self.told += 1

    async def _look(self, until: asyncio.Event) -> None:
        """Read what is there, once that can be."""
        while not until.is_set():
            try:
                found = len(await read(self.journal, self.run))
            except JournalError:
                await asyncio.sleep(0.02)
                continue
            assert found in {self.told, self.told + 1}, (self.run, self.told, found)
            self.told = found
            return


async def more_is_told(writers: Sequence[Writer]) -> None:
    """Wait until a fact more of each run is acknowledged: until every lane has a server again."""
    before = [it.told for it in writers]

    async def enough() -> bool:
        return all(it.told > was for it, was in zip(writers, before, strict=True))

    await sooner_or_later(enough)


async def load(server: Cluster, journal: PostgresJournal, seed: int) -> Sequence[Writer]:
    """Write, kill, begin again, so often, and until an append was under way at one of the kills."""
    draw = random.Random(seed)
    writers = [Writer(journal, run, await owned(journal, run)) for run in RUNS]
    for number in range(LUCKLESS):
        if number >= ROUNDS and journal._database.counts.unknown > 0:
            break
        until = asyncio.Event()
        writing = [asyncio.create_task(it.write(until)) for it in writers]
        await more_is_told(writers)
        await asyncio.sleep(draw.uniform(0.0, 0.1))
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        await more_is_told(writers)
        until.set()
        await asyncio.gather(*writing)
        for writer in writers:
            found = len(await read(journal, writer.run))
            assert found in {writer.told, writer.told + 1}
            writer.told = found
    return writers


@pytest.mark.parametrize("seed", range(4) if DEEP else range(1))
@pytest.mark.parametrize("lanes", ["1", "2"] if DEEP else ["2"])
def test_d_60_what_was_acknowledged_is_read_after_each_kill(lanes: str, seed: int) -> None:
    """D-60, D-41: however a database would have it (D-36); with one lane and with two."""

    async def story(server: Cluster) -> None:
        async with opened(server.url, unsafe="off", listen="off", lanes=lanes) as journal:
            writers = await load(server, journal, seed)
            assert journal._database.counts.unknown > 0, "nothing was under way at any kill"
            for writer in writers:
                answer = await append(journal, writer.told + 1, fence=writer.fence, run=writer.run)
                assert answer is Appended.OK

    with cluster(**SAFE, **LATER) as server:
        server.sql("ALTER DATABASE postgres SET synchronous_commit = 'off'")
        asyncio.run(story(server))


def test_without_waiting_for_the_disk_a_kill_loses_what_was_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The negative control (D-36): a journal that lets the database say what a commit waits for."""
    monkeypatch.setattr(links, "_SET", "SELECT 1")

    async def kept(server: Cluster, number: int) -> int:
        run = Run(run_id=f"run {number}")
        async with opened(server.url, listen="off") as journal:
            fence = await owned(journal, run)
            assert await append(journal, 1, fence=fence, run=run) is Appended.OK
            await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        async with server.session() as connection:
            there = await connection.fetchval("SELECT to_regclass('turnlock.appends')")
            query = "SELECT count(*) FROM turnlock.appends" if there else "SELECT 0"
            found: int = await connection.fetchval(query)
            return found

    async def story(server: Cluster) -> None:
        for told in range(1, 6):  # the server writes each 10 s: seldom just before the kill
            if await kept(server, told) < told:
                return
        raise AssertionError("all that was acknowledged was there")

    with cluster(**SAFE, **LATER) as server:
        server.sql("ALTER DATABASE postgres SET synchronous_commit = 'off'", "CHECKPOINT")
        asyncio.run(story(server))
