"""What a person or an option is asked, and what can be answered."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, Protocol, TypeAlias

import attrs

from ..agent.script import Script
from ..models.deliveries import Decide, Delivery, Match, Resolution, Resolve, Scope
from ..models.values import ABSENT, Absent, Json
from ..verification.replay.calls import Mode
from ..views.call_view import CallView


@attrs.frozen(kw_only=True)
class Approval:
    """A call asks whether it may run."""

    call: CallView

    def decide(  # noqa: PLR0913 - all that a decision can say
        self,
        *,
        approved: bool,
        by: str,
        reason: str | None = None,
        scope: Scope = Scope.ONCE,
        match: Match = Match.EXACT,
        arguments: Mapping[str, Json] | None = None,
    ) -> Decide:
        """Return the decision about what was shown (K-32)."""
        call = self.call
        return Decide(
            run_id=call.run_id,
            turn_id=call.turn_id,
            invocation_id=call.invocation_id,
            approved=approved,
            reason=reason,
            decided_by=by,
            scope=scope,
            match=match,
            arguments_digest=call.arguments_digest if approved else None,
            arguments=arguments,
        )


@attrs.frozen(kw_only=True)
class Doubt:
    """A call was started, and nobody knows whether it happened (K-35)."""

    call: CallView

    def resolve(
        self, as_: Resolution, *, result: Json | Absent = ABSENT, error: str | None = None
    ) -> Resolve:
        """Return the resolution."""
        return Resolve(
            run_id=self.call.run_id,
            turn_id=self.call.turn_id,
            invocation_id=self.call.invocation_id,
            attempt=self.call.attempt,
            resolution=as_,
            result=result,
            error=error,
        )


Question: TypeAlias = Approval | Doubt


class Decider(Protocol):
    """Who is asked."""

    async def decide(self, question: Question) -> Delivery | None:
        """Return what is decided; None: nobody decides this here, it stays as it is."""
        ...


class Nobody:
    """Decides nothing."""

    async def decide(self, question: Question) -> Delivery | None:  # noqa: ARG002 - as Decider
        """Leave it."""
        return None


class Unattended:
    """Decides by an option. What was denied when it was recorded is denied again.

    A doubt is left: no option knows what happened.
    """

    def __init__(self, mode: Mode, *, seed: int, script: Script | None) -> None:
        """Approve, deny, or throw a coin, which falls alike for one seed and call."""
        self._mode: Final = mode
        self._seed: Final = seed
        self._script = script

    async def decide(self, question: Question) -> Delivery | None:
        """Decide at once."""
        if not isinstance(question, Approval):
            return None
        call = question.call
        reason = None
        if self._script is not None:
            reason = self._script.denial(call.turn_id, call.invocation_id)
        if reason is None and not self._approves(call):
            reason = f"denied by --decisions {self._mode}"
        by = f"--decisions {self._mode}"
        return question.decide(approved=reason is None, reason=reason, by=by)

    def _approves(self, call: CallView) -> bool:
        if self._mode is Mode.RANDOM:
            place = f"{self._seed}/{call.run_id}/{call.turn_id}/{call.invocation_id}"
            return hashlib.sha256(place.encode()).digest()[0] % 2 == 0
        return self._mode is Mode.APPROVE
