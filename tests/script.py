"""Scripts: one run, told in verbs, each line with its whole outcome.

    play = Script()
    assert play.opens("T1", "a", gated("b")) == happens(
        "TURN_OPENED T1", "TOOL_APPROVAL_REQUESTED b"
    ).asking("execute a 1")

A script begins at 0.0 s and lets `step` seconds pass after each delivery; `at` sets its clock. The
turn is the one opened last unless a line names another, or None. Wakes are left out of outcomes and
told by `wake` alone, as in the published examples.
"""

from __future__ import annotations

from collections.abc import Mapping

from turnlock import (
    Acknowledge,
    AddCall,
    Call,
    Claim,
    Decide,
    Interrupt,
    Log,
    Lose,
    Match,
    OpenTurn,
    Reject,
    Renew,
    Report,
    Resolution,
    Resolve,
    Revoke,
    Scope,
    SealTurn,
    Tick,
)
from turnlock.models.values import Json

from .outcome import Outcome, call
from .stage import ACTIVE, Stage


class Script(Stage):
    """One run, told in verbs."""

    def opens(
        self, turn_id: str, *calls: str | Call, sealed: bool = True, epoch: int | None = None
    ) -> Outcome:
        """Open a turn; a bare id is a call that needs no approval."""
        asked = tuple(call(it) if isinstance(it, str) else it for it in calls)
        outcome = self.receives(OpenTurn(turn_id=turn_id, calls=asked, sealed=sealed, epoch=epoch))
        if outcome.reason is None:
            self.turn_id = turn_id
        return outcome

    def adds(self, added: str | Call, *, turn: str = ACTIVE) -> Outcome:
        asked = call(added) if isinstance(added, str) else added
        return self.receives(AddCall(turn_id=self.named(turn), call=asked))

    def seals(self, *, turn: str = ACTIVE) -> Outcome:
        return self.receives(SealTurn(turn_id=self.named(turn)))

    def approves(
        self,
        invocation_id: str,
        scope: Scope = Scope.ONCE,
        match: Match = Match.EXACT,
        *,
        expires_in: float | None = None,
        digest: str | None = None,
        arguments: Mapping[str, Json] | None = None,
        reason: str | None = None,
        by: str | None = None,
        turn: str = ACTIVE,
    ) -> Outcome:
        return self.receives(
            Decide(
                turn_id=self.named(turn),
                invocation_id=invocation_id,
                approved=True,
                scope=scope,
                match=match,
                expires_in=expires_in,
                arguments_digest=digest,
                arguments=arguments,
                reason=reason,
                decided_by=by,
            )
        )

    def denies(
        self,
        invocation_id: str,
        reason: str | None = None,
        *,
        digest: str | None = None,
        by: str | None = None,
        turn: str = ACTIVE,
    ) -> Outcome:
        return self.receives(
            Decide(
                turn_id=self.named(turn),
                invocation_id=invocation_id,
                approved=False,
                reason=reason,
                arguments_digest=digest,
                decided_by=by,
            )
        )

    def claims(
        self,
        invocation_id: str,
        attempt: int = 1,
        *,
        worker: str | None = None,
        lease: float | None = None,
        turn: str = ACTIVE,
    ) -> Outcome:
        return self.receives(
            Claim(
                turn_id=self.named(turn),
                invocation_id=invocation_id,
                attempt=attempt,
                worker=worker,
                lease=lease,
            )
        )

    def renews(
        self, invocation_id: str, lease: float, *, attempt: int | None = None, turn: str = ACTIVE
    ) -> Outcome:
        return self.receives(
            Renew(
                turn_id=self.named(turn), invocation_id=invocation_id, attempt=attempt, lease=lease
            )
        )

    def rejects(
        self, invocation_id: str, error: str = "no such tool", *, turn: str | None = ACTIVE
    ) -> Outcome:
        return self.receives(
            Reject(turn_id=self.named_or_not(turn), invocation_id=invocation_id, error=error)
        )

    def reports(
        self,
        invocation_id: str,
        result: Json = "ok",
        *,
        attempt: int | None = None,
        turn: str | None = ACTIVE,
    ) -> Outcome:
        return self.receives(
            Report(
                turn_id=self.named_or_not(turn),
                invocation_id=invocation_id,
                result=result,
                attempt=attempt,
            )
        )

    def fails(
        self,
        invocation_id: str,
        error: str = "boom",
        *,
        attempt: int | None = None,
        turn: str | None = ACTIVE,
    ) -> Outcome:
        return self.receives(
            Report(
                turn_id=self.named_or_not(turn),
                invocation_id=invocation_id,
                error=error,
                attempt=attempt,
            )
        )

    def loses(
        self, invocation_id: str, *, attempt: int | None = None, turn: str | None = ACTIVE
    ) -> Outcome:
        return self.receives(
            Lose(turn_id=self.named_or_not(turn), invocation_id=invocation_id, attempt=attempt)
        )

    def retries(self, invocation_id: str, attempt: int = 1, *, turn: str = ACTIVE) -> Outcome:
        """Resolve as retry: authorise one more attempt after this one."""
        return self.receives(
            Resolve(
                turn_id=self.named(turn),
                invocation_id=invocation_id,
                attempt=attempt,
                resolution=Resolution.RETRY,
            )
        )

    def resolves(
        self, invocation_id: str, result: Json, *, attempt: int = 1, turn: str = ACTIVE
    ) -> Outcome:
        """Resolve as a result."""
        return self.receives(
            Resolve(
                turn_id=self.named(turn),
                invocation_id=invocation_id,
                attempt=attempt,
                resolution=Resolution.RESULT,
                result=result,
            )
        )

    def resolves_error(
        self, invocation_id: str, error: str, *, attempt: int = 1, turn: str = ACTIVE
    ) -> Outcome:
        """Resolve as an error."""
        return self.receives(
            Resolve(
                turn_id=self.named(turn),
                invocation_id=invocation_id,
                attempt=attempt,
                resolution=Resolution.ERROR,
                error=error,
            )
        )

    def interrupts(
        self, *, grace: float = 10.0, reason: str | None = None, turn: str = ACTIVE
    ) -> Outcome:
        return self.receives(Interrupt(turn_id=self.named(turn), grace=grace, reason=reason))

    def acknowledges(self, turn: str = ACTIVE) -> Outcome:
        return self.receives(Acknowledge(turn_id=self.named(turn)))

    def revokes(self, grant_id: str) -> Outcome:
        return self.receives(Revoke(grant_id=grant_id))

    def logs(
        self, invocation_id: str, text: str = "working", *, turn: str | None = ACTIVE
    ) -> Outcome:
        return self.receives(
            Log(turn_id=self.named_or_not(turn), invocation_id=invocation_id, text=text)
        )

    def ticks(self) -> Outcome:
        return self.receives(Tick())
