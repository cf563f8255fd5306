"""Continuations: handed to the host until it has taken them, under the same id each time (K-52)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import attrs

from ..models.calls import CallResult
from ..models.deliveries import Acknowledge
from ..models.effects import Continue
from .actor import Actor
from .retry import retried
from .settings import Settings

_log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True)
class Continuation:
    """What the model is to be told: one turn's results, in the order in which they were asked for.

    `effect_id` is the same however often it is handed over: whoever acts on it outside can tell.
    """

    run_id: str
    turn_id: str
    effect_id: str
    results: tuple[CallResult, ...]


OnContinue: TypeAlias = Callable[[Continuation], Awaitable[None]]
"""Takes a continuation: once it returns, the turn is off the books. If it raises, it is called
again after a pause."""


async def hand_over(
    actor: Actor, effect: Continue, on_continue: OnContinue, *, settings: Settings
) -> None:
    """Call the host until it returns, then acknowledge."""
    run_id = actor.run.run_id
    told = Continuation(
        run_id=run_id, turn_id=effect.turn_id, effect_id=effect.effect_id, results=effect.results
    )

    def failed(error: Exception, pause: float) -> None:
        _log.error(
            "the host did not take %s; it is called again in %.3g s",
            effect.effect_id,
            pause,
            exc_info=error,
        )

    await retried(
        lambda: on_continue(told), pauses=settings.pauses(), on=(Exception,), failed=failed
    )
    await actor.deliver_surely(Acknowledge(run_id=run_id, turn_id=effect.turn_id))
