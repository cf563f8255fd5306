"""A journal around another that fails at will: before the commit, after it, slowly, or fenced."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from enum import Enum
from typing import Any, Final, TypeVar, cast

from turnlock.engine.snapshot import Snapshot
from turnlock.models.deliveries import Delivery
from turnlock.models.fact import Fact
from turnlock.models.run import Run
from turnlock.models.values import Json
from turnlock.runtime.errors import JournalError
from turnlock.runtime.journal.contract import (
    PAGE,
    RUNS,
    Appended,
    Busy,
    Entered,
    Entry,
    Finding,
    Journal,
    LogEntry,
    Post,
    RunEntry,
    RunsPage,
    Summary,
)
from turnlock.runtime.journal.ledger import START, Cursor, Domain, LedgerPage, Note, Noted
from turnlock.runtime.scheduling import Clock
from turnlock.views.status import Status

T = TypeVar("T")


class Fault(Enum):
    """What goes wrong with one call of one method."""

    LOST = "the process that keeps it failed before anything was kept"
    FULL = "the disk is full"
    LOCKED = "another process holds its lock"
    UNACKNOWLEDGED = "the answer was lost: it was kept, and nobody says so"
    DELAYED = "nothing happens until the gate is open"
    HELD = "it happens, but the answer waits until the gate is open"
    FENCED = "another has taken the run"
    CONFLICT = "another has written to the run"


RAISED_BEFORE: Final = frozenset({Fault.LOST, Fault.FULL, Fault.LOCKED})
ANSWERED: Final = {Fault.FENCED: Appended.FENCED, Fault.CONFLICT: Appended.CONFLICT}
"""For `append` and `keep_snapshot`: answered in place of the journal, which is not asked."""


class WrappedJournal(Journal):
    """Hands everything on; whoever derives from it changes one thing.

    But for what is many of something else: taking many runs is owning each, here.
    """

    def __init__(self, inner: Journal) -> None:
        self.inner = inner

    @property
    def clock(self) -> Clock | None:
        return self.inner.clock

    async def declare(self, run: Run) -> None:
        await self.inner.declare(run)

    async def own(
        self, run_id: str, *, owner: str, now: float, lease: float, gone: str | None = None
    ) -> int:
        return await self.inner.own(run_id, owner=owner, now=now, lease=lease, gone=gone)

    async def renew(self, *, owner: str, now: float, lease: float) -> frozenset[str]:
        return await self.inner.renew(owner=owner, now=now, lease=lease)

    async def release(self, run_id: str, *, fence: int) -> None:
        await self.inner.release(run_id, fence=fence)

    @property
    def patience(self) -> float:
        return self.inner.patience

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
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )

    async def read(self, run_id: str, *, after: int = 0, limit: int = PAGE) -> tuple[Fact, ...]:
        return await self.inner.read(run_id, after=after, limit=limit)

    async def runs(
        self,
        *,
        busy: bool | None = None,
        kind: str | None = None,
        forgotten: bool = False,
        after: str | None = None,
        limit: int = RUNS,
    ) -> tuple[RunEntry, ...]:
        return await self.inner.runs(
            busy=busy, kind=kind, forgotten=forgotten, after=after, limit=limit
        )

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        return await self.inner.append_entry(log, entry_id, body, at=at)

    def when_entered(self, heed: Callable[[str], None]) -> Callable[[], None]:
        return self.inner.when_entered(heed)

    async def entries(self, log: str, *, after: int = 0, limit: int = PAGE) -> tuple[Entry, ...]:
        return await self.inner.entries(log, after=after, limit=limit)

    async def find_entry(self, log: str, entry_id: str) -> Entry | None:
        return await self.inner.find_entry(log, entry_id)

    async def logs(self, prefix: str = "") -> tuple[LogEntry, ...]:
        return await self.inner.logs(prefix)

    async def entry(self, run_id: str) -> RunEntry:
        return await self.inner.entry(run_id)

    async def keep_snapshot(self, snapshot: Snapshot, *, fence: int | None) -> Appended:
        return await self.inner.keep_snapshot(snapshot, fence=fence)

    async def snapshot(self, run_id: str) -> Snapshot | None:
        return await self.inner.snapshot(run_id)

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        return await self.inner.note(run_id, fence=fence, notes=notes)

    async def notes(
        self, run_id: str, *, domain: Domain | None = None, after: Cursor = START
    ) -> tuple[Noted, ...]:
        return await self.inner.notes(run_id, domain=domain, after=after)

    async def find_note(self, run_id: str, note_id: str) -> Noted | None:
        return await self.inner.find_note(run_id, note_id)

    async def ledger(
        self, run_id: str, *, after: Cursor = START, limit: int = PAGE, manifests: bool = False
    ) -> LedgerPage:
        return await self.inner.ledger(run_id, after=after, limit=limit, manifests=manifests)

    async def ends(self, run_ids: Sequence[str]) -> Mapping[str, Cursor]:
        return await self.inner.ends(run_ids)

    async def prune(self, run_id: str, *, fence: int | None, now: float) -> int:
        return await self.inner.prune(run_id, fence=fence, now=now)

    async def skip(self, run_id: str, *, fence: int | None, parts: int) -> Appended:
        return await self.inner.skip(run_id, fence=fence, parts=parts)

    async def outdo(self, run_id: str, *, fence: int) -> None:
        await self.inner.outdo(run_id, fence=fence)

    async def put_worker(self, worker: str, meaning: str) -> None:
        await self.inner.put_worker(worker, meaning)

    async def worker(self, worker: str) -> str | None:
        return await self.inner.worker(worker)

    async def latest(
        self,
        *,
        status: Status | None = None,
        waiting: bool | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> RunsPage:
        return await self.inner.latest(status=status, waiting=waiting, before=before, limit=limit)

    async def tell(self, run_id: str, *, after: int, summary: Summary, changed: float) -> None:
        await self.inner.tell(run_id, after=after, summary=summary, changed=changed)

    async def posted(self, run_id: str, number: int) -> bool:
        return await self.inner.posted(run_id, number)

    @property
    def hears(self) -> bool:
        return self.inner.hears

    async def heard(self, timeout: float, *, answer: int | None = None) -> None:  # noqa: ASYNC109 - D-10
        await self.inner.heard(timeout, answer=answer)

    async def post(self, run_id: str, delivery: Delivery) -> int:
        return await self.inner.post(run_id, delivery)

    async def posts(self, run_ids: Sequence[str], *, after: int = 0) -> tuple[Post, ...]:
        return await self.inner.posts(run_ids, after=after)

    async def answer(self, run_id: str, number: int, receipt: Mapping[str, Any]) -> None:
        await self.inner.answer(run_id, number, receipt)

    async def answered(self, run_id: str, number: int) -> Mapping[str, Any] | None:
        return await self.inner.answered(run_id, number)

    async def forget(
        self, run_id: str, *, fence: int, after: int, at: float, gone: str | None = None
    ) -> None:
        await self.inner.forget(run_id, fence=fence, after=after, at=at, gone=gone)

    async def compact(self) -> None:
        await self.inner.compact()

    async def mark_rewound(self, run_id: str, *, why: str) -> None:
        await self.inner.mark_rewound(run_id, why=why)

    async def recover(
        self, run_id: str, *, after: int, facts: Sequence[Fact], busy: Busy, **more: Any
    ) -> Appended:
        return await self.inner.recover(run_id, after=after, facts=facts, busy=busy, **more)

    @property
    def rewinds(self) -> bool:
        return self.inner.rewinds

    async def restore(self, run_id: str, **more: Any) -> int:
        return await self.inner.restore(run_id, **more)

    async def check(self) -> tuple[Finding, ...]:
        return await self.inner.check()

    async def close(self) -> None:
        await self.inner.close()


class FaultyJournal(WrappedJournal):
    """Fails as planned: ``FaultyJournal(inner, {("append", 3): Fault.LOST})`` is the third append.

    `calls` counts how often each method was called; `fail` plans a fault of the next call. DELAYED
    and HELD calls wait for `gate`, an event that the test sets.
    """

    def __init__(self, inner: Journal, plan: Mapping[tuple[str, int], Fault] | None = None) -> None:
        super().__init__(inner)
        self.plan: MutableMapping[tuple[str, int], Fault] = dict(plan or {})
        self.calls: Counter[str] = Counter()
        self.gate = asyncio.Event()

    def fail(self, method: str, fault: Fault) -> None:
        """Have the next call of a method fail."""
        self.plan[method, self.calls[method] + 1] = fault

    async def declare(self, run: Run) -> None:
        await self._with_fault("declare", lambda: self.inner.declare(run))

    async def own(
        self, run_id: str, *, owner: str, now: float, lease: float, gone: str | None = None
    ) -> int:
        return await self._with_fault(
            "own", lambda: self.inner.own(run_id, owner=owner, now=now, lease=lease, gone=gone)
        )

    async def renew(self, *, owner: str, now: float, lease: float) -> frozenset[str]:
        return await self._with_fault(
            "renew", lambda: self.inner.renew(owner=owner, now=now, lease=lease)
        )

    async def release(self, run_id: str, *, fence: int) -> None:
        await self._with_fault("release", lambda: self.inner.release(run_id, fence=fence))

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
        return await self._with_fault(
            "append",
            lambda: self.inner.append(
                run_id, fence=fence, after=after, facts=facts, busy=busy, **more
            ),
        )

    async def read(self, run_id: str, *, after: int = 0, limit: int = PAGE) -> tuple[Fact, ...]:
        return await self._with_fault(
            "read", lambda: self.inner.read(run_id, after=after, limit=limit)
        )

    async def keep_snapshot(self, snapshot: Snapshot, *, fence: int | None) -> Appended:
        return await self._with_fault(
            "keep_snapshot", lambda: self.inner.keep_snapshot(snapshot, fence=fence)
        )

    async def snapshot(self, run_id: str) -> Snapshot | None:
        return await self._with_fault("snapshot", lambda: self.inner.snapshot(run_id))

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        return await self._with_fault(
            "note", lambda: self.inner.note(run_id, fence=fence, notes=notes)
        )

    async def post(self, run_id: str, delivery: Delivery) -> int:
        return await self._with_fault("post", lambda: self.inner.post(run_id, delivery))

    async def posts(self, run_ids: Sequence[str], *, after: int = 0) -> tuple[Post, ...]:
        return await self._with_fault("posts", lambda: self.inner.posts(run_ids, after=after))

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        return await self._with_fault(
            "append_entry", lambda: self.inner.append_entry(log, entry_id, body, at=at)
        )

    async def entries(self, log: str, *, after: int = 0, limit: int = PAGE) -> tuple[Entry, ...]:
        return await self._with_fault(
            "entries", lambda: self.inner.entries(log, after=after, limit=limit)
        )

    async def logs(self, prefix: str = "") -> tuple[LogEntry, ...]:
        return await self._with_fault("logs", lambda: self.inner.logs(prefix))

    async def answer(self, run_id: str, number: int, receipt: Mapping[str, Any]) -> None:
        await self._with_fault("answer", lambda: self.inner.answer(run_id, number, receipt))

    async def _with_fault(self, method: str, call: Callable[[], Awaitable[T]]) -> T:
        self.calls[method] += 1
        fault = self.plan.get((method, self.calls[method]))
        if fault in RAISED_BEFORE:
            raise JournalError(f"{method}: {fault.value}")
        if fault in ANSWERED:
            return cast("T", ANSWERED[fault])
        if fault is Fault.DELAYED:
            await self.gate.wait()
        done = await call()
        if fault is Fault.HELD:
            await self.gate.wait()
        if fault is Fault.UNACKNOWLEDGED:
            raise JournalError(f"{method}: {fault.value}; whether it was kept is not known")
        return done
