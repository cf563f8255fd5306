"""What is asked while a journal is in use is answered from an index, by the server's own plan.

Of the tables that are long: each statement is explained, with what it was asked, in a journal of
some thousands of runs. `check` and `status` look at all there is.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from turnlock import Decide, Run
from turnlock.runtime.journal.ledger import Cursor
from turnlock.runtime.journal.postgres import database
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.links import Link, open_link
from turnlock.runtime.journal.postgres.tables import PERIOD, Tables
from turnlock.runtime.journal.postgres.url import Place, place_of
from turnlock.views.status import Status

from ....postgres.servers import journal_url
from ..latest_runs import IDLE, asks
from ..stage import LEASE, NOW, RUN, facts, kept, owned, said

MANY: Final = 5_000
"""Runs beside those of the story: enough for the server to prefer an index where there is one."""
LONG: Final = ("runs", "appends", "snapshots", "notes", "posts", "entries")
"""The tables that grow with what was done."""

Asked = tuple[str, Sequence[Any]]


def fill(tables: Tables) -> str:
    """What makes many runs, of which few wait for a person or have something under way."""
    return f"""
        INSERT INTO {tables.runs} (key, run_id, run, checksum, kind, sequence, told, busy, began,
            changed, period, interrupted, status, waiting, doubts, asked_since)
        SELECT sha256(n::text::bytea), n::text::bytea, '', 0, 'own', 5, 5, n % 100 = 0, n, n * 10,
            {PERIOD.format("n * 10")}, n % 500 = 1, CASE WHEN n % 200 = 0 THEN 'awaiting_approval'
            WHEN n % 100 = 0 THEN 'executing' WHEN n % 500 = 1 THEN 'interrupted' ELSE 'idle' END,
            (n % 200 = 0)::int, 0, CASE WHEN n % 200 = 0 THEN n END
            FROM generate_series(1, {MANY}) n;
        INSERT INTO {tables.appends} SELECT number, 1, 5, '', 0 FROM {tables.runs};
        INSERT INTO {tables.snapshots} SELECT number, 5, '', 0 FROM {tables.runs};
        INSERT INTO {tables.notes} (run, sequence, part, at, domain, checksum, content)
            SELECT number, 5, 1, 0, 'item', 0, '' FROM {tables.runs};
        INSERT INTO {tables.posts} (run, delivery, checksum, receipt, receipt_checksum)
            SELECT number, '', 0, CASE WHEN number % 100 > 0 THEN ''::bytea END, 0
            FROM {tables.runs};
        INSERT INTO {tables.entries} (log, number, key, entry_id, at, body, checksum)
            SELECT 99, n, sha256(n::text::bytea), n::text::bytea, 0, '', 0
            FROM generate_series(1, {MANY}) n;
        ANALYZE {", ".join(getattr(tables, name) for name in LONG)}"""  # noqa: S608 - ours


async def use(journal: PostgresJournal) -> None:
    """All that hosts, people and retention ask of a journal, time and again."""
    fence = await owned(journal)
    await journal.renew(owner="ada", now=NOW, lease=LEASE)
    await kept(journal, facts(3), fence)
    await journal.append(
        RUN.run_id, fence=fence, after=3, facts=facts(1, after=3), busy=asks(5.0), notes=[said("a")]
    )
    await journal.note(RUN.run_id, fence=fence, notes=[said("b")])
    decide = Decide(turn_id="t", invocation_id="c", approved=True)
    number = await journal.post(RUN.run_id, decide)
    assert [it.number for it in await journal.posts([RUN.run_id])] == [number]
    await journal.answer(RUN.run_id, number, {"accepted": True})
    assert await journal.answered(RUN.run_id, number)
    assert await journal.posted(RUN.run_id, number)
    await journal.findings(RUN.run_id)

    assert len(await journal.read(RUN.run_id)) == 4
    assert await journal.snapshot(RUN.run_id) is None
    assert set(await journal.read_runs([RUN.run_id, "none"])) == {RUN.run_id}
    await journal.ends([RUN.run_id])
    await journal.notes(RUN.run_id, after=Cursor(0, 0))
    await journal.entry(RUN.run_id)
    await journal.runs(after=RUN.run_id)
    await journal.runs(busy=True)
    await journal.free(now=NOW)
    for status in (None, *Status):
        for waiting in (None, True, False):
            page = await journal.latest(status=status, waiting=waiting, limit=5)
            if page.next is not None:
                await journal.latest(status=status, waiting=waiting, before=page.next, limit=5)

    await journal.append(RUN.run_id, fence=fence, after=4, facts=facts(1, after=4), busy=IDLE)
    await journal.release(RUN.run_id, fence=fence)
    await journal.forget(RUN.run_id, fence=fence, after=5, at=NOW)
    await journal.declare(Run(run_id="last"))
    await journal.release_all(owner="ada")
    await journal.append_entry("log", "one", {}, at=NOW)
    assert len(await journal.entries("log")) == 1
    assert await journal.find_entry("log", "one")


def scans(plan: dict[str, Any]) -> Iterator[str]:
    """The tables that a plan reads from one end to the other."""
    if plan["Node Type"] == "Seq Scan":
        yield plan["Relation Name"]
    for part in plan.get("Plans", ()):
        yield from scans(part)


async def scanned(folder: Path, monkeypatch: pytest.MonkeyPatch, *, without: str = "") -> set[str]:
    """What is scanned by what is asked, each with its table; without an index, say."""
    asked: list[Asked] = []

    async def listening(place: Place, *, reads: bool = False) -> Link:
        link = await open_link(place, reads=reads)
        link.connection.add_query_logger(lambda it: asked.append((it.query, it.args)))
        return link

    place = place_of(journal_url(folder))
    await (await PostgresJournal.open(place)).close()
    person: Any = await asyncpg.connect(place.dsn)
    try:
        await person.execute(fill(place.tables))
        if without:
            await person.execute(f"DROP INDEX {place.tables.quoted}.{without}")
        monkeypatch.setattr(database, "open_link", listening)
        async with await PostgresJournal.open(place) as journal:
            await use(journal)
        told = [it for it in asked if place.tables.quoted in it[0]]
        assert len(told) > 100
        found: set[str] = set()
        for query, args in told:
            plans = json.loads(await person.fetchval(f"EXPLAIN (FORMAT JSON) {query}", *args))
            found |= {f"{it}: {query}" for it in scans(plans[0]["Plan"]) if it in LONG}
    finally:
        await person.close()
    return found


def test_what_is_asked_time_and_again_is_answered_from_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asyncio.run(scanned(tmp_path, monkeypatch)) == set()


@pytest.mark.parametrize(
    ("index", "table"),
    [
        ("runs_changed", "runs"),
        ("runs_waiting", "runs"),
        ("runs_interrupted", "runs"),
        ("posts_of_run", "posts"),
    ],
)
def test_without_one_it_would_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str, table: str
) -> None:
    """The negative control."""
    found = asyncio.run(scanned(tmp_path, monkeypatch, without=index))

    assert found
    assert {it.partition(":")[0] for it in found} == {table}
