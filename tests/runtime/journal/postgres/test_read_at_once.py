"""Runs that were taken are read together: in few statements, of so many bytes (D-13)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from turnlock import Call, OpenTurn, Run
from turnlock.engine.snapshot import Snapshot
from turnlock.runtime.journal import pages
from turnlock.runtime.journal.contract import Journal, RunRead
from turnlock.runtime.journal.postgres.journal import PostgresJournal
from turnlock.runtime.journal.postgres.readers import Readers
from turnlock.runtime.journal.postgres.url import place_of
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.settings import Settings
from turnlock.runtime.submitting import submit
from turnlock.runtime.tools.tool import tool
from turnlock.runtime.tools.toolbox import Toolbox

from ....postgres.servers import journal_url
from ..stage import facts, kept, owned
from .between import Place


@tool
async def act() -> None:
    """Wait for a person, so that nothing is written."""


async def _none(self: Journal, run_ids: Sequence[str]) -> Mapping[str, RunRead]:
    """Read nothing of many: each run is read by itself."""
    _ = self, run_ids
    return {}


async def _left(journal: Journal, count: int) -> None:
    """So many runs that are busy, and that nobody owns."""

    async def one(run_id: str) -> None:
        await journal.declare(Run(run_id=run_id))
        answer = await submit(journal, run_id, _turn(), within=60.0, policies={"act": act.policy})
        assert answer.receipt["accepted"]

    await asyncio.gather(*(one(f"{count}-{n}") for n in range(count)))


def _turn() -> OpenTurn:
    call = Call(invocation_id="a", tool_name="act", arguments={}, requires_approval=True)
    return OpenTurn(turn_id="t", calls=(call,))


async def _asked(journal: Journal, monkeypatch: pytest.MonkeyPatch, count: int) -> int:
    """How often the server is asked, while so many runs are taken over."""
    asked = 0
    ask = Readers.ask

    async def counted(self: Readers, *args: Any, **more: Any) -> Any:
        nonlocal asked
        asked += 1
        return await ask(self, *args, **more)

    async def on_continue(_: object) -> None:
        """Take what nobody asks for."""

    async with Runtime(journal=journal, tools=Toolbox([act]), on_continue=on_continue) as runtime:
        await _left(journal, count)
        with monkeypatch.context() as patched:
            patched.setattr(Readers, "ask", counted)
            assert len(await runtime.take_over()) == count
    return asked


def test_d_13_who_takes_many_asks_no_more_than_who_takes_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control reads each run by itself: then it is asked about each of them.

    A few questions more may be of those who look for posts meanwhile.
    """

    async def story() -> tuple[list[int], int]:
        place = place_of(journal_url(tmp_path))
        async with await PostgresJournal.open(place) as journal:
            together = [await _asked(journal, monkeypatch, count) for count in (2, 20)]
            monkeypatch.setattr(PostgresJournal, "read_runs", _none)
            return together, await _asked(journal, monkeypatch, 21)

    (few, many), alone = asyncio.run(story())
    assert many <= few + 4
    assert alone >= few + 4 * 20


def test_d_13_what_is_read_at_once_fits_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Facts end where a page ends; a run whose snapshot does not fit is left out."""

    async def story() -> None:
        place = place_of(journal_url(tmp_path))
        async with await PostgresJournal.open(place) as journal:
            runs = [Run(run_id=f"run-{n}") for n in range(4)]
            for run in runs:
                fence = await owned(journal, run)
                await kept(journal, facts(1, run_id=run.run_id), fence)
                await kept(journal, facts(1, after=1, run_id=run.run_id), fence)
            names = [run.run_id for run in runs]
            async with Place(tmp_path).connected() as connection:
                size = await connection.fetchval(
                    f"SELECT max(octet_length(facts)) FROM {place.tables.appends}"  # noqa: S608
                )

            monkeypatch.setattr(pages, "PAGE_BYTES", 3 * size)
            found = await journal.read_runs(names)
            assert [len(found[name].facts) for name in names] == [2, 1, 0, 0]

            wide = Snapshot(run=runs[3], sequence=2, epoch=0, grants_issued=0, at=0.0)
            await journal.keep_snapshot(wide, fence=1)
            monkeypatch.setattr(pages, "PAGE_BYTES", size // 2)
            assert sorted(await journal.read_runs(names)) == names[:3]

    asyncio.run(story())


def test_d_13_a_damaged_run_is_left_out_and_says_so_by_itself(tmp_path: Path) -> None:
    """The others are read all the same."""

    async def story() -> None:
        place = place_of(journal_url(tmp_path))
        async with await PostgresJournal.open(place) as journal:
            for name in ("a", "b", "c"):
                fence = await owned(journal, Run(run_id=name))
                await kept(journal, facts(1, run_id=name), fence)
            async with Place(tmp_path).connected() as connection:
                await connection.execute(
                    f"UPDATE {place.tables.appends} SET checksum = checksum + 1"  # noqa: S608
                    f" WHERE run = (SELECT number FROM {place.tables.runs} WHERE run_id = 'a')"
                )
                await connection.execute(
                    f"UPDATE {place.tables.runs} SET run = '{{}}' WHERE run_id = 'b'"  # noqa: S608
                )
            assert list(await journal.read_runs(["a", "b", "c"])) == ["c"]

    asyncio.run(story())


@pytest.mark.parametrize("at_once", [True, False])
def test_d_13_one_run_that_is_opened_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, at_once: bool
) -> None:
    """Its snapshot, its facts and its row are no questions of their own; the control asks them."""

    async def refused(self: PostgresJournal, *args: Any, **more: Any) -> Any:
        raise AssertionError((self, args, more))

    async def on_continue(_: object) -> None:
        """Take what nobody asks for."""

    async def story() -> None:
        async with await PostgresJournal.open(place_of(journal_url(tmp_path))) as journal:
            await _left(journal, 1)
            for name in ("snapshot", "read", "read_to_fold"):
                monkeypatch.setattr(PostgresJournal, name, refused)
            if not at_once:
                monkeypatch.setattr(PostgresJournal, "read_runs", _none)
            async with Runtime(
                journal=journal,
                tools=Toolbox([act]),
                on_continue=on_continue,
                settings=Settings(takes_over=False),
            ) as runtime:
                if at_once:
                    await runtime.open_run(Run(run_id="1-0"))
                    assert runtime.runs == ("1-0",)
                    return
                with pytest.raises(AssertionError):
                    await runtime.open_run(Run(run_id="1-0"))

    asyncio.run(story())
