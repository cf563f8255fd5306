"""The actor of one run: it owns the run, and everything that arrives for it goes through here.

Deliveries wait in the kernel's inbox. A batch of them is judged, all their facts go to the journal
in one append (see `writer`), and when that says OK the callers get their verdicts, subscribers
their facts, and the dispatcher its effects. When it does not, the journal is folded anew, and the
callers are told that nothing is known to have happened.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from math import inf
from typing import TYPE_CHECKING, Final, Protocol

from ..engine.inbox import Inbox
from ..engine.kernel import Kernel
from ..models.deliveries import Delivery
from ..models.errors import InboxFull, InvalidValue, TurnlockError
from ..models.verdicts import Verdict
from .acknowledged import Acknowledged
from .declared import Declared
from .errors import (
    LASTING,
    JournalError,
    JournalReplaced,
    JournalRewound,
    Overloaded,
    RunFenced,
)
from .journal.contract import Journal
from .log import logger
from .scheduling import Clock, Tasks, backoff, retried
from .settings import Settings
from .tools.toolbox import Toolbox
from .writer import Judged, RunWriter, facts_to_snapshot

if TYPE_CHECKING:
    from .dispatcher import OnContinue

_log = logger(__name__)

LEFT: Final = 10_000
"""Runs that were performed here once, of which it is known what was acknowledged last."""


class Listener(Protocol):
    """Informed of what an actor has kept. None of its methods may raise or wait."""

    def kept(self, actor: Actor, judged: Sequence[Judged]) -> None:
        """Act on a batch that was judged, in this order, and whose facts are durable."""
        ...

    def noted(self, actor: Actor) -> None:
        """Act on notes that were kept, and no facts with them."""
        ...

    def folded(self, actor: Actor) -> None:
        """Act on a kernel that was folded anew from the journal: perform what is owed."""
        ...

    def fenced(self, actor: Actor) -> None:
        """Act on a run that is served no more here: `actor.stopped` says why."""
        ...


class Actor:
    """The one writer of one run; it serves while something waits, and costs no task otherwise."""

    def __init__(  # noqa: PLR0913 - what a runtime shares among its actors
        self,
        *,
        kernel: Kernel,
        fence: int,
        journal: Journal,
        clock: Clock,
        tools_of: Callable[[str], Toolbox],
        on_continue: OnContinue,
        settings: Settings,
        listener: Listener,
        tasks: Tasks,
        snapped: int = 0,
    ) -> None:
        """Take over a kernel that is the fold of the journal, owned under this fence.

        `tools_of` says at any time which tools the run has; what it raises now goes up. `snapped`
        is the sequence of the journal's snapshot.
        """
        self._tools_of = tools_of
        self._declared = _declared_by(tools_of(kernel.run.run_id))
        self.on_continue: Final = on_continue
        """Who takes the continuations of this run."""
        self.run: Final = kernel.run
        self.fence: Final = fence
        self.writer: Final = RunWriter(
            kernel,
            journal=journal,
            clock=clock,
            declared=self._declared_now,
            fence=fence,
        )
        self.owned_until = -inf
        """Unix time until which the run is owned for certain; `Tenure` renews it."""
        self.leaving = False
        """Whether the run is about to be let go: nothing more is begun for it here."""
        self.stopped: TurnlockError | None = None
        """Why nothing more is served, once that is so."""
        self._journal = journal
        self._settings = settings
        self._listener = listener
        self._tasks = tasks
        self._inbox: Inbox | None = None
        """Made when something arrives, dropped when it is empty: most of many runs are idle."""
        self._waiting: dict[int, deque[asyncio.Future[Verdict]]] = {}
        """The callers who await a verdict, by the `id()` of their delivery."""
        self._snapped = snapped
        """The sequence of the last snapshot that was kept, or tried."""
        self._batch = settings.batch
        self._pausing: asyncio.Future[None] | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def kernel(self) -> Kernel:
        """What is known of the run."""
        return self.writer.kernel

    @property
    def tools(self) -> Toolbox:
        """The tools of this run as they are now; where nobody can say, as they were last (W-60)."""
        tools = self._declared_now().tools
        if tools is None:
            raise AssertionError(self.run.run_id)
        return tools

    def _declared_now(self) -> Declared:
        try:
            tools = self._tools_of(self.run.run_id)
        except Exception:  # noqa: BLE001 - the host's own code
            _log.exception(
                "which tools run %r has is not known; it keeps those it had", self.run.run_id
            )
            return self._declared
        if tools is not self._declared.tools:
            self._declared = _declared_by(tools)
        return self._declared

    async def deliver(self, delivery: Delivery) -> Verdict:
        """Have a delivery judged, and return the verdict once what it brought is durable.

        Raises `Overloaded` when too many wait, and `JournalError` when the facts could not be kept:
        then deliver again, for what did happen after all is refused as a duplicate. Raises
        `RunFenced` once the run is somebody else's, and `BadArguments` for edited arguments that
        the tool does not take: then it was not judged. Cancelling the caller takes nothing back.
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

    async def deliver_surely(self, delivery: Delivery) -> Verdict:
        """Deliver until it was judged, however often the journal fails meanwhile.

        For what must not be lost: the true report above all. Raises what stopped the run, if that
        was stopped.
        """
        return await retried(
            lambda: self.deliver(delivery),
            pauses=backoff(self._settings),
            is_hopeless=lambda: self.stopped is not None,
        )

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
        pauses = backoff(self._settings)
        try:
            while (self._inbox or self.writer.stale) and self.stopped is None:
                if self.writer.stale and not await self._fold():
                    await self._pause(next(pauses))
                else:
                    await self._serve_batch()
        except Exception as error:
            cause = f"run {self.run.run_id!r} is served no more: {error!r}; open it again"
            self.lose(TurnlockError(cause))
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
        judged = await self.writer.judge(self._taken(), unfit=self._unfit)
        asked = [one for one in judged if one.asked]
        deliveries = [one.delivery for one in asked]
        try:
            await self.writer.keep(judged)
        except (RunFenced, *LASTING) as why:
            self._fail(deliveries, why)
            self.lose(why)
            return
        except (JournalError, Overloaded) as error:
            self._batch = 1  # what is too much together may be kept one by one
            self._fail(deliveries, error)
            return
        except asyncio.CancelledError:
            left = JournalError(f"run {self.run.run_id!r} was left while it was written")
            self._fail(deliveries, left)
            raise
        if any(one.verdict.facts for one in judged):
            self._batch = min(2 * self._batch, self._settings.batch)
        else:
            await asyncio.sleep(0)  # thousands of refusals must not hold up the other runs
        self._listener.kept(self, judged)
        for one in asked:
            self._answer(one.delivery, one.verdict)
        if self.writer.kept - self._snapped >= facts_to_snapshot(
            self.kernel, every=self._settings.snapshot_every
        ):
            await self._snapshot()

    def _unfit(self, delivery: Delivery, error: InvalidValue) -> None:
        self._fail([delivery], error)

    def _taken(self) -> Iterator[Delivery]:
        """Take a batch from the inbox."""
        for _ in repeat(None, self._batch):
            delivery = None if self._inbox is None else self._inbox.take()
            if delivery is None:
                return
            yield delivery

    def lose(self, why: TurnlockError) -> None:
        """Stop serving a run that is lost here: another process has taken it over, say."""
        if self.stopped is None:
            self.stop(why)
            self._listener.fenced(self)

    async def _fold(self) -> bool:
        """Fold the journal anew; where that fails, too, tell those who wait."""
        try:
            await self.writer.catch_up()
        except TurnlockError as error:
            self._fail(self._drained(), error)
            if isinstance(error, LASTING):
                self.lose(error)
            return False
        self._listener.folded(self)
        return True

    async def _snapshot(self) -> None:
        """Keep a snapshot. One that cannot be kept is tried again later: it only saves time."""
        self._snapped = self.writer.kept
        try:
            await self._journal.keep_snapshot(self.kernel.snapshot(), fence=self.fence)
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


def _declared_by(tools: Toolbox) -> Declared:
    return Declared(policies=tools.policies, tools=tools)


class Actors(Mapping[str, Actor]):
    """The actors of this runtime, by the ids of their runs. The one registry of them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._actors: dict[str, Actor] = {}
        self.failure: JournalReplaced | None = None
        """Why no run is performed here any more, once that is so."""
        self.failed: Final = asyncio.Event()
        """Set with it."""
        self._left: dict[str, Acknowledged] = {}

    def __getitem__(self, run_id: str) -> Actor:
        """Return the actor of a run, or raise KeyError."""
        return self._actors[run_id]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the ids of the runs there are now, whatever comes or goes meanwhile."""
        return iter(tuple(self._actors))

    def __len__(self) -> int:
        """Count them."""
        return len(self._actors)

    def all(self) -> tuple[Actor, ...]:
        """Return all there are now."""
        return tuple(self._actors.values())

    def add(self, actor: Actor) -> None:
        """Take one in. Nobody may have the run already. Raises `failure`."""
        if self.failure is not None:
            raise self.failure
        if self._actors.setdefault(actor.run.run_id, actor) is not actor:
            raise AssertionError(actor.run.run_id)

    def fail(self, why: JournalReplaced) -> None:
        """Perform no run any more: there is no journal that anything could be kept in."""
        if self.failure is None:
            self.failure = why
            self.failed.set()
            _log.critical("nothing is performed here any more: %s", why)
        for actor in self.all():
            actor.lose(why)

    def remove(self, actor: Actor) -> bool:
        """Take one out; say whether it was there: its run may be another's by now."""
        if not self.is_current(actor):
            return False
        del self._actors[actor.run.run_id]
        self.decided(actor.run.run_id)
        if not isinstance(actor.stopped, JournalRewound):
            self._left[actor.run.run_id] = actor.writer.acknowledged
            while len(self._left) > LEFT:
                del self._left[next(iter(self._left))]
        return True

    async def check_left(self, run_id: str, journal: Journal) -> None:
        """Raise `JournalRewound` where a run ends before what was acknowledged here, once.

        A store that was failed over to an older copy has lost who owned the run, too: then whoever
        performed it here seems to be fenced, and nothing but this tells that from a takeover.
        """
        left = self._left.get(run_id)
        if left is not None:
            try:
                await left.check(journal)
            except JournalRewound:
                self.decided(run_id)
                raise

    def decided(self, run_id: str) -> None:
        """Forget what was acknowledged of a run: it is marked, and a person decides."""
        self._left.pop(run_id, None)

    def is_current(self, actor: Actor) -> bool:
        """Whether this one performs its run still."""
        return self._actors.get(actor.run.run_id) is actor

    def current(self, actor: Actor) -> Actor:
        """Return who performs its run now: it may have been let go, and opened here again."""
        return self._actors.get(actor.run.run_id, actor)

    async def deliver_surely(self, actor: Actor, delivery: Delivery) -> Verdict:
        """Deliver to whoever performs the run now, as `Actor.deliver_surely` does.

        Raises what stopped the run, if it was not opened here again.
        """
        while True:
            current = self.current(actor)
            try:
                return await current.deliver_surely(delivery)
            except TurnlockError:
                if self.current(actor) is current:
                    raise
