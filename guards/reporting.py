"""What became of an execution, said by whoever ran it: recorded once, and never in two ways."""

from __future__ import annotations

import attrs

from ..engine.kernel import Kernel
from ..models.calls import Status
from ..models.deliveries import Acknowledge, Delivery, Report
from ..models.reasons import Reason
from ..models.values import Absent, same_json
from ..views.call_view import OutcomeView
from ..views.live import call_of
from .claiming import ended_call
from .errors import Stale
from .past import Past
from .values import At
from .visits import Step


@attrs.frozen(kw_only=True)
class Reporting:
    """One report, which is true: also when it comes late, or for the second time."""

    at: At
    report: Report
    acknowledge: bool
    """Whether the results of the turn are taken with it, if it is the last of them."""

    def __call__(self, kernel: Kernel, past: Past) -> Step[Stale | None]:
        """Say what it brings about: None where it is recorded then. Raises `Unread`."""
        turn_id = self.at.turn or ""
        call = call_of(kernel, turn_id=turn_id, invocation_id=self.at.call)
        if call is None or call.ended:
            return Step(answer=self._afterwards(kernel, past))
        if call.attempt != self.report.attempt:
            return Step(answer=self.refused(Reason.STALE_ATTEMPT))
        told: list[Delivery] = [self.report]
        if self.acknowledge:
            told.append(Acknowledge(run_id=self.at.run, turn_id=turn_id))
        return Step(deliveries=tuple(told), answer=None)

    def _afterwards(self, kernel: Kernel, past: Past) -> Stale | None:
        call = ended_call(self.at, kernel, past)
        if call is None or call.outcome is None:
            return self.refused(Reason.UNKNOWN_INVOCATION)
        if is_said(call.outcome, self.report):
            return None
        return self.refused(Reason.CONFLICTING_DUPLICATE)

    def refused(self, reason: Reason) -> Stale:
        """Return the refusal of a report that came after somebody else's word."""
        return Stale(
            f"{self.at} ran, and what became of it was not recorded ({reason}): somebody has said"
            " otherwise meanwhile, or has it run again; look at the call",
            at=self.at,
            reason=reason,
        )


def is_said(outcome: OutcomeView, told: Report) -> bool:
    """Whether an outcome is what a report tells."""
    if isinstance(told.result, Absent):
        return outcome.status is Status.FAILED and outcome.error == told.error
    if outcome.status is not Status.SUCCEEDED or isinstance(outcome.result, Absent):
        return False
    return same_json(outcome.result, told.result)
