"""What a host says to its runs: a method for each delivery that it makes itself.

`deliver` says who judges them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from ..models.calls import Call
from ..models.deliveries import (
    AddCall,
    Decide,
    Delivery,
    Interrupt,
    Match,
    OpenTurn,
    Resolution,
    Resolve,
    Scope,
    SealTurn,
)
from ..models.values import ABSENT, Absent, Json
from ..models.verdicts import Verdict


class Delivering(ABC):
    """Delivers by name: turns, decisions, what became of a doubt, interrupts."""

    @abstractmethod
    async def deliver(self, run_id: str, delivery: Delivery) -> Verdict:
        """Have a delivery judged; what it brought is durable when the verdict is returned."""

    async def open_turn(
        self,
        run_id: str,
        calls: Sequence[Call],
        *,
        turn_id: str,
        epoch: int | None = None,
        sealed: bool = True,
    ) -> Verdict:
        """Open a turn with these calls. What the tools declare about approval is added to each.

        `epoch` makes it safe to open a turn again after a crash: see K-55.
        """
        opened = OpenTurn(
            run_id=run_id,
            turn_id=turn_id,
            calls=tuple(calls),
            epoch=epoch,
            sealed=sealed,
        )
        return await self.deliver(run_id, opened)

    async def add_call(self, run_id: str, call: Call, *, turn_id: str) -> Verdict:
        """Add a call to a turn that is not sealed, while the model still speaks."""
        return await self.deliver(run_id, AddCall(run_id=run_id, turn_id=turn_id, call=call))

    async def seal_turn(self, run_id: str, *, turn_id: str) -> Verdict:
        """Say that no more calls will come."""
        return await self.deliver(run_id, SealTurn(run_id=run_id, turn_id=turn_id))

    async def approve(  # noqa: PLR0913 - all that an approval can say
        self,
        run_id: str,
        *,
        turn_id: str,
        invocation_id: str,
        decided_by: str | None = None,
        reason: str | None = None,
        scope: Scope = Scope.ONCE,
        match: Match = Match.EXACT,
        expires_in: float | None = None,
        arguments_digest: str | None = None,
        arguments: Mapping[str, Json] | None = None,
    ) -> Verdict:
        """Approve a call (K-32, K-40 … K-42); `arguments` are edited ones, `expires_in` seconds.

        Give the `arguments_digest` of the call that was shown: nobody approves what he was not.

        Raises `BadArguments` where the tool does not take the edited ones: the call waits still.
        """
        decision = Decide(
            run_id=run_id,
            turn_id=turn_id,
            invocation_id=invocation_id,
            approved=True,
            decided_by=decided_by,
            reason=reason,
            scope=scope,
            match=match,
            expires_in=expires_in,
            arguments_digest=arguments_digest,
            arguments=arguments,
        )
        return await self.deliver(run_id, decision)

    async def deny(
        self,
        run_id: str,
        *,
        turn_id: str,
        invocation_id: str,
        reason: str | None = None,
        decided_by: str | None = None,
    ) -> Verdict:
        """Deny a call; the model is told the reason."""
        decision = Decide(
            run_id=run_id,
            turn_id=turn_id,
            invocation_id=invocation_id,
            approved=False,
            reason=reason,
            decided_by=decided_by,
        )
        return await self.deliver(run_id, decision)

    async def resolve(  # noqa: PLR0913 - all that an answer can say
        self,
        run_id: str,
        *,
        turn_id: str,
        invocation_id: str,
        attempt: int,
        resolution: Resolution,
        result: Json | Absent = ABSENT,
        error: str | None = None,
    ) -> Verdict:
        """Say what became of an execution in doubt, or that it is to be tried again (K-35)."""
        answer = Resolve(
            run_id=run_id,
            turn_id=turn_id,
            invocation_id=invocation_id,
            attempt=attempt,
            resolution=resolution,
            result=result,
            error=error,
        )
        return await self.deliver(run_id, answer)

    async def interrupt(
        self, run_id: str, *, turn_id: str, reason: str | None = None, grace: float = 10.0
    ) -> Verdict:
        """Stop a turn; what runs may still report, for `grace` seconds (K-53)."""
        stop = Interrupt(run_id=run_id, turn_id=turn_id, reason=reason, grace=grace)
        return await self.deliver(run_id, stop)
