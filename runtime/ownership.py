"""Ownership of runs: taken for a lease, renewed while the process lives, taken from the dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Final
from weakref import WeakValueDictionary

from ..models.errors import CorruptJournal, InvalidValue, TurnlockError
from ..models.run import Run
from ..models.safe_text import harmless
from .actor import Actor
from .dispatcher import Dispatcher, OnContinue
from .errors import ClockMoved, Closed, ForeignRun, JournalReplaced, RunDiffers, RunOpen
from .executions import RuntimeContext
from .journal.contract import FREE, Journal, RunEntry, RunRead
from .journal.owning import taken_at
from .leases import SECOND_LOOK, Hold, Leases, lives_still, same_lease
from .left_alone import LeftAlone
from .log import logger
from .owners import is_dead
from .scheduling import retried
from .tools.performing import GRACE
from .tools.toolbox import ToolsOf
from .writer import fold_run

_log = logger(__name__)

RENEWALS: Final = 3
"""Times that the ownership of runs is renewed, and others' looked at, before it would be over."""

STOPPING: Final = GRACE + 1.0
"""Seconds that a tool which was asked to stop has to do so, and its outcome to be kept."""

LAG: Final = 1.0
"""Seconds by which the loop may lag behind: a host that cannot renew takes nothing more (D-47)."""


class Ownership:
    """Takes runs, recovers them, and keeps them as long as it is renewed."""

    def __init__(
        self,
        *,
        journal: Journal,
        runtime: RuntimeContext,
        dispatcher: Dispatcher,
    ) -> None:
        """Begin with none."""
        self._journal = journal
        self._runtime = runtime
        self._dispatcher = dispatcher
        self._actors = runtime.actors
        self._taking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """A lock for each run that is being taken now."""
        self._left_alone: Final = LeftAlone(self._actors)
        self._closed = False

    async def own(
        self, run: Run, *, tools_of: ToolsOf | None = None, on_continue: OnContinue | None = None
    ) -> None:
        """Declare a run, take it, fold it, and perform what it owes; idempotent.

        What is given counts for this run alone, in place of the runtime's own. Raises `ForeignRun`
        for one of another kind, before anything happens (K-61), and `RunOpen` where something is
        given for a run that is performed here already.
        """
        self._check_kind(run)
        if run.run_id in self._actors and (tools_of is not None or on_continue is not None):
            raise _performed_here(run.run_id)
        try:
            await self._journal.declare(run)
        except RunDiffers:  # in its kind, perhaps: then no other configuration would do
            self._check_kind((await self._journal.entry(run.run_id)).run)
            raise
        await self._own(run, tools_of=tools_of, on_continue=on_continue)

    async def take_over(self) -> tuple[str, ...]:
        """Take the runs that have something under way and no living owner; return their ids.

        In portions, and no more than there is room for (D-47): the rest is for others, or for the
        next look. None, where nobody takes their continuations.
        """
        if self._runtime.on_continue is None:
            return ()
        taken: list[str] = []
        overdue: dict[str, RunEntry] = {}
        async for free, silent in self._portions():
            taken += await self._take_all(free)
            overdue |= {entry.run.run_id: entry for entry in silent}
        if overdue:
            await asyncio.sleep(self._runtime.settings.ownership * SECOND_LOOK)
            async for _, again in self._portions():
                silent = [
                    entry
                    for entry in again
                    if entry.run.run_id in overdue and same_lease(overdue[entry.run.run_id], entry)
                ]
                taken += await self._take_all(silent)
        return tuple(taken)

    async def _portions(self) -> AsyncIterator[tuple[list[RunEntry], list[RunEntry]]]:
        """Yield the busy runs of our own kind that are free, and those of silent owners (K-61).

        It ends where there are no more, or no room for them.
        """
        after: str | None = None
        while (room := await self._room()) > 0:
            leases = Leases(now=self._now(), own=self._runtime.owner)
            page = await self._journal.free(
                now=self._now(), gone=leases.is_dead, kind=self._runtime.kind, after=after
            )
            if not page:
                return
            after = page[-1].run.run_id
            held: dict[Hold, list[RunEntry]] = {hold: [] for hold in Hold}
            for entry in filter(self._left_alone.is_wanted, page):
                held[leases.hold(entry)].append(entry)
            yield [*held[Hold.NONE], *held[Hold.OVER]][:room], held[Hold.OVERDUE][:room]

    def _now(self) -> float:
        """Return the time by which others' leases are over: their clocks may be off (D-44)."""
        return self._runtime.tenure.now() - self._journal.patience

    async def _room(self) -> int:
        """Return how many runs more may be taken now: none while the loop lags behind (D-47)."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(0)  # whatever waits on the loop has its turn
        if loop.time() - began > LAG:
            _log.warning(
                "no more runs are taken over for now: the loop lags by %.1f s", loop.time() - began
            )
            return 0
        most = self._runtime.settings.runs
        return FREE if most is None else most - len(self._actors)

    def _check_kind(self, run: Run) -> None:
        """Raise `ForeignRun` for a run that another runtime performs (K-61)."""
        if run.kind != self._runtime.kind:
            raise ForeignRun(
                f"run {run.run_id!r} is of kind {run.kind!r}: another runtime performs it; this one"
                f" performs runs of kind {self._runtime.kind!r}"
            )

    async def _take_all(self, free: Sequence[RunEntry]) -> list[str]:
        """Take runs that were looked at; return the ids of those that are ours now (D-13)."""
        async with AsyncExitStack() as stack:
            unheld = [entry for entry in free if not self._lock_of(entry.run.run_id).locked()]
            for entry in unheld:  # one that is being taken by somebody else here is left to him
                await stack.enter_async_context(self._lock_of(entry.run.run_id))
            wanted = [entry for entry in unheld if entry.run.run_id not in self._actors]
            if not wanted:
                return []
            now, lease = self._runtime.tenure.now(), self._runtime.settings.ownership
            fences = await retried(
                lambda: self._journal.take(
                    wanted,
                    owner=self._runtime.owner,
                    now=now,
                    lease=lease,
                    gone={entry.owner for entry in wanted if entry.owner and is_dead(entry.owner)},
                ),
                pauses=(0.0,),
                on=(ClockMoved,),
            )
            try:
                return await self._begin_all(wanted, fences, ends=now + lease)
            except BaseException:  # cancelled, too: nobody may own what nobody performs
                for run_id in fences.keys() - set(self._actors):
                    await self._undo(run_id)
                raise

    async def _begin_all(
        self, wanted: Sequence[RunEntry], fences: Mapping[str, int], *, ends: float
    ) -> list[str]:
        """Perform the runs that were taken, which are read at once; return their ids (D-13)."""
        read: dict[str, RunRead] = {}
        with suppress(TurnlockError):  # then each is read by itself, and says what is in the way
            read |= await self._journal.read_runs(list(fences))
        taken: list[str] = []

        async def begin(entry: RunEntry) -> None:
            run_id = entry.run.run_id
            known = read.pop(run_id, None)
            if await self._begin(entry, fences.get(run_id), ends=ends, read=known):
                taken.append(run_id)

        async with asyncio.TaskGroup() as group:
            for entry in wanted:
                group.create_task(begin(entry))
                await asyncio.sleep(0)  # whatever waits on the loop has its turn between two folds
        return taken

    async def _begin(
        self, entry: RunEntry, fence: int | None, *, ends: float, read: RunRead | None
    ) -> bool:
        """Perform a run that was taken under this token; say whether that was possible."""
        run_id, runtime = entry.run.run_id, self._runtime
        on_continue = runtime.on_continue
        if fence is None or on_continue is None:
            _log.info("run %r is left alone: somebody else was quicker", run_id)
            return False
        self._left_alone.asked_for(run_id)
        try:
            await self._perform(
                entry.run,
                entry,
                (fence, ends),
                tools_of=runtime.tools_of,
                on_continue=on_continue,
                read=read,
            )
        except TurnlockError as why:
            if isinstance(why, CorruptJournal):
                self._left_alone.unreadable(entry)
            _log.warning("run %r is left alone: %s", run_id, why)
            await self._undo(run_id)
            return False
        except BaseException:  # cancelled, too: nobody may own what nobody performs
            await self._undo(run_id)
            raise
        return True

    def _lock_of(self, run_id: str) -> asyncio.Lock:
        return self._taking.setdefault(run_id, asyncio.Lock())

    async def watch(self) -> None:
        """Take over until cancelled: who was alive, or not proved dead, when we began may die."""
        while True:
            await asyncio.sleep(self._runtime.settings.ownership / RENEWALS)
            try:
                await self.take_over()
            except JournalReplaced as error:
                self._actors.fail(error)
                return
            except TurnlockError as error:
                _log.warning("it is not known which runs nobody owns: %s", error)

    async def let_go(self, run_id: str, *, drain: float) -> tuple[str, ...]:
        """Let a run go when what runs for it has been told, or after `drain` seconds.

        What runs then is asked to stop, and heard if it does. Returns the calls whose results are
        dropped because it did not.
        """
        async with self._lock_of(run_id):
            actor = self._actors.get(run_id)
            if actor is None:
                return ()
            actor.leaving = True
            executions = self._dispatcher.executions
            try:
                if running := executions.to_be_told(actor):
                    await asyncio.wait(running, timeout=drain)
                    executions.abandon(run_id)
                    await asyncio.wait(running, timeout=STOPPING)
                dropped = tuple(executions.to_be_told(actor).values())
            finally:  # also where whoever waits for it is cancelled
                await self.release(run_id)
        if dropped:
            _say_dropped(run_id, dropped)
        return dropped

    async def release(self, run_id: str) -> None:
        """Let a run go at once; what it owes stays owed, what is being written is settled first."""
        actor = self._actors.get(run_id)
        if actor is None:
            return
        self._actors.remove(actor)
        if actor.kernel.busy:
            self._left_alone.let_go(run_id, fence=actor.fence)
        actor.stop(Closed(f"run {run_id!r} was closed here; open it again, or elsewhere"))
        self._dispatcher.forget(run_id)
        self._dispatcher.executions.abandon(run_id)
        await actor.ended()
        try:
            await self._journal.release(run_id, fence=actor.fence)
        except TurnlockError as error:
            _log.warning("run %r stays owned until its lease is over: %s", run_id, error)

    async def close(self) -> None:
        """Let all runs go, those that are being taken, too."""
        self._closed = True
        for actor in self._actors.all():
            if dropped := self._dispatcher.executions.to_be_told(actor):
                _say_dropped(actor.run.run_id, dropped.values())
        await asyncio.gather(*map(self.release, tuple(self._actors)))

    async def renew(self) -> None:
        """Renew until cancelled; let go of runs that somebody else has taken."""
        while True:
            await asyncio.sleep(self._runtime.settings.ownership / RENEWALS)
            try:
                await self._runtime.tenure.renew()
                await self._let_orphans_go()
            except JournalReplaced as error:
                self._actors.fail(error)
                return
            except TurnlockError as error:
                _log.warning("the ownership could not be renewed: %s", error)

    async def _let_orphans_go(self) -> None:
        """Let go of runs that this process owns and does not perform: a release had failed, say.

        Otherwise each renewal would keep them from everybody.
        """
        for run_id in self._runtime.tenure.orphans:
            if run_id in self._actors or self._lock_of(run_id).locked():
                continue
            entry = await self._journal.entry(run_id)
            if entry.owner == self._runtime.owner and run_id not in self._actors:
                await self._journal.release(run_id, fence=entry.fence)

    async def _own(
        self,
        run: Run,
        *,
        seen: RunEntry | None = None,
        tools_of: ToolsOf | None = None,
        on_continue: OnContinue | None = None,
    ) -> None:
        """Take a run, unless it is ours; `seen` is its entry, if it was looked at as need be."""
        async with self._lock_of(run.run_id):
            if run.run_id in self._actors:
                if tools_of is not None or on_continue is not None:
                    raise _performed_here(run.run_id)
                return
            self._left_alone.asked_for(run.run_id)
            try:
                await self._take(
                    run,
                    seen or await self._looked_at(run.run_id),
                    tools_of=tools_of or self._runtime.tools_of,
                    on_continue=on_continue or self._runtime.on_continue or _nobody(run.run_id),
                )
            except BaseException:  # cancelled, too: nobody may own what nobody performs
                await self._undo(run.run_id)
                raise

    async def _looked_at(self, run_id: str) -> RunEntry:
        """Return a run's entry, after a second look where its owner lives and is silent.

        Raises `JournalOwned` where it has renewed meanwhile.
        """
        entry = await self._journal.entry(run_id)
        leases = Leases(now=self._now(), own=self._runtime.owner)
        if leases.hold(entry) is not Hold.OVERDUE:
            return entry
        await asyncio.sleep(self._runtime.settings.ownership * SECOND_LOOK)
        again = await self._journal.entry(run_id)
        if again.owner is not None and not same_lease(entry, again):
            raise lives_still(again)
        return again

    async def _take(
        self, run: Run, seen: RunEntry, *, tools_of: ToolsOf, on_continue: OnContinue
    ) -> None:
        """Take a run whose owner is free to be put out, as far as this entry tells."""
        held = await retried(
            lambda: self._fenced(run.run_id, seen), pauses=(0.0,), on=(ClockMoved,)
        )
        await self._perform(run, seen, held, tools_of=tools_of, on_continue=on_continue)

    async def _perform(  # noqa: PLR0913 - what a run is performed with
        self,
        run: Run,
        seen: RunEntry,
        held: tuple[int, float],
        *,
        tools_of: ToolsOf,
        on_continue: OnContinue,
        read: RunRead | None = None,
    ) -> None:
        """Perform a run that is owned: `held` are the fencing token and the end of the lease.

        `read` is what was read of it since it was taken, if anything.
        """
        runtime = self._runtime
        fence, ends = held
        await self._actors.check_left(run.run_id, self._journal)
        if runtime.performer is None:
            with suppress(TurnlockError):  # what claims says it again, and waits for it
                await runtime.worker.make_known()
        if read is None and runtime.restoring is not None:  # which asks for row and last fact, too
            read = (await self._journal.read_runs([run.run_id])).get(run.run_id)
        kernel = await fold_run(run, self._journal, read=read)
        if runtime.restoring is not None:
            await runtime.restoring.begin(run.run_id, read=read)
        if self._closed:
            raise Closed("the runtime was closed meanwhile; make another one")
        actor = Actor(
            kernel=kernel,
            fence=fence,
            journal=self._journal,
            clock=runtime.clock,
            tools_of=tools_of,
            on_continue=on_continue,
            settings=runtime.settings,
            listener=self._dispatcher,
            tasks=runtime.tasks,
            snapped=seen.snapped,
            correlate=runtime.correlate,
            restoring=runtime.restoring,
        )
        self._actors.add(actor)
        runtime.telemetry.declared(tuple(actor.tools))
        actor.owned_until = ends
        await self._dispatcher.doubts.lose_what_died(actor, self._journal)
        if actor.stopped is not None:
            raise actor.stopped
        self._dispatcher.folded(actor)

    async def _fenced(self, run_id: str, seen: RunEntry) -> tuple[int, float]:
        """Own a run that was seen so; return the fencing token and when the lease is over."""
        now, lease = self._runtime.tenure.now(), self._runtime.settings.ownership
        over = taken_at(seen, now=self._now())
        fence = await self._journal.own(
            run_id,
            owner=self._runtime.owner,
            now=over,  # what was renewed since it was seen is not over
            lease=now + lease - over,
            gone=seen.owner if is_dead(seen.owner) else None,
        )
        return fence, now + lease

    async def _undo(self, run_id: str) -> None:
        """Let a run go that was taken and cannot be performed."""
        await self.release(run_id)
        self._left_alone.asked_for(run_id)
        with suppress(TurnlockError):
            entry = await self._journal.entry(run_id)
            if entry.owner == self._runtime.owner:
                await self._journal.release(run_id, fence=entry.fence)


def _say_dropped(run_id: str, dropped: Iterable[str]) -> None:
    _log.warning(
        "run %r was let go while %s ran: what comes of it is dropped, and its next owner finds it"
        " in doubt",
        harmless(run_id),
        harmless(", ".join(dropped)),
    )


def _performed_here(run_id: str) -> RunOpen:
    return RunOpen(
        f"run {run_id!r} is performed here already; close_run it first, or take another run"
    )


def _nobody(run_id: str) -> OnContinue:
    raise InvalidValue(
        place=f"run {run_id!r}",
        cause="has nobody who takes its continuations",
        fix="give on_continue= to open_run, or to the Runtime",
    )
