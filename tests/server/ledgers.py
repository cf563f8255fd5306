"""A ledger that a test writes: facts, notes, manifests, what is pruned, and a file put back.

It answers as a journal does, after it gave way, and tells whoever heeds it, as a runtime does.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, cast

import attrs

from turnlock.models.errors import UnknownRun
from turnlock.models.run import Run
from turnlock.runtime.journal.contract import Journal, RunEntry
from turnlock.runtime.journal.ledger import (
    START,
    Cursor,
    Domain,
    Gap,
    LedgerEntry,
    LedgerPage,
    Note,
    Noted,
)
from turnlock.runtime.runtime import Runtime
from turnlock.runtime.streams import DiagnosticSubscription, Streams


@attrs.define
class _Ledger:
    entries: list[LedgerEntry] = attrs.field(factory=list[LedgerEntry])
    gaps: list[Gap] = attrs.field(factory=list[Gap])

    @property
    def last(self) -> Cursor:
        return self.entries[-1].cursor if self.entries else START


@attrs.define(eq=False)
class WrittenLedgers:
    """Ledgers by run."""

    ledgers: dict[str, _Ledger] = attrs.field(factory=dict[str, _Ledger])
    heeds: list[Callable[[str], None]] = attrs.field(factory=list[Callable[[str], None]])
    reads: list[tuple[str, Cursor]] = attrs.field(factory=list[tuple[str, Cursor]])
    pause: float | None = 0.0
    """Seconds that a read takes; None: it does not even give way."""
    failures: list[Exception] = attrs.field(factory=list[Exception])
    """What the next reads raise."""
    hears: bool = False
    """Whether `hint` wakes those who wait in `heard` (D-10)."""
    hinted: asyncio.Event = attrs.field(factory=asyncio.Event)
    ends_asked: int = 0
    """How often was asked where runs end, of so many at once."""

    @property
    def journal(self) -> Journal:
        return cast("Journal", self)

    async def heard(self, timeout: float, *, answer: int | None = None) -> None:  # noqa: ASYNC109 - D-10
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self.hinted.wait()
        self.hinted.clear()

    # As a test writes.

    def fact(self, run_id: str, **fields: Any) -> Cursor:
        """Keep a fact."""
        ledger = self.ledgers.setdefault(run_id, _Ledger())
        cursor = Cursor(ledger.last.sequence + 1)
        told = {"version": 2, "type": "TURN_OPENED", "sequence": cursor.sequence, **fields}
        return self._keep(run_id, cursor, told, None)

    def note(self, run_id: str, domain: Domain = Domain.ITEM, **body: Any) -> Cursor:
        """Keep a note."""
        last = self.ledgers.setdefault(run_id, _Ledger()).last
        cursor = Cursor(last.sequence, last.part + 1)
        return self._keep(run_id, cursor, {"body": body, "domain": domain, "kind": "k"}, domain)

    def _keep(
        self, run_id: str, cursor: Cursor, told: Mapping[str, Any], domain: Domain | None
    ) -> Cursor:
        content = json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode()
        self.raw(run_id, cursor, content, domain)
        return cursor

    def raw(
        self, run_id: str, cursor: Cursor, content: bytes, domain: Domain | None = None
    ) -> None:
        """Keep these bytes."""
        ledger = self.ledgers.setdefault(run_id, _Ledger())
        ledger.entries.append(LedgerEntry(cursor, 1.5, content, None, domain))
        for heed in tuple(self.heeds):
            heed(run_id)

    def prune(self, run_id: str, *, keep: int = 0) -> None:
        """Prune observations, but for the latest."""
        ledger = self.ledgers[run_id]
        notes = [it for it in ledger.entries if it.domain is Domain.ITEM]
        gone = notes[: len(notes) - keep]
        ledger.entries = [it for it in ledger.entries if it not in gone]
        joined: list[Gap] = []
        every = sorted([*ledger.gaps, *(Gap(first=it.cursor, last=it.cursor) for it in gone)],
                       key=lambda it: it.first)  # fmt: skip
        for it in every:
            last = joined[-1].last if joined else START
            if last.part and it.first == Cursor(last.sequence, last.part + 1):
                joined[-1] = Gap(first=joined[-1].first, last=it.last)
            else:
                joined.append(it)
        ledger.gaps = joined

    def put_back(self, run_id: str, *, count: int) -> None:
        """Put an older file in the place: the first entries alone."""
        ledger = self.ledgers[run_id]
        ledger.entries = ledger.entries[:count]
        ledger.gaps = [it for it in ledger.gaps if it.last < ledger.last]

    def shown(self, run_id: str) -> list[str]:
        """The cursors of what is to be shown."""
        return [
            str(it.cursor) for it in self.ledgers[run_id].entries if it.domain is not Domain.SESSION
        ]

    # As a journal answers.

    def ends_at(self, run_id: str) -> Cursor:
        """Where its ledger ends for those who are shown it."""
        ledger = self.ledgers[run_id]
        told = (it.cursor for it in reversed(ledger.entries) if it.domain is not Domain.SESSION)
        return max(next(told, START), ledger.gaps[-1].last if ledger.gaps else START)

    async def ledger(
        self, run_id: str, *, after: Cursor = START, limit: int = 1_000, manifests: bool = False
    ) -> LedgerPage:
        self.reads.append((run_id, after))
        if self.pause is not None:
            await asyncio.sleep(self.pause)
        if self.failures:
            raise self.failures.pop(0)
        ledger = self.ledgers.get(run_id)
        if ledger is None:
            raise UnknownRun(f"run {run_id!r} is not known")
        assert not manifests
        begin = bisect_right(ledger.entries, after, key=lambda it: it.cursor)
        told = (it for it in ledger.entries[begin:] if it.domain is not Domain.SESSION)
        entries = list(islice(told, limit))
        until = entries[-1].cursor if len(entries) == limit else None
        gaps = [
            attrs.evolve(gap, first=max(gap.first, Cursor(after.sequence, after.part + 1)))
            for gap in ledger.gaps
            if gap.last > after and (until is None or gap.first < until)
        ]
        return LedgerPage(entries=entries, head=self.ends_at(run_id), gaps=gaps)

    async def ends(self, run_ids: Sequence[str]) -> Mapping[str, Cursor]:
        self.ends_asked += 1
        await asyncio.sleep(0)
        return {run_id: self.ends_at(run_id) for run_id in run_ids if run_id in self.ledgers}

    async def runs(self, *, after: str | None = None) -> tuple[RunEntry, ...]:
        await asyncio.sleep(0)
        names = list(self.ledgers)
        names = names if after is None else names[names.index(after) + 1 :]
        return tuple(
            RunEntry(
                run=Run(run_id=it), sequence=0, busy=False, fence=0, owner=None, owned_until=None
            )
            for it in names[:1]
        )

    async def notes(self, run_id: str, *, domain: Domain) -> tuple[Noted, ...]:
        await asyncio.sleep(0)
        return tuple(
            Noted(
                cursor=it.cursor,
                note=Note(
                    domain=domain, kind="session", body=json.loads(it.content)["body"], at=it.at
                ),
            )
            for it in self.ledgers[run_id].entries
            if it.domain is domain
        )

    def when_kept(self, heed: Callable[[str], None]) -> Callable[[], None]:
        """As a runtime does."""
        self.heeds.append(heed)
        return lambda: self.heeds.remove(heed)


class Heard:
    """A runtime that tells of written ledgers."""

    def __init__(self, written: WrittenLedgers, owned: Sequence[str]) -> None:
        self._written = written
        self.runs = tuple(owned)
        self.streams = Streams(journal=written.journal, bound=10)

    def when_kept(self, heed: Callable[[str], None]) -> Callable[[], None]:
        return self._written.when_kept(heed)

    def diagnostics(self, run_id: str) -> DiagnosticSubscription:
        return self.streams.diagnostics(run_id)

    @property
    def runtime(self) -> Runtime:
        return cast("Runtime", self)


def runtime_of(written: WrittenLedgers, *owned: str) -> Runtime:
    """A runtime that owns these runs, and tells when they grow."""
    return Heard(written, owned).runtime
