"""What the journal holds of a run whose process has ended, brought to rest (S-26, S-52)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..engine.kernel import Kernel
from ..models.deliveries import Claim, Delivery, Lose, Reject, Resolution, Resolve, SealTurn
from ..turn.phases import TurnPhase
from ..views.call_view import CallView, Waits
from ..views.live import calls_of

NEVER: Final = "never started: the runtime ended before it was let start"
INTERRUPTED: Final = "interrupted; outcome unknown"
LEASE: Final = 60.0
"""Seconds for which the claim of what may have run counts: it is lost at once."""


def brought_to_rest(kernel: Kernel, *, worker: str) -> Iterator[Delivery]:
    """Yield what no process performs any more: to be delivered in this order, one by one.

    What was asked or approved was never started, since no answer was written; what is free may have
    run, and what was started has, perhaps: that is in doubt. `worker` claims what nobody did.
    """
    turn = kernel.turn
    if turn is None:
        return
    for call in tuple(calls_of(kernel)):
        yield from _ended(call, worker)
    if turn.phase is TurnPhase.OPEN:
        yield SealTurn(run_id=kernel.run.run_id, turn_id=turn.turn_id)


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
        yield Claim(
            run_id=call.run_id,
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            attempt=attempt,
            worker=worker,
            lease=LEASE,
        )
    if call.waits in {Waits.CLAIM, Waits.REPORT}:
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
    return Resolve(
        run_id=call.run_id,
        turn_id=call.turn_id,
        invocation_id=call.invocation_id,
        attempt=call.attempt if attempt is None else attempt,
        resolution=Resolution.ERROR,
        error=why,
    )
