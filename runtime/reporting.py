"""What is told of an attempt: what it came to, that nobody knows, or that it could not be started.

It is told to whoever performs the run now, and nothing of it is dropped in silence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from ..models.deliveries import Delivery, Lose, Reject, Report, Resolution, Resolve
from ..models.effects import Execute
from ..models.errors import TurnlockError
from ..models.ids import idempotency_key, invocation_path
from ..models.reasons import Reason
from ..models.values import ABSENT
from ..models.verdicts import Verdict
from .actor import Actor, Actors
from .tools.results import Failed, Outcome, Succeeded, Unknown

_log = logging.getLogger(__name__)

Lost: TypeAlias = Callable[[Actor, str, str], None]
"""Takes a run, a turn and an invocation of which nobody knows the end, not even its executor."""


class Reporting:
    """Tells the kernels what became of what they asked for."""

    def __init__(self, actors: Actors) -> None:
        """Begin with nothing to tell."""
        self._actors = actors
        self.lost: Lost | None = None
        """Told of what was in doubt already while it ran, and is lost indeed."""

    async def report(self, actor: Actor, effect: Execute, outcome: Outcome) -> None:
        """Report until it was judged; what nobody knows is lost first, and told when it ends."""
        run_id, turn_id, invocation_id = actor.run.run_id, effect.turn_id, effect.invocation_id
        if isinstance(outcome, Unknown):
            lost = Lose(
                run_id=run_id,
                turn_id=turn_id,
                invocation_id=invocation_id,
                attempt=effect.attempt,
            )
            verdict = await self._deliver(actor, lost)
            if verdict.reason is Reason.DUPLICATE and self.lost is not None:
                self.lost(self._actors.current(actor), turn_id, invocation_id)
            outcome = await outcome.later
        report = Report(
            run_id=run_id,
            turn_id=turn_id,
            invocation_id=invocation_id,
            attempt=effect.attempt,
            result=outcome.result if isinstance(outcome, Succeeded) else ABSENT,
            error=outcome.error if isinstance(outcome, Failed) else None,
        )
        try:
            if _is_of_another_turn(self._actors.current(actor), effect):
                _log.warning("the outcome of %s came too late to be told", effect.effect_id)
                return
            verdict = await self._deliver(actor, report)
        except TurnlockError as error:
            _log.warning("the outcome of %s could not be reported: %s", effect.effect_id, error)
            raise
        if verdict.reason not in {None, Reason.DUPLICATE}:
            _log.warning("the outcome of %s was refused: %s", effect.effect_id, verdict.reason)

    async def reject(self, actor: Actor, effect: Execute, why: str) -> None:
        """Say that it cannot be started. Of a retry that is what the doubt comes to (K-35)."""
        rejection: Delivery = Reject(
            run_id=actor.run.run_id,
            turn_id=effect.turn_id,
            invocation_id=effect.invocation_id,
            error=why,
        )
        if effect.attempt > 1:
            rejection = Resolve(
                run_id=actor.run.run_id,
                turn_id=effect.turn_id,
                invocation_id=effect.invocation_id,
                attempt=effect.attempt - 1,  # until a claim the old attempt is the current one
                resolution=Resolution.ERROR,
                error=f"the outcome is unknown, and the retry could not be started: {why}",
            )
        await self._deliver(actor, rejection)

    async def _deliver(self, actor: Actor, delivery: Delivery) -> Verdict:
        while True:
            current = self._actors.current(actor)
            try:
                return await current.deliver_surely(delivery)
            except TurnlockError:
                if self._actors.current(actor) is current:
                    raise

    async def quietly(self, actor: Actor, delivery: Delivery) -> None:
        """Deliver what may be lost: a log, or one of many renewals."""
        with suppress(TurnlockError):
            await self._actors.current(actor).deliver(delivery)


def _is_of_another_turn(actor: Actor, effect: Execute) -> bool:
    """Whether its turn is gone, and its id was used again: reports do not name the epoch."""
    turn = actor.kernel.state.turn
    if turn is None or turn.turn_id != effect.turn_id:
        return False
    return effect.idempotency_key != idempotency_key(
        invocation_path(turn.scope, effect.invocation_id)
    )
