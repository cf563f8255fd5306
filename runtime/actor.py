"""The actor of one run: it owns the run, and everything that arrives for it goes through here.

Deliveries wait in the kernel's inbox. A batch of them is judged, all their facts go to the journal
in one append (see `writer`), and when that says OK the callers get their verdicts, subscribers
their facts, and the dispatcher its effects. When it does not, the journal is folded anew, and the
callers are told that nothing is known to have happened.

Notes, and deliveries that follow from them, wait in a line of their own and keep their order
(S-10). It goes first: what is noted before a delivery is asked for is kept before its facts.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import repeat
from math import inf
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast

from ..engine.inbox import Inbox
from ..engine.kernel import Kernel
from ..models.deliveries import Claim, Delivery
from ..models.errors import InboxFull, InvalidValue, TurnlockError
from ..models.verdicts import Verdict
from .correlating import Correlate
from .declared import Declared
from .errors import (
    LASTING,
    JournalError,
    Overloaded,
    RunFenced,
)
from .journal.contract import Journal
from .journal.ledger import Note
from .log import logger
from .restoring import Restoring
from .scheduling import Clock, Tasks, backoff, retried
from .settings import Settings
from .tools.toolbox import Toolbox
from .writer import Judged, RunWriter, facts_to_snapshot

if TYPE_CHECKING:
    from .dispatcher import OnContinue

_log = logger(__name__)

Item: TypeAlias = Note | Delivery


class Listener(Protocol):
    """Informed of what an actor has kept. None of its methods may raise or wait."""

    def claims(self, actor: Actor, judged: Sequence[Judged]) -> Sequence[Claim]:
        """Return the claims that are to be kept with a batch, in the same append (K-9, K-33).

        Nothing happens outside between what asks for an execution and its claim: they are one wait
        for the disk. What becomes of them is told by `kept`, `folded` or `over`.
        """
        ...

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

    def over(self, actor: Actor) -> None:
        """Learn that nothing is being written for the run, and nobody asks what became of it."""
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
        correlate: Correlate | None = None,
        restoring: Restoring | None = None,
    ) -> None:
        """Take over a kernel that is the fold of the journal, owned under this fence.

        `tools_of` says at any time which tools the run has; what it raises now goes up. `snapped`
        is the sequence of the journal's snapshot; `correlate` and `restoring` are as for
        `RunWriter`.
        """
        self._tools_of = tools_of
        self._declared = _declared_by(tools_of(kernel.run.run_id))
        self.on_continue: Final = on_continue
        """Who takes the continuations of this run."""
        self.run: Final = kernel.run
        self.writer: Final = RunWriter(
            kernel,
            journal=journal,
            clock=clock,
            declared=self._declared_now,
            fence=fence,
            correlate=correlate,
            restoring=restoring,
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
        self._line: deque[Sequence[Item]] = deque()
        """What was noted, with the deliveries that follow from it, in its order."""
        self._waiting: dict[int, deque[asyncio.Future[Verdict | None]]] = {}
        """The callers who await a verdict, or a note to be kept, by the `id()` of that."""
        self._snapped = snapped
        """The sequence of the last snapshot that was kept, or tried."""
        self._batch = settings.batch
        self._pausing: asyncio.Future[None] | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def fence(self) -> int:
        """The fencing token under which the run is owned; another one after a restore (D-62)."""
        fence = self.writer.fence
        if fence is None:
            raise AssertionError(self.run.run_id)
        return fence

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
        return cast("Verdict", await self._expected(delivery))

    async def hear(
        self, notes: Sequence[Note], deliveries: Sequence[Delivery] = ()
    ) -> tuple[Verdict, ...]:
        """Keep notes, then have deliveries judged in this order; return when all is durable (S-10).

        Where the notes are not kept no delivery is judged. Raises as `deliver` does, for the first
        of them that fails, and `InvalidValue` where a note's id has other content.
        """
        if self.stopped is not None:
            raise self.stopped
        if len(self._line) >= self._settings.waiting:
            raise Overloaded(f"run {self.run.run_id!r}: {len(self._line):,} notes wait to be kept")
        checked = [it if it.id is not None else it.sized(self.run.run_id) for it in notes]
        items: tuple[Item, ...] = (*checked, *deliveries)
        if not items:
            return ()
        self._line.append(items)
        wanted = [self._expected(item) for item in items]
        told = await asyncio.gather(*wanted, return_exceptions=True)
        for one in told:
            if isinstance(one, BaseException):
                raise one
        return tuple(cast("Verdict", one) for one in told[len(notes) :])

    def _expected(self, item: Item) -> asyncio.Future[Verdict | None]:
        """Return what is told once this is kept, and have it served."""
        wanted: asyncio.Future[Verdict | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(id(item), deque()).append(wanted)
        if self._pausing is not None and not self._pausing.done():
            self._pausing.set_result(None)
        if self._serving is None:
            self._serving = self._tasks.spawn(f"serve {self.run.run_id}", self._serve())
        return wanted

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
            while (self._inbox or self._line or self.writer.stale) and self.stopped is None:
                if self.writer.stale and not await self._fold():
                    await self._pause(next(pauses))
                elif self._line and _is_named(self._line[0]):
                    await self._serve_named()
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
            self._listener.over(self)

    async def _pause(self, seconds: float) -> None:
        self._pausing = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait([self._pausing], timeout=seconds)
        finally:
            self._pausing = None

    async def _serve_batch(self) -> None:
        notes: list[Note] = []
        batch = await self.writer.judge(self._taken(notes), unfit=self._unfit)
        if self._batch > 1 and (claims := self._listener.claims(self, batch.judged)):
            batch = self.writer.judge_also(batch, claims)
        asked = [one for one in batch.judged if one.asked]
        items: list[Item] = [*notes, *(one.delivery for one in asked)]
        if not await self._kept(items, self.writer.keep(batch)):
            return
        if batch.facts:
            self._batch = min(2 * self._batch, self._settings.batch)
        else:
            await asyncio.sleep(0)  # thousands of refusals must not hold up the other runs
        self._listener.kept(self, batch.judged)
        if notes and not batch.facts:
            self._listener.noted(self)
        for note in notes:
            self._answer(note, None)
        for one in asked:
            self._answer(one.delivery, one.verdict)
        if self.writer.kept - self._snapped >= facts_to_snapshot(
            self.kernel, every=self._settings.snapshot_every
        ):
            await self._snapshot()

    async def _serve_named(self) -> None:
        """Keep notes that have ids, by themselves: what another id says harms nobody else."""
        items = self._line.popleft()
        notes = [item for item in items if isinstance(item, Note)]
        try:
            if not await self._kept(items, self.writer.note(*notes)):
                return
        except InvalidValue as error:
            self._fail(items, error)
            return
        self._listener.noted(self)
        if deliveries := items[len(notes) :]:
            self._line.appendleft(deliveries)
        for note in notes:
            self._answer(note, None)

    async def _kept(self, items: Sequence[Item], work: Awaitable[None]) -> bool:
        """Have it kept; where that fails, tell those who asked for these."""
        try:
            await work
        except (RunFenced, *LASTING) as why:
            self._fail(items, why)
            self.lose(why)
        except (JournalError, Overloaded) as error:
            self._batch = 1  # what is too much together may be kept one by one
            self._fail(items, error)
        except asyncio.CancelledError:
            left = JournalError(f"run {self.run.run_id!r} was left while it was written")
            self._fail(items, left)
            raise
        else:
            return True
        return False

    def _unfit(self, delivery: Delivery, error: InvalidValue) -> None:
        self._fail([delivery], error)

    def _taken(self, notes: list[Note]) -> Iterator[Item]:
        """Take a batch: from the line, and from the inbox once that is empty.

        What belongs together is taken together. The notes among it are put into `notes`.
        """
        left = self._batch
        while self._line and left > 0 and not _is_named(self._line[0]):
            items = self._line.popleft()
            left -= len(items)
            for item in items:
                if isinstance(item, Note):
                    notes.append(item)
                yield item
        if self._line:
            return
        for _ in repeat(None, max(left, 0)):
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

    def _drained(self) -> list[Item]:
        """Take all that waits to be kept or judged."""
        line = [item for items in self._line for item in items]
        self._line.clear()
        return line if self._inbox is None else [*line, *self._inbox.drain()]

    def _answer(self, item: Item, verdict: Verdict | None) -> None:
        wanted = self._wanted(item)
        if not wanted.done():
            wanted.set_result(verdict)

    def _fail(self, items: Sequence[Item], why: TurnlockError) -> None:
        for item in items:
            wanted = self._wanted(item)
            if not wanted.done():
                wanted.set_exception(why)

    def _wanted(self, item: Item) -> asyncio.Future[Verdict | None]:
        """Return who waits for this: the first of those that gave it."""
        line = self._waiting[id(item)]
        wanted = line.popleft()
        if not line:
            del self._waiting[id(item)]
        return wanted


def _is_named(items: Sequence[Item]) -> bool:
    """Whether a note among these has an id, which may be another's."""
    return any(isinstance(item, Note) and item.id is not None for item in items)


def _declared_by(tools: Toolbox) -> Declared:
    return Declared(policies=tools.policies, tools=tools)
