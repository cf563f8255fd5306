"""A journal in memory, for tests: all promises of the contract but that it outlives the process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import attrs

from ...engine.snapshot import Snapshot
from ...models.deliveries import Delivery
from ...models.fact import Fact
from ...models.run import Run
from ...views.status import Status
from ..errors import NoJournal
from .contract import (
    ANSWERS,
    PAGE,
    POSTS,
    POSTS_WAITING,
    RUNS,
    Appended,
    Busy,
    Note,
    Post,
    RunEntry,
    RunsPage,
    Summary,
    Told,
    check_batch,
    check_lease,
    check_limit,
    closed,
    not_removed,
    owned,
    rewound,
    run_differs,
    run_forgotten,
    too_many_posts,
    unknown_run,
)
from .given import check_correlations, check_parts, check_worker, ends_of, given_again, given_notes
from .latest import place_of, place_read
from .ledger import START, Cursor, Domain, LedgerPage, Noted
from .memory_ledger import MemoryLedger
from .memory_logs import MemoryLogs
from .memory_runs import KeptRun
from .refusals import another_worker, not_restored


async def open_place(place: str, *, create: bool, read_only: bool) -> MemoryJournal:
    """Begin one, see `open_journal`. Raises `JournalError` for a place, and where one must be."""
    if place:
        raise NoJournal(
            f"journal memory:{place}: a journal in memory has no name; give memory: alone"
        )
    if not create or read_only:
        raise NoJournal(
            "journal memory: it ends with the process that has it, so there is none to be opened;"
            " give the journal that the run was kept in"
        )
    return MemoryJournal()


class MemoryJournal(MemoryLogs):
    """Runs kept in dicts. Each method gives way to other tasks once, then acts in one step."""

    def __init__(self) -> None:
        """Begin with no run."""
        self._runs: dict[str, KeptRun] = {}
        self._waiting: dict[int, Post] = {}
        self._answers: dict[int, Mapping[str, Any]] = {}
        self._posted = 0
        self._posted_for: dict[int, str] = {}
        self._workers: dict[str, str] = {}
        self._closed = False

    async def declare(self, run: Run) -> None:
        """Make a run known."""
        await self._turn()
        self._runs.setdefault(run.run_id, KeptRun(run))
        known = self._kept(run.run_id).run
        if known != run:
            raise run_differs(run, known)

    async def own(
        self, run_id: str, *, owner: str, now: float, lease: float, gone: str | None = None
    ) -> int:
        """Take a run."""
        check_lease(owner, now=now, lease=lease)
        await self._turn()
        kept = self._writable(run_id)
        if (holder := kept.holder(now=now, but=frozenset({owner, gone}))) is not None:
            raise owned(run_id, owner=holder, until=kept.owned_until or now)
        return kept.taken(owner=owner, until=now + lease)

    async def renew(self, *, owner: str, now: float, lease: float) -> frozenset[str]:
        """Renew the leases of an owner."""
        check_lease(owner, now=now, lease=lease)
        await self._turn()
        mine = {
            run_id: kept
            for run_id, kept in self._runs.items()
            if kept.owner == owner and kept.rewound is None
        }
        for kept in mine.values():
            kept.owned_until = now + lease
        return frozenset(mine)

    async def release(self, run_id: str, *, fence: int) -> None:
        """Let a run go."""
        await self._turn()
        kept = self._known(run_id)
        if kept.is_owned(fence):
            kept.owner = kept.owned_until = None

    async def append(  # noqa: PLR0913 - what is asked
        self,
        run_id: str,
        *,
        fence: int | None,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        notes: Sequence[Note] = (),
        correlations: Sequence[bytes | None] | None = None,
    ) -> Appended:
        """Keep facts, and notes beside them."""
        check_batch(run_id, after=after, facts=facts)
        check_correlations(facts, correlations)
        given = given_notes(run_id, notes, ends=ends_of(facts, after=after))
        await self._turn()
        kept = self._writable(run_id)
        if not kept.admits(fence):
            return Appended.FENCED
        if after != kept.sequence:
            return Appended.CONFLICT
        return kept.append(facts, busy=busy, given=given, correlations=correlations)

    async def read(self, run_id: str, *, after: int = 0, limit: int = PAGE) -> tuple[Fact, ...]:
        """Return the next facts."""
        check_limit(after=after, limit=limit)
        await self._turn()
        return tuple(self._kept(run_id).facts[after : after + limit])

    async def runs(
        self,
        *,
        busy: bool | None = None,
        kind: str | None = None,
        forgotten: bool = False,
        after: str | None = None,
        limit: int = RUNS,
    ) -> tuple[RunEntry, ...]:
        """List the next runs."""
        check_limit(limit=limit)
        await self._turn()
        names = list(self._runs)
        if after is not None:
            self._known(after)
            names = names[names.index(after) + 1 :]
        found = (
            kept.entry()
            for kept in map(self._runs.__getitem__, names)
            if (busy is None or bool(kept.busy) is busy)
            and (kind is None or kept.run.kind == kind)
            and (forgotten or kept.forgotten is None)
        )
        return tuple(islice(found, limit))

    async def latest(
        self,
        *,
        status: Status | None = None,
        waiting: bool | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> RunsPage:
        """List runs for people."""
        check_limit(limit=limit)
        start = None if before is None else place_read(before)
        await self._turn()
        listed = sorted(
            (place_of(entry, number), entry)
            for number, kept in enumerate(self._runs.values(), 1)
            if kept.forgotten is None
            for entry in [kept.entry()]
        )
        found = [
            (place, entry)
            for place, entry in listed
            if (start is None or place > start)
            and (status is None or entry.status is status)
            and (waiting is None or place.waits is waiting)
        ]
        return RunsPage(
            entries=[entry for _, entry in found[:limit]],
            next=str(found[limit - 1][0]) if len(found) > limit else None,
            waiting=sum(place.waits for place, _ in listed),
        )

    async def tell(self, run_id: str, *, after: int, summary: Summary, changed: float) -> None:
        """Keep where a run stands, if nobody has said it."""
        await self._turn()
        kept = self._known(run_id)
        is_told = isinstance(kept.busy, Summary) or kept.forgotten is not None
        if not is_told and kept.sequence == after:
            kept.busy, kept.changed = attrs.evolve(summary, busy=bool(kept.busy)), changed

    async def entry(self, run_id: str) -> RunEntry:
        """Return one run's entry."""
        await self._turn()
        return self._known(run_id).entry()

    async def forget(
        self, run_id: str, *, fence: int, after: int, at: float, gone: str | None = None
    ) -> None:
        """Remove a run."""
        await self._turn()
        kept = self._known(run_id)
        if kept.forgotten is not None:
            return
        posts = sum(post.run_id == run_id for post in self._waiting.values())
        error = not_removed(kept.entry(), fence=fence, after=after, gone=gone, posts=posts)
        if error is not None:
            raise error
        kept.forgotten, kept.snapshot, kept.owner, kept.owned_until = at, None, None, None
        if isinstance(kept.busy, Summary):
            kept.busy = attrs.evolve(kept.busy, trouble=None)
        kept.facts.clear()
        kept.ledger = MemoryLedger()

    async def keep_snapshot(self, snapshot: Snapshot, *, fence: int | None) -> Appended:
        """Keep a snapshot."""
        await self._turn()
        kept = self._writable(snapshot.run.run_id)
        if snapshot.run != kept.run:
            raise run_differs(snapshot.run, kept.run)
        if not kept.admits(fence):
            return Appended.FENCED
        oldest = 0 if kept.snapshot is None else kept.snapshot.sequence
        if not oldest <= snapshot.sequence <= kept.sequence:
            return Appended.CONFLICT
        kept.snapshot = snapshot
        return Appended.OK

    async def snapshot(self, run_id: str) -> Snapshot | None:
        """Return the kept snapshot."""
        await self._turn()
        return self._kept(run_id).snapshot

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        """Keep notes."""
        given = given_notes(run_id, notes)
        await self._turn()
        kept = self._writable(run_id)
        if not kept.admits(fence):
            return Appended.FENCED
        if any(it.after not in {None, kept.sequence} for it in given):
            return Appended.CONFLICT
        return kept.ledger.keep(given, sequence=kept.sequence)

    async def notes(
        self, run_id: str, *, domain: Domain | None = None, after: Cursor = START
    ) -> tuple[Noted, ...]:
        """Return notes in order."""
        await self._turn()
        return self._kept(run_id).ledger.notes(domain=domain, after=after)

    async def find_note(self, run_id: str, note_id: str) -> Noted | None:
        """Return the note of this id."""
        await self._turn()
        return self._kept(run_id).ledger.find(note_id)

    async def ledger(
        self, run_id: str, *, after: Cursor = START, limit: int = PAGE, manifests: bool = False
    ) -> LedgerPage:
        """Return the next entries."""
        check_limit(limit=limit)
        await self._turn()
        kept = self._kept(run_id)
        return kept.ledger.page(kept.facts, after=after, limit=limit, manifests=manifests)

    async def ends(self, run_ids: Sequence[str]) -> Mapping[str, Cursor]:
        """Return where ledgers end."""
        await self._turn()
        found = ((run_id, self._runs.get(run_id)) for run_id in run_ids)
        return {
            run_id: kept.ledger.shown(kept.sequence)
            for run_id, kept in found
            if kept is not None and kept.forgotten is None
        }

    async def prune(self, run_id: str, *, fence: int | None, now: float) -> int:
        """Remove old observations."""
        await self._turn()
        kept = self._writable(run_id)
        return kept.ledger.prune(kept.facts, now=now) if kept.admits(fence) else 0

    async def skip(self, run_id: str, *, fence: int | None, parts: int) -> Appended:
        """Keep a gap."""
        check_parts(parts)
        await self._turn()
        kept = self._writable(run_id)
        if admits := kept.admits(fence):
            kept.ledger.skip(parts, sequence=kept.sequence)
        return Appended.OK if admits else Appended.FENCED

    async def outdo(self, run_id: str, *, fence: int) -> None:
        """Begin behind a token."""
        await self._turn()
        self._writable(run_id).fence = max(self._writable(run_id).fence, fence)

    async def put_worker(self, worker: str, meaning: str) -> None:
        """Keep what a worker stands for."""
        check_worker(worker, meaning)
        await self._turn()
        if self._workers.setdefault(worker, meaning) != meaning:
            raise another_worker(worker)

    async def worker(self, worker: str) -> str | None:
        """Return what a worker stands for."""
        await self._turn()
        return self._workers.get(worker)

    async def post(self, run_id: str, delivery: Delivery) -> int:
        """Leave a delivery."""
        await self._turn()
        self._writable(run_id)
        waiting = sum(post.run_id == run_id for post in self._waiting.values())
        if waiting >= POSTS_WAITING:
            raise too_many_posts(run_id, most=POSTS_WAITING)
        self._posted += 1
        self._waiting[self._posted] = Post(number=self._posted, run_id=run_id, delivery=delivery)
        self._posted_for[self._posted] = run_id
        if self._answers.pop(old := self._posted - ANSWERS, None) is not None:
            del self._posted_for[old]
        return self._posted

    async def posts(self, run_ids: Sequence[str], *, after: int = 0) -> tuple[Post, ...]:
        """Return the posts that wait."""
        await self._turn()
        wanted = frozenset(run_ids)
        found = [
            post
            for number, post in self._waiting.items()
            if number > after and post.run_id in wanted
        ]
        return tuple(found[:POSTS])

    async def answer(self, run_id: str, number: int, receipt: Mapping[str, Any]) -> None:
        """Answer a post."""
        await self._turn()
        if self._posted_for.get(number) == run_id and self._waiting.pop(number, None) is not None:
            self._answers[number] = dict(receipt)

    async def answered(self, run_id: str, number: int) -> Mapping[str, Any] | None:
        """Return the answer."""
        await self._turn()
        return self._answers.get(number) if self._is_posted(run_id, number) else None

    async def posted(self, run_id: str, number: int) -> bool:
        """Say whether this is a post for this run."""
        await self._turn()
        return self._is_posted(run_id, number)

    def _is_posted(self, run_id: str, number: int) -> bool:
        return self._posted_for.get(number) == run_id and self._runs[run_id].forgotten is None

    async def mark_rewound(self, run_id: str, *, why: str) -> None:
        """Mark a run as one that nobody may go on with."""
        await self._turn()
        kept = self._kept(run_id)
        kept.rewound = kept.rewound or why

    async def restore(  # noqa: PLR0913 - as the contract has it
        self,
        run_id: str,
        *,
        owner: str,
        fence: int,
        now: float,
        lease: float,
        after: int,
        parts: int,
        told: Told,
        gone: str | None = None,
    ) -> int:
        """Keep anew what was lost."""
        check_lease(owner, now=now, lease=lease)
        given = given_again(run_id, told, after=after)
        await self._turn()
        kept = self._kept(run_id)
        if (holder := kept.holder(now=now, but=frozenset({owner, gone}))) is not None:
            raise owned(run_id, owner=holder, until=kept.owned_until or now)
        if (kept.sequence, kept.ledger.parts(after)) != (after, parts):
            raise not_restored(run_id, after=after, parts=parts)
        if told.facts:
            answer = kept.append(
                told.facts, busy=told.busy, given=given, correlations=told.correlations
            )
        else:
            answer = kept.ledger.keep(given, sequence=after)
        if answer is not Appended.OK:
            raise not_restored(run_id, after=after, parts=parts)
        kept.rewound = None
        return kept.taken(owner=owner, until=now + lease, beyond=fence)

    async def recover(
        self,
        run_id: str,
        *,
        after: int,
        facts: Sequence[Fact],
        busy: Busy,
        correlations: Sequence[bytes | None] | None = None,
    ) -> Appended:
        """Keep what was decided, and free the run."""
        if facts:
            check_batch(run_id, after=after, facts=facts)
            check_correlations(facts, correlations)
        await self._turn()
        kept = self._kept(run_id)
        if after != kept.sequence:
            return Appended.CONFLICT
        kept.facts += facts
        kept.ledger.correlate(after, correlations)
        kept.sequence, kept.busy = after + len(facts), busy
        kept.fence += 1
        kept.owner = kept.owned_until = kept.rewound = None
        return Appended.OK

    async def close(self) -> None:
        """Refuse whatever comes next."""
        self._closed = True

    async def _turn(self) -> None:
        """Give way to other tasks, as any journal does, before anything happens."""
        if self._closed:
            raise closed()
        await asyncio.sleep(0)

    def _kept(self, run_id: str) -> KeptRun:
        kept = self._known(run_id)
        if kept.forgotten is not None:
            raise run_forgotten(run_id, at=kept.forgotten)
        return kept

    def _known(self, run_id: str) -> KeptRun:
        kept = self._runs.get(run_id)
        if kept is None:
            raise unknown_run(run_id)
        return kept

    def _writable(self, run_id: str) -> KeptRun:
        kept = self._kept(run_id)
        if kept.rewound is not None:
            raise rewound(run_id, why=kept.rewound)
        return kept
