"""What stands in the way of a call: who runs it, and lives; or that nobody knows what became of it.

A worker of the same machine is looked at, and where its process has surely ended its attempt is
lost at once, by whoever meets it. Any other is silent until its lease is over (K-34).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..models.deliveries import Resolution
from ..runtime.journal.contract import Journal
from ..runtime.owners import is_dead, meaning_of, short_name
from ..runtime.tools.policy import Policy
from ..views.call_view import CallView, Waits
from .claiming import not_approved
from .doubting import Losing, Settling, answer_of
from .errors import GuardRefused, InDoubt, Stale, StillRunning
from .holding import Holding
from .looking import Looking
from .values import At
from .visits import Visits

WORKERS: Final = 1_024
"""Workers whose meaning is kept."""


class Workers:
    """Who the workers of claims are; what one stands for never changes."""

    def __init__(self, journal: Journal) -> None:
        """Know none yet."""
        self._journal = journal
        self._meanings: dict[str, str] = {}

    async def is_dead(self, worker: str | None) -> bool:
        """Whether this is a process that has surely ended."""
        return is_dead(await self._meaning(worker))

    async def name(self, worker: str | None) -> str | None:
        """Return host and process of a worker, or its own name where that is all there is."""
        meaning = await self._meaning(worker)
        return worker if meaning is None else short_name(meaning)

    async def _meaning(self, worker: str | None) -> str | None:
        if worker is None:
            return None
        if worker not in self._meanings:
            meaning = await meaning_of(worker, self._journal)
            if meaning is None:
                return None
            if len(self._meanings) >= WORKERS:
                self._meanings.clear()
            self._meanings[worker] = meaning
        return self._meanings[worker]


class Obstacles:
    """What stands in the way of a call: who runs it, or that nobody knows what became of it."""

    def __init__(
        self,
        visits: Visits,
        workers: Workers,
        holding: Holding,
        *,
        own: str,
        policies: Mapping[str, Policy],
    ) -> None:
        """Look from the process that holds `holding`, as the worker `own`."""
        self._policies = policies
        self._visits = visits
        self._workers = workers
        self._holding = holding
        self._own = own

    async def mended(self, call: CallView, *, again: bool, policy: Policy | None = None) -> bool:
        """Whether what stands in the way has changed: who ran it is dead, or its policy knows.

        With `again` it may be run again, where its tool declares that this is safe. `policy` stands
        over that of the tool.
        """
        at = At(call.run_id, call.turn_id, call.invocation_id)
        if self._holding.runs(call):
            return False
        if call.waits is Waits.REPORT:
            return await self._lost(at, call)
        if call.waits is not Waits.RESOLUTION:
            return False
        if self._holding.never_began(call) and await self._worker_of(at) == self._own:
            await self._visits.visit(at.run, Losing(at, call.attempt, began=False))
            return True
        resolve = await answer_of(call, policy or self._policies.get(call.tool_name))
        if resolve is None or (resolve.resolution is Resolution.RETRY and not again):
            return False
        return (await self._visits.visit(at.run, Settling(resolve))).answer

    async def _lost(self, at: At, call: CallView) -> bool:
        """Say that an attempt is lost whose executor is surely gone; whether it was."""
        ours = call.worker == self._own
        if not ours and not await self._workers.is_dead(call.worker):
            return False
        began = not (ours and self._holding.never_began(call))
        await self._visits.visit(at.run, Losing(at, call.attempt, began=began))
        return True

    async def refusal(self, call: CallView) -> GuardRefused:
        """Return the refusal for a call that has not ended."""
        at = At(call.run_id, call.turn_id, call.invocation_id)
        what = f"{at} ({call.tool_name})"
        if call.waits is Waits.APPROVAL:
            return not_approved(at, call)
        if not call.in_doubt:
            worker = await self._workers.name(call.worker)
            by = "is to be run still" if worker is None else f"is run by {worker}, which lives"
            return StillRunning(
                f"{what} {by}: nothing was executed; come again", at=at, worker=worker
            )
        found = (await self._visits.visit(at.run, Looking(at))).answer
        worker = await self._workers.name(await self._worker_of(at))
        return InDoubt(
            f"{what}, attempt {call.attempt}, was started by {worker or 'somebody'}, and nobody"
            " knows whether it happened: it is not run again; find out, and say so with turnlock"
            " resolve, or Guard.resolve",
            at=at,
            attempt=call.attempt,
            worker=worker,
            since=None if isinstance(found, Stale) else found.call.since,
        )

    async def _worker_of(self, at: At) -> str | None:
        """Return who has started a call last."""
        found = (await self._visits.visit(at.run, Looking(at))).answer
        return None if isinstance(found, Stale) else found.worker
