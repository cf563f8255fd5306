"""Journals that list or remove runs wrongly, each in one way: test_contract.py shows it found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from turnlock.models.fact import Fact
from turnlock.models.run import Run
from turnlock.runtime.errors import RunForgotten
from turnlock.runtime.journal.contract import (
    RUNS,
    Appended,
    Busy,
    Journal,
    RunEntry,
    Summary,
)

from ..faulty_journal import WrappedJournal


class BusyAlone(WrappedJournal):
    """Of what an append says, busy alone is kept."""

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
        return await self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=bool(busy)
        )


class LastSaid(WrappedJournal):
    """What was said last stands, though an append has come since that said nothing."""

    def __init__(self, inner: Journal) -> None:
        super().__init__(inner)
        self.said: dict[str, Summary] = {}

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
        if isinstance(busy, Summary):
            self.said[run_id] = busy
        return await self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )

    async def entry(self, run_id: str) -> RunEntry:
        entry = await self.inner.entry(run_id)
        said = self.said.get(run_id)
        return entry if said is None else attrs.evolve(entry, status=said.status)


class PagesOverlap(WrappedJournal):
    """A page ends one run too early, and the next one begins as if it had not."""

    async def runs(
        self,
        *,
        busy: bool | None = None,
        kind: str | None = None,
        forgotten: bool = False,
        after: str | None = None,
        limit: int = RUNS,
    ) -> tuple[RunEntry, ...]:
        page = await super().runs(
            busy=busy, kind=kind, forgotten=forgotten, after=after, limit=limit
        )
        return page[1:] if after is not None and len(page) > 1 else page


class ListsTheForgotten(WrappedJournal):
    """Runs that were removed are listed like any other."""

    async def runs(
        self,
        *,
        busy: bool | None = None,
        kind: str | None = None,
        forgotten: bool = False,
        after: str | None = None,
        limit: int = RUNS,
    ) -> tuple[RunEntry, ...]:
        return await super().runs(busy=busy, kind=kind, forgotten=True, after=after, limit=limit)


class ForgetsTheOpen(WrappedJournal):
    """What has changed since the caller looked, and whoever owns it, is removed all the same."""

    async def forget(
        self, run_id: str, *, fence: int, after: int, at: float, gone: str | None = None
    ) -> None:
        now = await self.inner.entry(run_id)
        await self.inner.forget(run_id, fence=now.fence, after=now.sequence, at=at, gone=now.owner)


class ComesAgain(WrappedJournal):
    """The id of a removed run may be used again."""

    async def declare(self, run: Run) -> None:
        try:
            await self.inner.declare(run)
        except RunForgotten:
            return
