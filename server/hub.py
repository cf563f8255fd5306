"""Who follows which run: the past from the journal, then live, each entry once, in order (S-70).

Subscribers pull. The hub reads the end of each run that is followed once for all of them; whoever
is behind reads the journal for itself, page by page, so that the writer waits for nobody, and a
subscriber costs what its connection holds and one page (F-43).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from contextlib import suppress
from typing import Any, Final, Self, TypeVar

import attrs

from ..agent.transients import ItemChunk, SpeechFailed, SpeechStarted, Transient
from ..models.errors import TurnlockError
from ..models.safe_text import harmless
from ..runtime.errors import LASTING, JournalError, Overloaded
from ..runtime.journal.contract import Journal
from ..runtime.journal.ledger import START, Cursor
from ..runtime.log import defects, logger
from ..runtime.runtime import Runtime
from ..runtime.scheduling import Tasks, retried
from ..runtime.streams import look_due
from .children import Children
from .deltas import Piece, item_of, piece_of
from .subscriber import Subscriber
from .subscription import HubSubscription
from .tail import Place, Read, Tail
from .watching import Watching

__all__ = ["Hub", "HubCounts", "HubSettings", "HubSubscription"]

_log = logger(__name__)

S = TypeVar("S", bound=Subscriber)

HELD: Final = 16
"""Pages that are held for a second for others who catch up, too."""


@attrs.frozen(kw_only=True)
class HubSettings:
    """How a hub is set; times are seconds (section 15 of server.md, F-41 … F-46)."""

    subscribers: int = 1_000
    of_a_run: int = 100
    page: int = 256
    """Entries that are read at once."""
    poll: float = 0.25
    """How often runs are looked at that others perform (S-77)."""
    beat: float = 15.0
    """After which a silent stream shows that it lives (F-42)."""
    cut: float = 60.0
    """After which one is cut off who reads nothing (F-43)."""
    retry: float = 2.0
    """After which a client comes again when the server stops (F-45)."""
    retries: tuple[float, ...] = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
    """Pauses after which a journal that failed is read again; then the stream ends."""


@attrs.define
class HubCounts:
    """What there was, for `/metrics` (F-35)."""

    sent: int = 0
    """Entries that were handed to connections."""
    replays: int = 0
    """How often a subscriber went back to the journal."""
    cut: int = 0
    """Subscribers that were cut off."""


class Hub:
    """All subscribers of a server."""

    def __init__(
        self,
        *,
        journal: Journal,
        runtime: Runtime | None = None,
        settings: HubSettings | None = None,
    ) -> None:
        """Prepare; `runtime` performs runs here, and tells at once when they grow."""
        self.settings: Final = settings or HubSettings()
        self.counts: Final = HubCounts()
        self._journal = journal
        self._runtimes: list[Runtime] = [] if runtime is None else [runtime]
        """What performs runs here."""
        self._tasks = Tasks(failed=defects(__name__))
        self._tails: dict[str, Tail] = {}
        self._subscribers: dict[Subscriber, Hashable] = {}
        self._of: dict[Hashable, int] = {}
        """How many follow the same: a run by its id, or what `attach` was told."""
        self._reads: dict[tuple[str, Cursor], asyncio.Task[Read]] = {}
        """Pages that are read just now, or were this second."""
        self._diagnosing: dict[str, asyncio.Task[None]] = {}
        self._children = Children(journal)
        self.watching: Final = Watching(journal)
        self._unheeds: list[Callable[[], None]] = []
        self._stopped = False

    async def __aenter__(self) -> Self:
        """Begin to look at what is followed."""
        self._unheeds += [it.when_kept(self._kept) for it in self._runtimes]
        self._tasks.spawn("look at runs of others", self._poll())
        self._tasks.spawn("look after subscribers", self._look_after())
        self._tasks.spawn("look at the list of runs", self.watching.watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all streams."""
        await self.stop()

    def close(self) -> None:
        """Have all streams end, each with a word when to come again (F-45)."""
        self._stopped = True
        for subscriber in tuple(self._subscribers):
            subscriber.end_soon()

    async def stop(self) -> None:
        """Have all streams end; what is read of the journal meanwhile is let go."""
        self.close()
        while self._unheeds:
            self._unheeds.pop()()
        await self._tasks.cancel()
        for reading in tuple(self._reads.values()):
            reading.cancel()
        await asyncio.gather(*self._reads.values(), return_exceptions=True)

    def attend(self, runtime: Runtime) -> None:
        """Learn at once of runs that this one performs here, too: those of another kind."""
        if runtime not in self._runtimes:
            self._runtimes.append(runtime)
            self._unheeds.append(runtime.when_kept(self._kept))

    def subscribe(
        self,
        run_id: str,
        *,
        after: Cursor = START,
        follow: bool = True,
        diagnostics: bool = False,
        children: bool = False,
    ) -> HubSubscription:
        """Return what a run's subscriber is shown after a cursor, batch by batch; close it.

        Raises `Overloaded` beyond the bounds, at once; what the journal says of the run and the
        cursor is raised by `HubSubscription.open`, or by the first batch.
        """
        self._check_room(run_id, f"run {harmless(run_id)!r}")
        made = HubSubscription(
            hub=self,
            run_id=run_id,
            after=after,
            follow=follow,
            diagnostics=diagnostics,
            children=children,
        )
        self._add(made, run_id)
        return made

    def attach(self, made: Callable[[Self], S], *, to: Hashable, named: str) -> S:
        """Have somebody looked after who follows something else than a run: a chat, say.

        `to` tells what is followed by whom, `named` is its name for people. Raises `Overloaded`.
        """
        self._check_room(to, named)
        subscriber = made(self)
        self._add(subscriber, to)
        return subscriber

    def _check_room(self, followed: Hashable, named: str) -> None:
        held, settings = self._of.get(followed, 0), self.settings
        if held >= settings.of_a_run or len(self._subscribers) >= settings.subscribers:
            raise Overloaded(
                f"{named} has {held} subscribers, and the server {len(self._subscribers)}; they may"
                f" have {settings.of_a_run} and {settings.subscribers}"
            )

    def _add(self, subscriber: Subscriber, followed: Hashable) -> None:
        self._subscribers[subscriber] = followed
        self._of[followed] = self._of.get(followed, 0) + 1
        if self._stopped:
            subscriber.end_soon()

    def spawn(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Have something go on for a subscriber, until the hub stops at the latest."""
        return self._tasks.spawn(name, work)

    def pass_on(self, run_id: str, said: Transient | Piece) -> None:
        """Pass on what is said just now in a run, to those who are live on it (S-75).

        What an agent says that is a tool there is said in its own run, which the entry names.
        """
        item = ""
        if not isinstance(said, (Piece, ItemChunk)):
            run_id, item = item_of(said.entry_id)
        tail = self._tails.get(run_id)
        if tail is None:
            return
        if isinstance(said, (SpeechStarted, SpeechFailed)):
            tail.deltas.void(item)
            return
        piece = said if isinstance(said, Piece) else piece_of(said)
        if piece is not None and tail.deltas.add(piece):
            tail.wake()

    def is_watched(self, run_id: str) -> bool:
        """Whether a run has a subscriber (S-96)."""
        return run_id in self._of

    @property
    def subscribers(self) -> int:
        """How many there are."""
        return len(self._subscribers)

    @property
    def journal(self) -> Journal:
        """Where the runs are kept."""
        return self._journal

    @property
    def family(self) -> Children:
        """Which runs are whose sub-agents (S-56)."""
        return self._children

    # What subscriptions ask.

    def forget(self, subscriber: Subscriber) -> None:
        """Forget one that has ended."""
        followed = self._subscribers.pop(subscriber, None)
        if followed is None:
            return
        self._of[followed] -= 1
        if not self._of[followed]:
            del self._of[followed]

    def tail(self, run_id: str, place: Place) -> Tail:
        """Return what is read of a run for those who are live; nobody is: it begins at `place`."""
        tail = self._tails.get(run_id)
        if tail is None:
            tail = Tail(run_id, place=Place(place.at, place.shown), again=self._read_tail)
            self._tails[run_id] = tail
        return tail

    def left(self, tail: Tail) -> None:
        """Forget what nobody is live on any more."""
        if not tail.members and self._tails.get(tail.run_id) is tail:
            del self._tails[tail.run_id]
            pump = self._diagnosing.pop(tail.run_id, None)
            if pump is not None:
                pump.cancel()

    def diagnose(self, run_id: str) -> None:
        """Have the diagnostics of a run passed on, as long as somebody is live on it."""
        first = next(iter(self._runtimes), None)
        runtime = next((it for it in self._runtimes if run_id in it.runs), first)
        if runtime is not None and run_id not in self._diagnosing:
            pump = self._tasks.spawn("pass on diagnostics", self._pump(run_id, runtime))
            self._diagnosing[run_id] = pump

    async def read(self, run_id: str, after: Cursor) -> Read:
        """Return the next page; all who ask for it in the same second are given the same."""
        reading = self._reads.get((run_id, after)) or self._begin(run_id, after)
        return await asyncio.shield(reading)

    def _begin(self, run_id: str, after: Cursor) -> asyncio.Task[Read]:
        key = run_id, after
        reading = self._reads[key] = asyncio.ensure_future(self._page(run_id, after))
        reading.add_done_callback(lambda ended: self._has_read(key, ended))
        return reading

    def _has_read(self, key: tuple[str, Cursor], ended: asyncio.Task[Read]) -> None:
        """Hold a page for a moment where it will not grow: several may catch up together."""
        has_failed = ended.cancelled() or ended.exception() is not None
        # who waited for what has failed is told; perhaps nobody does any more
        if has_failed or not ended.result().has_more:
            if self._reads.get(key) is ended:
                del self._reads[key]
            return
        if len(self._reads) > HELD:
            oldest = next((it for it, reading in self._reads.items() if reading.done()), key)
            self._reads.pop(oldest, None)

    def _let_go(self) -> None:
        """Hold no page longer: it may be pruned, or its run be removed."""
        for key in [key for key, reading in self._reads.items() if reading.done()]:
            del self._reads[key]

    async def _page(self, run_id: str, after: Cursor) -> Read:
        page = await retried(
            lambda: self._journal.ledger(run_id, after=after, limit=self.settings.page),
            pauses=self.settings.retries,
            on=(JournalError,),
            is_hopeless=lambda: self._stopped,
        )
        return Read.of(run_id, page, after=after)

    # What the hub does by itself.

    def _kept(self, run_id: str) -> None:
        self.watching.kept(run_id)
        tail = self._tails.get(run_id)
        if tail is not None:
            tail.look()

    def _read_tail(self, tail: Tail) -> None:
        if self._stopped:
            tail.reading = False
            return
        self._tasks.spawn("read on", self._read_on(tail))

    async def _read_on(self, tail: Tail) -> None:
        """Read a run's ledger to its end, as often as it has grown meanwhile."""
        try:
            while tail.stale and tail.members:
                tail.stale = False
                read = await self.read(tail.run_id, tail.place.at)
                tail.stale |= tail.take(read) and tail.place.at < read.page.head
                await asyncio.sleep(0)  # those who are quick take it before the next page
        except TurnlockError as error:
            self._fail(tail, error)
        finally:
            tail.reading = False

    def _fail(self, tail: Tail, error: TurnlockError) -> None:
        for subscriber in tuple(self._subscribers):
            if isinstance(subscriber, HubSubscription):
                subscriber.fail(tail.run_id, error)
        if self._tails.get(tail.run_id) is tail:
            del self._tails[tail.run_id]

    async def _poll(self) -> None:
        """Look, again and again, which runs have grown that others perform (D-53, S-77)."""
        time = asyncio.get_running_loop().time
        family_due = time() + self.settings.poll
        while True:
            await look_due(self._journal, self.settings.poll)
            try:
                await self._look()
                if time() >= family_due:
                    family_due = time() + self.settings.poll
                    await self._look_at_children()
            except LASTING as error:
                for tail in tuple(self._tails.values()):
                    self._fail(tail, error)
            except TurnlockError as error:
                _log.warning("the ends of the runs that are followed cannot be read: %s", error)

    async def _look_at_children(self) -> None:
        for subscriber in tuple(self._subscribers):
            if isinstance(subscriber, HubSubscription) and subscriber.children:
                subscriber.add_children(await self._children.of(subscriber.run_id))

    async def _look(self) -> None:
        here = {run_id for runtime in self._runtimes for run_id in runtime.runs}
        followed = [run_id for run_id in self._tails if run_id not in here]
        if not followed:
            return
        ends = await self._journal.ends(followed)
        for run_id in followed:
            tail = self._tails.get(run_id)
            if tail is not None and ends.get(run_id) not in (tail.place.at, tail.place.shown):
                tail.look()

    async def _look_after(self) -> None:
        """Show silent streams that they live, cut off who reads nothing, tidy up."""
        while True:
            await asyncio.sleep(min(1.0, self.settings.beat / 4, self.settings.cut / 4))
            now = asyncio.get_running_loop().time()
            for subscriber in tuple(self._subscribers):
                if subscriber.look_after(now):
                    self.counts.cut += 1
            for tail in tuple(self._tails.values()):
                tail.tidy()
            self._let_go()

    async def _pump(self, run_id: str, runtime: Runtime) -> None:
        with suppress(TurnlockError):  # the runtime is closed: there are no more
            diagnostics = runtime.diagnostics(run_id)
            try:
                async for diagnostic in diagnostics:
                    if tail := self._tails.get(run_id):
                        tail.diagnose(diagnostic)
            finally:
                await diagnostics.aclose()
