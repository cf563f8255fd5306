"""One call as its facts tell of it: where it stands, who decided what, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Final

from ..lifecycle.phases import DOUBTED, TERMINAL, Guard, Phase
from ..lifecycle.table import INVOCATION
from ..machines.rows import ALWAYS
from ..models.calls import CallResult, Status
from ..models.deliveries import Match, Resolution, Resolve, Scope
from ..models.ids import escape, invocation_path, turn_scope
from ..models.inputs import OF_INVOCATIONS, Input
from ..models.lifecycle_facts import DenialCause, FailureCause
from ..models.record import Record, record
from ..models.values import ABSENT, Absent, Json


class Waits(StrEnum):
    """What a call waits for."""

    APPROVAL = "approval"
    """A decision: its approval was requested."""
    CLAIM = "claim"
    """An executor: it is ready."""
    REPORT = "report"
    """Its executor: it runs."""
    RESOLUTION = "resolution"
    """Whoever knows what became of it: it is in doubt (K-35)."""
    RETRY = "retry"
    """An executor for one more attempt, which was authorised; in doubt all the same."""
    NOTHING = "nothing"
    """It has ended."""
    REQUEST = "request"
    """It is gated, and a next fact of its commit says whether somebody is asked or a grant covers
    it: seen only in the middle of a commit."""


_WAITS: Final = {
    Phase.APPROVED: Waits.CLAIM,
    Phase.STARTED: Waits.REPORT,
    Phase.IN_DOUBT: Waits.RESOLUTION,
    Phase.RETRY_AUTHORISED: Waits.RETRY,
    **dict.fromkeys(TERMINAL, Waits.NOTHING),
}


@record
class DecisionView(Record):
    """A decision about one call. `grant_id` names the grant that approved it in nobody's presence.

    `match` counts where the scope does, `arguments` are the edited ones. What is not a part of a
    kernel's state is None where the view was taken from a kernel: `by`, `reason`, `grant_id`, `at`
    (Unix time) and `sequence` (of the fact).
    """

    approved: bool
    scope: Scope = Scope.ONCE
    match: Match | None = None
    arguments: Mapping[str, Json] | None = None
    by: str | None = None
    reason: str | None = None
    grant_id: str | None = None
    at: float | None = None
    sequence: int | None = None


@record
class OutcomeView(Record):
    """How a call ended: a result, an error, or the reason for which it was denied (K-51).

    `cause` says why it failed or was denied, `at` when (Unix time), `sequence` by which fact; None
    where the view was taken from a kernel, whose state does not say.
    """

    status: Status
    result: Json | Absent = ABSENT
    error: str | None = None
    reason: str | None = None
    cause: DenialCause | FailureCause | None = None
    at: float | None = None
    sequence: int | None = None


@record
class CallView(Record):
    """One call of one turn. Times are Unix time in seconds.

    All of it is a fold of facts. Where the view was taken from a kernel, whose state is less than
    its journal, the times are None, and so are the arguments of a call that has ended.
    """

    run_id: str
    turn_id: str
    epoch: int
    position: int
    """Its place in expected order, from 0."""
    invocation_id: str
    tool_name: str
    arguments: Mapping[str, Json] | None
    """Those that run: the edited ones, where an approval edited them."""
    requires_approval: bool
    provider_call_id: str | None = None
    observed: bool = False
    """Another runtime starts it (K-58)."""
    phase: Phase = Phase.REQUESTED
    arguments_digest: str | None = None
    """Of the arguments that were shown; a decision echoes it (K-32). None: nobody was asked."""
    interrupting: bool = False
    """Whether its turn is being stopped, and it has not ended yet."""
    deadline: float | None = None
    """Until when it waits for approval, or its lease runs (K-34)."""
    attempt: int = 0
    """The current attempt; 0 before the first start (K-33)."""
    worker: str | None = None
    """Who holds it, while it runs."""
    decision: DecisionView | None = None
    outcome: OutcomeView | None = None
    requested_at: float | None = None
    asked_at: float | None = None
    """When its approval was requested."""
    started_at: float | None = None
    """When it was started first."""
    since: float | None = None
    """When it came to its phase, or was asked about."""

    @property
    def path(self) -> str:
        """What names it for good: `run/epoch/turn/invocation`, escaped (K-7)."""
        scope = turn_scope(escape(self.run_id), self.epoch, self.turn_id)
        return invocation_path(scope, self.invocation_id)

    @property
    def gated(self) -> bool:
        """Whether it may not start yet: it requires approval, and nobody gave it (section 6)."""
        return self.requires_approval and self.phase is Phase.REQUESTED

    @property
    def ended(self) -> bool:
        """Whether its outcome is known."""
        return self.phase in TERMINAL

    @property
    def in_doubt(self) -> bool:
        """Whether it was started, and nobody knows whether it happened (K-35)."""
        return self.phase in DOUBTED

    @property
    def retry_authorised(self) -> bool:
        """Whether one more attempt may be claimed (K-31)."""
        return self.phase is Phase.RETRY_AUTHORISED

    @property
    def cancel_asked(self) -> bool:
        """Whether its executor is asked to stop (K-53)."""
        return self.interrupting and self.phase is Phase.STARTED

    @property
    def waits(self) -> Waits:
        """What it waits for."""
        if self.phase is not Phase.REQUESTED:
            return _WAITS[self.phase]
        if not self.requires_approval:
            return Waits.CLAIM
        return Waits.REQUEST if self.arguments_digest is None else Waits.APPROVAL

    @property
    def owed(self) -> int:
        """The attempt that an executor is asked to claim; 0: no execute is owed (K-33, K-58)."""
        ready = self.waits in {Waits.CLAIM, Waits.RETRY}
        return self.attempt + 1 if ready and not self.observed else 0

    @property
    def ended_at(self) -> float | None:
        """When it ended."""
        return None if self.outcome is None else self.outcome.at

    @property
    def result(self) -> CallResult | None:
        """What the model is told of it; None before its end (section 9)."""
        outcome = self.outcome
        if outcome is None:
            return None
        return CallResult(
            invocation_id=self.invocation_id,
            tool_name=self.tool_name,
            status=outcome.status,
            result=outcome.result,
            error=outcome.error,
            reason=outcome.reason,
            provider_call_id=self.provider_call_id,
        )

    @property
    def allowed(self) -> tuple[Input, ...]:
        """The deliveries that the enforced table would accept now, addressed as they must be.

        A decision about the arguments that were shown, with scope once; the attempt that counts.
        An interrupt is of the whole turn.
        """
        return _allowed(
            self.phase,
            gated=self.gated,
            observed=self.observed,
            interrupting=self.interrupting,
        )


_SHARED: Final = frozenset(
    {Input.INTERRUPT, Input.APPROVAL_OVER, Input.LEASE_OVER, Input.GRACE_OVER, Input.GRANT}
)
_DELIVERED: Final = tuple(it for it in OF_INVOCATIONS if it not in _SHARED)
"""The inputs of an invocation that are deliveries about it alone."""

_MOVES: Final = {
    (row.phase, row.input): row.guard for row in INVOCATION.rows if row.fact is not None
}
"""The guard of the one row that moves, of each pair that has such a row."""


@cache
def _allowed(phase: Phase, *, gated: bool, observed: bool, interrupting: bool) -> tuple[Input, ...]:
    holds = {
        ALWAYS: True,
        Guard.GATED: gated,
        Guard.SHOWN: gated,
        Guard.FREE: not gated,
        Guard.OWNED: not observed and not interrupting,
    }
    found = [it for it in _DELIVERED if holds.get(_MOVES.get((phase, it), "-"), False)]
    if phase not in TERMINAL and not interrupting:
        found.append(Input.INTERRUPT)
    return tuple(found)


def resolved(
    call: CallView,
    resolution: Resolution,
    *,
    result: Json | Absent = ABSENT,
    error: str | None = None,
) -> Resolve:
    """Return what became of the attempt that was shown to be in doubt (K-35)."""
    return Resolve(
        run_id=call.run_id,
        turn_id=call.turn_id,
        invocation_id=call.invocation_id,
        attempt=call.attempt,
        resolution=resolution,
        result=result,
        error=error,
    )
