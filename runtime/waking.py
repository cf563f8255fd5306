"""For runtimes that are woken: by an engine of queues, by a notice, by a person (D-70, D-71).

An engine says when and where; the journal judges. A process that enters its runtime with
`Settings(takes_over=False)` performs what it is woken for, with `Woken`, and nothing else. Whatever
a waker does – twice, late, on two hosts – claims and fences hold. What it never does, `Sweep`
finds: runs that are busy and that nobody performs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

from ..models.errors import TurnlockError
from ..models.run import OWN
from ..models.safe_text import harmless
from .errors import Closed, JournalOwned, JournalReplaced
from .journal.contract import Journal, RunEntry
from .leases import clock_of_leases, same_lease
from .log import logger
from .owners import is_dead
from .runtime import Runtime
from .scheduling import Clock

_log = logger(__name__)

EVERY: Final = 10.0
"""Seconds between two looks of a sweep: a third of a lease, unless `Settings.ownership` is set."""


class Woken:
    """Performs on one runtime the runs that this process is woken for."""

    def __init__(self, runtime: Runtime) -> None:
        """Begin with none; the runtime is entered with `Settings(takes_over=False)`."""
        self._runtime = runtime
        self._wakings: dict[str, int] = {}
        """Runs that are performed here, and how often they were woken meanwhile."""
        self._stirred: dict[str, asyncio.Event] = {}
        runtime.when_kept(self._heed)

    async def perform(self, run_id: str) -> bool:
        """Own a run, perform it until it owes nothing, let it go; return whether that was here.

        Where it owes nothing, where another process owns it, and where it is performed here
        already, nothing happens: whoever has it goes on. Before it ends it looks once more, so
        that a turn which opened while the run was let go is performed, too, and what others have
        posted to its owner meanwhile is judged. Raises what
        `Runtime.open_run` raises, but for `JournalOwned`: `Closed` where the runtime is left
        meanwhile, say. Then a sweep finds it.
        """
        if run_id in self._wakings:
            self._wakings[run_id] += 1
            return False
        self._wakings[run_id] = 0
        ended = None
        """Where the run ended before it was performed here last."""
        try:
            while True:
                woken = self._wakings[run_id]
                entry = await self._runtime.journal.entry(run_id)
                owes = entry.busy and entry.sequence != ended
                if owes or await self._posted(run_id):
                    with suppress(JournalOwned):
                        await self._perform(entry)
                        ended = entry.sequence
                        continue
                if woken == self._wakings[run_id]:
                    return ended is not None
        finally:
            del self._wakings[run_id]

    async def _perform(self, entry: RunEntry) -> None:
        """Own a run until it owes nothing and nobody, or until it is owned here no more."""
        run_id, runtime = entry.run.run_id, self._runtime
        stirred = self._stirred[run_id] = asyncio.Event()
        try:
            await runtime.open_run(entry.run)
            while runtime.owns(run_id):
                stirred.clear()
                if runtime.busy(run_id):
                    await stirred.wait()
                elif await self._posted(run_id):
                    await asyncio.sleep(runtime.settings.poll)
                else:
                    break
        finally:
            del self._stirred[run_id]
            if runtime.owns(run_id):
                with suppress(Closed):  # it closes, and lets go of all
                    await runtime.close_run(run_id)

    async def _posted(self, run_id: str) -> bool:
        """Whether somebody waits for the owner's answer: who is let go could leave him waiting."""
        return bool(await self._runtime.journal.posts((run_id,)))

    def _heed(self, run_id: str) -> None:
        if (stirred := self._stirred.get(run_id)) is not None:
            stirred.set()


Wake: TypeAlias = Callable[[RunEntry], Awaitable[object]]
"""Has somebody woken for a run. It may be asked again for a run that stands as it stood."""


class Sweep:
    """Finds runs that are busy and that nobody performs, and has them woken (D-70).

    A waker may have been late, may have died with the run, or may never have heard of it. One such
    sweep makes any waker safe; as many as there are hosts do no harm. A run that has just opened is
    not hurried: it is woken when it stands, at the next look, as it stood.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        wake: Wake,
        every: float = EVERY,
        kind: str = OWN,
        clock: Clock | None = None,
    ) -> None:
        """Begin with nothing seen; `every` are the seconds between the looks of `watch`.

        `kind` is that of the runs that are looked for (K-61); `clock` is what leases count by, if
        the journal has no clock of its own.
        """
        self._journal = journal
        self._wake = wake
        self._every = every
        self._kind = kind
        self._clock = clock_of_leases(journal, clock)
        self._seen: dict[str, RunEntry] = {}
        """The runs that nobody performed at the last look."""

    async def look(self) -> tuple[str, ...]:
        """Look once, have those woken that stand as they stood; return their ids.

        One that cannot be woken is told in the log, and woken at the next look. Raises what the
        journal raises.
        """
        free = await self._free()
        before, self._seen = self._seen, free
        woken: list[str] = []
        for run_id, entry in free.items():
            if run_id in before and _stands(before[run_id], entry):
                try:
                    await self._wake(entry)
                except Exception:  # noqa: BLE001 - the host's own code
                    _log.exception("run %r could not be woken", harmless(run_id))
                else:
                    woken.append(run_id)
        return tuple(woken)

    async def watch(self) -> None:
        """Look until cancelled; while the journal fails it is looked at again.

        Raises `JournalReplaced`: then there is nothing to look at any more.
        """
        while True:
            try:
                await self.look()
            except JournalReplaced:
                raise
            except TurnlockError as error:
                _log.warning("it is not known which runs nobody performs: %s", error)
            await asyncio.sleep(self._every)

    async def _free(self) -> dict[str, RunEntry]:
        """Return the busy runs that nobody owns, whose owner is dead, or whose lease is over."""
        now = self._clock.now() - self._journal.patience
        found: dict[str, RunEntry] = {}
        after = None
        while page := await self._journal.free(now=now, gone=is_dead, kind=self._kind, after=after):
            after = page[-1].run.run_id
            for it in page:
                if it.rewound is None and it.problem is None:
                    found[it.run.run_id] = it
        return found


def _stands(before: RunEntry, entry: RunEntry) -> bool:
    """Whether nothing has happened to a run between two looks."""
    return before.sequence == entry.sequence and same_lease(before, entry)
