"""A journal is copied into another, whatever kind either is, and goes on there alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.runtime.journal.stage import RUN, facts, kept, said

from turnlock import Run
from turnlock.runtime import JournalError, JournalRewound, MemoryJournal, copying_run
from turnlock.runtime.copying import LOG, Copied, NotCopied, copied_half, copy_journal
from turnlock.runtime.journal.contract import Journal
from turnlock.runtime.owners import new_owner

from .filled import EMPTY, GONE, LONG, PAIRS, STOOD, WHY, fill, held, place


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a run is copied in several."""
    monkeypatch.setattr(copying_run, "BATCH", 7)


async def copied(source: Journal, target: Journal) -> Copied:
    """Copy it."""
    return await copy_journal(source, target, origin="here", place="there")


def between(
    kinds: tuple[str, str], folder: Path, story: Callable[[Journal, Journal], Awaitable[None]]
) -> None:
    """Tell the story of a journal that holds some of everything, and of an empty one."""

    async def run() -> None:
        async with (
            await place(kinds[0], folder / "from") as source,
            await place(kinds[1], folder / "to") as target,
        ):
            await fill(source)
            await story(source, target)

    asyncio.run(run())


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_all_is_copied_as_the_same_bytes(tmp_path: Path, kinds: tuple[str, str]) -> None:
    """Facts, notes, gaps, snapshots, posts, marks, workers and logs (D-20); it goes on there."""

    async def story(source: Journal, target: Journal) -> None:
        before = await held(source)
        done = await copied(source, target)

        assert await held(target) == before
        assert (done.runs, done.logs, done.entries, done.before) == (4, 2, 6, False)
        assert (await target.entry(GONE)).forgotten == (await source.entry(GONE)).forgotten
        assert (await target.entry(STOOD)).rewound == WHY
        assert await target.check() == await _found(STOOD, WHY)
        assert await copied_half(target) is None
        fence = await target.own(LONG, owner="eve", now=2_000.0, lease=1.0)
        await kept(target, facts(1, after=40, run_id=LONG), fence)

    between(kinds, tmp_path, story)


async def _found(run_id: str, why: str) -> Any:
    """What check tells of a journal with one rewound run."""
    async with MemoryJournal() as journal:
        await journal.declare(Run(run_id=run_id))
        await journal.mark_rewound(run_id, why=why)
        return await journal.check()


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_fencing_tokens_go_on_behind_those_that_were_given_out(
    tmp_path: Path, kinds: tuple[str, str]
) -> None:
    """Tools may have handed them to other services."""

    async def story(source: Journal, target: Journal) -> None:
        await source.outdo(LONG, fence=1 << 40)
        last = await source.own(LONG, owner="ada", now=1.0, lease=1.0)
        await copied(source, target)
        assert await target.own(LONG, owner="eve", now=2_000.0, lease=1.0) > last

    between(kinds, tmp_path, story)


@pytest.mark.parametrize("kinds", PAIRS, ids="-".join)
def test_nobody_goes_on_with_the_original(tmp_path: Path, kinds: tuple[str, str]) -> None:
    """Each of its runs says where it went: nobody owns it, writes it, or posts to it."""

    async def story(source: Journal, target: Journal) -> None:
        await copied(source, target)
        for run_id in (RUN.run_id, EMPTY, LONG, STOOD):
            with pytest.raises(JournalRewound) as refused:
                await source.own(run_id, owner="eve", now=9e12, lease=1.0)
            assert (WHY if run_id == STOOD else "moved to there") in str(refused.value)
            with pytest.raises(JournalRewound):
                await source.note(run_id, fence=None, notes=[said("more")])
            entry = await source.entry(run_id)
            if run_id != STOOD:  # nobody takes it to restore it either, however late
                assert str(entry.owner).startswith("moved:")
                assert (entry.owned_until or 0.0) > source.time() + 1e9
        with pytest.raises(JournalRewound):
            await source.append(
                LONG, fence=None, after=40, facts=facts(1, after=40, run_id=LONG), busy=True
            )

    between(kinds, tmp_path, story)


def test_the_same_again_changes_nothing(tmp_path: Path) -> None:
    """It was copied, and has gone on since."""

    async def story(source: Journal, target: Journal) -> None:
        await copied(source, target)
        await target.note(EMPTY, fence=None, notes=[said("it goes on")])
        before = await held(target)
        assert (await copied(source, target)).before
        assert await held(target) == before

    between(("sqlite", "sqlite"), tmp_path, story)


def test_there_and_back(tmp_path: Path) -> None:
    """Into a third journal; the first one is not taken for it."""

    async def story(source: Journal, target: Journal) -> None:
        before = await held(source)
        await copied(source, target)
        async with MemoryJournal() as third:
            await copied(target, third)
            assert await held(third) == before
        with pytest.raises(NotCopied, match="moved to there before"):
            await copied(source, MemoryJournal())
        with pytest.raises(NotCopied, match="the target has 4 runs"):
            await copied(await _with_runs(), target)

    between(("sqlite", "memory"), tmp_path, story)


async def _with_runs() -> Journal:
    journal = MemoryJournal()
    for run_id in (RUN.run_id, EMPTY, LONG, STOOD, "new"):
        await journal.declare(Run(run_id=run_id))
    return journal


def test_a_source_that_somebody_performs_is_refused(tmp_path: Path) -> None:
    """Nothing is changed then: it goes on."""

    async def story(source: Journal, target: Journal) -> None:
        owner = new_owner()
        fence = await source.own(LONG, owner=owner, now=source.time(), lease=60.0)
        with pytest.raises(NotCopied, match=r"1 runs \(.*\) are performed: end those"):
            await copied(source, target)
        await kept(source, facts(1, after=40, run_id=LONG), fence)
        assert await target.runs() == ()
        assert await target.logs() == ()

    between(("sqlite", "memory"), tmp_path, story)


def test_a_target_that_has_such_a_run_is_refused(tmp_path: Path) -> None:
    """Whosever it is; nothing is changed then."""

    async def story(source: Journal, target: Journal) -> None:
        await target.declare(Run(run_id=LONG))
        with pytest.raises(NotCopied, match=r"the target has 1 runs \('long\\n'\) already"):
            await copied(source, target)
        assert (await source.entry(EMPTY)).owner is None
        assert (await target.entry(LONG)).owner is None

    between(("memory", "memory"), tmp_path, story)


def test_a_journal_is_not_copied_into_itself(tmp_path: Path) -> None:
    """By whatever name: here it is opened twice."""

    async def story(source: Journal, _: Journal) -> None:
        async with await place("sqlite", tmp_path / "from") as same:
            with pytest.raises(NotCopied, match="the same journal"):
                await copied(source, same)

    between(("sqlite", "memory"), tmp_path, story)


def test_a_copy_that_differs_is_told(tmp_path: Path) -> None:
    """The negative control: what is read back is held against the original."""

    class Wrong(MemoryJournal):
        """It keeps notes a second too late."""

        async def note(self, run_id: str, *, fence: int | None, notes: Any) -> Any:
            late = [attrs.evolve(it, at=it.at + 1.0) for it in notes]
            return await super().note(run_id, fence=fence, notes=late)

    async def story(source: Journal, _: Journal) -> None:
        async with Wrong() as wrong:
            with pytest.raises(NotCopied, match="is not the same"):
                await copied(source, wrong)
            assert (await wrong.entry(EMPTY)).owner is not None
            assert await copied_half(wrong) == "here"

    between(("memory", "memory"), tmp_path, story)


def test_a_journal_that_keeps_no_gaps_is_told(tmp_path: Path) -> None:
    class Gapless(MemoryJournal):
        """It has what `Journal` has."""

        skip = Journal.skip

    async def story(source: Journal, _: Journal) -> None:
        async with Gapless() as target:
            with pytest.raises(JournalError, match="cannot keep a gap of 1 notes"):
                await copied(source, target)

    between(("memory", "memory"), tmp_path, story)


def test_what_comes_while_it_is_copied_comes_along(tmp_path: Path) -> None:
    """A note and a run that were kept behind the first look, and a post."""

    class Late(MemoryJournal):
        """Something is kept in the source whenever the target is given a snapshot."""

        source: Journal

        async def keep_snapshot(self, snapshot: Any, *, fence: int | None) -> Any:
            await self.source.declare(Run(run_id="late"))
            await self.source.post(LONG, _tick())
            return await super().keep_snapshot(snapshot, fence=fence)

    async def story(source: Journal, _: Journal) -> None:
        async with Late() as target:
            target.source = source
            await copied(source, target)
            assert await held(target) == await held(source)
            assert (await target.entry("late")).owner is None
            assert len(await target.posts([LONG])) >= 1

    between(("memory", "memory"), tmp_path, story)


def _tick() -> Any:
    from turnlock.models.deliveries import Tick  # noqa: PLC0415

    return Tick()


def test_what_says_how_far_it_is_stays_where_it_is(tmp_path: Path) -> None:
    """The log of copies of the one is not that of the other."""

    async def story(source: Journal, target: Journal) -> None:
        await copied(source, target)
        here = [it.entry_id.partition("/")[0] for it in await source.entries(LOG)]
        there = [it.entry_id.partition("/")[0] for it in await target.entries(LOG)]
        assert (here, there) == (["token", "moved"], ["begun", "proved", "whole"])

    between(("memory", "memory"), tmp_path, story)
