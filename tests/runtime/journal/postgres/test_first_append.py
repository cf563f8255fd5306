"""The first append of a journal: its connection is there, and the driver has asked for all types.

And what is large goes beside the rows of its group, each to its own run.
"""

# Looks inside: at the lane of facts.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from turnlock import Run
from turnlock.models.record import changed
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import Appended
from turnlock.runtime.journal.postgres import appends, database
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.lanes import Lane
from turnlock.runtime.journal.postgres.url import place_of

from ....postgres.cluster import Cluster, cluster
from ....postgres.proxy import Proxy, proxy
from ....postgres.servers import journal_url, with_options
from ....postgres.stories import sooner_or_later
from ..stage import RUN, everything, facts, kept, note, owned

ASKS_FOR_TYPES = "typeinfo_tree"
"""What the driver calls it when it asks a server for types."""


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


def lane_of(journal: PostgresJournal) -> Lane:
    return journal._database._facts[0]


async def connected(journal: PostgresJournal) -> None:
    async def reached() -> bool:
        return lane_of(journal)._link is not None

    await sooner_or_later(reached)


async def no_look(*_: object) -> None:
    """Ask for nothing before it is needed."""


@pytest.mark.parametrize("looks", [True, False])
def test_d_33_the_first_append_waits_for_no_connection(
    way: Proxy, monkeypatch: pytest.MonkeyPatch, *, looks: bool
) -> None:
    """It is made while the run is taken, and knows the types; the control asks for them then."""
    if not looks:
        monkeypatch.setattr(database, "look_types_up", no_look)

    def asked() -> int:
        return sum(ASKS_FOR_TYPES in it for it in way.statements)

    async def story() -> None:
        place = place_of(with_options(way.url, unsafe="on", listen="off"))
        async with await PostgresJournal.open(place) as journal:
            assert lane_of(journal)._link is None
            fence = await owned(journal)
            await connected(journal)
            connections, before = way.connections, asked()
            for after, notes in ((0, ()), (1, (note(id="n"),))):
                answer = await journal.append(
                    RUN.run_id, fence=fence, after=after, facts=facts(1, after=after), busy=True,
                    notes=notes,
                )  # fmt: skip
                assert answer is Appended.OK
            assert way.connections == connections
            assert (asked() == before) is looks

    asyncio.run(story())


def test_d_40_a_connection_that_cannot_be_made_ready_tells_the_first_append(
    tmp_path: Path,
) -> None:
    """What the server has against appends is said to whoever appends, and goes away with it."""

    async def story() -> None:
        place = place_of(journal_url(tmp_path))
        tables = place.tables
        async with await PostgresJournal.open(place) as journal:
            await journal._database.write(
                lambda it: it.execute(f"ALTER TYPE {tables.asked} RENAME TO other")
            )
            fence = await owned(journal)
            await connected(journal)
            with pytest.raises(JournalError, match="nothing was written"):
                await kept(journal, facts(1), fence)
            await journal._database.write(
                lambda it: it.execute(f"ALTER TYPE {tables.schema}.other RENAME TO asked")
            )
            await kept(journal, facts(1), fence)
            assert await everything(journal) == facts(1)

    asyncio.run(story())


def text_of(number: int) -> str:
    """What a fact of a run names: for every second one far more than stands in a row."""
    return f"turn-{number}" + "x" * (number % 2) * 2 * appends.LARGE


def test_d_31_what_is_large_is_kept_with_its_own_run(tmp_path: Path) -> None:
    """Of a group in which some are large, and one is refused, each has what was appended to it."""

    async def story() -> None:
        async with await PostgresJournal.open(place_of(journal_url(tmp_path))) as journal:
            runs = [Run(run_id=f"run-{n}") for n in range(8)]
            fences = [await owned(journal, run) for run in runs]
            told = [
                [changed(facts(1, run_id=run.run_id)[0], turn_id=text_of(number))]
                for number, run in enumerate(runs)
            ]
            await kept(journal, told[0], fences[0])
            groups = journal.counts.groups
            answers = await asyncio.gather(
                *(
                    journal.append(
                        run.run_id, fence=fence - (run is runs[3]), after=0, facts=some, busy=True
                    )
                    for run, fence, some in zip(runs[1:], fences[1:], told[1:], strict=True)
                )
            )
            assert journal.counts.groups == groups + 1
            assert answers == [
                Appended.FENCED if run is runs[3] else Appended.OK for run in runs[1:]
            ]
            for run, some in zip(runs, told, strict=True):
                assert await everything(journal, run.run_id) == ([] if run is runs[3] else some)

    asyncio.run(story())
