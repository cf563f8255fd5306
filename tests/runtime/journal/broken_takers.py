"""Journals that list or take free runs wrongly, or mix up posts, each in one way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import attrs

from turnlock.runtime.errors import JournalOwned
from turnlock.runtime.journal.contract import FREE, RunEntry, RunRead, Told
from turnlock.runtime.journal.owning import nobody

from ..faulty_journal import WrappedJournal


class FreeAnyway(WrappedJournal):
    """Leases in force count as over."""

    async def free(
        self,
        *,
        now: float,
        gone: Callable[[str], bool] = nobody,
        kind: str | None = None,
        after: str | None = None,
        limit: int = FREE,
    ) -> tuple[RunEntry, ...]:
        return (await self.inner.runs(busy=True, kind=kind, after=after))[:limit]


class CutsFirst(WrappedJournal):
    """A page is cut before the free ones are picked: it may be empty, and more come behind."""

    async def free(
        self,
        *,
        now: float,
        gone: Callable[[str], bool] = nobody,
        kind: str | None = None,
        after: str | None = None,
        limit: int = FREE,
    ) -> tuple[RunEntry, ...]:
        page = await self.inner.runs(busy=True, kind=kind, after=after, limit=limit)
        found = await self.inner.free(now=now, gone=gone, kind=kind, after=after, limit=limit)
        return tuple(entry for entry in found if entry in page)


class AnyKind(WrappedJournal):
    """Runs of all kinds are listed."""

    async def free(
        self,
        *,
        now: float,
        gone: Callable[[str], bool] = nobody,
        kind: str | None = None,
        after: str | None = None,
        limit: int = FREE,
    ) -> tuple[RunEntry, ...]:
        return await self.inner.free(now=now, gone=gone, after=after, limit=limit)


class TakesTheRenewed(WrappedJournal):
    """What was seen to be over is taken, whatever has happened since."""

    async def take(
        self,
        seen: Sequence[RunEntry],
        *,
        owner: str,
        now: float,
        lease: float,
        gone: Collection[str] = (),
    ) -> Mapping[str, int]:
        now_owned = [await self.inner.entry(entry.run.run_id) for entry in seen]
        holders = {entry.owner for entry in now_owned if entry.owner is not None}
        return await self.inner.take(seen, owner=owner, now=now, lease=lease, gone=holders)


class AllOrNone(WrappedJournal):
    """One that is another's keeps all of them from being taken."""

    async def take(
        self,
        seen: Sequence[RunEntry],
        *,
        owner: str,
        now: float,
        lease: float,
        gone: Collection[str] = (),
    ) -> Mapping[str, int]:
        taken = await self.inner.take(seen, owner=owner, now=now, lease=lease, gone=gone)
        if len(taken) < len(seen):
            for run_id, fence in taken.items():
                await self.inner.release(run_id, fence=fence)
            raise JournalOwned("one of them is another's")
        return taken


class TakesInTurn(WrappedJournal):
    """Whoever takes the same runs later is told that it has them, too."""

    async def take(
        self,
        seen: Sequence[RunEntry],
        *,
        owner: str,
        now: float,
        lease: float,
        gone: Collection[str] = (),
    ) -> Mapping[str, int]:
        taken = await self.inner.take(seen, owner=owner, now=now, lease=lease, gone=gone)
        return taken or {entry.run.run_id: entry.fence + 1 for entry in seen}


class ReadsTheFirst(WrappedJournal):
    """What is told of each run is told of the first of them."""

    async def read_runs(self, run_ids: Sequence[str]) -> Mapping[str, RunRead]:
        found = await self.inner.read_runs(run_ids)
        first = next(iter(found.values()), None)
        return {} if first is None else dict.fromkeys(found, first)


class ReadsWithoutSnapshots(WrappedJournal):
    """Facts come from where the snapshot ends, and the snapshot does not."""

    async def read_runs(self, run_ids: Sequence[str]) -> Mapping[str, RunRead]:
        found = await self.inner.read_runs(run_ids)
        return {run_id: attrs.evolve(read, snapshot=None) for run_id, read in found.items()}


class ReadsNoLast(WrappedJournal):
    """The last fact of each run is missing."""

    async def read_runs(self, run_ids: Sequence[str]) -> Mapping[str, RunRead]:
        found = await self.inner.read_runs(run_ids)
        return {run_id: attrs.evolve(read, facts=read.facts[:-1]) for run_id, read in found.items()}


class ReadsTheRemoved(WrappedJournal):
    """A run that was removed is read as one that is empty."""

    async def read_runs(self, run_ids: Sequence[str]) -> Mapping[str, RunRead]:
        known = [entry.run.run_id for entry in await self.inner.runs(forgotten=True)]
        entries = [await self.inner.entry(run_id) for run_id in run_ids if run_id in known]
        removed = {
            entry.run.run_id: RunRead(entry=entry, snapshot=None, facts=())
            for entry in entries
            if entry.forgotten is not None
        }
        return {**removed, **await self.inner.read_runs(run_ids)}


class LetsAllGo(WrappedJournal):
    """Runs of others go with it."""

    async def release_all(self, *, owner: str) -> frozenset[str]:
        for entry in await self.inner.runs():
            await self.inner.release(entry.run.run_id, fence=entry.fence)
        return frozenset()


class AnybodysAnswer(WrappedJournal):
    """A number alone tells a post."""

    async def answered(self, run_id: str, number: int) -> Mapping[str, Any] | None:
        found = [
            await self.inner.answered(entry.run.run_id, number) for entry in await self.inner.runs()
        ]
        return next(filter(None, found), None)


class HearsOnlyHints(WrappedJournal):
    """Who waits is told of something, or never."""

    async def heard(self, timeout: float, *, answer: int | None = None) -> None:  # noqa: ASYNC109 - D-10
        await asyncio.sleep(1_000 * timeout)
        raise TimeoutError(answer)


class RestoresUnderTheSameToken(WrappedJournal):
    """What was lost is kept anew, and whoever wrote before goes on."""

    async def restore(self, run_id: str, **more: Any) -> int:
        await self.inner.restore(run_id, **more)
        fence: int = more["fence"]
        return fence


class RestoresAnywhere(WrappedJournal):
    """Where the run ends is not asked."""

    async def restore(self, run_id: str, **more: Any) -> int:
        entry = await self.inner.entry(run_id)
        more |= {"parts": entry.parts}
        return await self.inner.restore(run_id, **more)


class RestoresFactsAlone(WrappedJournal):
    """The notes that stood beside them are gone."""

    async def restore(self, run_id: str, **more: Any) -> int:
        told: Told = more["told"]
        more["told"] = attrs.evolve(told, notes=())
        return await self.inner.restore(run_id, **more)


_READ: Final = "test_d_13_what_a_recovery_reads_of_many_is_what_each_is_read_as"
_RESTORED: Final = "test_d_62_an_owner_keeps_anew_what_was_lost"

CAUGHT: Final[list[tuple[type[WrappedJournal], str]]] = [
    (FreeAnyway, "test_d_12_what_may_be_taken_is_listed"),
    (CutsFirst, "test_d_12_what_may_be_taken_is_listed_in_pages"),
    (AnyKind, "test_d_12_only_runs_of_the_kind_are_listed"),
    (TakesTheRenewed, "test_d_13_what_was_lost_meanwhile_is_left_out"),
    (AllOrNone, "test_d_13_what_was_lost_meanwhile_is_left_out"),
    (TakesInTurn, "test_d_13_of_many_who_take_the_same_runs_each_gets_others"),
    (ReadsTheFirst, _READ),
    (ReadsWithoutSnapshots, _READ),
    (ReadsNoLast, _READ),
    (ReadsTheRemoved, _READ),
    (LetsAllGo, "test_d_46_all_runs_of_an_owner_are_let_go"),
    (AnybodysAnswer, "test_d_82_a_number_means_something_only_with_its_run"),
    (RestoresUnderTheSameToken, _RESTORED),
    (RestoresAnywhere, _RESTORED),
    (RestoresFactsAlone, _RESTORED),
    (HearsOnlyHints, "test_d_10_who_waits_is_told_at_the_latest_after_the_time"),
]
