"""Journals that harm the second who relies on them, each in one way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from turnlock.models.fact import Fact
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import PAGE, Appended, Busy, Journal, RunEntry
from turnlock.runtime.scheduling import Clock, SteadyClock

from ..faulty_journal import WrappedJournal
from .broken import NoFence


class KeepsLate(WrappedJournal):
    """Says that it is not known what became of an append, and keeps it when that was read."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.late: set[asyncio.Task[None]] = set()

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
        async def keep() -> None:
            await asyncio.sleep(0.01)
            await self.inner.append(
                run_id, fence=fence, after=after, facts=facts, busy=busy, **more
            )

        if len(facts) == 1:
            return await self.inner.append(
                run_id, fence=fence, after=after, facts=facts, busy=busy, **more
            )
        self.late.add(asyncio.create_task(keep()))
        raise JournalError("the server did not answer; whether it was kept is not known")


class Adrift(SteadyClock):
    """A clock that each who asks for it finds a minute further."""

    minutes = 0

    def __init__(self) -> None:
        super().__init__()
        Adrift.minutes += 1
        self.ahead += 60.0 * Adrift.minutes


class EachItsOwnTime(WrappedJournal):
    """Whoever uses it counts leases by another clock."""

    @property
    def clock(self) -> Clock | None:
        return Adrift()


class LosesItsEnd(WrappedJournal):
    """From the second run on, the first ends before what was acknowledged."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.lost = False

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
        self.lost |= run_id == "run-2"
        if self.lost and run_id == "run-1":
            return Appended.CONFLICT
        return await self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )

    async def read(self, run_id: str, *, after: int = 0, limit: int = PAGE) -> tuple[Fact, ...]:
        page = await self.inner.read(run_id, after=after, limit=limit)
        hidden = self.lost and run_id == "run-1"
        return tuple(fact for fact in page if not hidden or fact.sequence <= 1)

    async def entry(self, run_id: str) -> RunEntry:
        if self.lost and run_id == "run-1":
            raise JournalError("it is not what it was")
        return await self.inner.entry(run_id)


class RenewsForAnybody(WrappedJournal):
    """Whoever owned a run once is told that it does."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.owned: dict[str, set[str]] = {}

    async def own(
        self, run_id: str, *, owner: str, now: float, lease: float, gone: str | None = None
    ) -> int:
        self.owned.setdefault(owner, set()).add(run_id)
        return await self.inner.own(run_id, owner=owner, now=now, lease=lease, gone=gone)

    async def renew(self, *, owner: str, now: float, lease: float) -> frozenset[str]:
        await self.inner.renew(owner=owner, now=now, lease=lease)
        return frozenset(self.owned.get(owner, ()))


CAUGHT: Final[list[tuple[type[WrappedJournal], str]]] = [
    (KeepsLate, "test_d_18_what_was_read_after_an_unknown_outcome_stays_so"),
    (EachItsOwnTime, "test_d_44_a_lease_counts_by_the_journals_time"),
    (NoFence, "test_d_45_the_fence_alone_keeps_it_whole"),
    (LosesItsEnd, "test_d_17_a_shorter_journal_is_not_folded"),
    (RenewsForAnybody, "test_d_19_a_callback_is_not_called_by_who_was_taken_over"),
]
