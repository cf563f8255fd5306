"""What a journal promises of its list of runs: each has an entry, and nothing is folded for it.

A part of the contract of `Journal`; what an entry says stands in `entries`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Final

from ...views.status import Status
from .entries import RunEntry, RunsPage, Summary

RUNS: Final = 1_000
"""Entries that `runs` returns at most unless told otherwise."""


class Lists(ABC):
    """A place whose runs are listed."""

    @abstractmethod
    async def runs(
        self,
        *,
        busy: bool | None = None,
        kind: str | None = None,
        forgotten: bool = False,
        after: str | None = None,
        limit: int = RUNS,
    ) -> tuple[RunEntry, ...]:
        """List the next runs, in the order in which they were declared, at most `limit` (D-14).

        `after` is the id of the last run of the page before; None begins. `busy` and `kind` pick
        those. Runs that were removed are left out, unless `forgotten`. Nothing is folded.
        """

    async def run_entries(
        self, *, busy: bool | None = None, kind: str | None = None, forgotten: bool = False
    ) -> AsyncIterator[RunEntry]:
        """Iterate over all runs, page by page; see `runs`."""
        page = await self.runs(busy=busy, kind=kind, forgotten=forgotten)
        while page:
            for entry in page:
                yield entry
            page = await self.runs(
                busy=busy, kind=kind, forgotten=forgotten, after=page[-1].run.run_id
            )

    @abstractmethod
    async def latest(
        self,
        *,
        status: Status | None = None,
        waiting: bool | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> RunsPage:
        """List runs for people, those first that wait for one (F-30).

        At the top is the one that waits longest; the others follow by their latest fact, the latest
        first. `status` and `waiting` pick those; runs that were removed are left out. `before` is
        the `next` of the page before, and stays a place whatever happens to the runs meanwhile.
        Raises `InvalidValue` for any other. Nothing is folded.
        """

    async def tell(  # noqa: B027 - it may be left out
        self, run_id: str, *, after: int, summary: Summary, changed: float
    ) -> None:
        """Keep where a run stands after this fact, where its append did not say it (F-30).

        Whoever has folded the run says so, with when that fact happened. Nothing is changed where
        the run ends elsewhere by now, or where it was told. Here nothing is kept.
        """

    @abstractmethod
    async def entry(self, run_id: str) -> RunEntry:
        """Return one run's entry."""
