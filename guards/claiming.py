"""What a call that is to be run calls for: a claim, its recorded outcome, or whoever is in its way.

The claim alone decides who executes (K-33). What has ended is replayed, whatever became of its turn
meanwhile, and never executed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import attrs

from ..engine.kernel import Kernel
from ..models.calls import Call, Status
from ..models.deliveries import Claim
from ..models.lifecycle_facts import DenialCause
from ..models.reasons import Reason
from ..models.record import any_text, field, instance, json_object, record
from ..models.values import Absent, Json, same_json
from ..runtime.tools.policy import Policy
from ..views.call_view import CallView, OutcomeView, Waits
from ..views.live import call_of
from ..views.meanings import REASONS
from .errors import Differs, GuardRefused, NotApproved, Stale
from .past import Past
from .values import At, Outcome
from .visits import Step

Claimed: TypeAlias = CallView | Outcome[Json] | GuardRefused
"""A call to be claimed, or that somebody runs, or that is in doubt; or how it ended; or why not."""


@record
class Claiming:
    """One call that a host is about to run, with the tool and the arguments that it would run."""

    at: At = field(validator=instance(At))
    tool: str = field(validator=any_text)
    arguments: Mapping[str, Json] = field(converter=json_object)
    worker: str
    policy: Policy | None
    """What is declared about the tool."""
    lease: float

    def __call__(self, kernel: Kernel, past: Past) -> Step[Claimed]:
        """Say what it calls for; a call that is ready is claimed. Raises `Unread`."""
        at = known_at(self.at, kernel, past)
        if isinstance(at, Stale):
            return Step(answer=at)
        turn_id = at.turn or ""
        call = call_of(kernel, turn_id=turn_id, invocation_id=at.call)
        if call is None or call.ended:
            return Step(answer=self._ended(at, kernel, past))
        refused = self._refused(at, call, past)
        if refused is not None or not call.owed:
            return Step(answer=refused or call)
        claim = Claim(
            run_id=at.run,
            turn_id=turn_id,
            invocation_id=at.call,
            attempt=call.owed,
            worker=self.worker,
            lease=self.lease,
        )
        return Step(deliveries=(claim,), answer=call)

    def _refused(self, at: At, call: CallView, past: Past) -> GuardRefused | None:
        """Say why a call that has not ended is not run here. Raises `Unread`."""
        if self._differs(call, lambda: past.told(call.turn_id).opened[at.call]):
            return differs(at, call.tool_name)
        if call.gated:
            return not_approved(at, call)
        declared = self.policy is not None and self.policy.approval is True
        return ungated(at) if declared and call.owed and not call.requires_approval else None

    def _ended(self, at: At, kernel: Kernel, past: Past) -> Claimed:
        """Return the outcome of a call that has ended, or why there is none."""
        call = ended_call(at, kernel, past)
        if call is None:
            return unknown(at)
        if self._differs(call, lambda: past.told(call.turn_id).opened[at.call]):
            return differs(at, call.tool_name)
        if is_closed_unstarted(call):
            return late(at)
        return outcome_of(call)

    def _differs(self, call: CallView, opened: Callable[[], Call]) -> bool:
        """Whether the tool or the arguments are others than those that run, or were asked for."""
        if call.tool_name != self.tool:
            return True
        if call.arguments is not None and same_json(self.arguments, call.arguments):
            return False
        edited = call.decision is not None and call.decision.arguments is not None
        return not (edited and same_json(self.arguments, opened().arguments))


def known_at(at: At, kernel: Kernel, past: Past) -> At | Stale:
    """Return a call with its turn; of one without a turn that of the latest which has it.

    Raises `Unread`.
    """
    if at.turn is not None:
        return at
    turn_id = past.turn_of_call(kernel, at.call)
    return unknown(at) if turn_id is None else attrs.evolve(at, turn=turn_id)


def ended_call(at: At, kernel: Kernel, past: Past) -> CallView | None:
    """Return a call of a closed turn, or one that has ended in the open one; None: no such call.

    Raises `Unread`.
    """
    turn_id = at.turn or ""
    if not past.has(kernel, turn_id):
        return None
    told = past.told(turn_id)
    call = told.view.calls.get(at.call)
    if call is not None and not call.ended:
        told = past.told(turn_id, by=kernel.sequence)
        call = told.view.calls.get(at.call)
    return call


def is_closed_unstarted(call: CallView) -> bool:
    """Whether it was denied by nobody: its turn was closed before anybody started it."""
    return call.outcome is not None and call.outcome.cause is DenialCause.INTERRUPT


def outcome_of(call: CallView) -> Outcome[Json]:
    """Return how a call has ended, as a record of it."""
    ended = call.outcome or OutcomeView(status=Status.FAILED)
    return Outcome(
        status=ended.status,
        value=None if isinstance(ended.result, Absent) else ended.result,
        error=ended.error,
        reason=ended.reason,
        replayed=True,
        attempt=call.attempt,
    )


def is_running(call: CallView) -> bool:
    """Whether somebody has claimed it, and it is neither lost nor ended."""
    return call.waits is Waits.REPORT


def not_approved(at: At, call: CallView) -> NotApproved:
    """Return the refusal of a call that waits for a decision."""
    return NotApproved(
        f"{at} ({call.tool_name}) waits for a decision: nothing was executed;"
        f" decide with turnlock approve, or Guard.decide",
        at=at,
        digest=call.arguments_digest or "",
        arguments=call.arguments or {},
    )


def differs(at: At, tool: str) -> Differs:
    """Return the refusal of other arguments, or another tool, than were opened."""
    return Differs(
        f"{at} was opened for {tool!r} with other arguments, or another tool: nothing was"
        " executed; run what was opened, or have the edited arguments approved (Guard.decide)",
        at=at,
    )


def ungated(at: At) -> Differs:
    """Return the refusal of a call that was opened without the approval that it needs here."""
    return Differs(
        f"{at} was opened by a guard that asked for no approval, and here it needs one: nothing was"
        " executed; let all guards of the journal declare the same, and have it asked for again",
        at=at,
    )


def unknown(at: At) -> Stale:
    """Return the refusal of a call that no turn has."""
    return Stale(
        f"{at} was never opened: nothing was executed; is the guard's hook that opens turns"
        " in place, and is this the journal of that conversation?",
        at=at,
        reason=Reason.UNKNOWN_INVOCATION,
    )


def late(at: At) -> Stale:
    """Return the refusal of a call whose turn was closed before it was started."""
    return Stale(
        f"{at} is over: its turn was closed before it was started, and nothing was executed",
        at=at,
        reason=Reason.LATE,
    )


def refused_by_run(at: At, reason: Reason) -> Stale:
    """Return the refusal of what no other rule has foreseen; whatever it is, it did not happen."""
    return Stale(
        f"{at}: the run has refused it ({reason}: {REASONS[reason]}), and nothing was executed"
        " or changed; look at the run with turnlock show",
        at=at,
        reason=reason,
    )
