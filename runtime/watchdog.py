"""What the kernel lets wait for ever, and the host bounds (K-57): each wait has an end here.

A turn that nobody seals, a ready call that nobody claims, a doubt that nobody settles. How long
they have waited is counted from when this process first saw them: they are looked at now and then,
and nothing is kept of what waits no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, TypeAlias

from ..models.deliveries import Delivery, Interrupt, Reject, Resolution, Resolve
from ..models.run import OWN
from ..turn.phases import TurnPhase
from ..views.call_view import CallView, resolved
from ..views.live import calls_of
from .actor import Actor
from .executions import RuntimeContext
from .settings import Settings

LOOKS: Final = 10
"""Times that a wait is looked at before it would be over."""
SELDOM: Final = 60.0
"""Seconds between two looks at most."""

Wait: TypeAlias = tuple[str, float, Callable[[], Delivery]]
"""A name for what waits, its bound in seconds, and what makes the delivery that ends it."""


class Watchdog:
    """Ends what has waited beyond its bound (`Settings.unsealed`, `unclaimed`, `unresolved`)."""

    def __init__(self, runtime: RuntimeContext) -> None:
        """Begin with no wait known."""
        self._runtime = runtime
        self._since: dict[str, float] = {}

    async def watch(self) -> None:
        """Look at all waits now and then, until cancelled."""
        bounds = self._runtime.settings
        shortest = min(bounds.unsealed, bounds.unclaimed, bounds.unresolved)
        while True:
            await asyncio.sleep(min(shortest / LOOKS, SELDOM))
            self._look()

    def _look(self) -> None:
        now = self._runtime.clock.now()
        since: dict[str, float] = {}
        for actor in self._runtime.actors.all():
            for name, bound, ending in _waits(actor, self._runtime.settings):
                since[name] = self._since.get(name, now)
                if now - since[name] > bound:
                    since[name] = now  # said now; said again if it is not heeded
                    self._runtime.tasks.spawn(f"end {name}", actor.deliver_surely(ending()))
        self._since = since


def _waits(actor: Actor, settings: Settings) -> Iterator[Wait]:
    turn = actor.kernel.turn
    if turn is None:
        return
    if turn.phase is TurnPhase.OPEN and actor.run.kind == OWN:  # others: as long as they live (15)
        bound = settings.unsealed
        yield f"open/{turn.scope}", bound, partial(_stop, actor.run.run_id, turn.turn_id, bound)
    for call in calls_of(actor.kernel):
        if call.in_doubt:
            bound = settings.unresolved
            yield f"doubt/{call.path}/{call.attempt}", bound, partial(_settle, call, bound)
        elif call.owed:
            bound = settings.unclaimed
            yield f"ready/{call.path}", bound, partial(_reject, call, bound)


def _stop(run_id: str, turn_id: str, bound: float) -> Interrupt:
    why = f"it was not sealed within {bound:g} s"
    return Interrupt(run_id=run_id, turn_id=turn_id, reason=why)


def _reject(call: CallView, bound: float) -> Reject:
    return Reject(
        run_id=call.run_id,
        turn_id=call.turn_id,
        invocation_id=call.invocation_id,
        error=f"no executor took it within {bound:g} s",
    )


def _settle(call: CallView, bound: float) -> Resolve:
    return resolved(
        call,
        Resolution.ERROR,
        error="the outcome is unknown: it was started, nobody knows whether it happened, and "
        f"nobody said so within {bound:g} s",
    )
