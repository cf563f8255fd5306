"""One process's way to a journal, at whose every write it may die: before it, and after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import pytest

from turnlock.engine.snapshot import Snapshot
from turnlock.models.deliveries import Delivery
from turnlock.models.fact import Fact
from turnlock.models.run import Run
from turnlock.models.values import Json
from turnlock.runtime.journal.contract import Appended, Busy, Entered, Journal
from turnlock.runtime.journal.ledger import Note

from ...runtime.crash.life import Life
from ...runtime.faulty_journal import WrappedJournal

T = TypeVar("T")

BURIED: Final = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
]
"""For tests whose processes die: what they leave suspended is closed without a loop, and what it
says of that when it is collected is nobody's."""


class LivingJournal(WrappedJournal):
    """What a life writes, with the steps at which it writes it.

    An object of its own, as a process has: who appends through another one wakes nobody here.
    """

    def __init__(self, inner: Journal, *, life: Life) -> None:
        super().__init__(inner)
        self._life = life
        self.points: dict[int, str] = {}
        """Of each step before or after a write: which."""
        self._heeding: list[Callable[[str], None]] = []

    def when_entered(self, heed: Callable[[str], None]) -> Callable[[], None]:
        self._heeding.append(heed)
        return lambda: self._heeding.remove(heed)

    async def append_entry(self, log: str, entry_id: str, body: Json, *, at: float) -> Entered:
        entering = self.inner.append_entry(log, entry_id, body, at=at)
        entered = await self._around(f"entry {entry_id}", entering)
        for heed in tuple(self._heeding):
            heed(log)
        return entered

    async def declare(self, run: Run) -> None:
        await self._around(f"declare {run.run_id}", self.inner.declare(run))

    async def own(self, run_id: str, **given: Any) -> int:
        return await self._around(f"own {run_id}", self.inner.own(run_id, **given))

    async def renew(self, **given: Any) -> frozenset[str]:
        return await self._around("renew", self.inner.renew(**given))

    async def release(self, run_id: str, *, fence: int) -> None:
        await self._around(f"release {run_id}", self.inner.release(run_id, fence=fence))

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
        appending = self.inner.append(
            run_id, fence=fence, after=after, facts=facts, busy=busy, **more
        )
        names = " ".join(fact.type for fact in facts)
        return await self._around(f"append {run_id} {names}", appending)

    async def keep_snapshot(self, snapshot: Snapshot, *, fence: int | None) -> Appended:
        return await self._around("snapshot", self.inner.keep_snapshot(snapshot, fence=fence))

    async def note(self, run_id: str, *, fence: int | None, notes: Sequence[Note]) -> Appended:
        names = " ".join(note.id or note.kind for note in notes)
        noting = self.inner.note(run_id, fence=fence, notes=notes)
        return await self._around(f"note {run_id} {names}", noting)

    async def put_worker(self, worker: str, meaning: str) -> None:
        await self._around("put_worker", self.inner.put_worker(worker, meaning))

    async def post(self, run_id: str, delivery: Delivery) -> int:
        kind = type(delivery).__name__
        return await self._around(f"post {run_id} {kind}", self.inner.post(run_id, delivery))

    async def answer(self, run_id: str, number: int, receipt: Mapping[str, Any]) -> None:
        await self._around("answer", self.inner.answer(run_id, number, receipt))

    async def _around(self, name: str, writing: Awaitable[T]) -> T:
        try:
            await self._point(f"before {name}")
            done = await writing
        finally:
            close = getattr(writing, "close", None)
            if close is not None:
                close()
        await self._point(f"after {name}")
        return done

    async def _point(self, name: str) -> None:
        self.points[self._life.steps + 1] = name
        await self._life.point(name)


class PersonsJournal(WrappedJournal):
    """Another process's way to the journal: what is said through it wakes nobody else."""

    def when_entered(self, heed: Callable[[str], None]) -> Callable[[], None]:
        """Tell nothing: all that is entered elsewhere has to be looked for."""
        del heed
        return lambda: None
