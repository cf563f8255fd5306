"""Decisions of people: about a call that waits for one, and about one that is in doubt.

The same decision again says nothing; another one is refused, and so is any about other arguments
than were shown (K-32). A decision always names its turn: an id means something only within one.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..engine.kernel import Kernel
from ..models.deliveries import Decide, Match, Report, Resolution, Resolve, Scope
from ..models.errors import InvalidValue
from ..models.reasons import Reason
from ..models.record import (
    any_text,
    choice,
    field,
    flag,
    instance,
    optional,
    optional_json_object,
    record,
)
from ..models.values import Absent, Json, same_json
from ..views.call_view import CallView, DecisionView
from ..views.live import call_of
from .claiming import ended_call, is_closed_unstarted, is_running, late, unknown
from .errors import DecidedOtherwise, Differs, GuardRefused, Stale
from .past import Past
from .reporting import is_said
from .values import At
from .visits import Step


@record
class Deciding:
    """An approval or a denial of a call, for the arguments that were shown with `digest`."""

    at: At = field(validator=instance(At))
    approved: bool = field(validator=flag)
    digest: str = field(validator=any_text)
    by: str | None = field(validator=optional(any_text))
    reason: str | None = field(validator=optional(any_text))
    arguments: Mapping[str, Json] | None = field(converter=optional_json_object)
    scope: Scope = field(converter=choice(Scope))
    match: Match = field(converter=choice(Match))

    def __attrs_post_init__(self) -> None:
        """Demand a turn."""
        turn_named(self.at)

    def __call__(self, kernel: Kernel, past: Past) -> Step[GuardRefused | None]:
        """Say what it brings about: None where it holds then. Raises `Unread`."""
        turn_id = turn_named(self.at)
        call = call_of(kernel, turn_id=turn_id, invocation_id=self.at.call)
        if call is None or not call.gated:
            return Step(answer=self._afterwards(kernel, past))
        if call.arguments_digest != self.digest:
            return Step(answer=self._other_digest())
        grants = len(kernel.grants)
        if self.approved and self.scope is not Scope.ONCE and grants >= kernel.run.limits.grants:
            return Step(answer=self._too_many_grants())
        decide = Decide(
            run_id=self.at.run,
            turn_id=turn_id,
            invocation_id=self.at.call,
            approved=self.approved,
            reason=self.reason,
            decided_by=self.by,
            scope=self.scope,
            match=self.match,
            arguments_digest=self.digest,
            arguments=self.arguments if self.approved else None,
        )
        return Step(deliveries=(decide,), answer=None)

    def _afterwards(self, kernel: Kernel, past: Past) -> GuardRefused | None:
        """Hold it against what was decided about a call that waits for nobody any more."""
        at = self.at
        turn_id = turn_named(at)
        if not past.has(kernel, turn_id):
            return unknown(at)
        call = past.told(turn_id, by=kernel.sequence).view.calls.get(at.call)
        if call is None:
            return unknown(at)
        if is_closed_unstarted(call):
            return late(at)
        if call.arguments_digest not in {None, self.digest}:
            return self._other_digest()
        if call.decision is not None and self._is(call.decision):
            return None
        return self._otherwise(call)

    def _otherwise(self, call: CallView) -> Stale:
        """Return the refusal of a decision that something else has forestalled."""
        at = self.at
        if call.arguments_digest is None:
            return Stale(
                f"{at} never waited for a decision",
                at=at,
                reason=Reason.NOT_AWAITING_APPROVAL,
            )
        return DecidedOtherwise(
            f"{at} {_decided(call)}: this decision came too late, and changes nothing",
            at=at,
            reason=Reason.ALREADY_DECIDED,
        )

    def _is(self, known: DecisionView) -> bool:
        """Whether this is the decision that is known (D of kernel.md, section 6)."""
        if known.approved is not self.approved:
            return False
        return not self.approved or (
            known.scope is self.scope
            and (self.scope is Scope.ONCE or known.match in {None, self.match})
            and same_json(self.arguments, known.arguments)
        )

    def _too_many_grants(self) -> Stale:
        return Stale(
            f"run {self.at.run!r} has as many grants in force as its limits allow: approve with"
            " scope once, or revoke some",
            at=self.at,
            reason=Reason.LIMIT_REACHED,
        )

    def _other_digest(self) -> Differs:
        at = self.at
        return Differs(
            f"{at}: the digest {self.digest!r} is not that of the arguments that wait; show them"
            " again, and decide about those",
            at=at,
        )


@record
class Resolving:
    """Somebody says what became of a call that is in doubt."""

    at: At = field(validator=instance(At))
    resolution: Resolution = field(converter=choice(Resolution))
    result: Json | Absent
    error: str | None

    def __attrs_post_init__(self) -> None:
        """Demand a turn, and the payload that the resolution names."""
        self._delivery(1)

    def __call__(self, kernel: Kernel, past: Past) -> Step[CallView | GuardRefused | None]:
        """Say what it brings about: None where it holds then, or the call that somebody runs.

        Raises `Unread`.
        """
        at = self.at
        turn_id = turn_named(at)
        call = call_of(kernel, turn_id=turn_id, invocation_id=at.call)
        if call is None or call.ended:
            return Step(answer=self._afterwards(kernel, past))
        if call.retry_authorised and self.resolution is Resolution.RETRY:
            return Step(answer=None)
        if call.in_doubt and self.resolution is Resolution.RETRY and call.interrupting:
            return Step(answer=self._interrupted())
        if call.in_doubt:
            return Step(deliveries=(self._delivery(call.attempt),), answer=None)
        return Step(answer=call if is_running(call) else self._not_in_doubt())

    def _delivery(self, attempt: int) -> Resolve:
        return Resolve(
            run_id=self.at.run,
            turn_id=turn_named(self.at),
            invocation_id=self.at.call,
            attempt=attempt,
            resolution=self.resolution,
            result=self.result,
            error=self.error,
        )

    def _report(self) -> Report:
        return Report(
            run_id=self.at.run,
            turn_id=self.at.turn,
            invocation_id=self.at.call,
            result=self.result,
            error=self.error,
        )

    def _afterwards(self, kernel: Kernel, past: Past) -> GuardRefused | None:
        call = ended_call(self.at, kernel, past)
        if call is None or call.outcome is None:
            return unknown(self.at)
        ended = call.outcome
        if self.resolution is not Resolution.RETRY and is_said(ended, self._report()):
            return None
        if call.attempt == 0:
            return self._not_in_doubt()
        return DecidedOtherwise(
            f"{self.at} has {ended.status} meanwhile: this resolution changes nothing",
            at=self.at,
            reason=Reason.ALREADY_SETTLED,
        )

    def _interrupted(self) -> Stale:
        return Stale(
            f"{self.at} cannot be run again: its turn is being interrupted; say what became of it,"
            " its result or its error",
            at=self.at,
            reason=Reason.INTERRUPTING,
        )

    def _not_in_doubt(self) -> Stale:
        return Stale(
            f"{self.at} is in no doubt: it was not started",
            at=self.at,
            reason=Reason.NOT_IN_DOUBT,
        )


def turn_named(at: At) -> str:
    """Return the turn of a call. Raises `InvalidValue` where none is named."""
    if at.turn is None:
        raise InvalidValue(
            place="at.turn",
            cause="is None, and the same call id may come again in a later turn",
            fix="name the turn: that of the approval, or of the error that was raised",
        )
    return at.turn


def _decided(call: CallView) -> str:
    if call.decision is not None:
        word = "approved" if call.decision.approved else "denied"
        edited = " with edited arguments" if call.decision.arguments is not None else ""
        by = "" if call.decision.by is None else f" by {call.decision.by!r}"
        return f"was {word}{edited}{by}"
    reason = None if call.outcome is None else call.outcome.reason
    return f"has ended ({reason or call.phase})"
