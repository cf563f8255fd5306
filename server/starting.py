"""What a server goes on with when it begins: what was performed when another ended (S-52, S-97).

Sessions of our own runs are begun again. Those of other kinds are a command's (S-54); but what
their dead processes left is brought to rest, so that nobody is asked what nobody waits for, and
nothing is called running that is not.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..adapters.contract import CommandRefused
from ..models.errors import TurnlockError
from ..models.run import OWN
from ..runtime.errors import JournalError, JournalOwned, RunOpen
from ..runtime.journal.contract import RunEntry
from ..runtime.leases import Hold, Leases, clock_of_leases
from ..runtime.log import logger
from .manifests import Kept
from .restoring import acknowledge_owed, bring_to_rest, check_dead

if TYPE_CHECKING:
    from .life import Life

_log = logger(__name__)

STAYS_CLOSED: Final = frozenset({"terminated", "orphaned"})
"""Why a session ended that no start of a server begins again."""
AT_ONCE: Final = 16
"""Runs that are gone on with at once."""
LOOK: Final = 10.0
"""Seconds between two looks at what others have, or have left."""
SHARE: Final = 20.0
"""A look that takes long is followed by a pause so many times as long."""
PORTION: Final = 100
"""Runs that are looked at together."""


class Starting:
    """Goes on with the runs that a server finds, and then with those that others leave."""

    def __init__(self, life: Life) -> None:
        """Do it for these sessions."""
        self._life = life
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._again: set[str] = set()
        """Runs that could not be gone on with when they were looked at."""
        self._seen: dict[str, tuple[int, int]] = {}
        """How runs stood that were looked at, and that nobody owned: fence and sequence."""
        self._begins = True

    async def go_on(self) -> None:
        """Go on with each run there is; then look, as long as the server lives, who left another.

        That is a server on the same journal that has died, or has ended in order (D-49).
        """
        while True:
            began = time.monotonic()
            async for page in self._pages():
                await asyncio.gather(*map(self._look_at, page))
            self._begins = False
            await asyncio.sleep(max(LOOK, SHARE * (time.monotonic() - began)))

    async def _pages(self) -> AsyncIterator[list[RunEntry]]:
        """Iterate over the runs that concern us, in portions."""
        for kind in self._life.runtimes:
            busy = None if kind == OWN else True
            found: list[RunEntry] = []
            async for entry in self._life.journal.run_entries(kind=kind, busy=busy):
                if self._concerns(entry):
                    found.append(entry)
                if len(found) == PORTION:
                    yield found
                    found = []
            yield found

    def _concerns(self, entry: RunEntry) -> bool:
        """Whether a run is nobody's, or another's, and stands otherwise than when it was seen."""
        run_id = entry.run.run_id
        if run_id in self._life.active:
            return False
        return run_id in self._again or self._seen.get(run_id) != (entry.fence, entry.sequence)

    async def _look_at(self, entry: RunEntry) -> None:
        """Go on with one, if it is to be; remember whether it is to be looked at again."""
        run_id = entry.run.run_id
        async with self._at_once:
            done = await self._looked_at(entry)
        if done is None:  # it is somebody's
            return
        self._again.discard(run_id)
        if done:
            self._seen[run_id] = (entry.fence, entry.sequence)
        else:
            self._again.add(run_id)

    async def _looked_at(self, entry: RunEntry) -> bool | None:
        """Go on with one; False where it is to be looked at again, None where it is another's."""
        life, run_id = self._life, entry.run.run_id
        now = clock_of_leases(life.journal, life).now()
        own = life.runtimes[entry.run.kind].owner
        if Leases(now=now, own=own).hold(entry) is Hold.FIRM:
            return None
        if entry.rewound or entry.problem:
            return True
        is_ours = entry.run.kind == OWN
        return await (self._restored(entry) if is_ours else self._rested(run_id))

    async def _restored(self, entry: RunEntry) -> bool:
        """Begin the session of one of our own, if that is to be; False: look again later."""
        life, run_id = self._life, entry.run.run_id
        try:
            async with life.lock(run_id):
                if run_id not in life.active:
                    kept = await life.kept(run_id)
                    if kept is not None and self._goes_on(kept, entry):
                        await life.begin(kept, restarted=True)
        except (JournalError, JournalOwned) as error:
            _log.info("run %r is not restored yet: %s", run_id, error)
            return False
        except TurnlockError as error:
            life.failures.keep(run_id, str(error))
            _log.warning("run %r is not restored: %s", run_id, error)
            return getattr(error, "code", None) not in {"limit_reached", "shutting_down"}
        return True

    async def _rested(self, run_id: str) -> bool:
        """Bring to rest what a dead process left of a run, and of its sub-agents.

        False: look again later. Nothing is done where the process may live (S-49).
        """
        try:
            kept = await self._life.kept(run_id)
            while kept is not None and (parent := kept.manifest.spec.parent) is not None:
                kept = await self._life.kept(parent)
            if kept is not None:
                await self._rest(kept)
        except (JournalError, JournalOwned, RunOpen) as error:
            _log.info("run %r is not brought to rest yet: %s", run_id, error)
            return False
        except CommandRefused as error:
            _log.info("run %r is left as it stands: %s", run_id, error)
        except TurnlockError as error:
            _log.warning("run %r is not brought to rest: %s", run_id, error)
        return True

    async def _rest(self, kept: Kept) -> None:
        life, run = self._life, kept.run
        adapter, runtime = life.adapters[run.kind], life.runtimes[run.kind]
        async with life.lock(run.run_id):
            if run.run_id in life.active or life.stopping:
                return
            await check_dead(kept, adapter)
            life.threads.knows(run.run_id, kept.manifest.epoch)
            try:
                await runtime.open_run(run)
                await bring_to_rest(kept, adapter, runtime, life.journal)
                await life.sub_agents.rest(run.run_id, adapter, runtime)
                await acknowledge_owed(run, runtime)
            finally:
                life.forget(run.run_id)
                with suppress(TurnlockError):
                    if run.run_id in runtime.runs:
                        await runtime.close_run(run.run_id, drain=0.0)

    def _goes_on(self, kept: Kept, entry: RunEntry) -> bool:
        """Whether a session is begun again: nobody has ended it.

        When a server begins, this includes what has failed, or was put to rest; later it is what
        other servers have left: they have died, or were drained.
        """
        if not self._begins:
            left = kept.why_closed in {None, "drained"}
            return left and (kept.manifest.epoch or {}).get("process") != self._owner
        if kept.why_closed in {"rested", "failed"}:
            return entry.busy
        return kept.why_closed not in STAYS_CLOSED

    @property
    def _owner(self) -> str:
        return self._life.runtimes[OWN].owner
