"""Journals that each break one promise, around one that keeps them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from turnlock.engine.snapshot import Snapshot
from turnlock.models.deliveries import Delivery
from turnlock.models.fact import Fact, FactType, Foldable
from turnlock.models.run import Run
from turnlock.runtime.errors import JournalOwned, RunDiffers
from turnlock.runtime.journal.contract import (
    PAGE,
    RUNS,
    Appended,
    Busy,
    Journal,
    Post,
    RunEntry,
)

from ..faulty_journal import WrappedJournal


class NoFence(WrappedJournal):
    """Whoever appends is taken for the owner."""

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
        entry = await self.inner.entry(run_id)
        return await self.inner.append(
            run_id, fence=entry.fence, after=after, facts=facts, busy=busy, **more
        )


class AnybodyWrites(WrappedJournal):
    """A run that nobody owns is open to all."""

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
        if (await self.inner.entry(run_id)).owner is None:
            fence = await self.inner.own(run_id, owner="anybody", now=0.0, lease=0.0)
        return await self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )


class AnybodyShares(WrappedJournal):
    """Who owns nothing writes a run that somebody owns."""

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
        fence = (await self.inner.entry(run_id)).fence if fence is None else fence
        return await self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )


class NobodyShares(WrappedJournal):
    """A run is written by an owner alone."""

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
        if fence is None:
            return Appended.FENCED
        return await self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )


class ConflictFirst(WrappedJournal):
    """A writer who is both fenced and behind hears only that it is behind."""

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
        answer = await self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )
        behind = after != (await self.inner.entry(run_id)).sequence
        return Appended.CONFLICT if answer is Appended.FENCED and behind else answer


class LosesTheLast(WrappedJournal):
    """The last fact of a batch does not come back."""

    async def read(self, run_id: str, *, after: int = 0, limit: int = PAGE) -> tuple[Fact, ...]:
        page = await self.inner.read(run_id, after=after, limit=limit)
        return page[:-1] if len(page) > 1 and page[-1].sequence % 10 == 1 else page


class FoldsLess(WrappedJournal):
    """What is read to be folded ends before a fact that ends a turn."""

    async def read_to_fold(
        self, run_id: str, *, after: int = 0, limit: int = PAGE
    ) -> tuple[Foldable, ...]:
        page = await self.inner.read_to_fold(run_id, after=after, limit=limit)
        return page[:-1] if page and page[-1].type is FactType.CONTINUATION_TAKEN else page


class AnyAfter(WrappedJournal):
    """It does not matter what the writer knows: facts that do not follow are dropped with an OK."""

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
        answer = await self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )
        return Appended.OK if answer is Appended.CONFLICT else answer


class BusyAnyway(WrappedJournal):
    """A refused append has its say about busy all the same."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.said: dict[str, bool] = {}

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
        answer = await self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )
        if answer is Appended.CONFLICT:
            self.said[run_id] = bool(busy)
        return answer

    async def entry(self, run_id: str) -> RunEntry:
        entry = await self.inner.entry(run_id)
        return attrs.evolve(entry, busy=self.said.get(run_id, entry.busy))


class FencesComeAgain(WrappedJournal):
    """Whoever owns a run again has the fence from before."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.given: dict[tuple[str, str], int] = {}

    async def own(
        self, run_id: str, *, owner: str, now: float, lease: float, gone: str | None = None
    ) -> int:
        fence = await self.inner.own(run_id, owner=owner, now=now, lease=lease, gone=gone)
        return self.given.setdefault((run_id, owner), fence)


class NoLease(WrappedJournal):
    """Whoever comes takes the run."""

    async def own(
        self, run_id: str, *, owner: str, now: float, lease: float, gone: str | None = None
    ) -> int:
        holder = (await self.inner.entry(run_id)).owner
        return await self.inner.own(run_id, owner=owner, now=now, lease=lease, gone=holder)


class ForgetsToRenew(WrappedJournal):
    """The lease ends when it was to end at first."""

    async def renew(self, *, owner: str, now: float, lease: float) -> frozenset[str]:
        return frozenset(
            entry.run.run_id for entry in await self.inner.runs() if entry.owner == owner
        )


class AnyRelease(WrappedJournal):
    """Whoever releases is taken for the owner."""

    async def release(self, run_id: str, *, fence: int) -> None:
        await self.inner.release(run_id, fence=(await self.inner.entry(run_id)).fence)


class AnyConfiguration(WrappedJournal):
    """The first configuration stays, and nobody is told."""

    async def declare(self, run: Run) -> None:
        try:
            await self.inner.declare(run)
        except RunDiffers:
            return


class AnySnapshot(WrappedJournal):
    """The latest snapshot is always kept, whoever brings it."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.newest: dict[str, Snapshot] = {}

    async def keep_snapshot(self, snapshot: Snapshot, *, fence: int | None) -> Appended:
        self.newest[snapshot.run.run_id] = snapshot
        return await self.inner.keep_snapshot(snapshot, fence=fence)

    async def snapshot(self, run_id: str) -> Snapshot | None:
        return self.newest.get(run_id)


class LastAnswer(WrappedJournal):
    """A second answer replaces the first."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.answers: dict[int, Mapping[str, Any]] = {}

    async def answer(self, run_id: str, number: int, receipt: Mapping[str, Any]) -> None:
        self.answers[number] = receipt
        await self.inner.answer(run_id, number, receipt)

    async def answered(self, run_id: str, number: int) -> Mapping[str, Any] | None:
        return self.answers.get(number)


class EverybodysPosts(WrappedJournal):
    """Posts for other runs come along."""

    async def posts(self, run_ids: Sequence[str], *, after: int = 0) -> tuple[Post, ...]:
        known = [entry.run.run_id for entry in await self.inner.runs()]
        return await self.inner.posts(known, after=after)


class EndlessPosts(WrappedJournal):
    """No bound: the oldest post makes room without a word."""

    async def post(self, run_id: str, delivery: Delivery) -> int:
        for post in (await self.inner.posts([run_id]))[:1]:
            if post.number % 100 == 1:
                await self.inner.answer(run_id, post.number, {})
        return await self.inner.post(run_id, delivery)


class AllRuns(WrappedJournal):
    """Busy or not is not asked."""

    async def runs(
        self,
        *,
        busy: bool | None = None,
        kind: str | None = None,
        forgotten: bool = False,
        after: str | None = None,
        limit: int = RUNS,
    ) -> tuple[RunEntry, ...]:
        return await super().runs(kind=kind, forgotten=forgotten, after=after, limit=limit)


class OneTaskAtATime(WrappedJournal):
    """Two who want a run at once get it both."""

    async def own(
        self, run_id: str, *, owner: str, now: float, lease: float, gone: str | None = None
    ) -> int:
        try:
            return await self.inner.own(run_id, owner=owner, now=now, lease=lease, gone=gone)
        except JournalOwned:
            if owner == "owner-7":
                return (await self.inner.entry(run_id)).fence
            raise


class WritesTheRewound(WrappedJournal):
    """The mark keeps nobody out."""

    async def mark_rewound(self, run_id: str, *, why: str) -> None:
        return


class RecoversByHalves(WrappedJournal):
    """The mark is taken off, whatever becomes of the facts."""

    async def recover(
        self, run_id: str, *, after: int, facts: Sequence[Fact], busy: Busy, **more: Any
    ) -> Appended:
        answer = await self.inner.recover(run_id, after=after, facts=facts, busy=busy, **more)
        if answer is Appended.CONFLICT:
            sequence = (await self.inner.entry(run_id)).sequence
            await self.inner.recover(run_id, after=sequence, facts=(), busy=busy)
        return answer
