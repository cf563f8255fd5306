"""Leases in PostgreSQL: one row an owner, and which renewal a run is of (D-22, D-49)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from turnlock import Run
from turnlock.runtime.errors import Conflict, JournalOwned, JournalRewound
from turnlock.runtime.journal.contract import Appended, Told
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.url import place_of

from ....postgres.servers import journal_url
from ..stage import LEASE, NOW, RUN, everything, facts, kept, note, owned

Story = Callable[[PostgresJournal], Awaitable[None]]


def play(folder: Path, story: Story) -> None:
    async def run() -> None:
        async with await PostgresJournal.open(place_of(journal_url(folder))) as journal:
            await story(journal)

    asyncio.run(run())


async def asked(folder: Path, statement: str) -> Any:
    """What the database itself says; {} stands for the schema."""
    place = place_of(journal_url(folder))
    connection = await asyncpg.connect(place.dsn)
    try:
        return await connection.fetchval(statement.format(place.tables.quoted))
    finally:
        await connection.close()


async def until(journal: PostgresJournal, run_id: str) -> float | None:
    return (await journal.entry(run_id)).owned_until


def test_d_22_a_renewal_writes_one_row_whatever_it_owns(tmp_path: Path) -> None:
    """No row of a run is written."""
    before = "SELECT string_agg(xmin::text, ',' ORDER BY number) FROM {}.runs"

    async def story(journal: PostgresJournal) -> None:
        names = {f"run-{n}" for n in range(20)}
        for name in names:
            await owned(journal, Run(run_id=name))
        written = await asked(tmp_path, before)
        assert await journal.renew(owner="ada", now=NOW + 20, lease=LEASE) == names
        assert await asked(tmp_path, before) == written
        assert {await until(journal, name) for name in names} == {NOW + 20 + LEASE}

    play(tmp_path, story)


def test_d_22_a_run_is_of_the_renewal_that_it_was_taken_after(tmp_path: Path) -> None:
    """One that was taken since keeps the lease it was taken for, until the next renewal."""

    async def story(journal: PostgresJournal) -> None:
        await owned(journal, RUN)
        await journal.renew(owner="ada", now=NOW, lease=100.0)
        other = Run(run_id="other")
        await owned(journal, other)
        assert (await until(journal, RUN.run_id), await until(journal, "other")) == (
            NOW + 100,
            NOW + LEASE,
        )
        with pytest.raises(JournalOwned):
            await journal.own(RUN.run_id, owner="b", now=NOW + 99, lease=LEASE)
        await journal.own("other", owner="b", now=NOW + LEASE, lease=LEASE)
        assert await journal.renew(owner="ada", now=NOW, lease=200.0) == {RUN.run_id}
        assert await until(journal, "other") == NOW + 2 * LEASE

    play(tmp_path, story)


def test_a_rewound_run_is_not_renewed_with_its_owner(tmp_path: Path) -> None:
    """Its lease ends when it would have ended, whatever its owner renews."""

    async def story(journal: PostgresJournal) -> None:
        await owned(journal, RUN)
        await journal.renew(owner="ada", now=NOW, lease=100.0)
        await journal.mark_rewound(RUN.run_id, why="so")
        assert await journal.renew(owner="ada", now=NOW, lease=500.0) == frozenset()
        assert await until(journal, RUN.run_id) == NOW + 100

    play(tmp_path, story)


@pytest.mark.parametrize("first", ["renew", "own"])
def test_a_renewal_and_a_takeover_at_once_are_one_after_the_other(
    tmp_path: Path, first: str
) -> None:
    """Whoever is told that it has the run has it: never both."""

    async def story(journal: PostgresJournal) -> None:
        await journal.declare(RUN)
        for n in range(20):
            now = NOW + 1_000.0 * n
            await journal.own(RUN.run_id, owner="ada", now=now, lease=LEASE)
            over = now + LEASE

            async def take(over: float = over) -> bool:
                try:
                    await journal.own(RUN.run_id, owner="bob", now=over, lease=LEASE)
                except JournalOwned:
                    return False
                return True

            async def renew(over: float = over) -> bool:
                return RUN.run_id in await journal.renew(owner="ada", now=over, lease=LEASE)

            works = [renew(), take()] if first == "renew" else [take(), renew()]
            told = await asyncio.gather(*works)
            assert sum(told) == 1
            entry = await journal.entry(RUN.run_id)
            took = told[1] if first == "renew" else told[0]
            assert entry.owner == ("bob" if took else "ada")
            await journal.release(RUN.run_id, fence=entry.fence)

    play(tmp_path, story)


def test_d_49_an_owner_lets_go_of_all_at_once(tmp_path: Path) -> None:
    async def story(journal: PostgresJournal) -> None:
        for n in range(3):
            await owned(journal, Run(run_id=f"mine-{n}"))
        await owned(journal, RUN, owner="b")
        await journal.declare(Run(run_id="nobodys"))
        assert await journal.release_all(owner="ada") == {"mine-0", "mine-1", "mine-2"}
        assert [it.owner async for it in journal.run_entries()] == [None] * 3 + ["b", None]
        assert await journal.release_all(owner="nobody") == frozenset()

    play(tmp_path, story)


def test_d_62_a_journal_that_ends_before_what_it_acknowledged_is_rewound(tmp_path: Path) -> None:
    """It is marked, and nobody goes on with it."""

    async def story(journal: PostgresJournal) -> None:
        fence = await owned(journal)
        await kept(journal, facts(2), fence)
        await kept(journal, facts(3, after=2), fence)
        await asked(tmp_path, "DELETE FROM {}.appends WHERE last > 2")
        await asked(tmp_path, "UPDATE {}.runs SET sequence = 2")
        with pytest.raises(JournalRewound, match="acknowledged fact 5, and ends with fact 2"):
            await journal.append(
                RUN.run_id, fence=fence, after=5, facts=facts(1, after=5), busy=True
            )
        assert (await journal.entry(RUN.run_id)).rewound is not None
        with pytest.raises(JournalRewound):
            await journal.own(RUN.run_id, owner="b", now=NOW + 99, lease=LEASE)

    play(tmp_path, story)


def told_again() -> Told:
    """An append with notes, in the middle of it and at its end."""
    notes = (note("a", id="a", after=2), note("b"), note("c"))
    return Told(facts=facts(3, after=1), notes=notes, busy=False)


def test_d_62_the_owner_keeps_anew_what_it_was_told(tmp_path: Path) -> None:
    """Each fact and note as it was, under a token above all that were given; and it goes on."""

    async def story(journal: PostgresJournal) -> None:
        fence = await owned(journal)
        await kept(journal, facts(1), fence)
        await journal.mark_rewound(RUN.run_id, why="it is shorter")
        new = await journal.restore(
            RUN.run_id,
            owner="ada",
            fence=fence + 5,
            now=NOW,
            lease=LEASE,
            after=1,
            parts=0,
            told=told_again(),
        )
        assert new == fence + 6
        assert await everything(journal) == facts(4)
        assert [str(it.cursor) for it in await journal.notes(RUN.run_id)] == ["2.1", "4.1", "4.2"]
        entry = await journal.entry(RUN.run_id)
        assert (entry.rewound, entry.owner, entry.busy, entry.fence) == (None, "ada", False, new)
        late = await journal.append(
            RUN.run_id, fence=fence, after=4, facts=facts(1, after=4), busy=True
        )
        assert late is Appended.FENCED
        await kept(journal, facts(1, after=4), new)
        assert await journal.check() == ()
        assert journal.rewinds

    play(tmp_path, story)


def test_d_62_what_does_not_follow_is_not_restored(tmp_path: Path) -> None:
    """All stays as it was, the mark and the owner, too."""

    async def story(journal: PostgresJournal) -> None:
        fence = await owned(journal)
        await kept(journal, facts(1), fence)
        await journal.mark_rewound(RUN.run_id, why="it is shorter")
        before = await journal.entry(RUN.run_id)
        elsewhere = Told(facts=facts(1, after=3), busy=True)
        for after, parts, told in ((2, 0, Told()), (1, 1, Told()), (1, 0, elsewhere)):
            with pytest.raises(Conflict):
                await journal.restore(
                    RUN.run_id, owner="ada", fence=fence, now=NOW, lease=LEASE, after=after,
                    parts=parts, told=told,
                )  # fmt: skip
        with pytest.raises(JournalOwned):
            await journal.restore(
                RUN.run_id,
                owner="b",
                fence=fence,
                now=NOW,
                lease=LEASE,
                after=1,
                parts=0,
                told=Told(),
            )
        assert await journal.entry(RUN.run_id) == before
        assert await everything(journal) == facts(1)

    play(tmp_path, story)
