"""One run under way: what arrives is judged, its facts are kept, and only then is anything done.

Deliveries wait in the kernel's inbox. A batch of them is judged, all their facts go to the journal
in one append, and when that says OK the callers get their verdicts, subscribers their facts, and
the host its effects. When it does not, the kernel in memory knows more than the journal: it is
thrown away and folded anew, and the callers are told that nothing is known to have happened.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from math import inf
from typing import Final, Protocol

import attrs

from ..engine.inbox import Inbox
from ..engine.kernel import Kernel
from ..models.deliveries import Delivery
from ..models.errors import InboxFull, TurnlockError
from ..models.facts import Fact
from ..models.run import Run
from ..models.verdicts import Verdict
from .clock import Clock
from .errors import JournalError, Overloaded, RunFenced
from .journal.contract import Appended, Journal
from .settings import Settings
from .tasks import Tasks

FACTS_A_CALL: Final = 4
"""Facts for each call of the turn under way before a snapshot is worth its time."""


@attrs.frozen
class Served:
    """One delivery that was judged, at `at`, Unix time; its facts are kept."""

    delivery: Delivery
    verdict: Verdict
    at: float


class Listener(Protocol):
    """Who learns what a conductor has kept. None of these may raise or wait."""

    def kept(self, conductor: Conductor, served: Sequence[Served]) -> None:
        """Learn that these were judged, in this order, and that what they brought is durable."""
        ...

    def folded(self, conductor: Conductor) -> None:
        """Learn that the kernel was folded anew from the journal: perform what is owed."""
        ...

    def fenced(self, conductor: Conductor) -> None:
        """Learn that nothing more is served here, and why: `stopped`. Mostly another has it now."""
        ...


async def folded(run: Run, journal: Journal) -> Kernel:
    """Return the kernel that the journal holds: its snapshot, and the facts after it (K-2, K-9).

    A commit is kept whole, so nothing is dropped. Raises `CorruptJournal` for what no run can have
    written.
    """
    snapshot = await journal.snapshot(run.run_id)
    after = 0 if snapshot is None else snapshot.sequence
    facts = [fact async for fact in journal.facts(run.run_id, after=after)]
    return Kernel.recover(run, facts, snapshot=snapshot)


class Conductor:
    """The one writer of one run; it serves while something waits, and costs no task otherwise."""

    def __init__(  # noqa: PLR0913 - what a runtime shares among its conductors
        self,
        *,
        kernel: Kernel,
        epoch: int,
        journal: Journal,
        clock: Clock,
        settings: Settings,
        listener: Listener,
        tasks: Tasks,
    ) -> None:
        """Take over a kernel that is the fold of the journal, owned under this epoch."""
        self.run: Final = kernel.run
        self.epoch: Final = epoch
        self.kernel = kernel
        """What is known of the run. Between two batches all of it is durable."""
        self.owned_until = -inf
        """Unix time: beyond it another process may have taken the run. Its owner keeps it."""
        self.stopped: TurnlockError | None = None
        """Why nothing more is served, once that is so."""
        self._journal = journal
        self._clock = clock
        self._settings = settings
        self._listener = listener
        self._tasks = tasks
        self._inbox: Inbox | None = None
        """There while something waits: most runs wait for a person, and are many."""
        self._waiting: dict[int, deque[asyncio.Future[Verdict]]] = {}
        """By the id of a delivery, which the inbox keeps alive: who wants its verdict."""
        self._kept = kernel.sequence
        self._snapped = 0
        """Up to where a snapshot was kept from here; how old the journal's is, is not asked."""
        self._batch = settings.batch
        self._stale = False
        """Whether the kernel may know more than the journal."""
        self._pausing: asyncio.Future[None] | None = None
        self._serving: asyncio.Task[None] | None = None

    async def deliver(self, delivery: Delivery) -> Verdict:
        """Have a delivery judged, and return the verdict once what it brought is durable.

        Raises `Overloaded` when too many wait, and `JournalError` when the facts could not be kept:
        then deliver again, for what did happen after all is refused as a duplicate. Raises
        `RunFenced` once the run is somebody else's. Cancelling the caller takes nothing back.
        """
        if self.stopped is not None:
            raise self.stopped
        if self._inbox is None:
            self._inbox = Inbox(capacity=self._settings.waiting)
        try:
            self._inbox.put(delivery)
        except InboxFull as error:
            raise Overloaded(f"run {self.run.run_id!r}: {error}") from error
        wanted: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(id(delivery), deque()).append(wanted)
        if self._pausing is not None and not self._pausing.done():
            self._pausing.set_result(None)
        if self._serving is None:
            self._serving = self._tasks.spawn(f"serve {self.run.run_id}", self._serve())
        return await wanted

    def stop(self, why: TurnlockError) -> None:
        """Serve nothing more; whoever waits is told why."""
        if self.stopped is None:
            self.stopped = why
        self._fail(self._drained(), why)

    async def ended(self) -> None:
        """Wait until what was being written when it was stopped is settled."""
        if self._serving is not None:
            await asyncio.wait([self._serving])

    async def _serve(self) -> None:
        """Serve until nothing waits and nothing is stale.

        What arrives in one tick of the loop shares an append. A fold that fails is tried again
        after a pause, or when the next delivery arrives: what is owed may wait for nobody. Whatever
        else goes wrong, the kernel in memory is not to be trusted any more: the run is stopped.
        """
        pauses = self._settings.pauses()
        try:
            while (self._inbox or self._stale) and self.stopped is None:
                if self._stale and not await self._fold():
                    await self._pause(next(pauses))
                else:
                    await self._serve_batch()
        except Exception as error:
            cause = f"run {self.run.run_id!r} is served no more: {error!r}; open it again"
            self.fence(TurnlockError(cause))
            raise
        finally:
            self._serving = None
            if self._waiting:  # cut short: nobody may wait for ever
                why = self.stopped or JournalError(f"run {self.run.run_id!r} is not served")
                self.stop(why)
                for wanted in [one for line in self._waiting.values() for one in line]:
                    if not wanted.done():
                        wanted.set_exception(why)
                self._waiting.clear()
            self._inbox = None

    async def _pause(self, seconds: float) -> None:
        self._pausing = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait([self._pausing], timeout=seconds)
        finally:
            self._pausing = None

    async def _serve_batch(self) -> None:
        served = self._judge()
        facts = [fact for one in served for fact in one.verdict.facts]
        if facts:
            kept = False
            try:
                kept = await self._keep(facts, served)
            finally:
                self._stale = self._stale or not kept  # cancelled in the middle: who knows
            if not kept:
                return
            self._kept = self.kernel.sequence
            self._batch = min(2 * self._batch, self._settings.batch)
        else:
            await asyncio.sleep(0)  # thousands of refusals must not hold up the other runs
        self._listener.kept(self, served)
        for one in served:
            self._answer(one.delivery, one.verdict)
        if self._kept - self._snapped >= self._facts_to_snapshot():
            await self._snapshot()

    def _judge(self) -> list[Served]:
        """Let the kernel judge a batch."""
        served: list[Served] = []
        if self._inbox is None:
            return served
        while len(served) < self._batch and (delivery := self._inbox.take()) is not None:
            now = self._clock.now()
            served.append(Served(delivery, self.kernel.receive(delivery, now), now))
        return served

    async def _keep(self, facts: Sequence[Fact], served: Sequence[Served]) -> bool:
        """Append the facts; where that fails, tell those who wait, and say no."""
        run_id, state = self.run.run_id, self.kernel.state
        deliveries = [one.delivery for one in served]
        try:
            appended = await self._journal.append(
                run_id,
                epoch=self.epoch,
                after=self._kept,
                facts=facts,
                busy=state.turn is not None or bool(state.continuations),
            )
        except (JournalError, Overloaded) as error:
            self._batch = 1  # what is too much together may be kept one by one
            self._fail(deliveries, error)
            return False
        except asyncio.CancelledError:
            self._fail(deliveries, JournalError(f"run {run_id!r} was left while it was written"))
            raise
        if appended is Appended.FENCED:
            why = RunFenced(f"run {run_id!r} was taken over; epoch {self.epoch} is not its owner's")
            self._fail(deliveries, why)
            self.fence(why)
        elif appended is Appended.CONFLICT:
            cause = (
                f"run {run_id!r}: the journal does not end with fact {self._kept}; deliver again"
            )
            self._fail(deliveries, JournalError(cause))
        return appended is Appended.OK

    def fence(self, why: TurnlockError) -> None:
        """Stop of ourselves: somebody else has taken the run over, say."""
        if self.stopped is None:
            self.stop(why)
            self._listener.fenced(self)

    async def _fold(self) -> bool:
        """Fold the journal anew; where that fails, too, tell those who wait."""
        try:
            self.kernel = await folded(self.run, self._journal)
        except TurnlockError as error:
            self._fail(self._drained(), error)
            return False
        self._kept = self.kernel.sequence
        self._stale = False
        self._listener.folded(self)
        return True

    def _facts_to_snapshot(self) -> int:
        """Of ten thousand calls a snapshot takes 0.2 s: more facts must have paid for it."""
        turn = self.kernel.state.turn
        calls = 0 if turn is None else len(turn.order)
        return max(self._settings.snapshot_every, FACTS_A_CALL * calls)

    async def _snapshot(self) -> None:
        """Keep a snapshot. One that cannot be kept is tried again later: it only saves time."""
        self._snapped = self._kept
        try:
            await self._journal.keep_snapshot(self.kernel.snapshot(), epoch=self.epoch)
        except JournalError:
            return

    def _drained(self) -> list[Delivery]:
        """Take all that waits to be judged."""
        return [] if self._inbox is None else [*self._inbox.drain()]

    def _answer(self, delivery: Delivery, verdict: Verdict) -> None:
        wanted = self._wanted(delivery)
        if not wanted.done():
            wanted.set_result(verdict)

    def _fail(self, deliveries: Sequence[Delivery], why: TurnlockError) -> None:
        for delivery in deliveries:
            wanted = self._wanted(delivery)
            if not wanted.done():
                wanted.set_exception(why)

    def _wanted(self, delivery: Delivery) -> asyncio.Future[Verdict]:
        """Return who waits for this delivery's verdict: the first of those that gave it."""
        line = self._waiting[id(delivery)]
        wanted = line.popleft()
        if not line:
            del self._waiting[id(delivery)]
        return wanted
