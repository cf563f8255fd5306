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
from typing import Final, TypeVar

from turnlock import (
    Acknowledge,
    AddCall,
    Call,
    Claim,
    Continue,
    Decide,
    Delivery,
    Fact,
    Interrupt,
    Kernel,
    Limits,
    Log,
    Lose,
    Match,
    OpenTurn,
    Reason,
    Refused,
    Reject,
    Renew,
    Report,
    Resolution,
    Resolve,
    Revoke,
    Run,
    Scope,
    SealTurn,
    Tick,
    Verdict,
    Wake,
)
from turnlock.models.facts import ExecutionFact, LifecycleFact
from turnlock.models.values import Json

from .outcome import Outcome, ask, call, tell, told

ACTIVE: Final = "<the turn opened last>"

RecordT = TypeVar("RecordT")


class Script:
    """One run under test: its kernel, its clock and its journal."""

    def __init__(self, run: Run | None = None, *, limits: Limits | None = None) -> None:
        self.run = run or Run(run_id="r", limits=limits or Limits())
        self.kernel = Kernel(self.run)
        self.clock = 0.0
        self.step = 1.0
        self.turn_id = ""
        self.journal: list[Fact] = []
        self.verdict: Verdict = Refused(reason=Reason.LATE)

    def at(self, clock: float) -> Script:
        """Set the clock for the next delivery."""
        self.clock = clock
        return self

    def receives(self, delivery: Delivery) -> Outcome:
        """Give the kernel a delivery, note its facts, let time pass."""
        self.verdict = self.kernel.receive(delivery, self.clock)
        self.journal += self.verdict.facts
        self.clock += self.step
        return told(self.verdict)

    def recovered(self) -> Script:
        """A second script that goes on from the journal of this one."""
        twin = Script(self.run)
        twin.kernel = Kernel.recover(self.run, self.journal)
        twin.clock, twin.step, twin.turn_id = self.clock, self.step, self.turn_id
        twin.journal = [*self.journal]
        return twin

    # ------------------------------------------------------------------------------- what is seen

    @property
    def names(self) -> list[str]:
        """All that has happened."""
        return [tell(fact) for fact in self.journal]

    def names_of(self, invocation_id: str) -> list[str]:
        """The names of all that has happened to one invocation id."""
        return [
            str(fact.type)
            for fact in self.journal
            if isinstance(fact, LifecycleFact | ExecutionFact)
            and fact.invocation_id == invocation_id
        ]

    @property
    def owed(self) -> list[str]:
        """All that is still asked, wakes left out."""
        effects = self.kernel.pending_effects
        return [ask(effect) for effect in effects if not isinstance(effect, Wake)]

    @property
    def wake(self) -> float | None:
        """When the kernel wants to be woken."""
        wakes = [effect.at for effect in self.kernel.pending_effects if isinstance(effect, Wake)]
        assert len(wakes) <= 1
        return wakes[0] if wakes else None

    def last(self, kind: type[RecordT]) -> RecordT:
        """The latest fact of a kind, or the latest effect of the last verdict."""
        return [it for it in (*self.journal, *self.verdict.effects) if isinstance(it, kind)][-1]

    def results(self, turn: str = ACTIVE) -> list[tuple[str, str, Json]]:
        """What the owed continuation of a turn says: id, status and payload of each call."""
        turn_id = self._turn(turn)
        [owed] = [
            effect
            for effect in self.kernel.pending_effects
            if isinstance(effect, Continue) and effect.turn_id == turn_id
        ]
        payloads = {"succeeded": "result", "failed": "error", "denied": "reason"}
        return [
            (line.invocation_id, str(line.status), getattr(line, payloads[line.status]))
            for line in owed.results
        ]

    def _turn(self, turn: str) -> str:
        return self.turn_id if turn is ACTIVE else turn

    def _maybe(self, turn: str | None) -> str | None:
        return None if turn is None else self._turn(turn)

    # ------------------------------------------------------------------------------- what is done

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
        return self.receives(AddCall(turn_id=self._turn(turn), call=asked))

    def seals(self, *, turn: str = ACTIVE) -> Outcome:
        return self.receives(SealTurn(turn_id=self._turn(turn)))

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
                turn_id=self._turn(turn),
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
                turn_id=self._turn(turn),
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
                turn_id=self._turn(turn),
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
                turn_id=self._turn(turn), invocation_id=invocation_id, attempt=attempt, lease=lease
            )
        )

    def rejects(
        self, invocation_id: str, error: str = "no such tool", *, turn: str | None = ACTIVE
    ) -> Outcome:
        return self.receives(
            Reject(turn_id=self._maybe(turn), invocation_id=invocation_id, error=error)
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
                turn_id=self._maybe(turn),
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
                turn_id=self._maybe(turn), invocation_id=invocation_id, error=error, attempt=attempt
            )
        )

    def loses(
        self, invocation_id: str, *, attempt: int | None = None, turn: str | None = ACTIVE
    ) -> Outcome:
        return self.receives(
            Lose(turn_id=self._maybe(turn), invocation_id=invocation_id, attempt=attempt)
        )

    def retries(self, invocation_id: str, attempt: int = 1, *, turn: str = ACTIVE) -> Outcome:
        """Resolve as retry: authorise one more attempt after this one."""
        return self.receives(
            Resolve(
                turn_id=self._turn(turn),
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
                turn_id=self._turn(turn),
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
                turn_id=self._turn(turn),
                invocation_id=invocation_id,
                attempt=attempt,
                resolution=Resolution.ERROR,
                error=error,
            )
        )

    def interrupts(
        self, *, grace: float = 10.0, reason: str | None = None, turn: str = ACTIVE
    ) -> Outcome:
        return self.receives(Interrupt(turn_id=self._turn(turn), grace=grace, reason=reason))

    def acknowledges(self, turn: str = ACTIVE) -> Outcome:
        return self.receives(Acknowledge(turn_id=self._turn(turn)))

    def revokes(self, grant_id: str) -> Outcome:
        return self.receives(Revoke(grant_id=grant_id))

    def logs(
        self, invocation_id: str, text: str = "working", *, turn: str | None = ACTIVE
    ) -> Outcome:
        return self.receives(Log(turn_id=self._maybe(turn), invocation_id=invocation_id, text=text))

    def ticks(self) -> Outcome:
        return self.receives(Tick())
