"""One delivery for a run from a process that performs nothing: decided by whoever comes by.

Where a living process owns the run, the delivery is posted to it, and its answer awaited. Where
nobody does, the run is owned for a moment: the delivery is judged, its facts are kept, and what
they bring is left to whoever opens the run next. No tool is run here.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

import attrs

from ..models.deliveries import Delivery
from ..models.errors import TurnlockError
from .clock import Clock, SteadyClock
from .conductor import folded
from .errors import JournalError, JournalOwned, RunFenced
from .journal.contract import Appended, Journal, RunEntry
from .posting import receipt_of
from .workers import is_dead, new_owner

LEASE: Final = 10.0
"""Seconds for which a visitor owns a run at most."""
LOOK: Final = 0.05
"""Seconds between two looks for an answer."""


class Unanswered(TurnlockError):
    """A delivery was posted, and its run's owner has not answered yet; it is not lost."""


@attrs.frozen(kw_only=True)
class Visited:
    """The receipt, as the wire writes it without effects, and whether a living owner gave it."""

    receipt: dict[str, Any]
    by_owner: bool


async def visit(
    journal: Journal,
    run_id: str,
    delivery: Delivery,
    *,
    within: float,
    clock: Clock | None = None,
) -> Visited:
    """Have a delivery judged, by the run's owner if there is one; wait `within` seconds for that.

    Raises `UnknownRun`, `Unanswered`, and what the journal raises.
    """
    clock = clock or SteadyClock()
    entry = await journal.entry(run_id)
    if not is_owned(entry, now=clock.now()):
        try:
            return Visited(receipt=await _judged(journal, entry, delivery, clock), by_owner=False)
        except (JournalOwned, RunFenced):
            pass  # somebody was quicker: that is its owner now
    number = await journal.post(run_id, delivery)
    give_up = time.monotonic() + within
    while (receipt := await journal.answered(number)) is None:
        if time.monotonic() >= give_up:
            raise Unanswered(
                f"run {run_id!r}: its owner {entry.owner or 'somebody'} has not answered post"
                f" {number} in {within:g} s; it is kept, and answered once that process goes on"
            )
        await asyncio.sleep(LOOK)
    return Visited(receipt=dict(receipt), by_owner=True)


def is_owned(entry: RunEntry, *, now: float) -> bool:
    """Whether a living process has the run, as far as anybody can tell."""
    return (
        entry.owner is not None
        and entry.owned_until is not None
        and now < entry.owned_until
        and not is_dead(entry.owner)
    )


async def _judged(
    journal: Journal, entry: RunEntry, delivery: Delivery, clock: Clock
) -> dict[str, Any]:
    """Own the run, judge the delivery, keep its facts, and let the run go."""
    run_id = entry.run.run_id
    gone = entry.owner if is_dead(entry.owner) else None
    epoch = await journal.own(run_id, owner=new_owner(), now=clock.now(), lease=LEASE, gone=gone)
    try:
        kernel = await folded(entry.run, journal)
        after = kernel.sequence
        verdict = kernel.receive(delivery, clock.now())
        if verdict.facts:
            state = kernel.state
            kept = await journal.append(
                run_id,
                epoch=epoch,
                after=after,
                facts=verdict.facts,
                busy=state.turn is not None or bool(state.continuations),
            )
            if kept is Appended.FENCED:
                raise RunFenced(f"run {run_id!r} was taken over; ask its owner")
            if kept is Appended.CONFLICT:
                raise JournalError(f"run {run_id!r}: others write to it; try again")
        return receipt_of(verdict)
    finally:
        await journal.release(run_id, epoch=epoch)
