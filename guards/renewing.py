"""The leases of what is held: renewed as long as it is, whatever the tool is doing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import attrs

from ..engine.kernel import Kernel
from ..models.deliveries import Renew
from ..models.errors import TurnlockError, shown
from ..runtime.log import logger
from ..views.live import call_of
from .claiming import is_running
from .holding import Held, Holding
from .past import Past
from .visits import Step, Visits

_log = logger(__name__)

SHORTEST: Final = 0.02
"""Seconds between two rounds at least."""


class Renewals:
    """Renews what is held, in a task that lives as long as anything is."""

    def __init__(self, holding: Holding, visits: Visits, worker: str) -> None:
        """Begin without a task; `worker` is who holds all of it."""
        self._holding = holding
        self._visits = visits
        self._worker = worker
        self._task: asyncio.Task[None] | None = None
        self._next = 0.0
        """When the task looks again, by the clock of the loop."""
        self._sooner = asyncio.Event()

    def go_on(self, held: Held) -> None:
        """Renew what is held from now on, and `held` with it: its lease may be the shortest."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._renew())
        elif held.due < self._next:
            self._sooner.set()

    def stop(self) -> None:
        """Renew nothing more."""
        if self._task is not None:
            self._task.cancel()

    async def _renew(self) -> None:
        loop = asyncio.get_running_loop()
        while len(self._holding):
            due = self._holding.due(loop.time())
            await asyncio.gather(*(self._renew_run(run, held) for run, held in due.items()))
            self._next = max(loop.time() + SHORTEST, self._holding.due_next())
            self._sooner.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._next):
                    await self._sooner.wait()

    async def _renew_run(self, run: str, held: Sequence[Held]) -> None:
        try:
            await self._visits.visit(run, Renewing(held, self._worker))
        except TurnlockError as error:
            _log.warning("run %s: leases were not renewed: %s", shown(run), error)
        now = asyncio.get_running_loop().time()
        for one in held:
            one.renewed = now


@attrs.frozen
class Renewing:
    """The leases of what runs here of one run."""

    held: Sequence[Held]
    worker: str

    def __call__(self, kernel: Kernel, _: Past) -> Step[None]:
        """Renew what is held still: one that is lost is left to its report."""
        found: list[Renew] = []
        for held in self.held:
            call = call_of(kernel, turn_id=held.at.turn or "", invocation_id=held.at.call)
            if call is None or not is_running(call) or call.attempt != held.attempt:
                continue
            if call.worker == self.worker:
                renew = Renew(
                    run_id=held.at.run,
                    turn_id=call.turn_id,
                    invocation_id=call.invocation_id,
                    attempt=held.attempt,
                    lease=held.lease,
                )
                found.append(renew)
        return Step(deliveries=tuple(found), answer=None)
