"""How the session of a run begins and ends, by itself too (S-50 … S-54).

A session begins and ends under a lock of its run. Each step is kept before the next: the `session`
note before anything is started, the `epoch` note once it was, `closed` before the run is let go. So
what stands after a crash says what the next start has to do (server.md 14).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final
from weakref import WeakValueDictionary

import attrs

from ..adapters.contract import (
    CommandRefused,
    Ending,
    RuntimeAdapter,
    Session,
    SessionSpec,
)
from ..adapters.own import OwnAdapter
from ..agent.errors import ConversationBroken
from ..agent.transients import Transient
from ..models.errors import TurnlockError
from ..models.run import OWN
from ..models.safe_text import harmless
from ..runtime.dispatcher import Continuation, TakesPosts
from ..runtime.errors import Closed, JournalOwned, RunFenced, RunOpen
from ..runtime.journal.contract import Appended, Journal
from ..runtime.journal.ledger import Domain, Note
from ..runtime.leases import put_out, time_of_takers
from ..runtime.listing import tell_untold
from ..runtime.log import defects, logger
from ..runtime.runtime import Runtime
from ..runtime.scheduling import Clock, SteadyClock, Tasks
from ..runtime.settings import Settings
from .bounds import Budget, Failures, SessionSettings, allowed
from .line import Line
from .manifests import (
    Kept,
    check_no_child,
    check_thread,
    closed_note,
    epoch_note,
    kept_of,
    session_note,
)
from .performed import Performed, Performers, RunSink
from .restoring import (
    bring_to_rest,
    check_dead,
    look_back,
    put_to_rest,
)
from .room import Room
from .starting import STAYS_CLOSED, Starting
from .sub_agents import SubAgents
from .threads import Threads

_log = logger(__name__)

PRUNE: Final = 3_600.0
"""Seconds between two looks for observations that need not be kept any more (S-64)."""
LOST: Final = (RunFenced, Closed)
"""What ends a session whose run is another's now: nothing can be kept of it here."""


class Life:
    """The sessions that are active here."""

    def __init__(  # noqa: PLR0913 - what a server is made of
        self,
        *,
        journal: Journal,
        adapters: Mapping[str, RuntimeAdapter],
        settings: SessionSettings,
        pass_on: Callable[[str, Transient], None],
        runtime_settings: Settings,
        clock: Clock | None,
    ) -> None:
        """Begin with none."""
        self.journal: Final = journal
        self.active: Final[dict[str, Performed]] = {}
        """By run, in the order in which they began."""
        self._room = Room(self.active, settings)
        self.tasks: Final = Tasks(failed=defects(__name__))
        self.stopping = False
        """Whether the server ends: no session begins any more."""
        self.adapters: Final = adapters
        self._settings = settings
        self._pass_on = pass_on
        self._performers = Performers(lost=self._lost)
        self.threads: Final = Threads()
        self.sub_agents: Final = SubAgents(
            journal=journal,
            performers=self._performers,
            threads=self.threads,
            pass_on=pass_on,
        )
        alone = attrs.evolve(runtime_settings, takes_over=False)
        self.runtimes: Final = {
            kind: adapter.runtime
            if isinstance(adapter, OwnAdapter)
            else Runtime(
                journal=journal,
                on_continue=self._taken,
                settings=alone,
                clock=clock,
                kind=kind,
                performer=self._performers,
                correlate=self.threads,
            )
            for kind, adapter in adapters.items()
        }
        """What owns and judges the runs of each kind."""
        self.began: Callable[[Performed], None] = lambda _: None
        """Is told of each session that has begun."""
        self.ended: Callable[[str, Ending], None] = lambda _, __: None
        """Is told of each run whose session has ended, and how."""
        self.takes_posts: TakesPosts | None = None
        """Takes what others have posted for a run, if it is for a session and not for the run."""
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._budget = Budget(settings)
        self.failures: Final = Failures()
        self._unheeds: list[Callable[[], None]] = []

    async def open(self) -> None:
        """Begin to restore what was performed when a server ended."""
        for kind, runtime in self.runtimes.items():
            self._unheeds.append(runtime.when_kept(self._room.stirs))
            if self.takes_posts is not None:
                runtime.mailbox.takes = self.takes_posts
            if kind != OWN:
                await runtime.__aenter__()
        self.tasks.spawn("tell how runs stand", tell_untold(self.journal))
        self.tasks.spawn("prune observations", self._prune_now_and_then())
        self.tasks.spawn("go on with runs", Starting(self).go_on())

    async def close(self) -> None:
        """End all sessions within `drain` (S-97)."""
        self.stopping = True
        while self._unheeds:
            self._unheeds.pop()()
        await self.tasks.cancel()
        drain = self._settings.drain
        works = [
            asyncio.ensure_future(self.end(run_id, why="drained", grace=drain))
            for run_id in self.active
        ]
        if works:
            _, late = await asyncio.wait(works, timeout=drain)
            for work in late:
                work.cancel()
            await asyncio.gather(*works, return_exceptions=True)
        for kind, runtime in self.runtimes.items():
            if kind != OWN:
                await runtime.__aexit__(None, None, None)

    def lock(self, run_id: str) -> asyncio.Lock:
        """Return the lock under which the session of a run begins and ends."""
        return self._locks.setdefault(run_id, asyncio.Lock())

    def now(self) -> float:
        """Return the Unix time by which notes are stamped."""
        for runtime in self.runtimes.values():
            return runtime.now()
        return (self.journal.clock or SteadyClock()).now()

    async def kept(self, run_id: str) -> Kept | None:
        """Return the manifest of a run; None where it has none. Raises `CommandRefused`."""
        return kept_of(run_id, await self.journal.notes(run_id, domain=Domain.SESSION))

    async def keep_session(self, spec: SessionSpec, *, number: int) -> bool:
        """Keep the first step of a manifest in a run that nobody performs.

        False where another one stands there. Raises `JournalOwned` where somebody owns the run.
        """
        notes = [session_note(spec, number=number, at=self.now())]
        kept = await self.journal.note(spec.run_id, fence=None, notes=notes)
        if kept is Appended.FENCED:  # by one that has died, perhaps
            now = time_of_takers(self.journal, self)
            await put_out(self.journal, spec.run_id, now=now)
            kept = await self.journal.note(spec.run_id, fence=None, notes=notes)
        if kept is Appended.FENCED:
            raise JournalOwned(f"run {harmless(spec.run_id)!r} is performed elsewhere")
        return kept is Appended.OK

    async def begin(self, kept: Kept, *, restarted: bool = False, force: bool = False) -> Performed:
        """Begin the session of a run, whose lock is held, and which has none here.

        With `force` somebody says that its last process is dead (S-49). Raises `CommandRefused`;
        `JournalOwned` and its like where the run is performed elsewhere.
        """
        spec = kept.manifest.spec
        run_id, kind = spec.run_id, spec.kind
        if self.stopping:
            raise CommandRefused("shutting_down", "the server is about to end")
        check_no_child(kept.manifest)
        check_thread(run_id, kept.manifest)
        await self._make_room(kind)
        if kept.why_closed == "failed" and not restarted:
            self._budget.spend(run_id, now=self.now())
        adapter, runtime = self.adapters[kind], self.runtimes[kind]
        if kind != OWN and not force:
            await check_dead(kept, adapter)
        session: Session | None = None
        try:
            if kind != OWN:
                self.threads.knows(run_id, kept.manifest.epoch)
                await runtime.open_run(kept.run)
                await bring_to_rest(kept, adapter, runtime, self.journal)
                await self.sub_agents.rest(run_id, adapter, runtime)
                self._performers.forget(run_id)  # what was told so far is of a dead process
            told = None if kind == OWN else self._performers.told(run_id)
            session = await self._session(kept, adapter, runtime)
            if kind != OWN:
                self.threads.knows(run_id, session.epoch)
                await look_back(kept, session, runtime, self.journal)
            number = kept.epochs + 1
            await runtime.note(run_id, epoch_note(session.epoch, number=number, at=self.now()))
            line = Line(run_id=run_id, runtime=runtime)
            line.load(await self.journal.notes(run_id, domain=Domain.MESSAGE))
        except RunOpen as error:
            raise JournalOwned(f"run {harmless(run_id)!r} is performed here otherwise") from error
        except BaseException:  # cancelled, too: nothing may go on that nobody asks
            await self._undo(run_id, session, runtime)
            raise
        manifest = attrs.evolve(kept.manifest, epoch=session.epoch, closed=None)
        performed = Performed(
            kept=attrs.evolve(kept, manifest=manifest, epochs=number),
            adapter=adapter,
            runtime=runtime,
            session=session,
            line=line,
            told=told,
        )
        self.active[run_id] = performed
        self._room.stirs(run_id)
        performed.went_on = self.failures.forget
        performed.begin(self._ended_by_itself)
        self.began(performed)
        if kind != OWN:
            self.tasks.spawn(f"prune {run_id}", self._prune(performed))
        for idle in self._room.idle_longest():
            self.tasks.spawn(f"rest {idle.run_id}", self._rest(idle))
        return performed

    async def _session(self, kept: Kept, adapter: RuntimeAdapter, runtime: Runtime) -> Session:
        manifest = kept.manifest
        try:
            await adapter.check(allowed(manifest.spec, adapter, self._settings))
        except CommandRefused as error:  # a new one was checked before
            raise CommandRefused(
                "runtime_reference_invalid",
                f"the run was begun otherwise than this server can go on with it: {error}",
            ) from error
        run_id = manifest.spec.run_id
        sink = RunSink(
            run_id,
            runtime,
            pass_on=self._pass_on,
            ended=self._ended_of_others,
            child=self.sub_agents.below(run_id, adapter, runtime),
        )
        if manifest.epoch is None:
            return await adapter.create(manifest.spec, sink)
        return await adapter.restore(manifest, sink)

    async def _undo(self, run_id: str, session: Session | None, runtime: Runtime) -> None:
        """End what has begun of a session; the run stays, inactive, and may be restored (S-51)."""
        with suppress(TurnlockError):
            if session is not None:
                ending = await session.terminate(why="failed", grace=0.1)
                await self.sub_agents.end(run_id, ending, runtime=runtime)
                await session.leave()
        self.forget(run_id)
        with suppress(TurnlockError):
            if run_id in runtime.runs:
                await runtime.close_run(run_id, drain=0.0)

    def forget(self, run_id: str) -> None:
        """Forget what was known of a run that another runtime performed here."""
        self._performers.forget(run_id)
        self.threads.forget(run_id)

    async def _taken(self, told: Continuation) -> None:
        """Wait until another runtime has gone on: it hands results to its model itself (S-29)."""
        run_id = self.sub_agents.root_of(told.run_id) or told.run_id
        if (performed := self.active.get(run_id)) is not None:
            await performed.session.taken(told.turn_id)

    async def wake(self, run_id: str) -> None:
        """Begin the session of a run of ours whose last has failed, or was never ended.

        One of another runtime is begun by a prompt or a restore alone: what it asked is over.
        """
        try:
            async with self.lock(run_id):
                if run_id not in self.active:
                    kept = await self.kept(run_id)
                    ours = kept is not None and kept.manifest.spec.kind == OWN
                    if kept is not None and ours and kept.why_closed not in STAYS_CLOSED:
                        await self.begin(kept)
        except TurnlockError as error:
            _log.info("run %r goes on once it is restored: %s", run_id, error)

    async def end(self, run_id: str, *, why: str, grace: float) -> bool:
        """End the session of a run; how is kept before the run is let go. False: it has none."""
        async with self.lock(run_id):
            performed = self.active.get(run_id)
            if performed is not None:
                await self._end(performed, Ending(why=why), grace=grace)
            return performed is not None

    async def _end(
        self, performed: Performed, ending: Ending, *, grace: float, over: bool = False
    ) -> None:
        """End a session under its lock; one that is `over` has ended by itself."""
        run_id, runtime = performed.run_id, performed.runtime
        try:
            await performed.cease()
            ending = await put_to_rest(performed, ending, grace=grace, over=over)
            if run_id in runtime.runs:
                number = performed.kept.closings + 1
                await runtime.note(run_id, closed_note(ending, number=number, at=self.now()))
        except TurnlockError as error:  # it is another's by now, or the journal fails
            _log.warning("how the session of %r ended is not kept: %s", run_id, error)
        finally:
            if self.active.get(run_id) is performed:
                del self.active[run_id]
            await self.sub_agents.end(run_id, ending, runtime=runtime)
            self.forget(run_id)
            await self._leave(performed)
            self.ended(run_id, ending)

    async def _leave(self, performed: Performed) -> None:
        try:
            await performed.session.leave()
            if performed.run_id in performed.runtime.runs:
                await performed.runtime.close_run(performed.run_id, drain=0.0)
        except TurnlockError as error:
            _log.warning("run %r was left in haste: %s", performed.run_id, error)

    def check_room(self, kind: str) -> None:
        """Raise `CommandRefused` where so many sessions are at work that no other may begin."""
        self._room.check(self.adapters[kind])

    async def _make_room(self, kind: str) -> None:
        """Put a process to rest that is idle, if need be. Raises as `check_room` does."""
        self.check_room(kind)
        idle = self._room.idle_for(self.adapters[kind])
        if self._room.is_full and idle is not None:
            await self._rest(idle)

    async def _rest(self, performed: Performed) -> None:
        """End a session as long as it is idle; its run is gone on with when it is asked."""
        async with self.lock(performed.run_id):
            if performed.may_rest and self.active.get(performed.run_id) is performed:
                await self._end(performed, Ending(why="rested"), grace=self._settings.grace)

    def _lost(self, run_id: str) -> None:
        """Learn that another owns a run: its session ends at once (S-49)."""
        performed = self.active.get(self.sub_agents.root_of(run_id) or run_id)
        if performed is not None:
            self._over(performed, Ending(why="fenced"))

    def _ended_of_others(self, run_id: str, ending: Ending) -> None:
        """Learn that the process of a session has ended by itself (S-54)."""
        performed = self.active.get(run_id)
        if performed is not None:  # begun again, so often, where somebody waits to be answered
            self._over(performed, ending, again=bool(len(performed.line)))

    def _ended_by_itself(self, performed: Performed, error: Exception) -> None:
        """Learn that a session does not go on: its model does not answer, say."""
        if isinstance(error, LOST) or performed.run_id not in performed.runtime.runs:
            self._over(performed, Ending(why="fenced"))
            return
        if not isinstance(error, TurnlockError):
            _log.error("the session of %r failed", performed.run_id, exc_info=error)
        said = harmless(str(error) or type(error).__name__)
        hopeless = isinstance(error, ConversationBroken)
        self._over(performed, Ending(why="failed", said=said), again=not hopeless)

    def _over(self, performed: Performed, ending: Ending, *, again: bool = False) -> None:
        if ending.why == "fenced":
            performed.session.kill()  # at once: what follows may wait for its turn
        if not self.stopping:
            work = self._after(performed, ending, again=again)
            self.tasks.spawn(f"end {performed.run_id}", work)

    async def _after(self, performed: Performed, ending: Ending, *, again: bool) -> None:
        """Keep how a session ended; where it may help, begin it again, so often (S-54)."""
        run_id = performed.run_id
        async with self.lock(run_id):
            if self.active.get(run_id) is not performed:
                return
            if ending.why == "failed":
                self.failures.keep(run_id, ending.said)
            if ending.said:
                await self._say(performed, ending)
            await self._end(performed, ending, grace=0.1, over=ending.why != "fenced")
        while again:
            try:
                pause = self._budget.spend(run_id, now=self.now())
            except CommandRefused as error:
                _log.warning("%s; it stays inactive until it is asked for", error)
                return
            await asyncio.sleep(pause)
            async with self.lock(run_id):
                if run_id in self.active:
                    return
                kept = await self.kept(run_id)
                if kept is None or kept.why_closed != "failed":
                    return
                try:
                    await self.begin(kept, restarted=True)
                except TurnlockError as error:
                    self.failures.keep(run_id, str(error))
                    _log.warning("the session of %r was not begun again: %s", run_id, error)
                else:
                    return

    async def _say(self, performed: Performed, ending: Ending) -> None:
        """Show whoever looks at the run why its session has ended."""
        note = Note(
            domain=Domain.ERROR,
            kind="session_ended",
            body={"text": harmless(ending.said), "why": ending.why},
            at=self.now(),
        )
        with suppress(TurnlockError):
            await performed.runtime.note(performed.run_id, note)

    async def _prune_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(PRUNE)
            for performed in tuple(self.active.values()):
                await self._prune(performed)

    async def _prune(self, performed: Performed) -> None:
        """Remove old observations of a run that is owned here, and its sub-agents' (S-64)."""
        for run_id in (performed.run_id, *self.sub_agents.of(performed.run_id)):
            with suppress(TurnlockError):  # another time
                entry = await self.journal.entry(run_id)
                if entry.owner == performed.runtime.owner:
                    await self.journal.prune(run_id, fence=entry.fence, now=self.now())
