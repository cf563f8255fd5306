"""The facts of a run as they happen: first from the journal, then live, without gap or repeat.

A subscriber pulls. One that hangs or raises harms nobody; one that falls further behind than its
buffer holds goes back to the journal. What others perform is looked for in the journal. Diagnostics
go another way and have no sequence.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Final, Generic, Self, TypeVar

from ..models.diagnostics import Diagnostic
from ..models.errors import TurnlockError
from ..models.facts import Fact
from .errors import CursorAhead
from .journal.contract import Journal
from .journal.ledger import Cursor

T = TypeVar("T")

_CALM: Final = 0.05
"""Seconds between two looks at most at what others perform, however much the journal hears."""


async def look_due(journal: Journal, poll: float) -> None:
    """Return when it is time to look again at what others perform, after `poll` seconds at most.

    Sooner, where the journal hears of it; but not for each of many hints.
    """
    if journal.hears:
        await asyncio.sleep(min(_CALM, poll))
    await journal.heard(poll)


class _Channel(Generic[T]):
    """A bounded buffer between what happens and one subscriber."""

    def __init__(self, *, bound: int) -> None:
        self._bound: Final = bound
        self._buffer: deque[T] = deque()
        self._arrived = asyncio.Event()
        self._closed = False
        self._left = False
        self.when_closed: Callable[[], None] | None = None
        """Called once it is closed, so that nobody keeps it."""

    def __aiter__(self) -> Self:
        return self

    async def aclose(self) -> None:
        """End the subscription; an iteration under way ends at once."""
        self._left = True
        self._buffer.clear()
        self.close()

    def close(self) -> None:
        """End the iteration once the buffer is read."""
        self._closed = True
        self._arrived.set()
        if self.when_closed is not None:
            self.when_closed()

    @property
    def closed(self) -> bool:
        """Whether nothing more is to be offered."""
        return self._closed

    async def _wait(self) -> None:
        """Wait for something to arrive. Raises `StopAsyncIteration` when nothing will."""
        if self._closed:
            raise StopAsyncIteration
        self._arrived.clear()
        await self._arrived.wait()


class Subscription(_Channel[Fact]):
    """The facts of one run after a sequence; iterate over it, one task at a time."""

    def __init__(self, *, journal: Journal, run_id: str, after: int, bound: int) -> None:
        """Begin to listen, so that nothing is missed while the journal is read."""
        super().__init__(bound=bound)
        self.run_id: Final = run_id
        self._journal = journal
        self._last = after
        self._page: deque[Fact] = deque()
        self._replaying = True
        self._missed = False
        """Whether live facts were let go: the journal has them."""
        self._is_known = after == 0
        """Whether the journal has what it begins behind."""
        self.listen: Callable[[], None] | None = None
        """Called where it was let go, and reads again."""
        self._let_go = False
        self._failure: TurnlockError | None = None

    def fail(self, why: TurnlockError) -> None:
        """Raise this once all that the journal holds was read: nothing more is passed on here."""
        self.look_again()
        self._failure = why
        if self.when_closed is not None:
            self.when_closed()

    def offer(self, facts: Sequence[Fact]) -> None:
        """Take in facts that have just been kept; what it has no room for it reads later."""
        if self._closed:
            return
        if len(self._buffer) + len(facts) > self._bound:
            self.look_again()
            self._let_go = True
            if self.when_closed is not None:
                self.when_closed()  # whoever never reads again is kept by nobody
        else:
            self._buffer.extend(facts)
        self._arrived.set()

    def look_again(self) -> None:
        """Learn that facts may have been kept that were never offered: the journal has them."""
        if self._closed:
            return
        self._buffer.clear()
        self._replaying = self._missed = True
        self._arrived.set()

    async def __anext__(self) -> Fact:
        """Return the next fact.

        Raises `CursorAhead` where it begins behind the journal's end, `RunFenced`, and what the
        journal raises.
        """
        while not self._left:
            source = self._page if self._replaying else self._buffer
            while source:
                fact = source.popleft()
                if fact.sequence > self._last:
                    self._last = fact.sequence
                    return fact
            if self._replaying:
                await self._turn_page()
            elif self._failure is not None:
                raise self._failure
            else:
                await self._wait()
        raise StopAsyncIteration

    async def _turn_page(self) -> None:
        self._missed = False
        if self._let_go and self.listen is not None:
            self._let_go = False
            self.listen()  # before the journal is read, so that nothing is missed
        self._page.extend(await self._journal.read(self.run_id, after=self._last))
        if not self._is_known and not self._page:
            head = (await self._journal.entry(self.run_id)).sequence
            if head < self._last:
                self.close()
                raise CursorAhead(self.run_id, asked=self._last, head=head)
        self._is_known = True
        self._replaying = bool(self._page) or self._missed


class DiagnosticSubscription(_Channel[Diagnostic]):
    """Refusals and logs of one run, from now on; the oldest give way where nobody reads them."""

    def __init__(self, *, bound: int) -> None:
        """Begin to listen."""
        super().__init__(bound=bound)
        self.lost = 0
        """How many have given way."""

    def offer(self, diagnostic: Diagnostic) -> None:
        """Take in one."""
        if self._closed:
            return
        if len(self._buffer) == self._bound:
            self._buffer.popleft()
            self.lost += 1
        self._buffer.append(diagnostic)
        self._arrived.set()

    async def __anext__(self) -> Diagnostic:
        """Return the next one."""
        while not self._buffer:
            await self._wait()
        return self._buffer.popleft()


class Streams:
    """The subscribers of all runs, by run."""

    def __init__(self, *, journal: Journal, bound: int) -> None:
        """Begin with no subscriber."""
        self._journal = journal
        self._bound = bound
        self._facts: dict[str, set[Subscription]] = {}
        self._diagnostics: dict[str, set[DiagnosticSubscription]] = {}
        self._listened = asyncio.Event()
        """Set while anybody may listen to facts."""
        self._ends: dict[str, Cursor | None] = {}
        """Where the runs ended that others perform, when they were looked at last."""
        self._closed = False

    async def watch(self, here: Container[str], poll: float) -> None:
        """Look until cancelled which runs have grown that are followed and not performed `here`."""
        while True:
            await self._listened.wait()
            await look_due(self._journal, poll)
            await self._look(here)
            if not self._facts:
                self._listened.clear()

    async def _look(self, here: Container[str]) -> None:
        followed = [run_id for run_id in self._facts if run_id not in here]
        ends: Mapping[str, Cursor] | None = None
        if followed:
            with suppress(TurnlockError):  # then each who follows reads, and is told himself
                ends = await self._journal.ends(followed)
        for run_id in followed:
            if ends is None or run_id not in self._ends or ends.get(run_id) != self._ends[run_id]:
                self.look_again(run_id)
        self._ends = {} if ends is None else {run_id: ends.get(run_id) for run_id in followed}

    def subscribe(self, run_id: str, *, after: int) -> Subscription:
        """Begin to listen to a run's facts after a sequence."""
        made = Subscription(journal=self._journal, run_id=run_id, after=after, bound=self._bound)

        def listen() -> None:
            if self._closed:
                made.close()
            else:
                _add(self._facts, run_id, made)
                self._listened.set()

        listen()

        made.listen = listen
        return made

    def diagnostics(self, run_id: str) -> DiagnosticSubscription:
        """Begin to listen to a run's diagnostics."""
        made = DiagnosticSubscription(bound=self._bound)
        _add(self._diagnostics, run_id, made)
        return made

    def listened(self, run_id: str) -> bool:
        """Whether anybody wants diagnostics of this run: they need not be made otherwise."""
        return run_id in self._diagnostics

    def publish(self, run_id: str, facts: Sequence[Fact]) -> None:
        """Pass on facts that are durable."""
        for listener in tuple(self._facts.get(run_id, ())):
            listener.offer(facts)

    def look_again(self, run_id: str) -> None:
        """Have those who listen read the journal: what was kept may not have been passed on."""
        for listener in tuple(self._facts.get(run_id, ())):
            listener.look_again()

    def fail(self, run_id: str, why: TurnlockError) -> None:
        """End the facts of a run that is performed elsewhere from now on."""
        for listener in tuple(self._facts.get(run_id, ())):
            listener.fail(why)

    def diagnose(self, run_id: str, diagnostic: Diagnostic) -> None:
        """Pass on a diagnostic."""
        for listener in tuple(self._diagnostics.get(run_id, ())):
            listener.offer(diagnostic)

    def close(self) -> None:
        """End all iterations once their buffers are read."""
        self._closed = True
        for subscription in tuple(chain.from_iterable(self._facts.values())):
            subscription.close()
        for diagnostics in tuple(chain.from_iterable(self._diagnostics.values())):
            diagnostics.close()


C = TypeVar("C", Subscription, DiagnosticSubscription)


def _add(by_run: dict[str, set[C]], run_id: str, made: C) -> None:
    """Keep one who listens, until it is closed."""
    by_run.setdefault(run_id, set()).add(made)

    def forget() -> None:
        listeners = by_run.get(run_id, set())
        listeners.discard(made)
        if not listeners:
            by_run.pop(run_id, None)

    made.when_closed = forget
