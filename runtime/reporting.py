"""What executions come to, told to whoever performs their run now (K-35).

Nothing of it is dropped in silence: what it came to, that nobody knows, that it could not be
started.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from ..models.deliveries import Delivery, Lose, Reject, Report, Resolution, Resolve
from ..models.effects import Cancel, Execute
from ..models.errors import TurnlockError
from ..models.reasons import Reason
from ..models.values import ABSENT
from .actor import Actor
from .actors import Actors
from .log import logger
from .tools.results import Failed, Outcome, Succeeded, Unknown

_log = logger(__name__)

Key: TypeAlias = str
"""`run/epoch/turn/invocation/attempt`: a turn id may be used again, its epoch never is (K-7)."""


def key_of(effect: Execute | Cancel) -> Key:
    """Name the attempt that an effect is about."""
    return effect.effect_id.partition("/")[2]


Lost: TypeAlias = Callable[[Actor, str, str], None]
"""Takes a run, a turn and an invocation of which nobody knows the end, not even its executor."""


class Reporting:
    """Delivers the outcome of each attempt to whoever performs its run now."""

    def __init__(self, actors: Actors) -> None:
        """Deliver to these actors."""
        self._actors = actors
        self.lost: Lost | None = None
        """Called for what was in doubt already while it ran, and is lost indeed."""

    async def report(self, actor: Actor, effect: Execute, outcome: Outcome) -> None:
        """Report until it was judged; of an unknown outcome deliver a `Lose` first.

        Where the tool itself cannot tell (W-62) nothing follows it: somebody else must.
        """
        run_id, turn_id, invocation_id = actor.run.run_id, effect.turn_id, effect.invocation_id
        if isinstance(outcome, Unknown):
            await self._lose(actor, effect)
            outcome = outcome if outcome.later is None else await outcome.later
            if isinstance(outcome, Unknown):
                return
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
            verdict = await self._actors.deliver_surely(actor, report)
        except TurnlockError as error:
            _log.warning("the outcome of %s could not be reported: %s", effect.effect_id, error)
            raise
        if verdict.reason not in {None, Reason.DUPLICATE}:
            _log.warning("the outcome of %s was refused: %s", effect.effect_id, verdict.reason)

    async def _lose(self, actor: Actor, effect: Execute) -> None:
        turn_id, invocation_id = effect.turn_id, effect.invocation_id
        lost = Lose(
            run_id=actor.run.run_id,
            turn_id=turn_id,
            invocation_id=invocation_id,
            attempt=effect.attempt,
        )
        verdict = await self._actors.deliver_surely(actor, lost)
        if verdict.reason is Reason.DUPLICATE and self.lost is not None:
            self.lost(self._actors.current(actor), turn_id, invocation_id)

    async def reject(self, actor: Actor, effect: Execute, why: str) -> None:
        """Reject what cannot be started; of a retry, resolve the doubt as an error (K-35)."""
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
        await self._actors.deliver_surely(actor, rejection)

    async def quietly(self, actor: Actor, delivery: Delivery) -> None:
        """Deliver what may be lost: a log, or one of many renewals."""
        with suppress(TurnlockError):
            await self._actors.current(actor).deliver(delivery)


def _is_of_another_turn(actor: Actor, effect: Execute) -> bool:
    """Whether a later turn uses the effect's turn id again: reports do not name the epoch."""
    turn = actor.kernel.turn
    if turn is None or turn.turn_id != effect.turn_id:
        return False
    return not key_of(effect).startswith(f"{turn.scope}/")
