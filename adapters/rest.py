"""What the journal holds of a run whose process has ended, brought to rest (S-26, S-52)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..engine.kernel import Kernel
from ..models.deliveries import (
    AddCall,
    Claim,
    Delivery,
    Lose,
    OpenTurn,
    Reject,
    Resolution,
    Resolve,
    SealTurn,
)
from ..models.record import changed
from ..runtime.journal.pruning import turn_there
from ..turn.phases import TurnPhase
from ..views.call_view import CallView, Waits, resolved
from ..views.live import calls_of
from .contract import Announced

NEVER: Final = "never started: the runtime ended before it was let start"
INTERRUPTED: Final = "interrupted; outcome unknown"
LEASE: Final = 60.0
"""Seconds for which the claim of what may have run counts: it is lost at once."""


def brought_to_rest(
    kernel: Kernel, *, worker: str, announced: Announced | None = None
) -> Iterator[Delivery]:
    """Yield what no process performs any more: to be delivered in this order.

    What was asked or approved was never started, since no answer was written; what is free may have
    run, and what was started has, perhaps: that is in doubt. So is what was only `announced`; where
    it does not fit into the turn that is open, ask again once that is closed. `worker` claims what
    nobody did.
    """
    run_id, turn = kernel.run.run_id, kernel.turn
    if turn is None:
        if announced is not None:
            calls, turn_id = announced.calls, announced.turn_id
            yield OpenTurn(run_id=run_id, turn_id=turn_id, calls=calls)
            for call in calls:
                yield from _lost(run_id, turn_id, call.invocation_id, worker)
        return
    for waiting in tuple(calls_of(kernel)):
        yield from _ended(waiting, worker)
    if turn.phase is TurnPhase.OPEN:
        if announced is not None and turn_there(announced.turn_id) == turn_there(turn.turn_id):
            for call in announced.calls:
                yield AddCall(run_id=run_id, turn_id=turn.turn_id, call=call)
                yield from _lost(run_id, turn.turn_id, call.invocation_id, worker)
        yield SealTurn(run_id=run_id, turn_id=turn.turn_id)


def _lost(run_id: str, turn_id: str, invocation_id: str, worker: str) -> Iterator[Delivery]:
    """Yield what puts a call in doubt that nobody has claimed: it may have run."""
    yield Claim(
        run_id=run_id,
        turn_id=turn_id,
        invocation_id=invocation_id,
        attempt=1,
        worker=worker,
        lease=LEASE,
    )
    yield Lose(run_id=run_id, turn_id=turn_id, invocation_id=invocation_id, attempt=1)


def _ended(call: CallView, worker: str) -> Iterator[Delivery]:
    attempt = call.attempt
    if call.gated or (call.waits is Waits.CLAIM and (call.requires_approval or not call.observed)):
        yield Reject(
            run_id=call.run_id,
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            error=NEVER,
        )
        return
    if call.waits is Waits.CLAIM:
        attempt = 1
        yield from _lost(call.run_id, call.turn_id, call.invocation_id, worker)
    if call.waits is Waits.REPORT:
        yield Lose(
            run_id=call.run_id,
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            attempt=attempt,
        )
    if call.interrupting:
        yield unknown(call, INTERRUPTED, attempt=attempt)


def unknown(call: CallView, why: str, *, attempt: int | None = None) -> Resolve:
    """Return what settles a call in doubt as one of which nobody knows what became."""
    settled = resolved(call, Resolution.ERROR, error=why)
    return settled if attempt is None else changed(settled, attempt=attempt)
