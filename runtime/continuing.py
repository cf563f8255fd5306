"""Continuations: handed to the host until it has taken them, under the same id each time (K-52)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import attrs

from ..models.calls import CallResult
from ..models.deliveries import Acknowledge
from ..models.effects import Continue
from .conductor import Conductor
from .insisting import insist
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
    conductor: Conductor, effect: Continue, on_continue: OnContinue, *, settings: Settings
) -> None:
    """Call the host until it returns, then acknowledge."""
    run_id = conductor.run.run_id
    told = Continuation(
        run_id=run_id, turn_id=effect.turn_id, effect_id=effect.effect_id, results=effect.results
    )
    for pause in settings.pauses():
        try:
            await on_continue(told)
            break
        except Exception:  # noqa: BLE001 - the host's own; the turn stays owed
            _log.exception(
                "the host did not take %s; it is called again in %.3g s", effect.effect_id, pause
            )
            await asyncio.sleep(pause)
    await insist(conductor, Acknowledge(run_id=run_id, turn_id=effect.turn_id), settings=settings)
