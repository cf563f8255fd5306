"""One run copied from journal to journal: what is missing there, and whether it is the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from itertools import zip_longest
from typing import Final

import attrs

from ..models.codec import fact_from_json
from ..models.errors import shown
from ..models.fact import Fact
from .errors import JournalError
from .journal.contract import Appended, Busy, Journal, Note, Post, RunEntry, Summary
from .journal.ledger import START, Cursor, Gap, LedgerEntry
from .owners import was_ours

BATCH: Final = 1_000
"""Entries of an append, give or take a commit."""
BATCH_BYTES: Final = 8_000_000
"""Bytes of an append, give or take a commit."""


class NotCopied(JournalError):
    """A journal that is not copied, or not to its end.

    Nobody performs what is in the target already, and the same again goes on.
    """


@attrs.frozen
class RunCopy:
    """A run that is in the source, and belongs to the copy in the target."""

    source: Journal
    target: Journal
    run_id: str
    fence: int
    """The target's."""

    async def bring(self, entry: RunEntry) -> int:
        """Copy what is missing in the target, as far as this entry of the source; return facts."""
        there = await self.target.entry(self.run_id)
        after = Cursor(there.sequence, there.parts)
        before = there.sequence
        notes: Mapping[Cursor, Note] | None = None
        batch = _Batch(after=before)
        async for it in _ledger(self.source, self.run_id, after=after):
            if isinstance(it, Gap):
                await self._keep(batch, entry)
                await self._skip(it)
                continue
            if not it.is_note:
                batch.facts.append(fact_from_json(it.content))
                batch.correlations.append(it.correlation)
            else:
                if notes is None:
                    found = await self.source.notes(self.run_id, after=after)
                    notes = {noted.cursor: noted.note for noted in found}
                batch.notes.append(attrs.evolve(notes[it.cursor], after=it.cursor.sequence))
            batch.size += len(it.content)
            if batch.is_full:
                await self._keep(batch, entry)
        await self._keep(batch, entry)
        await self._keep_snapshot(entry)
        return batch.after - before

    async def bring_posts(self) -> int:
        """Copy the posts that wait, once no more can come; return how many there are.

        Those that a copy before this one brought stand first, since nobody answers them there.
        """
        there = [it.delivery async for it in _posts(self.target, self.run_id)]
        count = 0
        async for post in _posts(self.source, self.run_id):
            if count < len(there):
                if there[count] != post.delivery:
                    raise self._differs(f"post {post.number} is another one")
            else:
                await self.target.post(self.run_id, post.delivery)
            count += 1
        return count

    async def compare(self, entry: RunEntry) -> None:
        """Read the copy back, and hold all of it against the source. Raises `NotCopied`."""
        there = await self.target.entry(self.run_id)
        for name in _SAME:
            ours, theirs = getattr(entry, name), getattr(there, name)
            if ours != theirs and not (ours is None and name in _UNTOLD):
                raise self._differs(f"{name} is {theirs!r}, and was {ours!r}")
        copied = _ledger(self.target, self.run_id, after=START)
        async for it in _ledger(self.source, self.run_id, after=START):
            if await anext(copied, None) != it:
                raise self._differs(f"the entry at {_place(it)} is another one")
        if await anext(copied, None) is not None:
            raise self._differs("it has entries more")
        pairs = zip_longest(
            await self.source.notes(self.run_id), await self.target.notes(self.run_id)
        )
        for one, other in pairs:
            if one != other:
                cursor = "its end" if one is None else one.cursor
                raise self._differs(f"the note at {cursor} is another one")
        if await self.source.snapshot(self.run_id) != await self.target.snapshot(self.run_id):
            raise self._differs("its snapshot is another one")

    async def workers(self, known: dict[str, str]) -> None:
        """Copy what the ids of the workers of its facts stand for; `known` are those copied."""
        async for fact in self.source.facts(self.run_id):
            worker = getattr(fact, "worker", None)
            if not isinstance(worker, str) or worker in known or was_ours(worker):
                continue
            meaning = await self.source.worker(worker)
            known[worker] = meaning or ""
            if meaning is not None:
                await self.target.put_worker(worker, meaning)

    async def _keep(self, batch: _Batch, entry: RunEntry) -> None:
        """Append what was gathered; without a fact they are notes after the last."""
        if batch.facts:
            outcome = await self.target.append(
                self.run_id,
                fence=self.fence,
                after=batch.after,
                facts=batch.facts,
                busy=_told(entry) if batch.facts[-1].sequence == entry.sequence else entry.busy,
                notes=batch.notes,
                correlations=batch.correlations,
            )
        elif batch.notes:
            outcome = await self.target.note(self.run_id, fence=self.fence, notes=batch.notes)
        else:
            return
        self._check(outcome, f"what follows fact {batch.after}")
        batch.clear()

    async def _skip(self, gap: Gap) -> None:
        parts = gap.last.part - gap.first.part + 1
        self._check(
            await self.target.skip(self.run_id, fence=self.fence, parts=parts), f"gap {gap.first}"
        )

    async def _keep_snapshot(self, entry: RunEntry) -> None:
        if not entry.snapped:
            return
        snapshot = await self.source.snapshot(self.run_id)
        if snapshot is not None:
            outcome = await self.target.keep_snapshot(snapshot, fence=self.fence)
            self._check(outcome, "its snapshot")

    def _check(self, outcome: Appended, what: str) -> None:
        if outcome is not Appended.OK:
            raise self._differs(f"{what} was refused ({outcome}): somebody else wrote it")

    def _differs(self, why: str) -> NotCopied:
        return NotCopied(
            f"run {shown(self.run_id)}: the copy is not the same: {why}; let a new, empty journal"
            " be the target"
        )


_SAME: Final = (
    *("run", "sequence", "busy", "status", "waiting", "doubts", "trouble", "turn_id", "asked"),
    *("began", "changed", "parts", "shown", "snapped"),
)
"""What a copy's entry has in common with the original, once its facts are the same."""
_UNTOLD: Final = frozenset({"began", "changed"})
"""None where an older process wrote the row; the copy knows them by its facts."""


@attrs.define
class _Batch:
    """Entries that are to be appended at once: whole commits, and the notes between them."""

    after: int
    facts: list[Fact] = attrs.field(factory=list[Fact])
    notes: list[Note] = attrs.field(factory=list[Note])
    correlations: list[bytes | None] = attrs.field(factory=list["bytes | None"])
    size: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it is large, and ends with a commit."""
        whole = not self.facts or self.facts[-1].commit == self.facts[-1].sequence
        count = len(self.facts) + len(self.notes)
        return whole and (count >= BATCH or self.size >= BATCH_BYTES)

    def clear(self) -> None:
        """Begin anew behind what was appended."""
        self.after += len(self.facts)
        self.facts, self.notes, self.correlations, self.size = [], [], [], 0


def _told(entry: RunEntry) -> Busy:
    """Return what an entry tells besides, for the append that makes it true there."""
    if entry.status is None or entry.waiting is None or entry.doubts is None:
        return entry.busy
    return Summary(
        busy=entry.busy,
        status=entry.status,
        waiting=entry.waiting,
        doubts=entry.doubts,
        trouble=entry.trouble,
        turn_id=entry.turn_id,
        asked=entry.asked,
    )


async def _ledger(
    journal: Journal, run_id: str, *, after: Cursor
) -> AsyncIterator[LedgerEntry | Gap]:
    """Yield the entries of a run and its gaps, in order, manifests among them.

    Gaps that follow one another are one: how many there were before says nothing.
    """
    gap: Gap | None = None
    while True:
        page = await journal.ledger(run_id, after=after, manifests=True)
        both: list[LedgerEntry | Gap] = [*page.entries, *page.gaps]
        for it in sorted(both, key=_place):
            if isinstance(it, Gap):
                after = max(after, it.last)
                if gap is not None and it.first == Cursor(gap.last.sequence, gap.last.part + 1):
                    gap = attrs.evolve(gap, last=it.last)
                    continue
            else:
                after = max(after, it.cursor)
            if gap is not None:
                yield gap
            gap = it if isinstance(it, Gap) else None
            if not isinstance(it, Gap):
                yield it
        if not both:
            break
    if gap is not None:
        yield gap


def _place(it: LedgerEntry | Gap) -> Cursor:
    return it.first if isinstance(it, Gap) else it.cursor


async def _posts(journal: Journal, run_id: str) -> AsyncIterator[Post]:
    after = 0
    while page := await journal.posts([run_id], after=after):
        for post in page:
            yield post
        after = page[-1].number
