"""Journals that each break one promise about ledgers, around one that keeps them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from turnlock.models.fact import Fact
from turnlock.runtime.journal.contract import PAGE, Appended, Busy, Journal, RunEntry, RunsPage
from turnlock.runtime.journal.ledger import START, Cursor, Domain, LedgerPage, Note, Noted
from turnlock.views.status import Status

from ..faulty_journal import WrappedJournal


class AnybodyNotes(WrappedJournal):
    """Whoever notes is taken for the owner."""

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        entry = await self.inner.entry(run_id)
        fence = None if entry.owner is None else entry.fence
        return await self.inner.note(run_id, fence=fence, notes=notes)


class NotesBeforeFacts(WrappedJournal):
    """The notes of an append are kept first, whatever becomes of its facts."""

    async def append(
        self,
        run_id: str,
        *,
        fence: int | None,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        **more: Any,
    ) -> Appended:
        for it in more.pop("notes", ()):
            alone = attrs.evolve(it, after=None)
            if await self.inner.note(run_id, fence=fence, notes=[alone]) is not Appended.OK:
                return Appended.CONFLICT
        return await self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )


class NotesAtTheEnd(WrappedJournal):
    """Where a note says that it stands is not asked."""

    async def append(
        self,
        run_id: str,
        *,
        fence: int | None,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        **more: Any,
    ) -> Appended:
        more["notes"] = [attrs.evolve(it, after=None) for it in more.get("notes", ())]
        return await self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )


class OneByOne(WrappedJournal):
    """Notes that come together are kept one by one."""

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        for it in notes:
            answer = await self.inner.note(run_id, fence=fence, notes=[it])
            if answer is not Appended.OK:
                return answer
        return Appended.OK


class AnyContent(WrappedJournal):
    """Another note of the same id is dropped with an OK."""

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        kept = await self.inner.note(run_id, fence=fence, notes=notes)
        return Appended.OK if kept is Appended.CONFLICT else kept


class ForgetsIds(WrappedJournal):
    """An id is none."""

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        named = [attrs.evolve(it, id=None) for it in notes]
        return await self.inner.note(run_id, fence=fence, notes=named)


class ForgetsCorrelations(WrappedJournal):
    """What facts are about is dropped."""

    async def append(
        self,
        run_id: str,
        *,
        fence: int | None,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        **more: Any,
    ) -> Appended:
        more.pop("correlations", None)
        return await self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )


class ShowsManifests(WrappedJournal):
    """Manifests are shown like any note."""

    async def ledger(
        self,
        run_id: str,
        *,
        after: Cursor = START,
        limit: int = PAGE,
        manifests: bool = False,
    ) -> LedgerPage:
        return await self.inner.ledger(run_id, after=after, limit=limit, manifests=True)


class EndsAtAManifest(WrappedJournal):
    """The end is that of the latest entry, shown or not."""

    async def ends(self, run_ids: Sequence[str]) -> Mapping[str, Cursor]:
        found = await self.inner.ends(run_ids)
        entries = [await self.inner.entry(run_id) for run_id in found]
        return {it.run.run_id: Cursor(it.sequence, it.parts) for it in entries}


class PagesWithinSequences(WrappedJournal):
    """A page begins behind the fact of its cursor, and not behind its note."""

    async def ledger(
        self, run_id: str, *, after: Cursor = START, limit: int = PAGE, manifests: bool = False
    ) -> LedgerPage:
        return await self.inner.ledger(
            run_id, after=Cursor(after.sequence), limit=limit, manifests=manifests
        )


class TellsNoGaps(WrappedJournal):
    """What was pruned leaves nothing."""

    async def ledger(
        self, run_id: str, *, after: Cursor = START, limit: int = PAGE, manifests: bool = False
    ) -> LedgerPage:
        page = await self.inner.ledger(run_id, after=after, limit=limit, manifests=manifests)
        return attrs.evolve(page, gaps=())


class EndsBeforeTheGap(WrappedJournal):
    """An end is that of an entry which is there still."""

    async def ends(self, run_ids: Sequence[str]) -> Mapping[str, Cursor]:
        found = dict(await self.inner.ends(run_ids))
        for run_id in found:
            page = await self.inner.ledger(run_id, limit=100_000)
            found[run_id] = max((it.cursor for it in page.entries), default=START)
        return found


class PrunesTooSoon(WrappedJournal):
    """Time runs faster for what is old."""

    async def prune(self, run_id: str, *, fence: int | None, now: float) -> int:
        return await self.inner.prune(run_id, fence=fence, now=2 * now + 1e7)


class AnybodyPrunes(WrappedJournal):
    """Whoever prunes is taken for the owner."""

    async def prune(self, run_id: str, *, fence: int | None, now: float) -> int:
        entry = await self.inner.entry(run_id)
        return await self.inner.prune(run_id, fence=entry.fence, now=now)


class AnyDomain(WrappedJournal):
    """Notes of all domains come along."""

    async def notes(
        self,
        run_id: str,
        *,
        domain: Domain | None = None,
        after: Cursor = START,
    ) -> tuple[Noted, ...]:
        return await self.inner.notes(run_id, after=after)


class AnyWorker(WrappedJournal):
    """What a worker stands for may change."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.known: dict[str, str] = {}

    async def put_worker(self, worker: str, meaning: str) -> None:
        self.known[worker] = meaning

    async def worker(self, worker: str) -> str | None:
        return self.known.get(worker)


class LatestByName(WrappedJournal):
    """Who waits is listed like anybody else."""

    async def latest(
        self,
        *,
        status: Status | None = None,
        waiting: bool | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> RunsPage:
        page = await self.inner.latest(status=status, waiting=waiting, before=before, limit=limit)
        return attrs.evolve(page, entries=sorted(page.entries, key=lambda it: it.run.run_id))


class WaitsSinceNow(WrappedJournal):
    """Since when a call waits is what was said last."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.said: dict[str, Any] = {}

    async def append(
        self,
        run_id: str,
        *,
        fence: int | None,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        **more: Any,
    ) -> Appended:
        self.said[run_id] = getattr(busy, "asked", None)
        return await self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )

    async def entry(self, run_id: str) -> RunEntry:
        entry = await self.inner.entry(run_id)
        return attrs.evolve(entry, asked=self.said.get(run_id))


class AnybodysPosts(WrappedJournal):
    """A post that never was is somebody's."""

    async def posted(self, run_id: str, number: int) -> bool:
        return await self.inner.posted(run_id, number) or run_id == "run-1"


class CorrelatesNoNotes(WrappedJournal):
    """What a note is about is forgotten."""

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        bare = [attrs.evolve(it, correlation=None) for it in notes]
        return await self.inner.note(run_id, fence=fence, notes=bare)


CAUGHT: list[tuple[type[WrappedJournal], str]] = [
    (AnybodyNotes, "test_only_the_owner_keeps_notes_of_the_ledger"),
    (NotesBeforeFacts, "test_s_61_all_or_none"),
    (NotesAtTheEnd, "test_s_61_notes_come_in_the_append_that_brings_the_facts"),
    (NotesAtTheEnd, "test_s_61_no_note_stands_inside_a_commit"),
    (OneByOne, "test_s_61_all_or_none"),
    (AnyContent, "test_s_61_an_id_is_kept_once_for_ever"),
    (ForgetsIds, "test_s_61_an_id_is_kept_once_for_ever"),
    (ForgetsIds, "test_s_64_what_is_old_goes_and_a_gap_stays"),
    (ForgetsCorrelations, "test_f_4_entries_are_the_bytes_that_were_kept"),
    (ShowsManifests, "test_f_8_manifests_are_shown_to_nobody"),
    (EndsAtAManifest, "test_f_8_manifests_are_shown_to_nobody"),
    (PagesWithinSequences, "test_a_page_begins_anywhere"),
    (TellsNoGaps, "test_s_64_what_is_old_goes_and_a_gap_stays"),
    (EndsBeforeTheGap, "test_s_64_a_reader_in_a_gap_is_not_ahead"),
    (PrunesTooSoon, "test_s_64_what_is_old_goes_and_a_gap_stays"),
    (AnybodyPrunes, "test_only_the_owner_prunes"),
    (CorrelatesNoNotes, "test_s_64_what_was_announced_of_a_turn_stays_as_long_as_it_may_be_open"),
    (AnyDomain, "test_notes_are_picked_by_domain_and_cursor"),
    (AnyWorker, "test_s_50_a_worker_stands_for_one_thing_for_ever"),
    (LatestByName, "test_f_30_those_that_wait_come_first"),
    (WaitsSinceNow, "test_a_call_waits_since_it_was_first_asked"),
    (AnybodysPosts, "test_f_26_whose_a_post_was_is_remembered"),
]
"""And the test that is named for it."""
